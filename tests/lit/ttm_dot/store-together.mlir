// RUN: triton-metal-opt %s --split-input-file --ttm-lower-dot | FileCheck %s

// The operand of the second dot is there before the first one: both are stored in front of it.
#acc = #ttm.linear<{register = [[0, 1], [0, 8]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[8, 0]]}>
#rows = #ttm.linear<{register = [[4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], simdgroup = [[2, 0]]}>
module attributes {ttm.num_simdgroups = 2 : i32, ttm.threads = 64 : i32} {
  // CHECK-LABEL: @together
  // CHECK-COUNT-4: ttm.store_tile
  // CHECK: %[[FIRST:.*]] = ttm.mma
  // CHECK-NOT: ttm.store_tile
  // CHECK: ttm.mma {{.*}}, %[[FIRST]]
  tt.func private @together(%a: tensor<16x16xf16, #rows>, %b: tensor<16x16xf16, #rows>, %c: tensor<16x16xf16, #rows>,
                    %d: tensor<16x16xf16, #rows>) -> tensor<16x16xf32, #acc> {
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #acc>
    %x = tt.dot %a, %b, %zero : tensor<16x16xf16, #rows> * tensor<16x16xf16, #rows> -> tensor<16x16xf32, #acc>
    %y = tt.dot %c, %d, %x : tensor<16x16xf16, #rows> * tensor<16x16xf16, #rows> -> tensor<16x16xf32, #acc>
    tt.return %y : tensor<16x16xf32, #acc>
  }

  // An operand that comes later is stored later; the other one is there.
  // CHECK-LABEL: @later
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK: ttm.mma
  // CHECK: %[[C:.*]] = arith.addf
  // CHECK-NOT: ttm.store_tile
  // CHECK: ttm.store_tile %[[C]]
  // CHECK-NOT: ttm.store_tile
  // CHECK: ttm.mma
  tt.func private @later(%a: tensor<16x16xf16, #rows>, %b: tensor<16x16xf16, #rows>) -> tensor<16x16xf32, #acc> {
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #acc>
    %x = tt.dot %a, %b, %zero : tensor<16x16xf16, #rows> * tensor<16x16xf16, #rows> -> tensor<16x16xf32, #acc>
    %c = arith.addf %a, %b : tensor<16x16xf16, #rows>
    %y = tt.dot %c, %b, %x : tensor<16x16xf16, #rows> * tensor<16x16xf16, #rows> -> tensor<16x16xf32, #acc>
    tt.return %y : tensor<16x16xf32, #acc>
  }
}

// -----

// Memory for both would leave a core fewer threads.
#acc = #ttm.linear<{register = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
#rows = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: @apart
  // CHECK: ttm.mma
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK: ttm.mma
  tt.func private @apart(%a: tensor<64x64xf16, #rows>, %b: tensor<64x64xf16, #rows>, %c: tensor<64x64xf16, #rows>,
                 %d: tensor<64x64xf16, #rows>) -> tensor<64x64xf32, #acc> {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = tt.dot %a, %b, %zero : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
    %y = tt.dot %c, %d, %x : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
    tt.return %y : tensor<64x64xf32, #acc>
  }
}
