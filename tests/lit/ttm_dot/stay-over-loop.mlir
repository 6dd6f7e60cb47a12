// RUN: triton-metal-opt %s --split-input-file --ttm-lower-dot | FileCheck %s

// Both tiles stay over the loop: they are more than half of the memory, but those of the loop's own operands fit beside them.
#acc = #ttm.linear<{register = [[0, 1], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
#rows = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = []}>
#narrow = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: @stay
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK: scf.for
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK-NOT: ttm.store_tile
  // CHECK: tt.return
  tt.func private @stay(%a: tensor<64x64xf16, #rows>, %b: tensor<64x64xf16, #rows>, %p: tensor<64x8x!tt.ptr<f16>, #narrow>, %n: i32)
      -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x8xf32, #acc>) : i32 {
      %x = tt.load %p : tensor<64x8x!tt.ptr<f16>, #narrow>
      %y = arith.addf %x, %x : tensor<64x8xf16, #narrow>
      %d = tt.dot %a, %x, %sum : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
      %e = tt.dot %b, %y, %d : tensor<64x64xf16, #rows> * tensor<64x8xf16, #narrow> -> tensor<64x8xf32, #acc>
      scf.yield %e : tensor<64x8xf32, #acc>
    }
    tt.return %r : tensor<64x8xf32, #acc>
  }
}

// -----

// The loop's own operand needs the room of the second one, which waits in registers as the product takes it: it needs no
// more of them than before. Where it is used otherwise, too, it is staged in each step.
#acc = #ttm.linear<{register = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
#rows = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: @wait
  // CHECK: ttm.store_tile
  // CHECK: %[[B:.*]] = ttm.convert_layout %arg1
  // CHECK: scf.for
  // CHECK-COUNT-2: ttm.store_tile
  // CHECK-NOT: ttm.store_tile
  // CHECK: ttm.mma <8x8x8> %[[B]],
  // CHECK: tt.return
  tt.func private @wait(%a: tensor<64x64xf16, #rows>, %b: tensor<64x64xf16, #rows>, %p: tensor<64x64x!tt.ptr<f16>, #rows>, %n: i32)
      -> tensor<64x64xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %x = tt.load %p : tensor<64x64x!tt.ptr<f16>, #rows>
      %y = arith.addf %x, %x : tensor<64x64xf16, #rows>
      %d = tt.dot %a, %x, %sum : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
      %e = tt.dot %b, %y, %d : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
      scf.yield %e : tensor<64x64xf32, #acc>
    }
    tt.return %r : tensor<64x64xf32, #acc>
  }

  // CHECK-LABEL: @leave
  // CHECK: ttm.store_tile
  // CHECK-NOT: ttm.store_tile
  // CHECK-NOT: ttm.convert_layout
  // CHECK: scf.for
  // CHECK-COUNT-3: ttm.store_tile
  // CHECK-NOT: ttm.store_tile
  // CHECK: tt.return
  tt.func private @leave(%a: tensor<64x64xf16, #rows>, %b: tensor<64x64xf16, #rows>, %p: tensor<64x64x!tt.ptr<f16>, #rows>, %n: i32)
      -> tensor<64x64xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %x = tt.load %p : tensor<64x64x!tt.ptr<f16>, #rows>
      %y = arith.addf %x, %b : tensor<64x64xf16, #rows>
      %d = tt.dot %a, %x, %sum : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
      %e = tt.dot %b, %y, %d : tensor<64x64xf16, #rows> * tensor<64x64xf16, #rows> -> tensor<64x64xf32, #acc>
      scf.yield %e : tensor<64x64xf32, #acc>
    }
    tt.return %r : tensor<64x64xf32, #acc>
  }
}
