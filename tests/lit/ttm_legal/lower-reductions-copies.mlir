// RUN: triton-metal-opt %s --ttm-lower-reductions | FileCheck %s

#eight = #ttm.linear<{register = [], lane = [[0], [0], [0], [0], [0]], simdgroup = [[1], [2], [4]]}>
#four = #ttm.linear<{register = [], lane = [[0], [0], [0], [0], [0]], simdgroup = [[1], [2], [0]]}>

// CHECK-DAG: #[[LANES:.*]] = #ttm.linear<{register = [], lane = {{\[\[}}1], [2], [4], [0], [0]], simdgroup = {{\[\[}}0], [0], [0]]}>
// CHECK-DAG: #[[REGISTERS:.*]] = #ttm.linear<{register = {{\[\[}}1], [2]], lane = {{\[\[}}0], [0], [0], [0], [0]], simdgroup = {{\[\[}}0], [0], [0]]}>

// All lanes of a SIMD-group have its number. Each of them takes the part of one SIMD-group, where there are enough of these.
module attributes {ttm.num_simdgroups = 8 : i32, ttm.threads = 256 : i32} {
  // CHECK-LABEL: @eight
  // CHECK: ttm.load_tile %{{.*}} -> tensor<8xf32, #[[LANES]]>
  tt.func public @eight(%x: !tt.ptr<f32>, %v: tensor<8xf32, #eight>) {
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.addf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<8xf32, #eight>) -> f32
    tt.store %x, %sum : !tt.ptr<f32>
    tt.return
  }

  // A few are read by all threads.
  // CHECK-LABEL: @four
  // CHECK: ttm.load_tile %{{.*}} -> tensor<4xf32, #[[REGISTERS]]>
  tt.func public @four(%x: !tt.ptr<f32>, %v: tensor<4xf32, #four>) {
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.addf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<4xf32, #four>) -> f32
    tt.store %x, %sum : !tt.ptr<f32>
    tt.return
  }

  // So are eight that are compared as floats: the other way takes their keys.
  // CHECK-LABEL: @greatest
  // CHECK: ttm.load_tile %{{.*}} -> tensor<8xf32
  // CHECK-NOT: tt.bitcast
  // CHECK: tt.return
  tt.func public @greatest(%x: !tt.ptr<f32>, %v: tensor<8xf32, #eight>) {
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%i: f32, %j: f32):
      %k = arith.maxnumf %i, %j : f32
      tt.reduce.return %k : f32
    }) : (tensor<8xf32, #eight>) -> f32
    tt.store %x, %sum : !tt.ptr<f32>
    tt.return
  }
}
