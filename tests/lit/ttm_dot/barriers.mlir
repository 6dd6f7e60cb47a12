// RUN: triton-metal-opt %s --msl-insert-barriers | FileCheck %s

// CHECK-LABEL: @straight
// Nothing to wait for between two stores to different allocations, nor between two reads.
// CHECK: msl.store
// CHECK-NEXT: msl.store
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: msl.load
// CHECK-NEXT: msl.load
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: msl.store
msl.kernel @straight(%i: i32, %f: f32) threads 128 {
  %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
  %b = msl.alloc "b", 128 at 512 : !msl.ptr<f32, threadgroup>
  msl.store %f, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.store %f, %b[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  %x = msl.load %a[%i] : !msl.ptr<f32, threadgroup>, i32 -> f32
  %y = msl.load %b[%i] : !msl.ptr<f32, threadgroup>, i32 -> f32
  msl.store %y, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.return
}

// Bytes that are shared are the same memory.
// CHECK-LABEL: @shared
// CHECK: msl.load
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: msl.store
msl.kernel @shared(%i: i32) threads 128 {
  %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
  %b = msl.alloc "b", 128 at 256 : !msl.ptr<f32, threadgroup>
  %x = msl.load %a[%i] : !msl.ptr<f32, threadgroup>, i32 -> f32
  msl.store %x, %b[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.return
}

// Arguments are apart, unless they say otherwise.
// CHECK-LABEL: @arguments
// CHECK: msl.load %arg0
// CHECK-NEXT: msl.store {{.*}}, %arg1
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.store {{.*}}, %arg2
msl.kernel @arguments(%x: !msl.ptr<f32, device> {msl.memory = 1 : i32}, %y: !msl.ptr<f32, device>,
                      %z: !msl.ptr<f32, device> {msl.memory = 1 : i32}, %i: i32) threads 128 {
  %v = msl.load %x[%i] : !msl.ptr<f32, device>, i32 -> f32
  msl.store %v, %y[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %v, %z[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// Steps of a loop that may write the same places of device memory: the barrier that stands in between already orders them, too.
// CHECK-LABEL: @steps
// CHECK: scf.for
// CHECK: msl.barrier{{$}}
// CHECK-NEXT: msl.store {{.*}} : f32, <f32, threadgroup>
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load
// CHECK-NOT: msl.barrier
// CHECK: msl.store {{.*}} : f32, <f32, device>
// CHECK-NEXT: }
msl.kernel @steps(%x: !msl.ptr<f32, device>, %n: i32, %i: i32, %f: f32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
    msl.store %f, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
    %v = msl.load %a[%c0] : !msl.ptr<f32, threadgroup>, i32 -> f32
    %o = arith.muli %k, %i : i32
    msl.store %v, %x[%o] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// One buffer in a loop: before it is overwritten, and before it is read.
// CHECK-LABEL: @single
// CHECK: scf.for
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: msl.store
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: msl.load
// CHECK-NEXT: }
msl.kernel @single(%i: i32, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
  scf.for %k = %c0 to %n step %c1 : i32 {
    msl.store %f, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
    %x = msl.load %a[%i] : !msl.ptr<f32, threadgroup>, i32 -> f32
  }
  msl.return
}

// Two slots in turn: one barrier a step.
// CHECK-LABEL: @double
// CHECK: msl.store
// CHECK: scf.for
// CHECK-COUNT-1: msl.barrier
// CHECK: msl.load
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @double(%i: i32, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 128 slots 2 at 0 : !msl.ptr<f32, threadgroup>
  msl.store %f, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%slot = %c0) -> (i32) : i32 {
    %p = msl.slot %a[%slot] : !msl.ptr<f32, threadgroup>
    %x = msl.load %p[%i] : !msl.ptr<f32, threadgroup>, i32 -> f32
    %next = msl.next_slot %slot of 2 : i32
    %p2 = msl.slot %a[%next] : !msl.ptr<f32, threadgroup>
    msl.store %x, %p2[%i] : f32, !msl.ptr<f32, threadgroup>, i32
    scf.yield %next : i32
  }
  msl.return
}

// Where threads part ways there is no barrier inside; the branches of a uniform condition are followed.
// CHECK-LABEL: @branches
// CHECK: msl.store
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: scf.if
// CHECK-NEXT: msl.load
// CHECK-NEXT: }
// CHECK: scf.if
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: msl.store
msl.kernel @branches(%i: i32, %f: f32, %c: i1) threads 128 {
  %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
  %lane = msl.lane : i32
  %first = arith.cmpi eq, %lane, %i : i32
  msl.store %f, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  scf.if %first {
    %x = msl.load %a[%i] : !msl.ptr<f32, threadgroup>, i32 -> f32
  }
  scf.if %c {
    msl.store %f, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  }
  msl.return
}

// Device memory: what is written and then read through the same argument elsewhere.
// CHECK-LABEL: @device
// CHECK: msl.load %arg0
// CHECK-NEXT: msl.store %{{.*}}, %arg0
// CHECK-NEXT: msl.load %arg1
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load %arg0
msl.kernel @device(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %i: i32, %j: i32) threads 128 {
  %u = msl.load %x[%i] : !msl.ptr<f32, device>, i32 -> f32
  msl.store %u, %x[%i] : f32, !msl.ptr<f32, device>, i32
  %w = msl.load %y[%j] : !msl.ptr<f32, device>, i32 -> f32
  %v = msl.load %x[%j] : !msl.ptr<f32, device>, i32 -> f32
  msl.return
}

// What is written twice is written in order, unless the places can be told apart.
// CHECK-LABEL: @written_twice
// CHECK: msl.store %{{.*}}, %arg0
// CHECK-NEXT: msl.store %{{.*}}, %arg0
// CHECK-NEXT: msl.store %{{.*}}, %arg1
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.store %{{.*}}, %arg0
msl.kernel @written_twice(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %j: i32) threads 128 {
  %lane = msl.lane : i32
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %f = arith.constant 1.0 : f32
  %i = arith.addi %n, %lane : i32
  %beyond = arith.addi %i, %c32 : i32
  %back = arith.subi %c31, %lane : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %x[%beyond] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %y[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %x[%back] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// The steps of the first loop write side by side, those of the second one over each other.
// CHECK-LABEL: @written_in_steps
// CHECK: scf.for
// CHECK-NOT: msl.barrier
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK-NEXT: msl.store
msl.kernel @written_in_steps(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %lane = msl.lane : i32
  %c0 = arith.constant 0 : i32
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %f = arith.constant 1.0 : f32
  scf.for %k = %c0 to %n step %c32 : i32 {
    %i = arith.addi %k, %lane : i32
    msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  }
  scf.for %k = %c0 to %n step %c31 : i32 {
    %i = arith.addi %k, %lane : i32
    msl.store %f, %y[%i] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// Atomics of several threads meet in one place.
// CHECK-LABEL: @counted
// CHECK: msl.atomic_rmw
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load
msl.kernel @counted(%x: !msl.ptr<i32, device>, %i: i32) threads 128 {
  %c1 = arith.constant 1 : i32
  %old = msl.atomic_rmw add %x[%i], %c1 : !msl.ptr<i32, device>, i32, i32
  %v = msl.load %x[%i] : !msl.ptr<i32, device>, i32 -> i32
  msl.return
}

// What is read from device memory does not wait for the barrier in registers; what lies between comes before. The loop's last barrier
// orders what is read from %q and what is written to it behind the loop.
// CHECK-LABEL: @staging
// CHECK: scf.for
// CHECK-NEXT: %[[FIRST:.*]] = msl.load %arg1
// CHECK-NEXT: arith.addf %{{.*}}, %[[FIRST]]
// CHECK-NEXT: msl.barrier{{$}}
// CHECK-NEXT: %[[X:.*]] = msl.load %arg0
// CHECK-NEXT: msl.store %[[X]], %{{.*}} : f32, <f32, threadgroup>
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load %{{.*}} <f32, threadgroup>
msl.kernel @staging(%p: !msl.ptr<f32, device>, %q: !msl.ptr<f32, device>, %n: i32, %i: i32, %f: f32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %f) -> f32 : i32 {
    %y = msl.load %q[%k] : !msl.ptr<f32, device>, i32 -> f32
    %x = msl.load %p[%k] : !msl.ptr<f32, device>, i32 -> f32
    %t = arith.addf %s, %y : f32
    msl.store %x, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
    %z = msl.load %a[%k] : !msl.ptr<f32, threadgroup>, i32 -> f32
    %u = arith.addf %t, %z : f32
    scf.yield %u : f32
  }
  msl.store %sum, %q[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// A barrier stays behind what reads threadgroup memory, and behind stores to device memory.
// CHECK-LABEL: @not_staging
// CHECK: msl.load %arg0
// CHECK-NEXT: msl.load %{{.*}} <f32, threadgroup>
// CHECK-NEXT: msl.store {{.*}} <f32, device>
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: msl.store {{.*}} <f32, threadgroup>
msl.kernel @not_staging(%p: !msl.ptr<f32, device>, %q: !msl.ptr<f32, device>, %i: i32, %f: f32) threads 128 {
  %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
  %x = msl.load %p[%i] : !msl.ptr<f32, device>, i32 -> f32
  %y = msl.load %a[%i] : !msl.ptr<f32, threadgroup>, i32 -> f32
  msl.store %y, %q[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %x, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.return
}

// What a thread reads in device memory, and another one overwrites: a barrier that stands in between orders device memory, too.
// CHECK-LABEL: @read_and_overwritten
// CHECK: msl.load %arg0
// CHECK-NEXT: msl.store {{.*}} <f32, threadgroup>
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load %{{.*}} <f32, threadgroup>
// CHECK-NEXT: msl.store {{.*}}, %arg0
msl.kernel @read_and_overwritten(%p: !msl.ptr<f32, device>, %i: i32, %j: i32) threads 128 {
  %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
  %x = msl.load %p[%i] : !msl.ptr<f32, device>, i32 -> f32
  msl.store %x, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  %y = msl.load %a[%j] : !msl.ptr<f32, threadgroup>, i32 -> f32
  msl.store %y, %p[%j] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// A barrier that stands outside of a loop orders what comes before and behind the loop, so that those in its steps need not.
// CHECK-LABEL: @around_a_loop
// CHECK: msl.store {{.*}}, %arg0
// CHECK-NEXT: msl.store {{.*}} <f32, threadgroup>
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load
// CHECK-NEXT: scf.for
// CHECK: msl.barrier{{$}}
// CHECK: msl.barrier{{$}}
// CHECK: msl.store {{.*}}, %arg0
msl.kernel @around_a_loop(%p: !msl.ptr<f32, device>, %i: i32, %j: i32, %n: i32, %f: f32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 128 at 0 : !msl.ptr<f32, threadgroup>
  msl.store %f, %p[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  %y = msl.load %a[%j] : !msl.ptr<f32, threadgroup>, i32 -> f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %y) -> f32 : i32 {
    %x = msl.load %a[%j] : !msl.ptr<f32, threadgroup>, i32 -> f32
    %t = arith.addf %s, %x : f32
    msl.store %t, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
    scf.yield %t : f32
  }
  msl.store %sum, %p[%j] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
