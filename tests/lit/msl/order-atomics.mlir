// RUN: triton-metal-opt %s --msl-order-atomics | FileCheck %s
// RUN: triton-metal-opt %s --canonicalize --cse --msl-order-atomics --canonicalize --cse --msl-insert-barriers --msl-check-barriers -o /dev/null

// The last program reads what all of them stored. One thread counts; what it found goes to the others.
// CHECK-LABEL: @last
// CHECK-SAME: %[[X:.*]]: !msl.ptr<f32, device> {msl.coherent}
// CHECK-SAME: %[[C:.*]]: !msl.ptr<i32, device>, %
// CHECK: msl.store %{{.*}}, %[[X]]
// CHECK-NEXT: msl.fence
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.in_threads lanes 31 = 0 simdgroups 3 = 0 -> (i32) {
// CHECK-NEXT: msl.fence
// CHECK-NEXT: msl.atomic_rmw add %{{.*}}[%{{.*}}], %{{[^ ]*}} : <i32, device>
// CHECK-NEXT: msl.fence
// CHECK: msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
// CHECK-NEXT: msl.store %{{.*}} : i32, <i32, threadgroup>
// CHECK-NEXT: }
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.fence
// CHECK-NEXT: msl.load
msl.kernel @last(%x: !msl.ptr<f32, device>, %counter: !msl.ptr<i32, device>, %out: !msl.ptr<f32, device>, %i: i32, %f: f32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lane = msl.lane : i32
  %m = msl.alloc "m", 1 : !msl.ptr<i32, threadgroup>
  msl.store %f, %x[%lane] : f32, !msl.ptr<f32, device>, i32
  %old = msl.in_threads lanes 31 = 0 simdgroups 3 = 0 -> (i32) {
    %r = msl.atomic_rmw add %counter[%c0], %c1 order acq_rel : !msl.ptr<i32, device>, i32, i32
    msl.yield %r : i32
  }
  msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
    msl.store %old, %m[%c0] : i32, !msl.ptr<i32, threadgroup>, i32
  }
  %done = msl.load %m[%c0] : !msl.ptr<i32, threadgroup>, i32 -> i32
  %last = arith.cmpi eq, %done, %i : i32
  scf.if %last {
    %v = msl.load %x[%i] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %v, %out[%lane] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// Nobody reads what is stored: which program counted first shows nowhere.
// CHECK-LABEL: @tickets
// CHECK-NOT: msl.fence
// CHECK-NOT: msl.barrier
// CHECK-NOT: order
// CHECK: msl.return
msl.kernel @tickets(%x: !msl.ptr<f32, device>, %counter: !msl.ptr<i32, device>, %out: !msl.ptr<f32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = msl.load %x[%c0] : !msl.ptr<f32, device>, i32 -> f32
  %r = msl.atomic_rmw add %counter[%c0], %c1 order acq_rel : !msl.ptr<i32, device>, i32, i32
  msl.store %v, %out[%r] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// Sums that nobody looks at, in a loop, and one element that all programs draw from.
// CHECK-LABEL: @accumulate
// CHECK-NOT: msl.fence
// CHECK-NOT: msl.barrier
// CHECK-NOT: order
// CHECK: msl.return
msl.kernel @accumulate(%x: !msl.ptr<f32, device>, %sum: !msl.ptr<f32, device>, %counter: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %v = msl.load %x[%k] : !msl.ptr<f32, device>, i32 -> f32
    %r = msl.atomic_rmw fadd %sum[%k], %v order acq_rel : !msl.ptr<f32, device>, i32, f32
    %s = msl.atomic_rmw add %counter[%c0], %c1 order acq_rel : !msl.ptr<i32, device>, i32, i32
    %t = msl.atomic_rmw fadd %sum[%s], %v order acq_rel : !msl.ptr<f32, device>, i32, f32
  }
  msl.return
}

// The same with results that are used: what one update found may say that another one has happened.
// CHECK-LABEL: @results
// CHECK: msl.fence
// CHECK: msl.atomic_rmw add %{{.*}}[%[[K:.*]]], %{{[^ ]*}} :
msl.kernel @results(%sum: !msl.ptr<i32, device>, %out: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %r = msl.atomic_rmw add %sum[%k], %c1 order acq_rel : !msl.ptr<i32, device>, i32, i32
    %s = msl.atomic_rmw add %out[%r], %c1 : !msl.ptr<i32, device>, i32, i32
  }
  msl.return
}

// To release orders what comes before alone, and to acquire what comes after. The kernel has both, of one flag.
// CHECK-LABEL: @halves
// CHECK: msl.store
// CHECK-NEXT: msl.fence
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.fence
// CHECK-NEXT: msl.atomic_rmw exchange
// CHECK-NOT: msl.fence
// CHECK: msl.atomic_rmw or
// CHECK-NEXT: msl.fence
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.fence
// CHECK-NEXT: msl.load
msl.kernel @halves(%x: !msl.ptr<f32, device>, %flag: !msl.ptr<i32, device>, %out: !msl.ptr<f32, device>, %i: i32, %f: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  %r = msl.atomic_rmw exchange %flag[%i], %c1 order release : !msl.ptr<i32, device>, i32, i32
  %s = msl.atomic_rmw or %flag[%i], %c0 order acquire : !msl.ptr<i32, device>, i32, i32
  %v = msl.load %x[%s] : !msl.ptr<f32, device>, i32 -> f32
  msl.store %v, %out[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// Nobody acquires what the first one releases: the flags are apart.
// CHECK-LABEL: @apart
// CHECK-NOT: msl.fence
// CHECK: msl.return
msl.kernel @apart(%x: !msl.ptr<f32, device>, %flag: !msl.ptr<i32, device>, %other: !msl.ptr<i32, device>, %i: i32, %f: f32) threads 32 {
  %c1 = arith.constant 1 : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  %r = msl.atomic_rmw exchange %flag[%i], %c1 order release : !msl.ptr<i32, device>, i32, i32
  %s = msl.atomic_rmw or %other[%i], %c1 order acquire : !msl.ptr<i32, device>, i32, i32
  %v = msl.load %x[%s] : !msl.ptr<f32, device>, i32 -> f32
  msl.store %v, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// Reads before and a write after meet as well: the last program may only clear what all have read.
// CHECK-LABEL: @clear
// CHECK-SAME: {msl.coherent}
// CHECK: msl.fence
// CHECK: msl.atomic_cas
msl.kernel @clear(%x: !msl.ptr<f32, device>, %flag: !msl.ptr<i32, device>, %i: i32, %f: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %v = msl.load %x[%i] : !msl.ptr<f32, device>, i32 -> f32
  %n = arith.fptosi %v : f32 to i32
  %r = msl.atomic_cas %flag[%c0], %c0, %n order acq_rel : !msl.ptr<i32, device>, i32, i32
  msl.store %f, %x[%r] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// Arguments that overlap, and pointers from addresses.
// CHECK-LABEL: @addresses
// CHECK-SAME: !msl.ptr<f32, device> {msl.coherent}
// CHECK-SAME: attributes {msl.coherent}
// CHECK: msl.fence
msl.kernel @addresses(%x: !msl.ptr<f32, device>, %flag: !msl.ptr<i32, device>, %a: i64, %f: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  msl.store %f, %x[%c0] : f32, !msl.ptr<f32, device>, i32
  %r = msl.atomic_rmw add %flag[%c0], %c1 order acq_rel : !msl.ptr<i32, device>, i32, i32
  %wide = arith.extsi %r : i32 to i64
  %b = arith.addi %a, %wide : i64
  %v = msl.load_address %b : i64 -> f32
  %w = msl.atomic_rmw fadd %x[%c0], %v : !msl.ptr<f32, device>, i32, f32
  msl.return
}

// CHECK-LABEL: @overlap
// CHECK: msl.fence
msl.kernel @overlap(%x: !msl.ptr<f32, device> {msl.memory = 1 : i32}, %y: !msl.ptr<f32, device> {msl.memory = 1 : i32},
                    %flag: !msl.ptr<i32, device>, %out: !msl.ptr<f32, device>, %f: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  msl.store %f, %x[%c0] : f32, !msl.ptr<f32, device>, i32
  %r = msl.atomic_rmw add %flag[%c0], %c1 order acq_rel : !msl.ptr<i32, device>, i32, i32
  %v = msl.load %y[%r] : !msl.ptr<f32, device>, i32 -> f32
  msl.store %v, %out[%r] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
