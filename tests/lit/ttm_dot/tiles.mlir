// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#a = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], simdgroup = [[8, 0], [16, 0]]}>
#mma = #ttm.linear<{register = [[0, 1], [0, 8], [0, 16], [8, 0], [16, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[0, 32], [32, 0]]}>
#deep = #ttm.linear<{register = [[0, 1], [0, 2], [0, 32], [8, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], simdgroup = [[4, 0], [16, 0]]}>
#narrow = #ttm.linear<{register = [[0, 1], [0, 8]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[8, 0], [16, 0]]}>
#operand = #ttm.linear<{register = [[0, 1], [0, 8], [0, 16]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[8, 0], [16, 0]]}>
#mma16 = #ttm.linear<{register = [[0, 1], [0, 2], [8, 0], [0, 16], [16, 0]], lane = [[0, 4], [1, 0], [2, 0], [0, 8], [4, 0]], simdgroup = [[0, 32], [32, 0]]}>
#a16 = #ttm.linear<{register = [[0, 1], [0, 2], [8, 0], [0, 16], [16, 0]], lane = [[0, 4], [1, 0], [2, 0], [0, 8], [4, 0]], simdgroup = [[0, 0], [32, 0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // Rows of 32 + 8 elements, 16 bytes a store; each SIMD-group multiplies from its first row and column on.
  // CHECK-LABEL: msl.kernel @product
  // CHECK-DAG: %[[PLACES:.*]] = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 1280, 1281, 1282, 1283, 1284, 1285, 1286, 1287]>
  // CHECK-DAG: %[[A:.*]] = msl.alloc "tile", 2552 : <f16, threadgroup>
  // CHECK-DAG: %[[B:.*]] = msl.alloc "tile_2", 2560 slots 2 : <f16, threadgroup>
  // CHECK: msl.store %{{.*}}, %[[A]][%{{.*}}] {width = 8 : i32}
  // CHECK: %[[BS:.*]] = msl.slot %[[B]][%arg1]
  // CHECK: msl.store %{{.*}}, %[[BS]][%{{.*}}] {width = 8 : i32}
  // CHECK: %[[ROWS:.*]] = msl.ptr_add %[[A]]
  // CHECK: %[[COLUMNS:.*]] = msl.ptr_add %[[BS]]
  // CHECK: msl.mma <8x8x8> %{{.*}}, %[[ROWS]], %[[COLUMNS]] {a_stride = 40 : i32, b_stride = 40 : i32, b_transposed, k = 4 : i32, m = 4 : i32, n = 4 : i32}
  tt.func public @product(%p: !tt.ptr<f16>, %slot: i32, %o: !tt.ptr<f32>) {
    %i = arith.constant dense<0> : tensor<64x32xi32, #a>
    %v = ttm.load %p[%i] : tensor<64x32xi32, #a>, !tt.ptr<f16> -> tensor<64x32xf16, #a>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %ta = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
    ttm.store_tile %v, %ta : tensor<64x32xf16, #a>, !ttm.tile<64x32xf16, row_pad = 8>
    %tb = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8, slots = 2>
    ttm.store_tile %v, %tb[%slot] : tensor<64x32xf16, #a>, !ttm.tile<64x32xf16, row_pad = 8, slots = 2>
    %d = ttm.mma <8x8x8> %ta, %tb[%slot], %zero {b_transposed} : !ttm.tile<64x32xf16, row_pad = 8>, !ttm.tile<64x32xf16, row_pad = 8, slots = 2>, tensor<64x64xf32, #mma>
    %j = arith.constant dense<0> : tensor<64x64xi32, #mma>
    ttm.store %d, %o[%j] : tensor<64x64xf32, #mma>, tensor<64x64xi32, #mma>, !tt.ptr<f32>
    tt.return
  }

  // Fragments of 16x16 have eight registers. Those of the second half of K are taken from the operand in registers.
  // CHECK-LABEL: msl.kernel @larger_instruction
  // CHECK-DAG: %[[B:.*]] = msl.alloc "tile", 1144 : <f16, threadgroup>
  // CHECK: %[[PART:.*]] = msl.permute_registers %{{.*}} {bases = array<i64: 1, 2, 4, 16>, offset = 8 : i64} : vector<32xf16> -> vector<16xf16>
  // CHECK: %[[COLUMNS:.*]] = msl.ptr_add %[[B]]
  // CHECK: msl.mma <16x16x16> %{{.*}}, %[[PART]], %[[COLUMNS]] {b_stride = 72 : i32, k = 1 : i32, m = 2 : i32, n = 2 : i32} : vector<32xf32>, vector<16xf16>, !msl.ptr<f16, threadgroup>
  tt.func public @larger_instruction(%p: !tt.ptr<f16>, %o: !tt.ptr<f32>) {
    %i = arith.constant dense<0> : tensor<64x32xi32, #a16>
    %v = ttm.load %p[%i] : tensor<64x32xi32, #a16>, !tt.ptr<f16> -> tensor<64x32xf16, #a16>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma16>
    %t = ttm.alloc_tile : !ttm.tile<16x64xf16, row_pad = 8>
    %d = ttm.mma <16x16x16> %v, %t, %zero {k_offset = 16 : i64} : tensor<64x32xf16, #a16>, !ttm.tile<16x64xf16, row_pad = 8>, tensor<64x64xf32, #mma16>
    %j = arith.constant dense<0> : tensor<64x64xi32, #mma16>
    ttm.store %d, %o[%j] : tensor<64x64xf32, #mma16>, tensor<64x64xi32, #mma16>, !tt.ptr<f32>
    tt.return
  }

  // A slice: of the registers those that are in it, and of the threads too.
  // CHECK-LABEL: msl.kernel @slice
  // CHECK: %[[V:.*]] = msl.load %arg0
  // CHECK: %[[F:.*]] = arith.sitofp %[[PART:.*]] : vector<8xi8> to vector<8xf16>
  // CHECK: msl.in_threads lanes 4 = 4 {
  // CHECK-NEXT: msl.store %[[F]], %{{.*}} {width = 4 : i32} : vector<8xf16>
  tt.func public @slice(%p: !tt.ptr<i8>) {
    %i = arith.constant dense<0> : tensor<32x64xi32, #deep>
    %v = ttm.load %p[%i] : tensor<32x64xi32, #deep>, !tt.ptr<i8> -> tensor<32x64xi8, #deep>
    %t = ttm.alloc_tile : !ttm.tile<32x16xf16, row_pad = 8>
    ttm.store_tile %v, %t {offsets = array<i64: 0, 48>} : tensor<32x64xi8, #deep>, !ttm.tile<32x16xf16, row_pad = 8>
    tt.return
  }

  // An operand in registers gives the fragments of this part of K: two registers each, from the third fragment on.
  // CHECK-LABEL: msl.kernel @registers
  // CHECK: %[[B:.*]] = msl.alloc "tile", 256 : <f16, threadgroup>
  // CHECK: %[[A:.*]] = msl.load %arg0
  // CHECK: %[[PART:.*]] = msl.permute_registers %[[A]] {bases = array<i64: 1, 2>, offset = 4 : i64} : vector<8xf16> -> vector<4xf16>
  // This thread's first element: two columns for a bit of the lane, rows of 16.
  // CHECK: %[[FIRST:.*]] = msl.thread_index lanes [2, 16, 32, 4, 64] simdgroups [0, 0]
  // CHECK: %[[ELEMENTS:.*]] = msl.ptr_add %[[B]], %[[FIRST]]
  // CHECK: msl.mma <8x8x8> %{{.*}}, %[[PART]], %[[ELEMENTS]] {{{.*}}k = 2 : i32, m = 1 : i32, n = 2 : i32}
  tt.func public @registers(%p: !tt.ptr<f16>, %o: !tt.ptr<f32>) {
    %zero = arith.constant dense<0.0> : tensor<32x16xf32, #narrow>
    %i = arith.constant dense<0> : tensor<32x32xi32, #operand>
    %j = arith.constant dense<0> : tensor<32x16xi32, #narrow>
    %a = ttm.load %p[%i] : tensor<32x32xi32, #operand>, !tt.ptr<f16> -> tensor<32x32xf16, #operand>
    %b = ttm.alloc_tile : !ttm.tile<16x16xf16>
    %d = ttm.mma <8x8x8> %a, %b, %zero {k_offset = 16 : i64} : tensor<32x32xf16, #operand>, !ttm.tile<16x16xf16>, tensor<32x16xf32, #narrow>
    ttm.store %d, %o[%j] : tensor<32x16xf32, #narrow>, tensor<32x16xi32, #narrow>, !tt.ptr<f32>
    tt.return
  }
}
