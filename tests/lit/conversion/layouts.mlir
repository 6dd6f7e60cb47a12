// RUN: triton-metal-opt %s --convert-ttm-to-msl | FileCheck %s

#a = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>
#swapped = #ttm.linear<{register = [[2], [1]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>
#lanes = #ttm.linear<{register = [[1], [2]], lane = [[64], [32], [16], [8], [4]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @layouts
  // CHECK: %[[V:.*]] = msl.load
  // A renaming of registers.
  // CHECK: %[[R:.*]] = msl.permute_registers %[[V]] {bases = array<i64: 2, 1>}
  // CHECK: msl.store %[[R]]
  // Every register of another lane.
  // CHECK: %[[LANE:.*]] = msl.thread_index lanes [16, 8, 4, 2, 1] simdgroups [] : i32
  // CHECK: %[[S:.*]] = msl.simd_shuffle %[[V]], %[[LANE]]
  // CHECK: msl.store %[[S]]
  tt.func public @layouts(%x: !tt.ptr<f32>) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #a>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #swapped>
    %k = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #lanes>
    %v = ttm.load %x[%i] : tensor<128xi32, #a>, !tt.ptr<f32> -> tensor<128xf32, #a>
    %r = ttm.convert_layout %v : tensor<128xf32, #a> -> tensor<128xf32, #swapped>
    ttm.store %r, %x[%j] : tensor<128xf32, #swapped>, tensor<128xi32, #swapped>, !tt.ptr<f32>
    %s = ttm.shuffle %v : tensor<128xf32, #a> -> tensor<128xf32, #lanes>
    ttm.store %s, %x[%k] : tensor<128xf32, #lanes>, tensor<128xi32, #lanes>, !tt.ptr<f32>
    tt.return
  }
}
