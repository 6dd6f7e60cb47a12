// RUN: triton-metal-opt %s --split-input-file --convert-ttm-to-msl | FileCheck %s

// Bit by bit of the coordinate, the lanes of each second half are combined with the last lane of the first half.
#l = #ttm.linear<{register = [[1, 0]], lane = [[0, 1], [0, 2], [2, 0], [4, 0], [8, 0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @scan
  // CHECK: %[[V:.*]] = msl.load %arg0
  // CHECK: %[[FIRST:.*]] = msl.thread_index lanes [0, 2, 4, 8, 16] simdgroups []
  // CHECK: %[[O:.*]] = msl.simd_shuffle %[[V]], %[[FIRST]] : vector<2xf32>, i32
  // CHECK: %[[S:.*]] = arith.addf %[[O]], %[[V]] : vector<2xf32>
  // CHECK: %[[BIT:.*]] = arith.andi %{{.*}}, %c1_i32
  // CHECK: %[[LOWER:.*]] = arith.cmpi eq, %[[BIT]], %c0_i32
  // CHECK: %[[V1:.*]] = arith.select %[[LOWER]], %[[V]], %[[S]] : vector<2xf32>
  // CHECK: %[[OWN:.*]] = msl.thread_index lanes [0, 0, 4, 8, 16] simdgroups []
  // CHECK: %[[SECOND:.*]] = arith.addi %[[OWN]], %c1_i32
  // CHECK: %[[O1:.*]] = msl.simd_shuffle %[[V1]], %[[SECOND]] : vector<2xf32>, i32
  // CHECK: %[[S1:.*]] = arith.addf %[[O1]], %[[V1]] : vector<2xf32>
  // CHECK: %[[V2:.*]] = arith.select %{{.*}}, %[[V1]], %[[S1]] : vector<2xf32>
  // CHECK-NOT: msl.simd_shuffle
  // CHECK: msl.store %[[V2]], %arg0
  tt.func public @scan(%x: !tt.ptr<f32>) {
    %at = arith.constant dense<0> : tensor<16x4xi32, #l>
    %v = ttm.load %x[%at] : tensor<16x4xi32, #l>, !tt.ptr<f32> -> tensor<16x4xf32, #l>
    %s = "tt.scan"(%v) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<16x4xf32, #l>) -> tensor<16x4xf32, #l>
    ttm.store %s, %x[%at] : tensor<16x4xf32, #l>, tensor<16x4xi32, #l>, !tt.ptr<f32>
    tt.return
  }
}

// -----

// Over all lanes, Metal has a function for sums and products.
#all = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @prefix
  // CHECK: %[[V:.*]] = msl.load
  // CHECK: %[[S:.*]] = msl.simd_prefix sum %[[V]] : vector<1xf32>
  // CHECK: msl.store %[[S]]
  // In the other direction it has none.
  // CHECK-COUNT-5: msl.simd_shuffle
  tt.func public @prefix(%x: !tt.ptr<f32>) {
    %at = arith.constant dense<0> : tensor<32xi32, #all>
    %v = ttm.load %x[%at] : tensor<32xi32, #all>, !tt.ptr<f32> -> tensor<32xf32, #all>
    %s = "tt.scan"(%v) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<32xf32, #all>) -> tensor<32xf32, #all>
    ttm.store %s, %x[%at] : tensor<32xf32, #all>, tensor<32xi32, #all>, !tt.ptr<f32>
    %r = "tt.scan"(%v) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<32xf32, #all>) -> tensor<32xf32, #all>
    ttm.store %r, %x[%at] : tensor<32xf32, #all>, tensor<32xi32, #all>, !tt.ptr<f32>
    tt.return
  }
}

// -----

// Of copies of eight numbers, the first have their sums from the function over all lanes, and the others take them from there.
#copies = #ttm.linear<{register = [], lane = [[1], [2], [4], [0], [0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @prefix_of_copies
  // CHECK: %[[V:.*]] = msl.load
  // CHECK: %[[S:.*]] = msl.simd_prefix sum %[[V]] : vector<1xi32>
  // CHECK: %[[LANE:.*]] = msl.thread_index lanes [1, 2, 4, 0, 0] simdgroups []
  // CHECK: %[[R:.*]] = msl.simd_shuffle %[[S]], %[[LANE]]
  // CHECK-NOT: msl.simd_
  // CHECK: msl.store %[[R]]
  tt.func public @prefix_of_copies(%x: !tt.ptr<i32>) {
    %at = arith.constant dense<0> : tensor<8xi32, #copies>
    %v = ttm.load %x[%at] : tensor<8xi32, #copies>, !tt.ptr<i32> -> tensor<8xi32, #copies>
    %s = "tt.scan"(%v) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<8xi32, #copies>) -> tensor<8xi32, #copies>
    ttm.store %s, %x[%at] : tensor<8xi32, #copies>, tensor<8xi32, #copies>, !tt.ptr<i32>
    tt.return
  }
}
