// RUN: triton-metal-opt %s --convert-tt-to-ttm=num-warps=2 | FileCheck %s

// Layouts depend on the shape alone; what an operation infers otherwise is converted.

// CHECK-DAG: #[[C2:.*]] = #ttm.linear<{register = {{\[}}[4, 0], [8, 0], [16, 0], [32, 0]], lane = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], simdgroup = {{\[}}[2, 0]]}>
// CHECK-DAG: #[[C1:.*]] = #ttm.linear<{register = [], lane = {{\[}}[1], [2], [4], [8], [16]], simdgroup = {{\[}}[32]]}>
// CHECK-DAG: #[[X:.*]] = #ttm.linear<{register = [], lane = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], simdgroup = {{\[}}[32, 0]]}>
// CHECK-DAG: #[[S:.*]] = #ttm.linear<{register = {{\[}}[4, 0], [8, 0], [16, 0], [32, 0]], lane = {{\[}}[0, 0], [0, 0], [0, 0], [0, 0], [1, 0]], simdgroup = {{\[}}[2, 0]]}>
// CHECK-DAG: #[[R:.*]] = #ttm.linear<{register = {{\[}}[4], [8], [16], [32]], lane = {{\[}}[0], [0], [0], [0], [1]], simdgroup = {{\[}}[2]]}>

// CHECK: module attributes {ttm.num_simdgroups = 2 : i32, ttm.threads = 64 : i32}
// CHECK-LABEL: @shapes
tt.func public @shapes(%p: !tt.ptr<f32>, %n: i32) {
  // CHECK: arith.constant dense<1.000000e+00> : tensor<64x16xf32, #[[C2]]>
  %one = arith.constant dense<1.0> : tensor<64x16xf32>
  // CHECK: %[[RANGE:.*]] = tt.make_range {{.*}} : tensor<64xi32, #[[C1]]>
  %0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  // CHECK: %[[E:.*]] = tt.expand_dims %[[RANGE]] {axis = 1 : i32} : tensor<64xi32, #[[C1]]> -> tensor<64x1xi32, #[[X]]>
  %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  // CHECK: %[[B:.*]] = ttm.convert_layout %[[E]] : tensor<64x1xi32, #[[X]]> -> tensor<64x1xi32, #[[S]]>
  // CHECK: tt.broadcast %[[B]] : tensor<64x1xi32, #[[S]]> -> tensor<64x16xi32, #[[C2]]>
  %2 = tt.broadcast %1 : tensor<64x1xi32> -> tensor<64x16xi32>
  // CHECK: %[[SUM:.*]] = "tt.reduce"
  // CHECK: (tensor<64x16xf32, #[[C2]]>) -> tensor<64xf32, #[[R]]>
  // CHECK: ttm.convert_layout %[[SUM]] : tensor<64xf32, #[[R]]> -> tensor<64xf32, #[[C1]]>
  %3 = "tt.reduce"(%one) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<64x16xf32>) -> tensor<64xf32>
  %4 = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %5 = tt.addptr %4, %0 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %5, %3 : tensor<64x!tt.ptr<f32>>
  // CHECK: scf.for {{.*}} -> (tensor<64x16xf32, #[[C2]]>)
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %one) -> (tensor<64x16xf32>) : i32 {
    %m = arith.addf %acc, %one : tensor<64x16xf32>
    scf.yield %m : tensor<64x16xf32>
  }
  tt.return
}
