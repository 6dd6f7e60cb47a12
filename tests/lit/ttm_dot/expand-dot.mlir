// RUN: triton-metal-opt %s --ttm-expand-dot --split-input-file | FileCheck %s

#l = #ttm.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], simdgroup = []}>
#a = #ttm.linear<{register = [], lane = [[0, 1], [1, 0], [2, 0], [0, 0], [0, 0]], simdgroup = []}>
#b = #ttm.linear<{register = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], simdgroup = []}>

// A block of less than 8: both operands are staged with K first, and each step adds one product to each element.
// CHECK-LABEL: @small
// CHECK-DAG: %[[AT:.*]] = tt.trans %arg0 {order = array<i32: 1, 0>}
// CHECK: %[[A:.*]] = ttm.alloc_tile : !ttm.tile<2x4xf16, row_pad = 8>
// CHECK: ttm.store_tile %[[AT]], %[[A]]
// CHECK: %[[B:.*]] = ttm.alloc_tile : !ttm.tile<2x16xf16, row_pad = 8>
// CHECK: ttm.store_tile {{.*}}, %[[B]]
// CHECK: %[[SUM:.*]] = scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ACC:.*]] = %arg2)
// CHECK: %[[AK:.*]] = ttm.load_tile %[[A]] row %[[K]] : !ttm.tile<2x4xf16, row_pad = 8> -> tensor<4xf16,
// CHECK: %[[AF:.*]] = arith.extf %[[AK]]
// CHECK: tt.expand_dims %[[AF]] {axis = 1 : i32}
// CHECK: %[[LEFT:.*]] = tt.broadcast
// CHECK: %[[BK:.*]] = ttm.load_tile %[[B]] row %[[K]] : !ttm.tile<2x16xf16, row_pad = 8> -> tensor<16xf16,
// CHECK: %[[RIGHT:.*]] = tt.broadcast
// CHECK: %[[NEXT:.*]] = math.fma %[[LEFT]], %[[RIGHT]], %[[ACC]]
// CHECK: scf.yield %[[NEXT]]
// CHECK-NOT: tt.dot
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  tt.func public @small(%a: tensor<4x2xf16, #a>, %b: tensor<2x16xf16, #b>, %c: tensor<4x16xf32, #l>, %o: tensor<4x16x!tt.ptr<f32>, #l>) {
    %d = tt.dot %a, %b, %c : tensor<4x2xf16, #a> * tensor<2x16xf16, #b> -> tensor<4x16xf32, #l>
    tt.store %o, %d : tensor<4x16x!tt.ptr<f32>, #l>
    tt.return
  }
}

// -----

#m = #ttm.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>

// What simdgroup matrices can do is left to them, where the target has them.
// CHECK-LABEL: @matrices
// CHECK: tt.dot
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  tt.func public @matrices(%a: tensor<8x8xf32, #m>, %b: tensor<8x8xf32, #m>, %c: tensor<8x8xf32, #m>, %o: tensor<8x8x!tt.ptr<f32>, #m>) {
    %d = tt.dot %a, %b, %c : tensor<8x8xf32, #m> * tensor<8x8xf32, #m> -> tensor<8x8xf32, #m>
    tt.store %o, %d : tensor<8x8x!tt.ptr<f32>, #m>
    tt.return
  }
}

// -----

#m = #ttm.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>

// Operands that do not fit into the threadgroup memory of the target are staged in parts of K. The sum of integers is an
// integer.
// CHECK-LABEL: @parts
// CHECK: ttm.store_tile {{.*}} {offsets = array<i64: 0, 0>}
// CHECK: scf.for
// CHECK: arith.muli
// CHECK: arith.addi
// CHECK: ttm.store_tile {{.*}} {offsets = array<i64: 4, 0>}
// CHECK: scf.for
// CHECK-NOT: scf.for
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32,
    msl.target = #msl.target<metal(3, 2), threads = 1024, threadgroup_bytes = 512, registers = 128, features = none>} {
  tt.func public @parts(%a: tensor<8x8xi8, #m>, %b: tensor<8x8xi8, #m>, %c: tensor<8x8xi32, #m>, %o: tensor<8x8x!tt.ptr<i32>, #m>) {
    %d = tt.dot %a, %b, %c : tensor<8x8xi8, #m> * tensor<8x8xi8, #m> -> tensor<8x8xi32, #m>
    tt.store %o, %d : tensor<8x8x!tt.ptr<i32>, #m>
    tt.return
  }
}
