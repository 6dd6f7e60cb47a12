// RUN: triton-metal-opt %s --ttm-legalization-pipeline --convert-ttm-to-msl --msl-expand-thread-indices --canonicalize --cse --msl-allocate-threadgroup-memory --msl-insert-barriers | FileCheck %s

#row = #ttm.linear<{register = [[1], [2], [512]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#tile = #ttm.linear<{register = [[0, 1], [0, 2], [8, 0]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], simdgroup = [[16, 0], [32, 0]]}>
#sums = #ttm.linear<{register = [[8]], lane = [[0], [0], [1], [2], [4]], simdgroup = [[16], [32]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // Registers, all lanes at once, one round through threadgroup memory; two reductions have two barriers between them.
  // CHECK-LABEL: msl.kernel @twice
  // CHECK: %[[FIRST:.*]] = msl.alloc "partial", 4 at 0
  // CHECK: %[[SECOND:.*]] = msl.alloc "partial_2", 4 at 16
  // CHECK: msl.reduce_registers(%{{.*}}) bits 7
  // CHECK: msl.simd_reduce sum
  // CHECK: scf.if
  // CHECK: msl.store %{{.*}}, %[[FIRST]]
  // CHECK: msl.barrier
  // CHECK-NEXT: msl.load %[[FIRST]][%{{.*}}] {width = 4 : i32}
  // CHECK: msl.reduce_registers(%{{.*}}) bits 3
  // CHECK-NOT: msl.barrier
  // What Metal's simd_max makes of a NaN is not documented: lane by lane.
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 1
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 16
  // CHECK: msl.store %{{.*}}, %[[SECOND]]
  // CHECK: msl.barrier
  // CHECK-NEXT: msl.load %[[SECOND]]
  // CHECK-NOT: msl.barrier
  // CHECK: msl.return
  tt.func public @twice(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #row>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
    %a = tt.addptr %p, %r : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %v = tt.load %a : tensor<1024x!tt.ptr<f32>, #row>
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.addf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<1024xf32, #row>) -> f32
    %s = tt.splat %sum : f32 -> tensor<1024xf32, #row>
    %d = arith.divf %v, %s : tensor<1024xf32, #row>
    %max = "tt.reduce"(%d) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.maxnumf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<1024xf32, #row>) -> f32
    tt.store %y, %max : !tt.ptr<f32>
    tt.return
  }

  // Only the lanes along the axis take part; no memory, no barrier. Two operands go together, and both lanes of a pair
  // combine in the same order. With the lower index where numbers are equal, any order gives the same.
  // CHECK-LABEL: msl.kernel @argmax
  // CHECK-NOT: msl.alloc
  // CHECK: msl.reduce_registers(%{{.*}}, %{{.*}}) bits 3
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 1 : vector<2xf32>
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 1 : vector<2xi32>
  // CHECK: arith.select %{{.*}} : vector<2xf32>
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 2 : vector<2xf32>
  // CHECK-NOT: msl.simd_shuffle_xor %{{.*}}, 4
  // CHECK-NOT: msl.barrier
  // CHECK: msl.return
  tt.func public @argmax(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>) {
    %z = arith.constant dense<0> : tensor<64x16xi32, #tile>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x16x!tt.ptr<f32>, #tile>
    %v = tt.load %p : tensor<64x16x!tt.ptr<f32>, #tile>
    %m:2 = "tt.reduce"(%v, %z) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %i: i32, %b: f32, %j: i32):
      %eq = arith.cmpf oeq, %a, %b : f32
      %lower = arith.cmpi slt, %i, %j : i32
      %tie = arith.andi %eq, %lower : i1
      %gt = arith.cmpf ogt, %a, %b : f32
      %first = arith.ori %gt, %tie : i1
      %max = arith.select %first, %a, %b : f32
      %arg = arith.select %first, %i, %j : i32
      tt.reduce.return %max, %arg : f32, i32
    }) : (tensor<64x16xf32, #tile>, tensor<64x16xi32, #tile>) -> (tensor<64xf32, #sums>, tensor<64xi32, #sums>)
    %q = tt.splat %y : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #sums>
    tt.store %q, %m#1 : tensor<64x!tt.ptr<i32>, #sums>
    tt.return
  }

  // What depends on the order is combined bit by bit of the coordinate: registers 1 and 2 apart, then lanes, then
  // SIMD-groups, and at last the registers that are 512 apart.
  // CHECK-LABEL: msl.kernel @last
  // CHECK: %[[X:.*]] = msl.load %arg0
  // CHECK: msl.permute_registers %[[X]] {bases = array<i64: 2, 4>, offset = 1 : i64} : vector<8xf32> -> vector<4xf32>
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 1 : vector<2xf32>
  // CHECK: msl.simd_shuffle_xor %{{.*}}, 16 : vector<2xf32>
  // CHECK: msl.barrier
  // CHECK-NEXT: %[[P:.*]] = msl.load %{{.*}} -> vector<8xf32>
  // CHECK: msl.permute_registers %[[P]] {bases = array<i64: 2, 4>{{.*}}} : vector<8xf32> -> vector<4xf32>
  // CHECK: vector<2xf32> -> vector<1xf32>
  // CHECK-NOT: msl.reduce_registers
  // CHECK: msl.return
  tt.func public @last(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #row>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
    %a = tt.addptr %p, %r : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %v = tt.load %a : tensor<1024x!tt.ptr<f32>, #row>
    %last = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.subf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<1024xf32, #row>) -> f32
    tt.store %y, %last : !tt.ptr<f32>
    tt.return
  }
}
