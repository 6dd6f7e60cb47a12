// RUN: triton-metal-opt %s --convert-ttm-to-msl | FileCheck %s

#row = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>
#one = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#all = #ttm.linear<{register = [], lane = [[0], [0], [0], [0], [0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // A sum: the registers in any order, and all lanes at once.
  // CHECK-LABEL: msl.kernel @sum
  // CHECK: %[[R:.*]] = msl.reduce_registers(%{{.*}}) bits 3 {
  // CHECK: msl.yield
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
