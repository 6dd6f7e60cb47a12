// RUN: triton-metal-opt %s --split-input-file --ttm-legalization-pipeline --convert-ttm-to-msl --msl-expand-thread-indices --canonicalize --cse | FileCheck %s

// A tensor is the vector of the thread's registers; ranges are the thread's part, computed once, and a constant for each
// register. Renamings permute registers.

#rows = #ttm.linear<{register = [[1], [64]], lane = [[2], [4], [8], [0], [0]], simdgroup = [[16], [32]]}>
#column = #ttm.linear<{register = [[1, 0], [64, 0]], lane = [[2, 0], [4, 0], [8, 0], [0, 0], [0, 0]], simdgroup = [[16, 0], [32, 0]]}>
#tile = #ttm.linear<{register = [[0, 1], [1, 0], [64, 0]], lane = [[2, 0], [4, 0], [8, 0], [0, 2], [0, 4]], simdgroup = [[16, 0], [32, 0]]}>
#turned = #ttm.linear<{register = [[1, 0], [0, 1], [0, 64]], lane = [[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]], simdgroup = [[0, 16], [0, 32]]}>
#xored = #ttm.linear<{register = [[1]], lane = [[2], [4], [8], [17], [0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // CHECK-LABEL: msl.kernel @ranges
  // CHECK-SAME: threads 128
  // CHECK-DAG: %[[REGS:.*]] = arith.constant dense<[0, 1, 64, 65]> : vector<4xi32>
  // CHECK-DAG: %[[LANE:.*]] = msl.lane
  // CHECK-DAG: %[[SG:.*]] = msl.simdgroup
  // CHECK: %[[A:.*]] = arith.muli %[[SG]], %c16_i32
  // CHECK: %[[B:.*]] = arith.andi %[[LANE]], %c7_i32
  // CHECK: %[[C:.*]] = arith.muli %[[B]], %c2_i32
  // CHECK: %[[T:.*]] = arith.addi %[[A]], %[[C]]
  // CHECK: %[[S:.*]] = msl.splat %[[T]] : vector<4xi32>
  // CHECK: %[[R:.*]] = arith.addi %[[S]], %[[REGS]]
  // CHECK: %[[P:.*]] = msl.permute_registers %[[R]] {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  // CHECK: msl.store %[[P]], %arg0[%{{.*}}]
  tt.func public @ranges(%p: !tt.ptr<i32>) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #rows>
    %e = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32, #rows> -> tensor<128x1xi32, #column>
    %b = tt.broadcast %e : tensor<128x1xi32, #column> -> tensor<128x8xi32, #tile>
    %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<128x8xi32, #tile> -> tensor<8x128xi32, #turned>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<8x128x!tt.ptr<i32>, #turned>
    %a = tt.addptr %s, %t : tensor<8x128x!tt.ptr<i32>, #turned>, tensor<8x128xi32, #turned>
    tt.store %a, %t : tensor<8x128x!tt.ptr<i32>, #turned>
    tt.return
  }
}

// -----

// Two tiles in one: each register of the result is a register of one of them, chosen by a constant.
#half = #ttm.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], simdgroup = []}>
#pairs = #ttm.linear<{register = [[0, 1], [1, 0]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], simdgroup = []}>
#both = #ttm.linear<{register = [[1], [64]], lane = [[2], [4], [8], [16], [32]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @join_split_cat
  // CHECK-DAG: %[[AFTER:.*]] = arith.constant dense<[false, false, true, true]> : vector<4xi1>
  // CHECK-DAG: %[[ODD:.*]] = arith.constant dense<[false, true, false, true]> : vector<4xi1>
  // CHECK: %[[X:.*]] = msl.load %arg0
  // CHECK: %[[Y:.*]] = msl.load %arg1
  // CHECK: %[[Y2:.*]] = msl.permute_registers %[[Y]] {bases = array<i64: 0, 1>} : vector<2xf32> -> vector<4xf32>
  // CHECK: %[[X2:.*]] = msl.permute_registers %[[X]] {bases = array<i64: 0, 1>} : vector<2xf32> -> vector<4xf32>
  // CHECK: %[[JOINED:.*]] = arith.select %[[ODD]], %[[Y2]], %[[X2]] : vector<4xi1>, vector<4xf32>
  // CHECK: %[[SUM:.*]] = arith.addf %[[JOINED]], %[[JOINED]]
  // CHECK: %[[L:.*]] = msl.permute_registers %[[SUM]] {bases = array<i64: 2>} : vector<4xf32> -> vector<2xf32>
  // CHECK: %[[R:.*]] = msl.permute_registers %[[SUM]] {bases = array<i64: 2>, offset = 1 : i64} : vector<4xf32> -> vector<2xf32>
  // CHECK: %[[R2:.*]] = msl.permute_registers %[[R]] {bases = array<i64: 1, 0>} : vector<2xf32> -> vector<4xf32>
  // CHECK: %[[L2:.*]] = msl.permute_registers %[[L]] {bases = array<i64: 1, 0>} : vector<2xf32> -> vector<4xf32>
  // CHECK: arith.select %[[AFTER]], %[[R2]], %[[L2]] : vector<4xi1>, vector<4xf32>
  tt.func public @join_split_cat(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %z: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #half>
    %r2 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #both>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #half>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #half>
    %zs = tt.splat %z : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #both>
    %xp = tt.addptr %xs, %r : tensor<64x!tt.ptr<f32>, #half>, tensor<64xi32, #half>
    %yp = tt.addptr %ys, %r : tensor<64x!tt.ptr<f32>, #half>, tensor<64xi32, #half>
    %zp = tt.addptr %zs, %r2 : tensor<128x!tt.ptr<f32>, #both>, tensor<128xi32, #both>
    %a = tt.load %xp : tensor<64x!tt.ptr<f32>, #half>
    %b = tt.load %yp : tensor<64x!tt.ptr<f32>, #half>
    %j = tt.join %a, %b : tensor<64xf32, #half> -> tensor<64x2xf32, #pairs>
    %d = arith.addf %j, %j : tensor<64x2xf32, #pairs>
    %l, %h = tt.split %d : tensor<64x2xf32, #pairs> -> tensor<64xf32, #half>
    %c = tt.cat %l, %h : tensor<64xf32, #half> -> tensor<128xf32, #both>
    tt.store %zp, %c : tensor<128x!tt.ptr<f32>, #both>
    tt.return
  }
}
