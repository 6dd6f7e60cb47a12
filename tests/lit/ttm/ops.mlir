// RUN: triton-metal-opt %s | triton-metal-opt | FileCheck %s

#blocked = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], simdgroup = [[8, 0], [16, 0]]}>
#tall = #ttm.linear<{register = [[1, 0], [2, 0], [4, 0]], lane = [[8, 0], [16, 0], [0, 1], [0, 2], [0, 4]], simdgroup = [[0, 8], [0, 16]]}>
#mma = #ttm.linear<{register = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[0, 16], [16, 0]]}>
#a = #ttm.linear<{register = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[0, 0], [16, 0]]}>
#mma16 = #ttm.linear<{register = [[0, 1], [0, 2], [8, 0]], lane = [[0, 4], [1, 0], [2, 0], [0, 8], [4, 0]], simdgroup = [[0, 16], [16, 0]]}>
#a16 = #ttm.linear<{register = [[0, 1], [0, 2], [8, 0]], lane = [[0, 4], [1, 0], [2, 0], [0, 8], [4, 0]], simdgroup = [[0, 0], [16, 0]]}>
#row = #ttm.linear<{register = [], lane = [[0, 0], [0, 1], [0, 2], [0, 0], [0, 4]], simdgroup = [[0, 8], [0, 16]]}>
#one = #ttm.linear<{register = [], lane = [[0], [0], [0], [0], [0]], simdgroup = [[0], [0]]}>

// CHECK: #[[BLOCKED:.*]] = #ttm.linear<{register = {{\[}}[0, 1], [0, 2], [0, 4]], lane = {{\[}}[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], simdgroup = {{\[}}[8, 0], [16, 0]]}>
// CHECK: #ttm.linear<{register = [], lane = {{\[}}[0], [0], [0], [0], [0]], simdgroup = {{\[}}[0], [0]]}>
// CHECK: module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32}
module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // CHECK-LABEL: @tiles
  tt.func @tiles(%x: tensor<32x32xf16, #blocked>, %acc: tensor<32x32xf32, #mma>, %i8: tensor<32x32xi8, #blocked>, %r: tensor<32x16xf16, #a>, %slot: i32, %one: tensor<1xf32, #one>, %row: tensor<1x32xf32, #row>) {
    // CHECK: ttm.convert_layout %{{.*}} : tensor<32x32xf16, #{{.*}}> -> tensor<32x32xf16, #{{.*}}>
    %0 = ttm.convert_layout %x : tensor<32x32xf16, #blocked> -> tensor<32x32xf16, #mma>
    // CHECK: ttm.alloc_tile : !ttm.tile<32x32xf16, row_pad = 8, slots = 2>
    %t = ttm.alloc_tile : !ttm.tile<32x32xf16, row_pad = 8, slots = 2>
    // CHECK: ttm.alloc_tile : !ttm.tile<32x16xf16>
    %s = ttm.alloc_tile : !ttm.tile<32x16xf16>
    // CHECK: ttm.store_tile %{{.*}}, %{{.*}}[%{{.*}}] : tensor<32x32xf16, #{{.*}}>, !ttm.tile<32x32xf16, row_pad = 8, slots = 2>
    ttm.store_tile %x, %t[%slot] : tensor<32x32xf16, #blocked>, !ttm.tile<32x32xf16, row_pad = 8, slots = 2>
    // CHECK: ttm.store_tile %{{.*}}, %{{.*}} {offsets = array<i64: 0, 16>} : tensor<32x32xi8, #{{.*}}>, !ttm.tile<32x16xf16>
    ttm.store_tile %i8, %s {offsets = array<i64: 0, 16>} : tensor<32x32xi8, #blocked>, !ttm.tile<32x16xf16>
    // CHECK: ttm.gather_tile %{{.*}}[%{{.*}}] axis 1 : !ttm.tile<32x32xf16, row_pad = 8, slots = 2> -> tensor<32x32xf16, #{{.*}}>
    %places = arith.constant dense<0> : tensor<32x32xi32, #tall>
    %gathered = ttm.gather_tile %t[%places] axis 1 : !ttm.tile<32x32xf16, row_pad = 8, slots = 2> -> tensor<32x32xf16, #tall>
    // CHECK: ttm.load_tile %{{.*}}[%{{.*}}] : !ttm.tile<32x32xf16, row_pad = 8, slots = 2> -> tensor<32x32xf16, #{{.*}}>
    %1 = ttm.load_tile %t[%slot] : !ttm.tile<32x32xf16, row_pad = 8, slots = 2> -> tensor<32x32xf16, #tall>
    // CHECK: ttm.mma <8x8x8> %{{.*}}[%{{.*}}], %{{.*}}[%{{.*}}], %{{.*}} {b_transposed} : !ttm.tile<32x32xf16, row_pad = 8, slots = 2>, !ttm.tile<32x32xf16, row_pad = 8, slots = 2>, tensor<32x32xf32, #{{.*}}>
    %2 = ttm.mma <8x8x8> %t[%slot], %t[%slot], %acc {b_transposed} : !ttm.tile<32x32xf16, row_pad = 8, slots = 2>, !ttm.tile<32x32xf16, row_pad = 8, slots = 2>, tensor<32x32xf32, #mma>
    // CHECK: ttm.mma <8x8x8> %{{.*}}, %{{.*}}, %{{.*}} {b_transposed} : tensor<32x16xf16, #{{.*}}>, !ttm.tile<32x16xf16>, tensor<32x32xf32, #{{.*}}>
    %3 = ttm.mma <8x8x8> %r, %s, %2 {b_transposed} : tensor<32x16xf16, #a>, !ttm.tile<32x16xf16>, tensor<32x32xf32, #mma>
    tt.return
  }

  // An instruction of another shape.
  // CHECK-LABEL: @larger_instruction
  tt.func @larger_instruction(%acc: tensor<32x32xf32, #mma16>, %a: tensor<32x16xf16, #a16>) {
    %b = ttm.alloc_tile : !ttm.tile<16x32xf16>
    // CHECK: ttm.mma <16x16x16> %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x16xf16, #{{.*}}>, !ttm.tile<16x32xf16>, tensor<32x32xf32, #{{.*}}>
    %0 = ttm.mma <16x16x16> %a, %b, %acc : tensor<32x16xf16, #a16>, !ttm.tile<16x32xf16>, tensor<32x32xf32, #mma16>
    tt.return
  }

  // CHECK-LABEL: @first_copies
  tt.func @first_copies(%x: !tt.ptr<f32>, %offsets: tensor<1x32xi32, #row>, %row: tensor<1x32xf32, #row>, %f: f32) {
    %c0 = arith.constant 0 : i32
    // CHECK: %[[OWN:.*]] = ttm.in_first_copies #[[ROW:.*]] -> (tensor<1x32xf32, #[[ROW]]>) {
    // CHECK: ttm.yield %{{.*}} : tensor<1x32xf32, #[[ROW]]>
    %own = ttm.in_first_copies #row -> (tensor<1x32xf32, #row>) {
      %old = ttm.atomic_rmw fadd, relaxed, gpu, %x[%offsets], %row : tensor<1x32xi32, #row>, !tt.ptr<f32>, tensor<1x32xf32, #row>
      ttm.yield %old : tensor<1x32xf32, #row>
    }
    // CHECK: ttm.in_first_copies #{{.*}} -> (f32) {
    %scalar = ttm.in_first_copies #one -> (f32) {
      %old = ttm.atomic_rmw fadd, relaxed, gpu, %x[%c0], %f : i32, !tt.ptr<f32>, f32
      ttm.yield %old : f32
    }
    // CHECK: ttm.in_first_copies #{{.*}} {
    // CHECK-NEXT: ttm.store
    // CHECK-NEXT: }
    ttm.in_first_copies #one {
      ttm.store %f, %x[%c0] : f32, i32, !tt.ptr<f32>
    }
    tt.return
  }
}
