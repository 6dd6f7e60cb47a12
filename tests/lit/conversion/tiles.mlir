// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#a = #ttm.linear<{register = [[0, 1], [0, 2], [4, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], simdgroup = []}>
#columns = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

#pair = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [64], [32]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // A tile is an allocation without the padding behind its last row; a part takes its turn under a mask.
  // CHECK-LABEL: msl.kernel @tiles
  // CHECK-DAG: %[[WHOLE:.*]] = msl.alloc "exchange", 284 : <f32, threadgroup>
  // CHECK-DAG: %[[PART:.*]] = msl.alloc "exchange_2", 128 : <f32, threadgroup>
  // CHECK: msl.store %{{.*}}, %[[WHOLE]][%{{.*}}] {width = 4 : i32}
  // CHECK: %[[V:.*]] = msl.load %[[WHOLE]][%{{.*}}] {width = 4 : i32}
  // CHECK: %[[TURN:.*]] = arith.cmpi eq
  // CHECK: msl.store %[[V]], %[[PART]][%{{.*}}] mask %[[TURN]] {mask_width = 4 : i32, width = 4 : i32}
  // CHECK: msl.load %[[PART]][%{{.*}}] mask %[[TURN]] other %[[V]] {mask_width = 4 : i32, width = 4 : i32}
  tt.func public @tiles(%x: !tt.ptr<f32>, %i: i32) {
    %o = arith.constant dense<0> : tensor<8x32xi32, #a>
    %v = ttm.load %x[%o] : tensor<8x32xi32, #a>, !tt.ptr<f32> -> tensor<8x32xf32, #a>
    %t = ttm.alloc_tile "exchange" : !ttm.tile<8x32xf32, row_pad = 4>
    ttm.store_tile %v, %t : tensor<8x32xf32, #a>, !ttm.tile<8x32xf32, row_pad = 4>
    %w = ttm.load_tile %t : !ttm.tile<8x32xf32, row_pad = 4> -> tensor<8x32xf32, #a>
    %u = ttm.alloc_tile "exchange" : !ttm.tile<4x32xf32>
    ttm.store_tile %w, %u part %i : tensor<8x32xf32, #a>, !ttm.tile<4x32xf32>
    %y = ttm.load_tile %u part %i other %w : !ttm.tile<4x32xf32> -> tensor<8x32xf32, #a>
    ttm.store %y, %x[%o] : tensor<8x32xf32, #a>, tensor<8x32xi32, #a>, !tt.ptr<f32>
    tt.return
  }

  // Slots are operands. A row of a tile begins at a multiple of what a row takes, padding included.
  // CHECK-LABEL: msl.kernel @slots
  // CHECK: %[[M:.*]] = msl.alloc "tile", 288 slots 2 : <f32, threadgroup>
  // CHECK: %[[NEXT:.*]] = msl.next_slot %arg1 of 2 : i32
  // CHECK: %[[SLOT:.*]] = msl.slot %[[M]][%[[NEXT]]]
  // CHECK: %[[BEGIN:.*]] = arith.muli %arg2, %c36_i32 : i32
  // CHECK: %[[ROW:.*]] = msl.ptr_add %[[SLOT]], %[[BEGIN]]
  // CHECK: msl.load %[[ROW]][%{{.*}}] : <f32, threadgroup>, vector<1xi32> -> vector<1xf32>
  tt.func public @slots(%x: !tt.ptr<f32>, %slot: i32, %k: i32) {
    %t = ttm.alloc_tile : !ttm.tile<8x32xf32, row_pad = 4, slots = 2>
    %next = ttm.next_slot %slot of 2 : i32
    %v = ttm.load_tile %t[%next] row %k : !ttm.tile<8x32xf32, row_pad = 4, slots = 2> -> tensor<32xf32, #columns>
    %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #columns>
    ttm.store %v, %x[%i] : tensor<32xf32, #columns>, tensor<32xi32, #columns>, !tt.ptr<f32>
    tt.return
  }

  // What lies across is at this thread's places but for one bit, and as wide.
  // CHECK-LABEL: msl.kernel @across
  // CHECK: %[[M:.*]] = msl.alloc "partial", 128 : <i32, threadgroup>
  // CHECK: %[[PLACE:.*]] = msl.thread_index lanes [4, 8, 16, 64, 32] simdgroups [] : i32
  // CHECK: %[[OTHER:.*]] = arith.xori %[[PLACE]], %c64_i32 : i32
  // CHECK: %[[FIRST:.*]] = msl.splat %[[OTHER]] : vector<4xi32>
  // CHECK: %[[PLACES:.*]] = arith.addi %[[FIRST]], %{{.*}} : vector<4xi32>
  // CHECK: msl.load %[[M]][%[[PLACES]]] {width = 4 : i32}
  tt.func public @across(%x: !tt.ptr<i32>) {
    %t = ttm.alloc_tile "partial" : !ttm.tile<128xi32>
    %v = ttm.load_tile %t across 64 : !ttm.tile<128xi32> -> tensor<128xi32, #pair>
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #pair>
    ttm.store %v, %x[%i] : tensor<128xi32, #pair>, tensor<128xi32, #pair>, !tt.ptr<i32>
    tt.return
  }
}
