// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#a = #ttm.linear<{register = [[0, 1], [0, 2], [4, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], simdgroup = []}>

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
}
