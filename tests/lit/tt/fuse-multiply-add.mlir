// RUN: triton-metal-opt %s --tt-fuse-multiply-add | FileCheck %s

// CHECK-LABEL: @forms
// CHECK-SAME: (%[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>, %[[C:.*]]: tensor<8xf32>)
tt.func private @forms(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[R0:.*]] = math.fma %[[A]], %[[B]], %[[C]]
  %0 = arith.mulf %a, %b : tensor<8xf32>
  %1 = arith.addf %0, %c : tensor<8xf32>
  // CHECK: %[[NC:.*]] = arith.negf %[[C]]
  // CHECK: %[[R1:.*]] = math.fma %[[A]], %[[B]], %[[NC]]
  %2 = arith.mulf %a, %b : tensor<8xf32>
  %3 = arith.subf %2, %c : tensor<8xf32>
  // CHECK: %[[NA:.*]] = arith.negf %[[A]]
  // CHECK: %[[R2:.*]] = math.fma %[[NA]], %[[B]], %[[C]]
  %4 = arith.mulf %a, %b : tensor<8xf32>
  %5 = arith.subf %c, %4 : tensor<8xf32>
  // CHECK: %[[N:.*]] = arith.constant dense<-3.000000e+00>
  // CHECK: %[[R3:.*]] = math.fma %[[A]], %[[N]], %[[C]]
  %three = arith.constant dense<3.0> : tensor<8xf32>
  %6 = arith.mulf %a, %three : tensor<8xf32>
  %7 = arith.subf %c, %6 : tensor<8xf32>
  tt.return %1, %3, %5, %7 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// A product that is read twice, one from outside of a loop, and types without a fma that is cheap and rounds once.
// CHECK-LABEL: @others
// CHECK-NOT: math.fma
tt.func private @others(%a: f32, %b: bf16, %d: f64, %n: i32) -> (f32, f32, bf16, f64, f32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %0 = arith.mulf %a, %a : f32
  %1 = arith.addf %0, %a : f32
  %2 = arith.mulf %b, %b : bf16
  %3 = arith.addf %2, %b : bf16
  %4 = arith.mulf %d, %d : f64
  %5 = arith.addf %4, %d : f64
  %6 = arith.mulf %a, %1 : f32
  %7 = scf.for %i = %zero to %n step %one iter_args(%s = %a) -> (f32) : i32 {
    %8 = arith.addf %s, %6 : f32
    scf.yield %8 : f32
  }
  tt.return %0, %1, %3, %5, %7 : f32, f32, bf16, f64, f32
}
// CHECK-LABEL: @halves
tt.func private @halves(%a: f16) -> f16 {
  // CHECK: math.fma
  %0 = arith.mulf %a, %a : f16
  %1 = arith.addf %a, %0 : f16
  tt.return %1 : f16
}
