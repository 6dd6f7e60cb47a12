// RUN: triton-metal-opt %s --ttm-lower-reductions | FileCheck %s

#row = #ttm.linear<{register = [[1], [2], [512]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#across = #ttm.linear<{register = [[1, 0]], lane = [[2, 0], [4, 0], [8, 0], [0, 1], [0, 2]], simdgroup = [[0, 4], [0, 8]]}>
#sums = #ttm.linear<{register = [[1]], lane = [[2], [4], [8], [0], [0]], simdgroup = [[0], [0]]}>

// CHECK: #[[PARTS:.*]] = #ttm.linear<{register = [], lane = {{\[\[}}1], [2], [0], [0], [0]], simdgroup = {{\[\[}}0], [0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // Registers, lanes, one round through threadgroup memory, and lanes again: each takes one SIMD-group's part.
  // CHECK-LABEL: @sum
  // CHECK: %[[T:.*]] = ttm.alloc_tile "partial" : !ttm.tile<4xf32>
  // CHECK: %[[A:.*]] = ttm.reduce(%{{.*}}) axis 0 bits 515 {
  // CHECK: ttm.yield
  // CHECK: (tensor<1024xf32, #{{.*}}>) -> tensor<128xf32, #{{.*}}>
  // CHECK: %[[B:.*]] = ttm.reduce(%[[A]]) axis 0 bits 31
  // CHECK: (tensor<128xf32, #{{.*}}>) -> tensor<4xf32, #{{.*}}>
  // CHECK: ttm.store_tile %[[B]], %[[T]]
  // CHECK: %[[C:.*]] = ttm.load_tile %[[T]] : !ttm.tile<4xf32> -> tensor<4xf32, #[[PARTS]]>
  // CHECK: %[[D:.*]] = ttm.reduce(%[[C]]) axis 0 bits 3
  // CHECK: tt.unsplat %[[D]] : tensor<1xf32
  tt.func public @sum(%x: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #row>
    %v = ttm.load %x[%r] : tensor<1024xi32, #row>, !tt.ptr<f32> -> tensor<1024xf32, #row>
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.addf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<1024xf32, #row>) -> f32
    tt.store %x, %sum : !tt.ptr<f32>
    tt.return
  }

  // Floats as integers in the same order, of which a NaN is the least.
  // CHECK-LABEL: @max
  // CHECK: %[[A:.*]] = ttm.reduce(%{{.*}}) axis 0 bits 515 {
  // CHECK: arith.maxnumf
  // CHECK: %[[BITS:.*]] = tt.bitcast %[[A]]
  // CHECK: %[[NEGATIVE:.*]] = arith.cmpi slt, %[[BITS]]
  // CHECK: %[[EXCHANGED:.*]] = arith.xori %[[BITS]]
  // CHECK: %[[ORDER:.*]] = arith.select %[[NEGATIVE]], %[[EXCHANGED]], %[[BITS]]
  // CHECK: %[[LEAST:.*]] = arith.constant dense<-2147483648>
  // CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[A]], %[[A]]
  // CHECK: %[[KEY:.*]] = arith.select %[[NAN]], %[[LEAST]], %[[ORDER]]
  // CHECK: %[[B:.*]] = ttm.reduce(%[[KEY]]) axis 0 bits 31 {
  // CHECK: arith.maxsi
  // CHECK: ttm.store_tile %[[B]]
  // CHECK: %[[C:.*]] = ttm.load_tile
  // CHECK: %[[D:.*]] = ttm.reduce(%[[C]]) axis 0 bits 3 {
  // CHECK: arith.maxsi
  // CHECK: arith.xori %[[D]]
  // CHECK: tt.bitcast {{.*}} -> tensor<1xf32
  tt.func public @max(%x: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #row>
    %v = ttm.load %x[%r] : tensor<1024xi32, #row>, !tt.ptr<f32> -> tensor<1024xf32, #row>
    %max = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.maxnumf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<1024xf32, #row>) -> f32
    tt.store %x, %max : !tt.ptr<f32>
    tt.return
  }

  // What depends on the order: neighbours first, wherever they are.
  // CHECK-LABEL: @last
  // CHECK: ttm.reduce(%{{.*}}) axis 0 bits 3
  // CHECK: (tensor<1024xf32, #{{.*}}>) -> tensor<256xf32, #{{.*}}>
  // CHECK: ttm.reduce(%{{.*}}) axis 0 bits 31
  // CHECK: (tensor<256xf32, #{{.*}}>) -> tensor<8xf32, #{{.*}}>
  // CHECK: ttm.store_tile
  // CHECK: ttm.load_tile {{.*}} -> tensor<8xf32
  // CHECK: ttm.reduce(%{{.*}}) axis 0 bits 3
  // CHECK: (tensor<8xf32, #{{.*}}>) -> tensor<2xf32, #{{.*}}>
  // CHECK: ttm.reduce(%{{.*}}) axis 0 bits 1
  tt.func public @last(%x: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #row>
    %v = ttm.load %x[%r] : tensor<1024xi32, #row>, !tt.ptr<f32> -> tensor<1024xf32, #row>
    %last = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.subf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<1024xf32, #row>) -> f32
    tt.store %x, %last : !tt.ptr<f32>
    tt.return
  }

  // Single bits travel as bytes; registers are stored outermost, and what is combined side by side.
  // CHECK-LABEL: @any
  // CHECK: ttm.alloc_tile "partial" : !ttm.tile<2x8x4xi8>
  // CHECK: %[[L:.*]] = ttm.reduce(%{{.*}}) axis 1 bits 3
  // CHECK: %[[BYTES:.*]] = arith.extui %[[L]]
  // CHECK: %[[SPLIT:.*]] = tt.reshape %[[BYTES]] : tensor<16x4xi8, #{{.*}}> -> tensor<8x2x4xi8
  // CHECK: %[[TURNED:.*]] = tt.trans %[[SPLIT]] {order = array<i32: 1, 0, 2>}
  // CHECK: ttm.store_tile %[[TURNED]]
  // CHECK: ttm.load_tile
  // CHECK: tt.trans
  // CHECK: tt.reshape {{.*}} -> tensor<16x4xi8
  // CHECK: arith.cmpi ne
  // CHECK: ttm.reduce(%{{.*}}) axis 1 bits 3
  // CHECK: tt.reshape %{{.*}} : tensor<16x1xi1, #{{.*}}> -> tensor<16xi1
  tt.func private @any(%m: tensor<16x16xi1, #across>) -> tensor<16xi1, #sums> {
    %any = "tt.reduce"(%m) <{axis = 1 : i32}> ({
    ^bb0(%i: i1, %j: i1):
      %k = arith.ori %i, %j : i1
      tt.reduce.return %k : i1
    }) : (tensor<16x16xi1, #across>) -> tensor<16xi1, #sums>
    tt.return %any : tensor<16xi1, #sums>
  }
}
