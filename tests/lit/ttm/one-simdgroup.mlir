// RUN: triton-metal-opt %s --convert-tt-to-ttm=num-warps=8 --split-input-file | FileCheck %s

// A program without tiles has the threads of one SIMD-group.
// CHECK: module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32}
tt.func public @numbers(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %q, %x : !tt.ptr<f32>
  tt.return
}

// -----

// CHECK: module attributes {ttm.num_simdgroups = 8 : i32, ttm.threads = 256 : i32}
tt.func public @tile(%p: !tt.ptr<f32>) {
  %x = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.return
}
