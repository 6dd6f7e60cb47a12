// RUN: triton-metal-opt %s --tt-reciprocals | FileCheck %s

// CHECK-LABEL: @rows
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[S:.*]]: tensor<8x1xf32>)
tt.func private @rows(%x: tensor<8x64xf32>, %s: tensor<8x1xf32>) -> tensor<8x64xf32> {
  // CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<8x1xf32>
  // CHECK: %[[R:.*]] = arith.divf %[[ONE]], %[[S]] : tensor<8x1xf32>
  // CHECK: %[[B:.*]] = tt.broadcast %[[R]]
  // CHECK: arith.mulf %[[X]], %[[B]]
  %0 = tt.broadcast %s : tensor<8x1xf32> -> tensor<8x64xf32>
  %1 = arith.divf %x, %0 fastmath<afn> : tensor<8x64xf32>
  tt.return %1 : tensor<8x64xf32>
}

// CHECK-LABEL: @halves
// CHECK-SAME: (%[[X:.*]]: tensor<64xf16>, %[[S:.*]]: f16)
tt.func private @halves(%x: tensor<64xf16>, %s: f16) -> tensor<64xf16> {
  // CHECK: %[[W:.*]] = arith.extf %[[S]] : f16 to f32
  // CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[W]] : f32
  // CHECK: %[[B:.*]] = tt.splat %[[R]] : f32 -> tensor<64xf32>
  // CHECK: %[[V:.*]] = arith.extf %[[X]]
  // CHECK: %[[P:.*]] = arith.mulf %[[V]], %[[B]]
  // CHECK: arith.truncf %[[P]]
  %0 = tt.splat %s : f16 -> tensor<64xf16>
  %1 = arith.divf %x, %0 fastmath<afn> : tensor<64xf16>
  tt.return %1 : tensor<64xf16>
}

// What is exact, what has no product to save, and what shares nothing.
// CHECK-LABEL: @others
tt.func private @others(%x: tensor<64xf32>, %s: f32) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  // CHECK-NOT: arith.mulf
  // CHECK-COUNT-3: arith.divf
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %0 = tt.splat %s : f32 -> tensor<64xf32>
  %1 = arith.divf %x, %0 : tensor<64xf32>
  %2 = arith.divf %one, %0 fastmath<afn> : tensor<64xf32>
  %3 = arith.divf %0, %x fastmath<afn> : tensor<64xf32>
  tt.return %1, %2, %3 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
