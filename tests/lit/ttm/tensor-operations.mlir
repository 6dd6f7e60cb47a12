// Dots for a target with tensor operations: their operands are in registers, straight or transposed as memory has them.
// RUN: triton-metal-opt %s --split-input-file --ttm-assign-dot-layouts | FileCheck %s
// RUN: triton-metal-opt %s --split-input-file --ttm-assign-dot-layouts --ttm-remove-layout-conversions --ttm-lower-dot | FileCheck %s --check-prefix=LOWERED

#rows = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [16, 0]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], simdgroup = []}>
#columns = #ttm.linear<{register = [[1, 0], [2, 0], [4, 0], [0, 16]], lane = [[8, 0], [0, 1], [0, 2], [0, 4], [0, 8]], simdgroup = []}>
#acc = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [8, 0], [16, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32,
    msl.target = #msl.target<metal(4, 0), threads = 1024, threadgroup_bytes = 32768, registers = 128, features = bfloat|simdgroup_matrix|tensor_ops>} {
  // The layouts are those of fragments of 16x16, in which a lane holds four neighbours and the same eight rows below.
  // CHECK-DAG: #[[ACC:.*]] = #ttm.linear<{register = {{\[\[}}0, 1], [0, 2], [8, 0], [0, 16], [16, 0]], lane = {{\[\[}}0, 4], [1, 0], [2, 0], [0, 8], [4, 0]], simdgroup = []}>
  // CHECK-LABEL: tt.func @columns_are_neighbours
  // CHECK: tt.dot {{.*}} {ttm.b_transposed, ttm.instruction = #msl.matrix_shape<16x32x16>} : {{.*}} -> tensor<32x32xf32, #[[ACC]]>
  // LOWERED-DAG: #[[A:.*]] = #ttm.linear<{register = {{\[\[}}0, 1], [0, 2], [8, 0], [16, 0]], lane = {{\[\[}}0, 4], [1, 0], [2, 0], [0, 8], [4, 0]], simdgroup = []}>
  // LOWERED-DAG: #[[B:.*]] = #ttm.linear<{register = {{\[\[}}1, 0], [2, 0], [0, 8], [0, 16]], lane = {{\[\[}}4, 0], [0, 1], [0, 2], [8, 0], [0, 4]], simdgroup = []}>
  // LOWERED-LABEL: tt.func @columns_are_neighbours
  // LOWERED: %[[LEFT:.*]] = tt.load {{.*}} : tensor<32x16x!tt.ptr<f16>, #[[A]]>
  // LOWERED: %[[RIGHT:.*]] = tt.load {{.*}} : tensor<16x32x!tt.ptr<f16>, #[[B]]>
  // LOWERED-NOT: ttm.store_tile
  // LOWERED: %[[STORED:.*]] = tt.trans %[[RIGHT]]
  // LOWERED: ttm.mma <16x32x16> %[[LEFT]], %[[STORED]], %{{.*}} {b_transposed}
  tt.func @columns_are_neighbours(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %out: !tt.ptr<f32>) {
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #acc>
    %a0 = tt.splat %p : !tt.ptr<f16> -> tensor<32x16x!tt.ptr<f16>, #rows>
    %b0 = tt.splat %q : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>, #columns>
    %a = tt.load %a0 : tensor<32x16x!tt.ptr<f16>, #rows>
    %b = tt.load %b0 : tensor<16x32x!tt.ptr<f16>, #columns>
    %d = tt.dot %a, %b, %zero : tensor<32x16xf16, #rows> * tensor<16x32xf16, #columns> -> tensor<32x32xf32, #acc>
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #acc>
    tt.store %o, %d : tensor<32x32x!tt.ptr<f32>, #acc>
    tt.return
  }

  // fp32 has to be allowed to lose bits.
  // CHECK-LABEL: tt.func @exact
  // CHECK-NOT: ttm.instruction
  // LOWERED-LABEL: tt.func @exact
  // LOWERED: ttm.mma <8x8x8>
  tt.func @exact(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #acc>
    %a0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x16x!tt.ptr<f32>, #rows>
    %b0 = tt.splat %q : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>, #columns>
    %a = tt.load %a0 : tensor<32x16x!tt.ptr<f32>, #rows>
    %b = tt.load %b0 : tensor<16x32x!tt.ptr<f32>, #columns>
    %d = tt.dot %a, %b, %zero : tensor<32x16xf32, #rows> * tensor<16x32xf32, #columns> -> tensor<32x32xf32, #acc>
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #acc>
    tt.store %o, %d : tensor<32x32x!tt.ptr<f32>, #acc>
    tt.return
  }
}
