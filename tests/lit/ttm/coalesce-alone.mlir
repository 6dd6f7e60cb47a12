// RUN: triton-metal-opt %s --ttm-coalesce | FileCheck %s

// A load gets the layout in which each thread reads 16 bytes, and conversions around it keep the other layouts as they
// are.

// CHECK-DAG: #[[SPREAD:.*]] = #ttm.linear<{register = {{\[}}[128], [256], [512]]
// CHECK-DAG: #[[WIDE:.*]] = #ttm.linear<{register = {{\[}}[1], [2], [512]], lane = {{\[}}[4], [8], [16], [32], [64]], simdgroup = {{\[}}[128], [256]]}>
#spread = #ttm.linear<{register = [[128], [256], [512]], lane = [[1], [2], [4], [8], [16]], simdgroup = [[32], [64]]}>

// CHECK-LABEL: @load
// CHECK: %[[P:.*]] = tt.addptr {{.*}} : tensor<1024x!tt.ptr<f32>, #[[SPREAD]]>
// CHECK: %[[Q:.*]] = ttm.convert_layout %[[P]] : tensor<1024x!tt.ptr<f32>, #[[SPREAD]]> -> tensor<1024x!tt.ptr<f32>, #[[WIDE]]>
// CHECK: %[[V:.*]] = tt.load %[[Q]] : tensor<1024x!tt.ptr<f32>, #[[WIDE]]>
// CHECK: %[[W:.*]] = ttm.convert_layout %[[V]] : tensor<1024xf32, #[[WIDE]]> -> tensor<1024xf32, #[[SPREAD]]>
// CHECK: math.exp %[[W]] : tensor<1024xf32, #[[SPREAD]]>
module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  tt.func public @load(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #spread>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #spread>
    %p = tt.addptr %s, %i : tensor<1024x!tt.ptr<f32>, #spread>, tensor<1024xi32, #spread>
    %v = tt.load %p : tensor<1024x!tt.ptr<f32>, #spread>
    %e = math.exp %v : tensor<1024xf32, #spread>
    tt.return
  }
}
