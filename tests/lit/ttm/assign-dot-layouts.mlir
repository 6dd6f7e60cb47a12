// RUN: triton-metal-opt %s --convert-tt-to-ttm=num-warps=4 --ttm-assign-dot-layouts | FileCheck %s

// CHECK-DAG: #[[SQUARE:.*]] = #ttm.linear<{register = {{\[}}[0, 1], [0, 8], [0, 16], [8, 0], [16, 0]], lane = {{\[}}[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = {{\[}}[0, 32], [32, 0]]}>
// CHECK-DAG: #[[ROWS:.*]] = #ttm.linear<{register = {{\[}}[0, 1], [0, 8], [0, 16], [8, 0]], lane = {{\[}}[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = {{\[}}[16, 0], [32, 0]]}>
// CHECK-DAG: #[[ROWS2:.*]] = #ttm.linear<{register = {{\[}}[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = {{\[}}[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = {{\[}}[16, 0], [32, 0]]}>
// CHECK-DAG: #[[COLUMNS:.*]] = #ttm.linear<{register = {{\[}}[0, 1], [0, 8], [8, 0], [16, 0], [32, 0]], lane = {{\[}}[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = {{\[}}[0, 16], [0, 32]]}>
// CHECK-DAG: #[[SMALL:.*]] = #ttm.linear<{register = {{\[}}[0, 1]], lane = {{\[}}[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = {{\[}}[0, 8], [8, 0]]}>

// CHECK-LABEL: @plain
// CHECK: tt.dot {{.*}} -> tensor<64x64xf32, #[[SQUARE]]>
// CHECK-NEXT: ttm.convert_layout
tt.func public @plain(%n: i32) {
  %a = arith.constant dense<1.0> : tensor<64x32xf16>
  %b = arith.constant dense<1.0> : tensor<32x64xf16>
  %c = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tt.dot %a, %b, %c : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  tt.return
}

// The first dot's result is operand A of the second: both have all SIMD-groups along the rows.
// CHECK-LABEL: @chain_a
// CHECK: tt.dot {{.*}} -> tensor<64x32xf32, #[[ROWS]]>
// CHECK: tt.dot {{.*}} -> tensor<64x64xf32, #[[ROWS2]]>
tt.func public @chain_a(%n: i32) {
  %q = arith.constant dense<1.0> : tensor<64x64xf16>
  %k = arith.constant dense<1.0> : tensor<64x32xf16>
  %v = arith.constant dense<1.0> : tensor<32x64xf16>
  %c = arith.constant dense<0.0> : tensor<64x32xf32>
  %o = arith.constant dense<0.0> : tensor<64x64xf32>
  %s = tt.dot %q, %k, %c : tensor<64x64xf16> * tensor<64x32xf16> -> tensor<64x32xf32>
  %e = math.exp2 %s : tensor<64x32xf32>
  %p = arith.truncf %e : tensor<64x32xf32> to tensor<64x32xf16>
  %d = tt.dot %p, %v, %o : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  tt.return
}

// CHECK-LABEL: @chain_b
// CHECK: tt.dot {{.*}} -> tensor<64x64xf32, #[[COLUMNS]]>
// CHECK: tt.dot {{.*}} -> tensor<64x64xf32, #[[COLUMNS]]>
tt.func public @chain_b(%n: i32) {
  %q = arith.constant dense<1.0> : tensor<64x64xf16>
  %c = arith.constant dense<0.0> : tensor<64x64xf32>
  %s = tt.dot %q, %q, %c : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
  %d = tt.dot %q, %p, %c : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return
}

// CHECK-LABEL: @small
// CHECK: tt.dot {{.*}} -> tensor<16x16xf32, #[[SMALL]]>
tt.func public @small(%n: i32) {
  %q = arith.constant dense<1.0> : tensor<16x16xf32>
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  %s = tt.dot %q, %q, %c : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return
}
