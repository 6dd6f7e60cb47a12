// RUN: triton-metal-opt %s --ttm-lower-dot --split-input-file | FileCheck %s

#a = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], simdgroup = [[8, 0], [16, 0]]}>
#b = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [16, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = [[4, 0], [8, 0]]}>
#column = #ttm.linear<{register = [[1, 0], [2, 0], [4, 0], [0, 32]], lane = [[8, 0], [16, 0], [0, 1], [0, 2], [0, 4]], simdgroup = [[0, 8], [0, 16]]}>
#square = #ttm.linear<{register = [[0, 1], [0, 2], [8, 0], [16, 0], [32, 0]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], simdgroup = [[2, 0], [4, 0]]}>
#mma = #ttm.linear<{register = [[0, 1], [0, 8], [0, 16], [8, 0], [16, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[0, 32], [32, 0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // What a loop does not change is staged before it. An operand whose threads hold columns is stored as columns.
  // CHECK-LABEL: @loop
  // CHECK: %[[A:.*]] = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
  // CHECK: ttm.store_tile %{{.*}}, %[[A]]
  // CHECK: scf.for
  // CHECK: %[[LOADED:.*]] = tt.load
  // CHECK: %[[T:.*]] = tt.trans %[[LOADED]] {order = array<i32: 1, 0>}
  // CHECK: %[[B:.*]] = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
  // CHECK: ttm.store_tile %[[T]], %[[B]]
  // CHECK: ttm.mma <8x8x8> %[[A]], %[[B]], %{{.*}} {b_transposed}
  // CHECK-NOT: tt.dot
  tt.func public @loop(%p: tensor<64x32x!tt.ptr<f16>, #a>, %q: tensor<32x64x!tt.ptr<f16>, #column>, %n: i32, %o: tensor<64x64x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %a = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %b = tt.load %q : tensor<32x64x!tt.ptr<f16>, #column>
      %d = tt.dot %a, %b, %acc : tensor<64x32xf16, #a> * tensor<32x64xf16, #column> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tt.store %o, %r : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }

  // int8 is staged as float16; the exact sum goes to int32.
  // CHECK-LABEL: @int8
  // CHECK: ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
  // CHECK: ttm.store_tile %{{.*}} : tensor<64x32xi8
  // CHECK: %[[SUM:.*]] = ttm.mma {{.*}} tensor<64x64xf32
  // CHECK: %[[I:.*]] = arith.fptosi %[[SUM]]
  // CHECK: arith.addi %[[I]], %arg2
  tt.func public @int8(%a: tensor<64x32xi8, #a>, %b: tensor<32x64xi8, #b>, %c: tensor<64x64xi32, #mma>, %o: tensor<64x64x!tt.ptr<i32>, #mma>) {
    %d = tt.dot %a, %b, %c : tensor<64x32xi8, #a> * tensor<32x64xi8, #b> -> tensor<64x64xi32, #mma>
    tt.store %o, %d : tensor<64x64x!tt.ptr<i32>, #mma>
    tt.return
  }

  // float16 accumulators are float32 within the dot; a conversion before memory is of no use.
  // CHECK-LABEL: @half
  // CHECK-NOT: ttm.convert_layout
  // CHECK: %[[WIDE:.*]] = arith.extf %arg2
  // CHECK: %[[SUM:.*]] = ttm.mma <8x8x8> %{{.*}}, %{{.*}}, %[[WIDE]]
  // CHECK: arith.truncf %[[SUM]]
  tt.func public @half(%a: tensor<64x32xf16, #a>, %b: tensor<32x64xf16, #b>, %c: tensor<64x64xf16, #mma>, %o: tensor<64x64x!tt.ptr<f16>, #mma>) {
    %x = ttm.convert_layout %b : tensor<32x64xf16, #b> -> tensor<32x64xf16, #column>
    %d = tt.dot %a, %x, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #column> -> tensor<64x64xf16, #mma>
    tt.store %o, %d : tensor<64x64x!tt.ptr<f16>, #mma>
    tt.return
  }

  // One conversion that is both operands, and the accumulator, goes once.
  // CHECK-LABEL: @square
  // CHECK-NOT: ttm.convert_layout
  // CHECK: ttm.mma
  tt.func public @square(%a: tensor<64x64xf32, #square>, %o: tensor<64x64x!tt.ptr<f32>, #mma>) {
    %x = ttm.convert_layout %a : tensor<64x64xf32, #square> -> tensor<64x64xf32, #mma>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %d = tt.dot %x, %x, %zero : tensor<64x64xf32, #mma> * tensor<64x64xf32, #mma> -> tensor<64x64xf32, #mma>
    tt.store %o, %d : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

#a = #ttm.linear<{register = [[0, 1], [0, 2], [0, 64], [0, 128], [16, 0], [32, 0], [64, 0], [128, 0]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], simdgroup = [[2, 0], [4, 0], [8, 0]]}>
#b = #ttm.linear<{register = [[0, 1], [0, 2], [64, 0], [128, 0], [16, 0], [32, 0]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], simdgroup = [[2, 0], [4, 0], [8, 0]]}>
#mma = #ttm.linear<{register = [[0, 1], [0, 8], [0, 16], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[0, 32], [64, 0], [128, 0]]}>

module attributes {ttm.num_simdgroups = 8 : i32, ttm.threads = 256 : i32} {
  // 256 x 256 and 256 x 64 in float32 are 320 KB: slices of 16 are staged in turn, in the same memory.
  // CHECK-LABEL: @slices
  // CHECK: %[[A:.*]] = ttm.alloc_tile : !ttm.tile<256x16xf32, row_pad = 4>
  // CHECK-NEXT: ttm.store_tile %arg0, %[[A]] {offsets = array<i64: 0, 0>}
  // CHECK: %[[B:.*]] = ttm.alloc_tile : !ttm.tile<16x64xf32, row_pad = 4>
  // CHECK: %[[FIRST:.*]] = ttm.mma <8x8x8> %[[A]], %[[B]], %arg2
  // CHECK: ttm.store_tile %arg0, %[[A]] {offsets = array<i64: 0, 16>}
  // CHECK: ttm.store_tile %arg1, %[[B]] {offsets = array<i64: 16, 0>}
  // CHECK: ttm.mma <8x8x8> %[[A]], %[[B]], %[[FIRST]]
  // CHECK-COUNT-14: ttm.mma
  // CHECK-NOT: ttm.mma
  tt.func public @slices(%a: tensor<256x256xf32, #a>, %b: tensor<256x64xf32, #b>, %c: tensor<256x64xf32, #mma>, %o: tensor<256x64x!tt.ptr<f32>, #mma>) {
    %d = tt.dot %a, %b, %c : tensor<256x256xf32, #a> * tensor<256x64xf32, #b> -> tensor<256x64xf32, #mma>
    tt.store %o, %d : tensor<256x64x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

#in = #ttm.linear<{register = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [4, 0, 0]], lane = [[0, 0, 8], [0, 1, 0], [0, 2, 0], [0, 4, 0], [0, 8, 0]], simdgroup = [[1, 0, 0], [2, 0, 0]]}>
#mma = #ttm.linear<{register = [[0, 0, 1], [0, 0, 8], [0, 8, 0], [4, 0, 0]], lane = [[0, 0, 2], [0, 1, 0], [0, 2, 0], [0, 0, 4], [0, 4, 0]], simdgroup = [[1, 0, 0], [2, 0, 0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // A batch is one operation on tiles of all its matrices.
  // CHECK-LABEL: @batch
  // CHECK: %[[A:.*]] = ttm.alloc_tile : !ttm.tile<8x16x16xf16, row_pad = 8>
  // CHECK: %[[B:.*]] = ttm.alloc_tile : !ttm.tile<8x16x16xf16, row_pad = 8>
  // CHECK: ttm.mma <8x8x8> %[[A]], %[[B]], %arg2 :
  // CHECK-NOT: ttm.mma
  tt.func public @batch(%a: tensor<8x16x16xf16, #in>, %b: tensor<8x16x16xf16, #in>, %c: tensor<8x16x16xf32, #mma>, %o: tensor<8x16x16x!tt.ptr<f32>, #mma>) {
    %d = tt.dot %a, %b, %c : tensor<8x16x16xf16, #in> * tensor<8x16x16xf16, #in> -> tensor<8x16x16xf32, #mma>
    tt.store %o, %d : tensor<8x16x16x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

#in = #ttm.linear<{register = [[0, 0, 1], [0, 0, 2], [4, 0, 0], [0, 16, 0]], lane = [[0, 0, 4], [0, 0, 8], [0, 0, 16], [0, 1, 0], [0, 2, 0]], simdgroup = [[0, 4, 0], [0, 8, 0], [1, 0, 0], [2, 0, 0]]}>
#mma = #ttm.linear<{register = [[0, 0, 1], [0, 0, 8], [0, 8, 0], [4, 0, 0]], lane = [[0, 0, 2], [0, 1, 0], [0, 2, 0], [0, 0, 4], [0, 4, 0]], simdgroup = [[0, 0, 16], [0, 16, 0], [1, 0, 0], [2, 0, 0]]}>

module attributes {ttm.num_simdgroups = 16 : i32, ttm.threads = 512 : i32} {
  // Two tiles of 36 KB do not fit: the batch is multiplied in halves.
  // CHECK-LABEL: @parts
  // CHECK: %[[A:.*]] = ttm.alloc_tile : !ttm.tile<4x32x16xf32, row_pad = 4>
  // CHECK-NEXT: ttm.store_tile %arg0, %[[A]] {offsets = array<i64: 0, 0, 0>}
  // CHECK: ttm.mma <8x8x8> %[[A]], %{{.*}}, %arg2
  // CHECK: ttm.store_tile %arg0, %[[A]] {offsets = array<i64: 0, 0, 16>}
  // CHECK: ttm.mma
  // CHECK: ttm.store_tile %arg0, %[[A]] {offsets = array<i64: 4, 0, 0>}
  // CHECK: ttm.mma {{.*}} {batch_offset = 4 : i64}
  // CHECK: ttm.store_tile %arg0, %[[A]] {offsets = array<i64: 4, 0, 16>}
  // CHECK: ttm.mma {{.*}} {batch_offset = 4 : i64}
  // CHECK-NOT: ttm.mma
  tt.func public @parts(%a: tensor<8x32x32xf32, #in>, %b: tensor<8x32x32xf32, #in>, %c: tensor<8x32x32xf32, #mma>, %o: tensor<8x32x32x!tt.ptr<f32>, #mma>) {
    %d = tt.dot %a, %b, %c : tensor<8x32x32xf32, #in> * tensor<8x32x32xf32, #in> -> tensor<8x32x32xf32, #mma>
    tt.store %o, %d : tensor<8x32x32x!tt.ptr<f32>, #mma>
    tt.return
  }
}
