// RUN: triton-metal-opt %s --ttm-assign-dot-layouts | FileCheck %s

// A dot that adds to another one's sum, which then is an operand of a third: all of them have whole rows in a SIMD-group.

// CHECK-DAG: #[[ROWS:.*]] = #ttm.linear<{register = {{\[}}[0, 1], [0, 8], [0, 16]], lane = {{\[}}[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = {{\[}}[8, 0], [16, 0]]}>
#rows = #ttm.linear<{register = [[8, 0], [16, 0], [0, 16]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], simdgroup = [[2, 0], [4, 0]]}>

// CHECK-LABEL: @sums
// CHECK: tt.dot {{.*}} -> tensor<32x32xf32, #[[ROWS]]>
// CHECK: tt.dot {{.*}} -> tensor<32x32xf32, #[[ROWS]]>
// CHECK: tt.dot {{.*}} -> tensor<32x32xf32, #[[ROWS]]>
module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  tt.func private @sums(%a: tensor<32x32xf16, #rows>, %b: tensor<32x32xf16, #rows>, %c: tensor<32x32xf32, #rows>) -> tensor<32x32xf32, #rows> {
    %x = tt.dot %a, %b, %c : tensor<32x32xf16, #rows> * tensor<32x32xf16, #rows> -> tensor<32x32xf32, #rows>
    %y = tt.dot %b, %a, %x : tensor<32x32xf16, #rows> * tensor<32x32xf16, #rows> -> tensor<32x32xf32, #rows>
    %half = arith.truncf %y : tensor<32x32xf32, #rows> to tensor<32x32xf16, #rows>
    %z = tt.dot %half, %b, %c : tensor<32x32xf16, #rows> * tensor<32x32xf16, #rows> -> tensor<32x32xf32, #rows>
    tt.return %z : tensor<32x32xf32, #rows>
  }
}
