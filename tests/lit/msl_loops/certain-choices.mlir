// RUN: triton-metal-opt %s --msl-form-tile-loops --msl-place-tiles --msl-lower-reductions --msl-form-loops | FileCheck %s

// A choice by the mask of an access: where the uniform condition holds, the mask is true everywhere, and there is nothing
// to choose.
// CHECK-LABEL: msl.kernel @centre
// CHECK:       scf.if %[[ALL:.*]] {
// CHECK-NOT:     arith.select
// CHECK:       scf.if %[[ALL]] {
// CHECK-NEXT:    msl.unroll
// CHECK-NOT:     arith.select
// CHECK:         math.exp
// CHECK:       } else {
// CHECK-NEXT:    msl.unroll
// CHECK:         arith.select
// CHECK:         math.exp
// CHECK:       }
msl.kernel @centre(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %all: i1) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %ns = msl.splat %n : vector<8xi32>
  %m = arith.cmpi slt, %o, %ns : vector<8xi32>
  %v = msl.load %x[%o] mask %m full %all {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %sum = msl.reduce_registers(%v) bits 7 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    msl.yield %c : f32
  } : (vector<8xf32>) -> f32
  %total = msl.simd_reduce sum %sum : f32
  %mean = msl.splat %total : vector<8xf32>
  %d = arith.subf %v, %mean : vector<8xf32>
  %s = arith.select %m, %d, %zero : vector<8xi1>, vector<8xf32>
  %e = math.exp %s : vector<8xf32>
  %sum2 = msl.reduce_registers(%e) bits 7 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    msl.yield %c : f32
  } : (vector<8xf32>) -> f32
  %total2 = msl.simd_reduce sum %sum2 : f32
  %mean2 = msl.splat %total2 : vector<8xf32>
  %r = arith.mulf %e, %mean2 : vector<8xf32>
  msl.store %r, %y[%o] : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}
