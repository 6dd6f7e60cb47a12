// RUN: triton-metal-opt %s --split-input-file --msl-insert-barriers --msl-check-barriers --verify-diagnostics | FileCheck %s
// RUN: triton-metal-opt %s --split-input-file --canonicalize --cse --canonicalize --msl-insert-barriers --canonicalize --cse --msl-check-barriers --verify-diagnostics | FileCheck %s

// Two branches that canonicalization makes one: the barrier stands between them all the same.
// CHECK-LABEL: @adjacent
// CHECK: scf.if %[[C:.*]] {
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: scf.if %[[C]] {
// CHECK-NEXT: msl.load
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
msl.kernel @adjacent(%f: f32, %out: !msl.ptr<f32, device>) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 4 : !msl.ptr<f32, threadgroup>
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %other = arith.xori %simdgroup, %c1 : i32
  %first = arith.cmpi eq, %lane, %c0 : i32
  scf.if %first {
    msl.store %f, %a[%simdgroup] : f32, !msl.ptr<f32, threadgroup>, i32
  }
  scf.if %first {
    %x = msl.load %a[%other] : !msl.ptr<f32, threadgroup>, i32 -> f32
    msl.store %x, %out[%simdgroup] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// One branch with a hazard inside: what the second part needs of the first goes through, or is computed again.
// CHECK-LABEL: @inside
// CHECK: %[[R:.*]] = scf.if %[[C:.*]] -> (f32) {
// CHECK: %[[U:.*]] = msl.load %arg1
// CHECK: arith.addi
// CHECK: msl.store
// CHECK: scf.yield %[[U]] : f32
// CHECK-NEXT: } else {
// CHECK: }
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: scf.if %[[C]] {
// CHECK: msl.load %{{.*}} : <f32, threadgroup>
// CHECK: arith.addf %{{.*}}, %[[R]]
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @inside(%f: f32, %out: !msl.ptr<f32, device>) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 4 : !msl.ptr<f32, threadgroup>
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %first = arith.cmpi eq, %lane, %c0 : i32
  scf.if %first {
    %u = msl.load %out[%simdgroup] : !msl.ptr<f32, device>, i32 -> f32
    %i = arith.addi %simdgroup, %c1 : i32
    msl.store %u, %a[%i] : f32, !msl.ptr<f32, threadgroup>, i32
    %j = arith.xori %i, %c1 : i32
    %x = msl.load %a[%j] : !msl.ptr<f32, threadgroup>, i32 -> f32
    %y = arith.addf %x, %u : f32
    msl.store %y, %out[%simdgroup] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// Branches in branches, with results, and the two sides of one condition.
// CHECK-LABEL: @sides
// CHECK: scf.if %[[C:[a-z0-9_]+]]
// CHECK-NOT: msl.barrier
// CHECK: msl.store
// CHECK: }
// CHECK: msl.barrier
// CHECK-NEXT: scf.if %[[C]] -> (f32)
// CHECK-NOT: msl.barrier
// CHECK: msl.load %{{.*}} : <f32, threadgroup>
// CHECK: msl.return
msl.kernel @sides(%f: f32, %out: !msl.ptr<f32, device>) threads 128 {
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  %a = msl.alloc "a", 4 : !msl.ptr<f32, threadgroup>
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %first = arith.cmpi eq, %lane, %c0 : i32
  %seventh = arith.cmpi eq, %lane, %c7 : i32
  %r = scf.if %first -> (f32) {
    %v = msl.load %out[%simdgroup] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %v, %a[%simdgroup] : f32, !msl.ptr<f32, threadgroup>, i32
    scf.yield %v : f32
  } else {
    %w = scf.if %seventh -> (f32) {
      %x = msl.load %a[%c0] : !msl.ptr<f32, threadgroup>, i32 -> f32
      scf.yield %x : f32
    } else {
      scf.yield %f : f32
    }
    scf.yield %w : f32
  }
  %i = arith.addi %lane, %c7 : i32
  msl.store %r, %out[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// What a reduction leaves is the same in all threads, which says `msl.uniform`; what it is made of is not.
// CHECK-LABEL: @uniform
// CHECK: msl.store
// CHECK: scf.if
// CHECK-NEXT: msl.barrier
// CHECK: msl.store %arg0
// CHECK-NOT: scf.if
// CHECK: msl.barrier
// CHECK-NEXT: scf.if
// CHECK-NEXT: msl.load
msl.kernel @uniform(%f: f32, %out: !msl.ptr<f32, device>) threads 64 {
  %c0 = arith.constant 0 : i32
  %a = msl.alloc "a", 2 : !msl.ptr<f32, threadgroup>
  %simdgroup = msl.simdgroup : i32
  %s = msl.simd_reduce max %simdgroup : i32
  %u = msl.uniform %s : i32
  msl.store %f, %a[%simdgroup] : f32, !msl.ptr<f32, threadgroup>, i32
  %c = arith.cmpi sgt, %u, %c0 : i32
  scf.if %c {
    %x = msl.load %a[%c0] : !msl.ptr<f32, threadgroup>, i32 -> f32
    msl.store %x, %out[%simdgroup] : f32, !msl.ptr<f32, device>, i32
  }
  msl.store %f, %a[%simdgroup] : f32, !msl.ptr<f32, threadgroup>, i32
  %d = arith.cmpi sgt, %s, %c0 : i32
  scf.if %d {
    %x = msl.load %a[%c0] : !msl.ptr<f32, threadgroup>, i32 -> f32
    msl.store %x, %out[%simdgroup] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// A loop that threads leave at different steps cannot be cut.
msl.kernel @loop(%f: f32, %out: !msl.ptr<f32, device>) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 128 : !msl.ptr<f32, threadgroup>
  %lane = msl.lane : i32
  scf.for %k = %c0 to %lane step %c1 : i32 {
    // expected-error @below {{needs all threads of its program to have come this far, in a loop that not all of them run equally often}}
    msl.store %f, %a[%lane] : f32, !msl.ptr<f32, threadgroup>, i32
    %x = msl.load %a[%k] : !msl.ptr<f32, threadgroup>, i32 -> f32
    msl.store %x, %out[%lane] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// Nor one whose condition each thread computes by itself.
msl.kernel @while(%f: f32, %out: !msl.ptr<f32, device>) threads 128 {
  %c1 = arith.constant 1 : i32
  %lane = msl.lane : i32
  %r = scf.while (%k = %lane) : (i32) -> i32 {
    %more = arith.cmpi sgt, %k, %c1 : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    // expected-error @below {{needs all threads of its program to have come this far, in a loop that not all of them run equally often}}
    msl.store %f, %out[%k] : f32, !msl.ptr<f32, device>, i32
    %next = arith.subi %k, %c1 : i32
    %x = msl.load %out[%next] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %x, %out[%lane] : f32, !msl.ptr<f32, device>, i32
    scf.yield %next : i32
  }
  msl.return
}
