// RUN: triton-metal-opt %s --ttm-remove-layout-conversions | FileCheck %s

// What ttm-coalesce leaves: conversions around each access. All tiles take the layout of the accesses, and no conversion
// is left.

// CHECK: #[[WIDE:.*]] = #ttm.linear<{register = {{\[}}[1], [2], [512]]
// CHECK-NOT: #ttm.linear
#spread = #ttm.linear<{register = [[128], [256], [512]], lane = [[1], [2], [4], [8], [16]], simdgroup = [[32], [64]]}>
#wide = #ttm.linear<{register = [[1], [2], [512]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>

// CHECK-LABEL: @exp
// CHECK-NOT: ttm.convert_layout
// CHECK: %[[P:.*]] = tt.addptr {{.*}} : tensor<1024x!tt.ptr<f32>, #[[WIDE]]>
// CHECK-NEXT: %[[V:.*]] = tt.load %[[P]] : tensor<1024x!tt.ptr<f32>, #[[WIDE]]>
// CHECK-NEXT: %[[E:.*]] = math.exp %[[V]] : tensor<1024xf32, #[[WIDE]]>
// CHECK-NEXT: tt.store %[[P]], %[[E]] : tensor<1024x!tt.ptr<f32>, #[[WIDE]]>
module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  tt.func public @exp(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #spread>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #spread>
    %p = tt.addptr %s, %i : tensor<1024x!tt.ptr<f32>, #spread>, tensor<1024xi32, #spread>
    %q = ttm.convert_layout %p : tensor<1024x!tt.ptr<f32>, #spread> -> tensor<1024x!tt.ptr<f32>, #wide>
    %v = tt.load %q : tensor<1024x!tt.ptr<f32>, #wide>
    %w = ttm.convert_layout %v : tensor<1024xf32, #wide> -> tensor<1024xf32, #spread>
    %e = math.exp %w : tensor<1024xf32, #spread>
    %f = ttm.convert_layout %e : tensor<1024xf32, #spread> -> tensor<1024xf32, #wide>
    tt.store %q, %f : tensor<1024x!tt.ptr<f32>, #wide>
    tt.return
  }
}
