// RUN: triton-metal-opt %s | triton-metal-opt | FileCheck %s
// RUN: triton-metal-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL

// CHECK-LABEL: msl.kernel @forms
// CHECK: msl.in_threads lanes 31 = 0 simdgroups 2 = 2 {
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK: %[[OLD:.*]]:2 = msl.in_threads lanes 1 = 1 -> (i32, vector<4xf32>) {
// CHECK-NEXT: %[[R:.*]] = msl.atomic_rmw
// CHECK-NEXT: msl.yield %[[R]], %{{.*}} : i32, vector<4xf32>
// CHECK: msl.in_threads simdgroups 1 = 0 {
// CHECK: msl.in_threads {
msl.kernel @forms(%x: !msl.ptr<f32, device>, %c: !msl.ptr<i32, device>, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %z = arith.constant dense<0.0> : vector<4xf32>
  msl.in_threads lanes 31 = 0 simdgroups 2 = 2 {
    msl.store %f, %x[%n] : f32, !msl.ptr<f32, device>, i32
  }
  %old:2 = msl.in_threads lanes 1 = 1 -> (i32, vector<4xf32>) {
    %r = msl.atomic_rmw add %c[%c0], %n : !msl.ptr<i32, device>, i32, i32
    msl.yield %r, %z : i32, vector<4xf32>
  }
  msl.in_threads simdgroups 1 = 0 {
    msl.store %f, %x[%old#0] : f32, !msl.ptr<f32, device>, i32
  }
  msl.in_threads {
    msl.store %f, %x[%c0] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// A region that all threads run is none, and so is one that all threads run that come to it.
// CANONICAL-LABEL: msl.kernel @inlined
// CANONICAL-NEXT: %[[R:.*]] = msl.atomic_rmw
// CANONICAL-NEXT: msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
// CANONICAL-NEXT: msl.store %arg2, %arg0[%[[R]]]
// CANONICAL-NEXT: msl.store %arg2, %arg0[%arg3]
// CANONICAL-NEXT: }
// CANONICAL-NEXT: msl.return
msl.kernel @inlined(%x: !msl.ptr<f32, device>, %c: !msl.ptr<i32, device>, %f: f32, %n: i32) threads 128 {
  %old = msl.in_threads -> (i32) {
    %r = msl.atomic_rmw add %c[%n], %n : !msl.ptr<i32, device>, i32, i32
    msl.yield %r : i32
  }
  msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
    msl.in_threads lanes 16 = 0 simdgroups 1 = 0 {
      msl.store %f, %x[%old] : f32, !msl.ptr<f32, device>, i32
    }
    msl.store %f, %x[%n] : f32, !msl.ptr<f32, device>, i32
  }
  // Nothing to run.
  msl.in_threads lanes 31 = 0 {
  }
  msl.return
}

// Fewer threads, or others, than come there.
// CANONICAL-LABEL: msl.kernel @kept
// CANONICAL: msl.in_threads lanes 24 = 0 {
// CANONICAL-NEXT: msl.in_threads lanes 31 = 0 {
// CANONICAL: msl.in_threads lanes 8 = 8 {
// CANONICAL: msl.in_threads lanes 8 = 0 simdgroups 1 = 0 {
msl.kernel @kept(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  msl.in_threads lanes 24 = 0 {
    msl.in_threads lanes 31 = 0 {
      msl.store %f, %x[%n] : f32, !msl.ptr<f32, device>, i32
    }
    msl.in_threads lanes 8 = 8 {
      msl.store %f, %x[%n] : f32, !msl.ptr<f32, device>, i32
    }
    msl.in_threads lanes 8 = 0 simdgroups 1 = 0 {
      msl.store %f, %x[%n] : f32, !msl.ptr<f32, device>, i32
    }
  }
  msl.return
}
