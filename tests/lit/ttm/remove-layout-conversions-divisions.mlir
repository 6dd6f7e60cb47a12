// RUN: triton-metal-opt %s --ttm-remove-layout-conversions | FileCheck %s

// Columns of flat places are computed in the layout of the accesses: a division by what may be 0 is computed again where
// it stands.

// CHECK: #[[WIDE:.*]] = #ttm.linear<{register = {{\[}}[1], [2], [512]]
// CHECK-NOT: #ttm.linear
#spread = #ttm.linear<{register = [[128], [256], [512]], lane = [[1], [2], [4], [8], [16]], simdgroup = [[32], [64]]}>
#wide = #ttm.linear<{register = [[1], [2], [512]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>

// CHECK-LABEL: @columns
// CHECK-NOT: ttm.convert_layout
// CHECK: arith.remsi %{{.*}}, %{{.*}} : tensor<1024xi32, #[[WIDE]]>
// CHECK-NOT: ttm.convert_layout
module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  tt.func public @columns(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32>, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #spread>
    %ns = tt.splat %n : i32 -> tensor<1024xi32, #spread>
    %c = arith.remsi %i, %ns : tensor<1024xi32, #spread>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #spread>
    %t = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #spread>
    %p = tt.addptr %s, %i : tensor<1024x!tt.ptr<f32>, #spread>, tensor<1024xi32, #spread>
    %o = tt.addptr %t, %c : tensor<1024x!tt.ptr<f32>, #spread>, tensor<1024xi32, #spread>
    %q = ttm.convert_layout %p : tensor<1024x!tt.ptr<f32>, #spread> -> tensor<1024x!tt.ptr<f32>, #wide>
    %r = ttm.convert_layout %o : tensor<1024x!tt.ptr<f32>, #spread> -> tensor<1024x!tt.ptr<f32>, #wide>
    %v = tt.load %r : tensor<1024x!tt.ptr<f32>, #wide>
    tt.store %q, %v : tensor<1024x!tt.ptr<f32>, #wide>
    tt.return
  }
}
