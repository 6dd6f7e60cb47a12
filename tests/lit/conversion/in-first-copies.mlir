// RUN: triton-metal-opt %s --convert-ttm-to-msl | FileCheck %s

#l = #ttm.linear<{register = [[16]], lane = [[1], [2], [4], [8], [0]], simdgroup = [[0], [32]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // The free bits of the lane and SIMD-group index are 0 in the first thread that holds an element. The region of the atomic
  // is the only one.
  // CHECK-LABEL: msl.kernel @tile
  // CHECK: %[[OWN:.*]] = msl.in_threads lanes 16 = 0 simdgroups 1 = 0 -> (vector<2xf32>) {
  // CHECK-NEXT: %[[C:.*]] = arith.bitcast
  // CHECK-NEXT: %[[V:.*]] = arith.bitcast
  // CHECK-NEXT: %[[P:.*]] = msl.ptr_cast %arg0
  // CHECK-NEXT: %[[OLD:.*]] = msl.atomic_cas %[[P]][%{{.*}}], %[[C]], %[[V]]
  // CHECK-NEXT: %[[F:.*]] = arith.bitcast %[[OLD]] : vector<2xi32> to vector<2xf32>
  // CHECK-NEXT: msl.yield %[[F]] : vector<2xf32>
  // CHECK-NEXT: }
  // CHECK: msl.in_threads lanes 16 = 0 simdgroups 1 = 0 {
  // CHECK-NEXT: msl.store %[[OWN]]
  tt.func public @tile(%x: !tt.ptr<f32>, %f: f32) {
    %t = ttm.alloc_tile : !ttm.tile<64xf32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %v = tt.splat %f : f32 -> tensor<64xf32, #l>
    %own = ttm.in_first_copies #l -> (tensor<64xf32, #l>) {
      %old = ttm.atomic_cas relaxed, gpu, %x[%r], %v, %v : tensor<64xi32, #l>, !tt.ptr<f32>, tensor<64xf32, #l>
      ttm.yield %old : tensor<64xf32, #l>
    }
    ttm.store_tile %own, %t : tensor<64xf32, #l>, !ttm.tile<64xf32>
    tt.return
  }
}
