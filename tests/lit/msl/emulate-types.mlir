// RUN: triton-metal-opt %s --msl-emulate-types --split-input-file | FileCheck %s

module attributes {msl.target = #msl.target<metal(3, 0), threads = 1024, threadgroup_bytes = 32768, registers = 128,
    features = none>} {
  // bfloats travel as their bits; arithmetic is done in float and rounded to nearest, ties to even.
  // CHECK-LABEL: msl.kernel @axpy(
  // CHECK-SAME: !msl.ptr<i16, device>
  // CHECK-SAME: i16
  // CHECK: %[[V:.*]] = msl.load {{.*}} : <i16, device>, vector<4xi32> -> vector<4xi16>
  // CHECK: %[[F:.*]] = msl.splat %{{.*}} : vector<4xi16>
  // CHECK: %[[WORDS:.*]] = arith.extui %[[V]] : vector<4xi16> to vector<4xi32>
  // CHECK: %[[SHIFTED:.*]] = arith.shli %[[WORDS]]
  // CHECK: %[[LEFT:.*]] = arith.bitcast %[[SHIFTED]] : vector<4xi32> to vector<4xf32>
  // CHECK: arith.extui %[[F]]
  // CHECK: %[[PRODUCT:.*]] = arith.mulf %[[LEFT]], %{{.*}} : vector<4xf32>
  // CHECK: %[[BITS:.*]] = arith.bitcast %[[PRODUCT]] : vector<4xf32> to vector<4xi32>
  // CHECK: %[[UPPER:.*]] = arith.shrui %[[BITS]]
  // CHECK: arith.cmpf uno, %[[PRODUCT]], %[[PRODUCT]]
  // CHECK: %[[ROUNDED:.*]] = arith.trunci {{.*}} : vector<4xi32> to vector<4xi16>
  // CHECK: msl.store %[[ROUNDED]]
  msl.kernel @axpy(%x: !msl.ptr<bf16, device>, %a: bf16) threads 32 {
    %places = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
    %v = msl.load %x[%places] : !msl.ptr<bf16, device>, vector<4xi32> -> vector<4xbf16>
    %f = msl.splat %a : vector<4xbf16>
    %p = arith.mulf %v, %f : vector<4xbf16>
    msl.store %p, %x[%places] : vector<4xbf16>, !msl.ptr<bf16, device>, vector<4xi32>
    msl.return
  }

  // What only moves numbers moves their bits; a constant is its bits; a loop carries them.
  // CHECK-LABEL: msl.kernel @moves(
  // CHECK: arith.constant 16256 : i16
  // CHECK: scf.for {{.*}} -> (i16)
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 1 : i16
  // CHECK-NOT: arith.shli
  // CHECK: msl.store %{{.*}} : i16, <i16, device>, i32
  msl.kernel @moves(%x: !msl.ptr<bf16, device>, %n: i32) threads 32 {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %start = arith.constant 1.0 : bf16
    %r = scf.for %i = %zero to %n step %one iter_args(%c = %start) -> (bf16) : i32 {
      %s = msl.simd_shuffle_xor %c, 1 : bf16
      scf.yield %s : bf16
    }
    msl.store %r, %x[%zero] : bf16, !msl.ptr<bf16, device>, i32
    msl.return
  }
}

// -----

// A target that has the type keeps it.
// CHECK-LABEL: msl.kernel @kept(
// CHECK: msl.load {{.*}} -> bf16
msl.kernel @kept(%x: !msl.ptr<bf16, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %zero = arith.constant 0 : i32
  %v = msl.load %x[%zero] : !msl.ptr<bf16, device>, i32 -> bf16
  %w = arith.extf %v : bf16 to f32
  msl.store %w, %y[%zero] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
