// RUN: triton-metal-opt %s --convert-ttm-to-msl | FileCheck %s

// One step of a reduction combines registers, or lanes of a SIMD-group.

#row = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>
#one = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#four = #ttm.linear<{register = [], lane = [[1], [2], [0], [0], [0]], simdgroup = []}>
#all = #ttm.linear<{register = [], lane = [[0], [0], [0], [0], [0]], simdgroup = []}>
#tile = #ttm.linear<{register = [[8, 0]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], simdgroup = []}>
#sums = #ttm.linear<{register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // A sum: the registers in any order, and all lanes at once.
  // CHECK-LABEL: msl.kernel @sum
  // CHECK: %[[R:.*]] = msl.reduce_registers(%{{.*}}) bits 3 {
  // CHECK: msl.yield
  // CHECK: } : (vector<4xf32>) -> vector<1xf32>
  // CHECK: msl.simd_reduce sum %[[R]] : vector<1xf32>
  tt.func public @sum(%x: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #row>
    %v = ttm.load %x[%i] : tensor<128xi32, #row>, !tt.ptr<f32> -> tensor<128xf32, #row>
    %0 = ttm.reduce(%v) axis 0 bits 3 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      ttm.yield %c : f32
    } : (tensor<128xf32, #row>) -> tensor<32xf32, #one>
    %1 = ttm.reduce(%0) axis 0 bits 31 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      ttm.yield %c : f32
    } : (tensor<32xf32, #one>) -> tensor<1xf32, #all>
    %s = tt.unsplat %1 : tensor<1xf32, #all>
    ttm.store %s, %x[%c0] : f32, i32, !tt.ptr<f32>
    tt.return
  }

  // A product as well; 8 bits have no such function.
  // CHECK-LABEL: msl.kernel @product
  // CHECK: msl.simd_reduce product %{{.*}} : vector<1xf32>
  // CHECK: msl.simd_reduce product %{{.*}} : vector<1xi32>
  // CHECK-NOT: msl.simd_reduce
  // CHECK: msl.simd_shuffle_xor
  tt.func public @product(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>, %z: !tt.ptr<i8>) {
    %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #one>
    %v = ttm.load %x[%i] : tensor<32xi32, #one>, !tt.ptr<f32> -> tensor<32xf32, #one>
    %w = ttm.load %y[%i] : tensor<32xi32, #one>, !tt.ptr<i32> -> tensor<32xi32, #one>
    %b = ttm.load %z[%i] : tensor<32xi32, #one>, !tt.ptr<i8> -> tensor<32xi8, #one>
    %f = ttm.reduce(%v) axis 0 bits 31 {
    ^bb0(%a: f32, %d: f32):
      %c = arith.mulf %a, %d : f32
      ttm.yield %c : f32
    } : (tensor<32xf32, #one>) -> tensor<1xf32, #all>
    %n = ttm.reduce(%w) axis 0 bits 31 {
    ^bb0(%a: i32, %d: i32):
      %c = arith.muli %a, %d : i32
      ttm.yield %c : i32
    } : (tensor<32xi32, #one>) -> tensor<1xi32, #all>
    %m = ttm.reduce(%b) axis 0 bits 31 {
    ^bb0(%a: i8, %d: i8):
      %c = arith.muli %a, %d : i8
      ttm.yield %c : i8
    } : (tensor<32xi8, #one>) -> tensor<1xi8, #all>
    tt.return
  }

  // Metal does not document what simd_max does with a NaN: floats are compared lane by lane, integers all at once. (Where
  // all lanes take part, ttm-lower-reductions makes integers of floats.)
  // CHECK-LABEL: msl.kernel @max
  // CHECK: %[[F:.*]] = msl.simd_shuffle_xor %[[V:.*]], 1 : vector<1xf32>
  // CHECK: arith.maxnumf %[[V]], %[[F]]
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 16 : vector<1xf32>
  // CHECK: msl.simd_reduce max %{{.*}} : vector<1xi32>
  tt.func public @max(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>) {
    %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #one>
    %v = ttm.load %x[%i] : tensor<32xi32, #one>, !tt.ptr<f32> -> tensor<32xf32, #one>
    %w = ttm.load %y[%i] : tensor<32xi32, #one>, !tt.ptr<i32> -> tensor<32xi32, #one>
    %f = ttm.reduce(%v) axis 0 bits 31 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      ttm.yield %c : f32
    } : (tensor<32xf32, #one>) -> tensor<1xf32, #all>
    %n = ttm.reduce(%w) axis 0 bits 31 {
    ^bb0(%a: i32, %b: i32):
      %c = arith.maxsi %a, %b : i32
      ttm.yield %c : i32
    } : (tensor<32xi32, #one>) -> tensor<1xi32, #all>
    tt.return
  }

  // Lanes that hold copies count once in a sum, and may count more often in a maximum. Nobody asks for the sum in other
  // SIMD-groups than the first.
  // CHECK-LABEL: msl.kernel @copies
  // CHECK: %[[V:.*]] = msl.load %arg0
  // CHECK: %[[W:.*]] = msl.load %arg1
  // CHECK: %[[OWN:.*]] = arith.cmpi eq
  // CHECK: %[[ONCE:.*]] = arith.select %[[OWN]], %[[V]], %{{.*}} : vector<1xf32>
  // CHECK: msl.simd_reduce sum %[[ONCE]] : vector<1xf32>
  // CHECK: msl.simd_reduce max %[[W]] : vector<1xi32>
  tt.func public @copies(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>) {
    %i = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #four>
    %v = ttm.load %x[%i] : tensor<4xi32, #four>, !tt.ptr<f32> -> tensor<4xf32, #four>
    %w = ttm.load %y[%i] : tensor<4xi32, #four>, !tt.ptr<i32> -> tensor<4xi32, #four>
    %f = ttm.reduce(%v) axis 0 bits 3 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      ttm.yield %c : f32
    } : (tensor<4xf32, #four>) -> tensor<1xf32, #all>
    %n = ttm.reduce(%w) axis 0 bits 3 {
    ^bb0(%a: i32, %b: i32):
      %c = arith.maxsi %a, %b : i32
      ttm.yield %c : i32
    } : (tensor<4xi32, #four>) -> tensor<1xi32, #all>
    %last = tt.unsplat %n : tensor<1xi32, #all>
    ttm.store %last, %y[%last] : i32, i32, !tt.ptr<i32>
    tt.return
  }

  // The largest number of all lanes, as an integer that compares as the float does, and the lowest of its indices. The
  // number is taken from there, with the sign of a zero.
  // CHECK-LABEL: msl.kernel @argmax_of_lanes
  // CHECK: %[[V:.*]] = msl.load %arg0
  // CHECK: %[[I:.*]] = msl.load %arg1
  // CHECK: %[[BITS:.*]] = arith.bitcast %[[V]] : vector<1xf32> to vector<1xi32>
  // CHECK: %[[NEGATED:.*]] = arith.subi %{{.*}}, %[[BITS]] : vector<1xi32>
  // CHECK: %[[ORDER:.*]] = arith.select %{{.*}}, %[[NEGATED]], %[[BITS]]
  // CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[V]], %[[V]]
  // CHECK: %[[KEY:.*]] = arith.select %[[NAN]], %{{.*}}, %[[ORDER]]
  // CHECK: %[[BEST:.*]] = msl.simd_reduce max %[[KEY]]
  // CHECK: %[[IS_BEST:.*]] = arith.cmpi eq, %[[KEY]], %[[BEST]]
  // CHECK: %[[CANDIDATE:.*]] = arith.select %[[IS_BEST]], %[[I]], %{{.*}}
  // CHECK: %[[FOUND:.*]] = msl.simd_reduce min %[[CANDIDATE]]
  // CHECK: msl.simd_reduce or
  // CHECK-NOT: msl.simd_shuffle_xor
  // CHECK: msl.return
  tt.func public @argmax_of_lanes(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>, %out: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %o = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #one>
    %v = ttm.load %x[%o] : tensor<32xi32, #one>, !tt.ptr<f32> -> tensor<32xf32, #one>
    %i = ttm.load %y[%o] : tensor<32xi32, #one>, !tt.ptr<i32> -> tensor<32xi32, #one>
    %m:2 = ttm.reduce(%v, %i) axis 0 bits 31 {
    ^bb0(%a: f32, %j: i32, %b: f32, %k: i32):
      %eq = arith.cmpf oeq, %a, %b : f32
      %lower = arith.cmpi slt, %j, %k : i32
      %tie = arith.andi %eq, %lower : i1
      %gt = arith.cmpf ogt, %a, %b : f32
      %first = arith.ori %gt, %tie : i1
      %max = arith.select %first, %a, %b : f32
      %arg = arith.select %first, %j, %k : i32
      ttm.yield %max, %arg : f32, i32
    } : (tensor<32xf32, #one>, tensor<32xi32, #one>) -> (tensor<1xf32, #all>, tensor<1xi32, #all>)
    %s = tt.unsplat %m#0 : tensor<1xf32, #all>
    ttm.store %s, %out[%c0] : f32, i32, !tt.ptr<f32>
    tt.return
  }

  // A reduction of two tensors combines both at once. Only the lanes along the axis take part. Both lanes of a pair combine
  // in the same order, so that they get the same result.
  // CHECK-LABEL: msl.kernel @argmax
  // CHECK: %[[V:.*]] = msl.load %arg0
  // CHECK: %[[I:.*]] = msl.load %arg1
  // CHECK: %[[W:.*]] = msl.simd_shuffle_xor %[[V]], 1 : vector<2xf32>
  // CHECK: %[[J:.*]] = msl.simd_shuffle_xor %[[I]], 1 : vector<2xi32>
  // CHECK: %[[EVEN:.*]] = arith.cmpi eq
  // CHECK: %[[A:.*]] = arith.select %[[EVEN]], %[[V]], %[[W]] : vector<2xf32>
  // CHECK: %[[B:.*]] = arith.select %[[EVEN]], %[[W]], %[[V]] : vector<2xf32>
  // CHECK: %[[K:.*]] = arith.select %[[EVEN]], %[[I]], %[[J]] : vector<2xi32>
  // CHECK: %[[L:.*]] = arith.select %[[EVEN]], %[[J]], %[[I]] : vector<2xi32>
  // CHECK: arith.cmpf oeq, %[[A]], %[[B]] : vector<2xf32>
  // CHECK: arith.cmpi slt, %[[K]], %[[L]] : vector<2xi32>
  // CHECK: arith.select %{{.*}}, %[[A]], %[[B]] : vector<2xi1>, vector<2xf32>
  // CHECK: arith.select %{{.*}}, %[[K]], %[[L]] : vector<2xi1>, vector<2xi32>
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 2 : vector<2xf32>
  // CHECK-NOT: msl.simd_shuffle_xor %{{.*}}, 4
  // CHECK: msl.return
  tt.func public @argmax(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>) {
    %o = arith.constant dense<0> : tensor<16x4xi32, #tile>
    %v = ttm.load %x[%o] : tensor<16x4xi32, #tile>, !tt.ptr<f32> -> tensor<16x4xf32, #tile>
    %i = ttm.load %y[%o] : tensor<16x4xi32, #tile>, !tt.ptr<i32> -> tensor<16x4xi32, #tile>
    %m:2 = ttm.reduce(%v, %i) axis 1 bits 3 {
    ^bb0(%a: f32, %j: i32, %b: f32, %k: i32):
      %eq = arith.cmpf oeq, %a, %b : f32
      %lower = arith.cmpi slt, %j, %k : i32
      %tie = arith.andi %eq, %lower : i1
      %gt = arith.cmpf ogt, %a, %b : f32
      %first = arith.ori %gt, %tie : i1
      %max = arith.select %first, %a, %b : f32
      %arg = arith.select %first, %j, %k : i32
      ttm.yield %max, %arg : f32, i32
    } : (tensor<16x4xf32, #tile>, tensor<16x4xi32, #tile>) -> (tensor<16x1xf32, #sums>, tensor<16x1xi32, #sums>)
    tt.return
  }

  // Where the order matters: pairs of registers, and then both lanes of a pair in the same order.
  // CHECK-LABEL: msl.kernel @last
  // CHECK: %[[V:.*]] = msl.load
  // CHECK: %[[EVEN:.*]] = msl.permute_registers %[[V]] {bases = array<i64: 2>} : vector<4xf32> -> vector<2xf32>
  // CHECK: %[[ODD:.*]] = msl.permute_registers %[[V]] {bases = array<i64: 2>, offset = 1 : i64}
  // CHECK: arith.subf %[[EVEN]], %[[ODD]] : vector<2xf32>
  // CHECK: %[[OWN:.*]] = arith.subf {{.*}} : vector<1xf32>
  // CHECK: %[[OTHER:.*]] = msl.simd_shuffle_xor %[[OWN]], 1
  // CHECK: %[[FIRST:.*]] = arith.select %{{.*}}, %[[OWN]], %[[OTHER]]
  // CHECK: %[[SECOND:.*]] = arith.select %{{.*}}, %[[OTHER]], %[[OWN]]
  // CHECK: arith.subf %[[FIRST]], %[[SECOND]]
  tt.func public @last(%x: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #row>
    %v = ttm.load %x[%i] : tensor<128xi32, #row>, !tt.ptr<f32> -> tensor<128xf32, #row>
    %0 = ttm.reduce(%v) axis 0 bits 3 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.subf %a, %b : f32
      ttm.yield %c : f32
    } : (tensor<128xf32, #row>) -> tensor<32xf32, #one>
    %1 = ttm.reduce(%0) axis 0 bits 31 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.subf %a, %b : f32
      ttm.yield %c : f32
    } : (tensor<32xf32, #one>) -> tensor<1xf32, #all>
    %s = tt.unsplat %1 : tensor<1xf32, #all>
    ttm.store %s, %x[%c0] : f32, i32, !tt.ptr<f32>
    tt.return
  }
}
