// RUN: triton-metal-opt %s --split-input-file --convert-ttm-to-msl --msl-expand-thread-indices --canonicalize --cse | FileCheck %s

// Four rows of eight elements in the lanes of a SIMD-group: the index is the low bits of a lane, the row the others.
#rows = #ttm.linear<{register = [], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], simdgroup = []}>
#twice = #ttm.linear<{register = [[0, 8]], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @lanes
  // CHECK-DAG: %[[LANE:.*]] = msl.lane
  // CHECK: %[[SHIFTED:.*]] = arith.shrui %[[LANE]], %c3_i32
  // CHECK: %[[ROW:.*]] = arith.muli %[[SHIFTED]], %c8_i32
  // CHECK: %[[V:.*]] = msl.load %arg0
  // CHECK: %[[I:.*]] = msl.load %arg1
  // CHECK: %[[ROWS:.*]] = msl.splat %[[ROW]] : vector<2xi32>
  // CHECK: %[[SOURCE:.*]] = arith.addi %[[ROWS]], %[[I]]
  // CHECK: %[[W:.*]] = msl.permute_registers %[[V]] {bases = array<i64: 0>} : vector<1xf32> -> vector<2xf32>
  // CHECK: %[[G:.*]] = msl.simd_shuffle %[[W]], %[[SOURCE]] : vector<2xf32>, vector<2xi32>
  // CHECK: msl.store %[[G]], %arg0
  tt.func public @lanes(%x: !tt.ptr<f32>, %i: !tt.ptr<i32>) {
    %at = arith.constant dense<0> : tensor<4x8xi32, #rows>
    %at2 = arith.constant dense<0> : tensor<4x16xi32, #twice>
    %v = ttm.load %x[%at] : tensor<4x8xi32, #rows>, !tt.ptr<f32> -> tensor<4x8xf32, #rows>
    %n = ttm.load %i[%at2] : tensor<4x16xi32, #twice>, !tt.ptr<i32> -> tensor<4x16xi32, #twice>
    %g = tt.gather %v[%n] {axis = 1 : i32} : (tensor<4x8xf32, #rows>, tensor<4x16xi32, #twice>) -> tensor<4x16xf32, #twice>
    ttm.store %g, %x[%at2] : tensor<4x16xf32, #twice>, tensor<4x16xi32, #twice>, !tt.ptr<f32>
    tt.return
  }
}

// -----

// From a tile: the row along the axis, then the index along it.
#l = #ttm.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @tile
  // CHECK-DAG: %[[REGISTERS:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  // CHECK-DAG: %[[FOUR:.*]] = arith.constant dense<4> : vector<4xi32>
  // CHECK: %[[I:.*]] = msl.load %arg0
  // CHECK: %[[ALONG:.*]] = arith.muli %[[I]], %[[FOUR]]
  // CHECK: %[[AT:.*]] = arith.addi %[[ALONG]], %[[REGISTERS]]
  // CHECK: msl.load %{{.*}}[%[[AT]]] : <f16, threadgroup>, vector<4xi32> -> vector<4xf16>
  tt.func public @tile(%i: !tt.ptr<i32>, %y: !tt.ptr<f16>) {
    %tile = ttm.alloc_tile "table" : !ttm.tile<64x4xf16>
    %at = arith.constant dense<0> : tensor<32x4xi32, #l>
    %n = ttm.load %i[%at] : tensor<32x4xi32, #l>, !tt.ptr<i32> -> tensor<32x4xi32, #l>
    %g = ttm.gather_tile %tile[%n] axis 0 : !ttm.tile<64x4xf16> -> tensor<32x4xf16, #l>
    ttm.store %g, %y[%at] : tensor<32x4xf16, #l>, tensor<32x4xi32, #l>, !tt.ptr<f16>
    tt.return
  }
}

// -----

// The columns of the result lie in registers, those of the source in lanes: each register has a lane of its own.
#pairs = #ttm.linear<{register = [], lane = [[0, 0, 1], [0, 1, 0], [0, 2, 0], [0, 4, 0], [0, 0, 0]], simdgroup = []}>
#columns = #ttm.linear<{register = [[0, 0, 1]], lane = [[0, 1, 0], [0, 2, 0], [0, 4, 0], [0, 0, 0], [0, 0, 0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @lane_of_each_register
  // CHECK-DAG: %[[LANES:.*]] = arith.constant dense<[0, 1]> : vector<2xi32>
  // CHECK: %[[ROWS:.*]] = msl.splat %{{.*}} : vector<2xi32>
  // CHECK: %[[SOURCE:.*]] = arith.xori %[[ROWS]], %[[LANES]]
  // CHECK: %[[W:.*]] = msl.permute_registers %{{.*}} {bases = array<i64: 0>} : vector<1xf32> -> vector<2xf32>
  // CHECK: msl.simd_shuffle %[[W]], %[[SOURCE]] : vector<2xf32>, vector<2xi32>
  tt.func public @lane_of_each_register(%x: !tt.ptr<f32>) {
    %at = arith.constant dense<0> : tensor<1x8x2xi32, #pairs>
    %to = arith.constant dense<0> : tensor<1x8x2xi32, #columns>
    %v = ttm.load %x[%at] : tensor<1x8x2xi32, #pairs>, !tt.ptr<f32> -> tensor<1x8x2xf32, #pairs>
    %g = tt.gather %v[%to] {axis = 0 : i32} : (tensor<1x8x2xf32, #pairs>, tensor<1x8x2xi32, #columns>) -> tensor<1x8x2xf32, #columns>
    ttm.store %g, %x[%to] : tensor<1x8x2xf32, #columns>, tensor<1x8x2xi32, #columns>, !tt.ptr<f32>
    tt.return
  }
}
