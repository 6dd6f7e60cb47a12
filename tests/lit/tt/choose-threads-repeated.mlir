// RUN: triton-metal-opt %s --tt-choose-threads | FileCheck %s
// RUN: triton-metal-opt %s --tt-choose-threads=num-warps=4 | FileCheck %s --check-prefix=FOUR

// Tiles that are repeated along a dimension are read before that of which their numbers are a part: a thread has all of
// them at once. With four SIMD-groups, four tiles of 32 by 64 are 64 registers.
// CHECK: ttm.choice = "16 SIMD-groups, 1 stages: about 3{{[0-9]}} registers
// FOUR: ttm.choice = "4 SIMD-groups, 1 stages: about 8{{[0-9]}} registers
module {
  tt.func public @products(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %w: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant dense<64> : tensor<32x1xi32>
    %c1 = arith.constant dense<2048> : tensor<8x1x1xi32>
    %c2 = arith.constant dense<2048> : tensor<32x64xi32>
    %c3 = arith.constant dense<4096> : tensor<32x64xi32>
    %c4 = arith.constant dense<6144> : tensor<32x64xi32>
    %m = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %n = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %b = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %mc = tt.expand_dims %m {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %ms = arith.muli %mc, %c0 : tensor<32x1xi32>
    %mb = tt.broadcast %ms : tensor<32x1xi32> -> tensor<32x64xi32>
    %nr = tt.expand_dims %n {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %nb = tt.broadcast %nr : tensor<1x64xi32> -> tensor<32x64xi32>
    %o = arith.addi %mb, %nb : tensor<32x64xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
    %x0 = tt.addptr %xs, %o : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %x1 = tt.addptr %x0, %c2 : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %x2 = tt.addptr %x0, %c3 : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %x3 = tt.addptr %x0, %c4 : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %v0 = tt.load %x0 : tensor<32x64x!tt.ptr<f32>>
    %v1 = tt.load %x1 : tensor<32x64x!tt.ptr<f32>>
    %v2 = tt.load %x2 : tensor<32x64x!tt.ptr<f32>>
    %v3 = tt.load %x3 : tensor<32x64x!tt.ptr<f32>>
    %b0 = tt.expand_dims %b {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %b1 = tt.expand_dims %b0 {axis = 2 : i32} : tensor<8x1xi32> -> tensor<8x1x1xi32>
    %bs = arith.muli %b1, %c1 : tensor<8x1x1xi32>
    %o1 = tt.expand_dims %o {axis = 0 : i32} : tensor<32x64xi32> -> tensor<1x32x64xi32>
    %o2 = tt.broadcast %o1 : tensor<1x32x64xi32> -> tensor<8x32x64xi32>
    %o3 = tt.broadcast %bs : tensor<8x1x1xi32> -> tensor<8x32x64xi32>
    %o4 = arith.addi %o2, %o3 : tensor<8x32x64xi32>
    %ws = tt.splat %w : !tt.ptr<f32> -> tensor<8x32x64x!tt.ptr<f32>>
    %wp = tt.addptr %ws, %o4 : tensor<8x32x64x!tt.ptr<f32>>, tensor<8x32x64xi32>
    %wv = tt.load %wp : tensor<8x32x64x!tt.ptr<f32>>
    %e0 = tt.expand_dims %v0 {axis = 0 : i32} : tensor<32x64xf32> -> tensor<1x32x64xf32>
    %f0 = tt.broadcast %e0 : tensor<1x32x64xf32> -> tensor<8x32x64xf32>
    %e1 = tt.expand_dims %v1 {axis = 0 : i32} : tensor<32x64xf32> -> tensor<1x32x64xf32>
    %f1 = tt.broadcast %e1 : tensor<1x32x64xf32> -> tensor<8x32x64xf32>
    %e2 = tt.expand_dims %v2 {axis = 0 : i32} : tensor<32x64xf32> -> tensor<1x32x64xf32>
    %f2 = tt.broadcast %e2 : tensor<1x32x64xf32> -> tensor<8x32x64xf32>
    %e3 = tt.expand_dims %v3 {axis = 0 : i32} : tensor<32x64xf32> -> tensor<1x32x64xf32>
    %f3 = tt.broadcast %e3 : tensor<1x32x64xf32> -> tensor<8x32x64xf32>
    %s0 = arith.mulf %wv, %f0 : tensor<8x32x64xf32>
    %s1 = arith.addf %s0, %f1 : tensor<8x32x64xf32>
    %s2 = arith.mulf %s1, %f2 : tensor<8x32x64xf32>
    %s3 = arith.addf %s2, %f3 : tensor<8x32x64xf32>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8x32x64x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %o4 : tensor<8x32x64x!tt.ptr<f32>>, tensor<8x32x64xi32>
    tt.store %yp, %s3 : tensor<8x32x64x!tt.ptr<f32>>
    tt.return
  }
}
