// RUN: triton-metal-opt %s --msl-expand-in-threads | FileCheck %s

// One condition for all regions of the same threads, outside of the loops around the first of them.
// CHECK-LABEL: msl.kernel @once
// CHECK-NEXT: %[[SIMDGROUP:.*]] = msl.simdgroup : i32
// CHECK-NEXT: %[[LANE:.*]] = msl.lane : i32
// CHECK: %[[IS_LANE:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32{{.*}} : i32
// CHECK: %[[GROUP:.*]] = arith.andi %[[SIMDGROUP]], %c2_i32
// CHECK: %[[IS_GROUP:.*]] = arith.cmpi eq, %[[GROUP]], %c2_i32
// CHECK: %[[IF:.*]] = arith.andi %[[IS_LANE]], %[[IS_GROUP]] : i1
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.if %[[IF]] {
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: scf.if %[[IF]] {
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK-NEXT: msl.return
msl.kernel @once(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    msl.in_threads lanes 31 = 0 simdgroups 2 = 2 {
      msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
    }
  }
  msl.in_threads lanes 31 = 0 simdgroups 2 = 2 {
    msl.store %f, %x[%n] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// A condition in one branch is none in the other.
// CHECK-LABEL: msl.kernel @branches
// CHECK: scf.if %arg2 {
// CHECK: %[[A:.*]] = arith.cmpi eq, %{{.*}}, %c3_i32
// CHECK-NEXT: scf.if %[[A]]
// CHECK: } else {
// CHECK: %[[B:.*]] = arith.cmpi eq, %{{.*}}, %c3_i32
// CHECK-NEXT: scf.if %[[B]]
msl.kernel @branches(%x: !msl.ptr<f32, device>, %f: f32, %c: i1, %n: i32) threads 128 {
  scf.if %c {
    msl.in_threads simdgroups 3 = 3 {
      msl.store %f, %x[%n] : f32, !msl.ptr<f32, device>, i32
    }
  } else {
    msl.in_threads simdgroups 3 = 3 {
      msl.store %f, %x[%n] : f32, !msl.ptr<f32, device>, i32
    }
  }
  msl.return
}

// Other threads have 0 as a result. Positions that the kernel has already are used.
// CHECK-LABEL: msl.kernel @results
// CHECK: %[[LANE:.*]] = msl.lane : i32
// CHECK-NOT: msl.lane
// CHECK: %[[BITS:.*]] = arith.andi %[[LANE]], %c16_i32
// CHECK: %[[IF:.*]] = arith.cmpi eq, %[[BITS]], %c0_i32
// CHECK-NEXT: %[[OLD:.*]]:2 = scf.if %[[IF]] -> (i32, vector<4xf32>) {
// CHECK-NEXT: %[[R:.*]] = msl.atomic_rmw
// CHECK-NEXT: scf.yield %[[R]], %{{.*}} : i32, vector<4xf32>
// CHECK-NEXT: } else {
// CHECK-DAG: %[[NUMBER:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[VECTOR:.*]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK: scf.yield %[[NUMBER]], %[[VECTOR]]
// CHECK-NEXT: }
// CHECK: msl.store %[[OLD]]#1, %arg1[%{{.*}}]
msl.kernel @results(%c: !msl.ptr<i32, device>, %x: !msl.ptr<f32, device>, %f: f32) threads 32 {
  %v = msl.splat %f : vector<4xf32>
  %lane = msl.lane : i32
  %old:2 = msl.in_threads lanes 16 = 0 -> (i32, vector<4xf32>) {
    %r = msl.atomic_rmw add %c[%lane], %lane : !msl.ptr<i32, device>, i32, i32
    msl.yield %r, %v : i32, vector<4xf32>
  }
  %o = msl.splat %old#0 : vector<4xi32>
  msl.store %old#1, %x[%o] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}
