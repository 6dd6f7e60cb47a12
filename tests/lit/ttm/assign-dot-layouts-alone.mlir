// RUN: triton-metal-opt %s --ttm-assign-dot-layouts | FileCheck %s

// The accumulator gets the layout of simdgroup matrices, one of 8x8 for each SIMD-group; a conversion gives the result
// its former layout back.

// CHECK-DAG: #[[ROWS:.*]] = #ttm.linear<{register = {{\[}}[8, 0]], lane = {{\[}}[0, 1]
// CHECK-DAG: #[[MATRIX:.*]] = #ttm.linear<{register = {{\[}}[0, 1]], lane = {{\[}}[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = {{\[}}[0, 8], [8, 0]]}>
#rows = #ttm.linear<{register = [[8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], simdgroup = [[2, 0], [4, 0]]}>

// CHECK-LABEL: @dot
// CHECK: %[[C:.*]] = ttm.convert_layout %arg2 : tensor<16x16xf32, #[[ROWS]]> -> tensor<16x16xf32, #[[MATRIX]]>
// CHECK: %[[D:.*]] = tt.dot %arg0, %arg1, %[[C]]{{.*}} : tensor<16x16xf16, #[[ROWS]]> * tensor<16x16xf16, #[[ROWS]]> -> tensor<16x16xf32, #[[MATRIX]]>
// CHECK: %[[R:.*]] = ttm.convert_layout %[[D]] : tensor<16x16xf32, #[[MATRIX]]> -> tensor<16x16xf32, #[[ROWS]]>
// CHECK: tt.return %[[R]]
module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  tt.func private @dot(%a: tensor<16x16xf16, #rows>, %b: tensor<16x16xf16, #rows>, %c: tensor<16x16xf32, #rows>) -> tensor<16x16xf32, #rows> {
    %d = tt.dot %a, %b, %c : tensor<16x16xf16, #rows> * tensor<16x16xf16, #rows> -> tensor<16x16xf32, #rows>
    tt.return %d : tensor<16x16xf32, #rows>
  }
}
