// RUN: triton-metal-opt %s --tt-expand-constants --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: @progression
tt.func private @progression() -> tensor<8xi32> {
  // CHECK: %[[PLACE:.*]] = tt.make_range {end = 8 : i32, start = 0 : i32}
  // CHECK: %[[STEP:.*]] = arith.constant dense<5> : tensor<8xi32>
  // CHECK: %[[STEPS:.*]] = arith.muli %{{.*}}, %[[STEP]]
  // CHECK: %[[FIRST:.*]] = arith.constant dense<-3> : tensor<8xi32>
  // CHECK: arith.addi %[[STEPS]], %[[FIRST]]
  %c = arith.constant dense<[-3, 2, 7, 12, 17, 22, 27, 32]> : tensor<8xi32>
  tt.return %c : tensor<8xi32>
}

// -----

// Halves that are equal need no selection.
// CHECK-LABEL: @halves
tt.func private @halves() -> tensor<2x4xf32> {
  // CHECK: tt.make_range {end = 8 : i32, start = 0 : i32}
  // CHECK: arith.constant dense<1.5{{.*}}> : tensor<8xf32>
  // CHECK: arith.constant dense<-0.0{{.*}}> : tensor<8xf32>
  // CHECK: arith.select
  // CHECK-NOT: arith.select
  // CHECK: tt.reshape %{{.*}} -> tensor<2x4xf32>
  %c = arith.constant dense<[[1.5, 1.5, -0.0, -0.0], [1.5, 1.5, -0.0, -0.0]]> : tensor<2x4xf32>
  tt.return %c : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @splat
tt.func private @splat() -> tensor<4xi1> {
  // CHECK-NEXT: arith.constant dense<true>
  // CHECK-NEXT: tt.return
  %c = arith.constant dense<true> : tensor<4xi1>
  tt.return %c : tensor<4xi1>
}
