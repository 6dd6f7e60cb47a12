// RUN: triton-metal-opt %s --tt-emulate-floats --canonicalize --split-input-file | FileCheck %s

// Pointers, loads, constants and selections are of codes.
// CHECK-LABEL: tt.func @moves(%arg0: !tt.ptr<i8>, %arg1: i1)
tt.func @moves(%p: !tt.ptr<f8E4M3FN>, %c: i1) {
  // CHECK: %[[ONE:.*]] = arith.constant dense<56> : tensor<16xi8>
  %one = arith.constant dense<1.0> : tensor<16xf8E4M3FN>
  %mask = tt.splat %c : i1 -> tensor<16xi1>
  // CHECK: %[[S:.*]] = tt.splat %arg0 : !tt.ptr<i8> -> tensor<16x!tt.ptr<i8>>
  %s = tt.splat %p : !tt.ptr<f8E4M3FN> -> tensor<16x!tt.ptr<f8E4M3FN>>
  // CHECK: %[[X:.*]] = tt.load %[[S]], %{{.*}}, %[[ONE]] : tensor<16x!tt.ptr<i8>>
  %x = tt.load %s, %mask, %one : tensor<16x!tt.ptr<f8E4M3FN>>
  // CHECK: %[[Y:.*]] = arith.select %arg1, %[[X]], %[[ONE]] : tensor<16xi8>
  %y = arith.select %c, %x, %one : tensor<16xf8E4M3FN>
  // CHECK: tt.store %[[S]], %[[Y]] : tensor<16x!tt.ptr<i8>>
  tt.store %s, %y : tensor<16x!tt.ptr<f8E4M3FN>>
  tt.return
}

// -----

// The code of an e5m2 is the upper byte of a half.
// CHECK-LABEL: @widen_e5m2(%arg0: i8) -> f32
tt.func private @widen_e5m2(%x: f8E5M2) -> f32 {
  // CHECK: %[[WIDE:.*]] = arith.extui %arg0 : i8 to i16
  // CHECK: %[[BITS:.*]] = arith.shli %[[WIDE]], %c8_i16 : i16
  // CHECK: %[[HALF:.*]] = arith.bitcast %[[BITS]] : i16 to f16
  // CHECK: %[[FLOAT:.*]] = arith.extf %[[HALF]] : f16 to f32
  // CHECK: tt.return %[[FLOAT]]
  %0 = tt.fp_to_fp %x : f8E5M2 -> f32
  tt.return %0 : f32
}

// -----

// The sum with 2^14, whose last digit is 2^-9, rounds what will be subnormal; the sum with an odd digit rounds the others.
// CHECK-LABEL: @narrow(%arg0: f32) -> i8
tt.func private @narrow(%x: f32) -> f8E4M3FN {
  // CHECK-DAG: %[[BIG:.*]] = arith.constant 1.638400e+04 : f32
  // CHECK-DAG: %[[LARGEST:.*]] = arith.constant 1138753536 : i32
  // CHECK: %[[BITS:.*]] = arith.bitcast %arg0 : f32 to i32
  // CHECK: %[[MAGNITUDE:.*]] = arith.andi %[[BITS]], %c2147483647_i32
  // CHECK: %[[BOUNDED:.*]] = arith.minui %[[MAGNITUDE]], %[[LARGEST]]
  // CHECK: %[[FLOAT:.*]] = arith.bitcast %[[BOUNDED]] : i32 to f32
  // CHECK: arith.addf %[[FLOAT]], %[[BIG]] : f32
  // CHECK: arith.select
  // CHECK: %[[NAN:.*]] = arith.cmpi ugt, %[[MAGNITUDE]], %c2139095040_i32
  // CHECK: arith.select %[[NAN]], %c127_i32
  // CHECK: arith.trunci %{{.*}} : i32 to i8
  %0 = tt.fp_to_fp %x, rounding = rtne : f32 -> f8E4M3FN
  tt.return %0 : f8E4M3FN
}

// -----

// CHECK-LABEL: @dot
tt.func private @dot(%a: tensor<16x16xf8E5M2>, %b: tensor<16x16xf8E4M3FN>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %arg2 {maxNumImpreciseAcc = 16 : i32} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %0 = tt.dot %a, %b, %c {maxNumImpreciseAcc = 16 : i32} : tensor<16x16xf8E5M2> * tensor<16x16xf8E4M3FN> -> tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}

// -----

// Arithmetic is done in float.
// CHECK-LABEL: @sum(%arg0: i8, %arg1: i8) -> i8
tt.func private @sum(%x: f8E5M2, %y: f8E5M2) -> f8E5M2 {
  // CHECK: arith.addf %{{.*}}, %{{.*}} : f32
  %0 = arith.addf %x, %y : f8E5M2
  tt.return %0 : f8E5M2
}

// -----

// A half that is further from zero goes one back.
// CHECK-LABEL: @cut
tt.func private @cut(%x: f32) -> f16 {
  // CHECK: %[[HALF:.*]] = arith.truncf %arg0 : f32 to f16
  // CHECK: %[[BACK:.*]] = arith.extf %[[HALF]] : f16 to f32
  // CHECK-DAG: %[[A:.*]] = math.absf %[[BACK]]
  // CHECK-DAG: %[[B:.*]] = math.absf %arg0
  // CHECK: %[[FURTHER:.*]] = arith.cmpf ogt, %[[A]], %[[B]]
  // CHECK: %[[BITS:.*]] = arith.bitcast %[[HALF]] : f16 to i16
  // CHECK: %[[LESS:.*]] = arith.subi %[[BITS]], %c1_i16
  // CHECK: arith.select %[[FURTHER]], %[[LESS]], %[[BITS]]
  %0 = tt.fp_to_fp %x, rounding = rtz : f32 -> f16
  tt.return %0 : f16
}

// -----

// Nothing else changes: f32 to bf16 toward zero, and kernels without such numbers.
// CHECK-LABEL: @others
tt.func private @others(%x: f32) -> bf16 {
  // CHECK: tt.fp_to_fp %arg0, rounding = rtz : f32 -> bf16
  %0 = tt.fp_to_fp %x, rounding = rtz : f32 -> bf16
  tt.return %0 : bf16
}
// -----

// A magnitude is the code without its sign; a code of NaN that is the sign alone stays.
// CHECK-LABEL: @magnitude(%arg0: i8, %arg1: i8)
tt.func private @magnitude(%x: f8E5M2, %y: f8E4M3FNUZ) -> (f8E5M2, f8E4M3FNUZ) {
  // CHECK-NOT: absf
  // CHECK: %[[X:.*]] = arith.andi %arg0, %c127_i8
  // CHECK: %[[Y:.*]] = arith.andi %arg1, %c127_i8
  // CHECK: %[[NAN:.*]] = arith.cmpi eq, %arg1, %c-128_i8
  // CHECK: %[[Z:.*]] = arith.select %[[NAN]], %arg1, %[[Y]]
  // CHECK: tt.return %[[X]], %[[Z]]
  %0 = math.absf %x : f8E5M2
  %1 = math.absf %y : f8E4M3FNUZ
  tt.return %0, %1 : f8E5M2, f8E4M3FNUZ
}
