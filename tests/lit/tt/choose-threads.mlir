// RUN: triton-metal-opt %s --tt-choose-threads | FileCheck %s --check-prefix=CHOSEN
// RUN: triton-metal-opt %s --tt-choose-threads=num-warps=8 | FileCheck %s --check-prefix=WARPS
// RUN: triton-metal-opt %s "--tt-choose-threads=num-warps=8 num-stages=3" | FileCheck %s --check-prefix=NAMED

// A tile of 32 elements has one for each lane of one SIMD-group; no loop stages tiles.
// CHOSEN: module attributes
// CHOSEN-SAME: ttm.choice = "1 SIMD-groups, 1 stages: about
// CHOSEN-SAME: ttm.num_stages = 1 : i32, ttm.num_warps = 1 : i32

// What is named stays, and the rest is chosen.
// WARPS: ttm.choice = "8 SIMD-groups, 1 stages
// WARPS-SAME: ttm.num_stages = 1 : i32, ttm.num_warps = 8 : i32

// NAMED: module attributes {ttm.num_stages = 3 : i32, ttm.num_warps = 8 : i32}
module {
  tt.func public @twice(%x: !tt.ptr<f32>) {
    %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %p = tt.addptr %s, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %v = tt.load %p : tensor<32x!tt.ptr<f32>>
    %d = arith.addf %v, %v : tensor<32xf32>
    tt.store %p, %d : tensor<32x!tt.ptr<f32>>
    tt.return
  }
}
