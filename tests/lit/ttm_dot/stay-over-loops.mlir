// RUN: triton-metal-opt %s --split-input-file --ttm-lower-dot | FileCheck %s

// Loops that follow each other share the tile of an operand that neither changes.
#acc = #ttm.linear<{register = [[0, 1], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
#rows = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = []}>
#narrow = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: @share
  // CHECK: %[[TILE:.*]] = ttm.alloc_tile
  // CHECK-NEXT: ttm.store_tile %arg0, %[[TILE]]
  // CHECK: scf.for
  // CHECK: ttm.mma <8x8x8> %[[TILE]]
  // CHECK-NOT: ttm.store_tile
  // CHECK: scf.for
  // CHECK: ttm.store_tile
  // CHECK-NOT: ttm.store_tile
  // CHECK: ttm.mma <8x8x8> %[[TILE]]
  tt.func private @share(%a: tensor<64x64xf16, #rows>, %p: tensor<64x8x!tt.ptr<f16>, #narrow>, %n: i32) -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x8xf32, #acc>) : i32 {
      %x = tt.load %p : tensor<64x8x!tt.ptr<f16>, #narrow>
      %d = tt.dot %a, %x, %sum : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
      scf.yield %d : tensor<64x8xf32, #acc>
    }
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %r) -> (tensor<64x8xf32, #acc>) : i32 {
      %x = tt.load %p : tensor<64x8x!tt.ptr<f16>, #narrow>
      %y = arith.addf %x, %x : tensor<64x8xf16, #narrow>
      %d = tt.dot %a, %y, %sum : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
      scf.yield %d : tensor<64x8xf32, #acc>
    }
    tt.return %s : tensor<64x8xf32, #acc>
  }
}

// -----

// The dots between them were placed without the tile.
#acc = #ttm.linear<{register = [[0, 1], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
#rows = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = []}>
#narrow = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: @between
  // CHECK: ttm.store_tile %arg0
  // CHECK: scf.for
  // CHECK: ttm.store_tile %arg1
  // CHECK: ttm.store_tile %arg0
  // CHECK: scf.for
  tt.func private @between(%a: tensor<64x64xf16, #rows>, %b: tensor<64x64xf16, #rows>, %p: tensor<64x8x!tt.ptr<f16>, #narrow>, %n: i32)
      -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x8xf32, #acc>) : i32 {
      %x = tt.load %p : tensor<64x8x!tt.ptr<f16>, #narrow>
      %d = tt.dot %a, %x, %sum : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
      scf.yield %d : tensor<64x8xf32, #acc>
    }
    %z = tt.load %p : tensor<64x8x!tt.ptr<f16>, #narrow>
    %e = tt.dot %b, %z, %r : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %e) -> (tensor<64x8xf32, #acc>) : i32 {
      %x = tt.load %p : tensor<64x8x!tt.ptr<f16>, #narrow>
      %d = tt.dot %a, %x, %sum : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
      scf.yield %d : tensor<64x8xf32, #acc>
    }
    tt.return %s : tensor<64x8xf32, #acc>
  }
}

// -----

// Two dots of a loop share it, too.
#acc = #ttm.linear<{register = [[0, 1], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
#rows = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = []}>
#narrow = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: @twice
  // CHECK: ttm.store_tile %arg0, %[[TILE:.*]] :
  // CHECK-NOT: ttm.store_tile
  // CHECK: scf.for
  // CHECK-COUNT-2: ttm.mma <8x8x8> %[[TILE]]
  tt.func private @twice(%a: tensor<64x64xf16, #rows>, %p: tensor<64x8x!tt.ptr<f16>, #narrow>, %n: i32) -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x8xf32, #acc>) : i32 {
      %x = tt.load %p : tensor<64x8x!tt.ptr<f16>, #narrow>
      %y = arith.addf %x, %x : tensor<64x8xf16, #narrow>
      %d = tt.dot %a, %x, %sum : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
      %e = tt.dot %a, %y, %d : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
      scf.yield %e : tensor<64x8xf32, #acc>
    }
    tt.return %r : tensor<64x8xf32, #acc>
  }
}
