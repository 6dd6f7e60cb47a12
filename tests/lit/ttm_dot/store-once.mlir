// RUN: triton-metal-opt %s --split-input-file --ttm-lower-dot | FileCheck %s

// Two dots of a block take one operand, the second its transpose: it is stored once.
#acc = #ttm.linear<{register = [[0, 1], [0, 8]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[8, 0]]}>
#rows = #ttm.linear<{register = [[4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], simdgroup = [[2, 0]]}>
#columns = #ttm.linear<{register = [[0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], simdgroup = [[0, 2]]}>
module attributes {ttm.num_simdgroups = 2 : i32, ttm.threads = 64 : i32} {
  // CHECK-LABEL: @once
  // CHECK-SAME: %[[A:.*]]: tensor{{.*}}, %[[B:.*]]: tensor
  // CHECK: ttm.store_tile %[[A]], %[[A_TILE:.*]] :
  // CHECK: ttm.store_tile %[[B]], %[[B_TILE:.*]] :
  // CHECK: ttm.mma <8x8x8> %[[A_TILE]], %[[B_TILE]], {{.*}}b_transposed
  // CHECK: %[[C:.*]] = arith.addf
  // CHECK: ttm.store_tile %[[C]], %[[C_TILE:.*]] :
  // CHECK-NOT: ttm.store_tile
  // CHECK: ttm.mma <8x8x8> %[[C_TILE]], %[[B_TILE]], %{{[0-9]+}} :
  tt.func private @once(%a: tensor<16x16xf16, #rows>, %b: tensor<16x16xf16, #rows>) -> tensor<16x16xf32, #acc> {
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #acc>
    %turned = tt.trans %b {order = array<i32: 1, 0>} : tensor<16x16xf16, #rows> -> tensor<16x16xf16, #columns>
    %x = tt.dot %a, %turned, %zero : tensor<16x16xf16, #rows> * tensor<16x16xf16, #columns> -> tensor<16x16xf32, #acc>
    %c = arith.addf %a, %b : tensor<16x16xf16, #rows>
    %y = tt.dot %c, %b, %x : tensor<16x16xf16, #rows> * tensor<16x16xf16, #rows> -> tensor<16x16xf32, #acc>
    tt.return %y : tensor<16x16xf32, #acc>
  }

  // The dots of another block store their own: a tile is not kept over a loop.
  // CHECK-LABEL: @other_block
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK: ttm.mma
  // CHECK: scf.if
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK: ttm.mma
  tt.func private @other_block(%a: tensor<16x16xf16, #rows>, %b: tensor<16x16xf16, #rows>, %if: i1) -> tensor<16x16xf32, #acc> {
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #acc>
    %x = tt.dot %a, %b, %zero : tensor<16x16xf16, #rows> * tensor<16x16xf16, #rows> -> tensor<16x16xf32, #acc>
    %y = scf.if %if -> tensor<16x16xf32, #acc> {
      %z = tt.dot %a, %b, %x : tensor<16x16xf16, #rows> * tensor<16x16xf16, #rows> -> tensor<16x16xf32, #acc>
      scf.yield %z : tensor<16x16xf32, #acc>
    } else {
      scf.yield %x : tensor<16x16xf32, #acc>
    }
    tt.return %y : tensor<16x16xf32, #acc>
  }
}

// -----

// There is no room for the first operand beside those of the second dot: it is stored again for the third.
#acc = #ttm.linear<{register = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
#rows = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: @again
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK: ttm.mma
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK: ttm.mma
  // CHECK: ttm.store_tile
  // CHECK: ttm.mma
  tt.func private @again(%a: tensor<64x64xf16, #rows>, %b: tensor<64x64xf16, #rows>, %c: tensor<64x64xf16, #rows>,
                 %d: tensor<64x64xf16, #rows>) -> tensor<64x64xf32, #acc> {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = tt.dot %a, %b, %zero : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
    %y = tt.dot %c, %d, %x : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
    %z = tt.dot %a, %d, %y : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
    tt.return %z : tensor<64x64xf32, #acc>
  }
}
