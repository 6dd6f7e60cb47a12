// RUN: triton-metal-opt %s --msl-legalize-operations --split-input-file | FileCheck %s

// A target without reductions over a SIMD-group combines by shuffles.
// CHECK-LABEL: @without
// CHECK-NOT: msl.simd_reduce
// CHECK: %[[X:.*]] = msl.load
// CHECK: %[[A:.*]] = msl.simd_shuffle_xor %[[X]], 1 : f32
// CHECK: %[[B:.*]] = arith.addf %[[X]], %[[A]] : f32
// CHECK: %[[C:.*]] = msl.simd_shuffle_xor %[[B]], 2 : f32
// CHECK: %[[D:.*]] = arith.addf %[[B]], %[[C]] : f32
// CHECK: msl.simd_shuffle_xor %[[D]], 4 : f32
// CHECK: msl.simd_shuffle_xor {{.*}}, 8 : f32
// CHECK: %[[E:.*]] = msl.simd_shuffle_xor %[[F:.*]], 16 : f32
// CHECK: %[[SUM:.*]] = arith.addf %[[F]], %[[E]] : f32
// CHECK: msl.store %[[SUM]]
// CHECK: arith.minui
module attributes {msl.target = #msl.target<metal(3, 2), threads = 1024, threadgroup_bytes = 32768, registers = 128,
    features = none>} {
  msl.kernel @without(%x: !msl.ptr<f32, device>, %n: !msl.ptr<i32, device>) threads 32 {
    %lane = msl.lane : i32
    %v = msl.load %x[%lane] : !msl.ptr<f32, device>, i32 -> f32
    %sum = msl.simd_reduce sum %v : f32
    msl.store %sum, %x[%lane] : f32, !msl.ptr<f32, device>, i32
    %w = msl.load %n[%lane] : !msl.ptr<i32, device>, i32 -> i32
    %least = msl.simd_reduce umin %w : i32
    msl.store %least, %n[%lane] : i32, !msl.ptr<i32, device>, i32
    msl.return
  }
}

// -----

// CHECK-LABEL: @with
// CHECK: msl.simd_reduce sum
msl.kernel @with(%x: !msl.ptr<f32, device>) threads 32 {
  %lane = msl.lane : i32
  %v = msl.load %x[%lane] : !msl.ptr<f32, device>, i32 -> f32
  %sum = msl.simd_reduce sum %v : f32
  msl.store %sum, %x[%lane] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
