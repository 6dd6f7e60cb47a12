// RUN: triton-metal-opt %s --split-input-file --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

// A tensor becomes the vector of the thread's registers. A range is the thread's position plus a constant for each
// register; what only renames elements permutes registers.

#rows = #ttm.linear<{register = [[1], [64]], lane = [[2], [4], [8], [0], [0]], simdgroup = [[16], [32]]}>
#column = #ttm.linear<{register = [[1, 0], [64, 0]], lane = [[2, 0], [4, 0], [8, 0], [0, 0], [0, 0]], simdgroup = [[16, 0], [32, 0]]}>
#tile = #ttm.linear<{register = [[0, 1], [1, 0], [64, 0]], lane = [[2, 0], [4, 0], [8, 0], [0, 2], [0, 4]], simdgroup = [[16, 0], [32, 0]]}>
#turned = #ttm.linear<{register = [[1, 0], [0, 1], [0, 64]], lane = [[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]], simdgroup = [[0, 16], [0, 32]]}>
#flat = #ttm.linear<{register = [[128], [1], [64]], lane = [[2], [4], [8], [256], [512]], simdgroup = [[16], [32]]}>
#one = #ttm.linear<{register = [], lane = [[0], [0], [0], [0], [0]], simdgroup = [[0], [0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // CHECK-LABEL: msl.kernel @ranges
  // CHECK-SAME: threads 128
  // CHECK: %[[REGISTERS:.*]] = arith.constant dense<[0, 1, 64, 65]> : vector<4xi32>
  // CHECK: %[[THREAD:.*]] = msl.thread_index lanes [2, 4, 8, 0, 0] simdgroups [16, 32] : i32
  // CHECK: %[[SPLAT:.*]] = msl.splat %[[THREAD]] : vector<4xi32>
  // CHECK: %[[RANGE:.*]] = arith.addi %[[SPLAT]], %[[REGISTERS]]
  // Broadcasting repeats each register; neither the transposition nor the flattening moves any.
  // CHECK: %[[TILE:.*]] = msl.permute_registers %[[RANGE]] {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  // CHECK-NEXT: msl.store %[[TILE]], %arg0[%[[TILE]]]
  tt.func public @ranges(%p: !tt.ptr<i32>) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #rows>
    %e = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32, #rows> -> tensor<128x1xi32, #column>
    %b = tt.broadcast %e : tensor<128x1xi32, #column> -> tensor<128x8xi32, #tile>
    %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<128x8xi32, #tile> -> tensor<8x128xi32, #turned>
    %f = tt.reshape %t : tensor<8x128xi32, #turned> -> tensor<1024xi32, #flat>
    ttm.store %f, %p[%f] : tensor<1024xi32, #flat>, tensor<1024xi32, #flat>, !tt.ptr<i32>
    tt.return
  }

  // CHECK-LABEL: msl.kernel @scalars
  // A range that starts at another number.
  // CHECK: %[[START:.*]] = arith.constant dense<32> : vector<4xi32>
  // CHECK: arith.addi %{{.*}}, %[[START]]
  // A tile of one element is a scalar that is the same in all threads.
  // CHECK: %[[ONE:.*]] = msl.load %arg0[%{{.*}}] : <i32, device>, vector<1xi32> -> vector<1xi32>
  // CHECK: %[[FIRST:.*]] = vector.extract %[[ONE]][0]
  // CHECK: %[[SCALAR:.*]] = msl.uniform %[[FIRST]] : i32
  // CHECK: msl.splat %[[SCALAR]] : vector<4xi32>
  tt.func public @scalars(%p: !tt.ptr<i32>) {
    %r = tt.make_range {start = 32 : i32, end = 160 : i32} : tensor<128xi32, #rows>
    %zero = arith.constant dense<0> : tensor<1xi32, #one>
    %v = ttm.load %p[%zero] : tensor<1xi32, #one>, !tt.ptr<i32> -> tensor<1xi32, #one>
    %u = tt.unsplat %v : tensor<1xi32, #one>
    %s = tt.splat %u : i32 -> tensor<128xi32, #rows>
    ttm.store %s, %p[%r] : tensor<128xi32, #rows>, tensor<128xi32, #rows>, !tt.ptr<i32>
    tt.return
  }
}

// -----

// Each register of the result of join and cat is a register of one of the operands, chosen by a constant.
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
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #half>
    %k = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #both>
    %a = ttm.load %x[%i] : tensor<64xi32, #half>, !tt.ptr<f32> -> tensor<64xf32, #half>
    %b = ttm.load %y[%i] : tensor<64xi32, #half>, !tt.ptr<f32> -> tensor<64xf32, #half>
    %j = tt.join %a, %b : tensor<64xf32, #half> -> tensor<64x2xf32, #pairs>
    %d = arith.addf %j, %j : tensor<64x2xf32, #pairs>
    %l, %h = tt.split %d : tensor<64x2xf32, #pairs> -> tensor<64xf32, #half>
    %c = tt.cat %l, %h : tensor<64xf32, #half> -> tensor<128xf32, #both>
    ttm.store %c, %z[%k] : tensor<128xf32, #both>, tensor<128xi32, #both>, !tt.ptr<f32>
    tt.return
  }
}
