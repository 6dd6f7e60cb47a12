// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [0]], simdgroup = [[0], [0]]}>
#one = #ttm.linear<{register = [], lane = [[0], [0], [0], [0], [0]], simdgroup = [[0], [0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // Of the threads that hold copies of an element, the first updates memory.
  // CHECK-LABEL: msl.kernel @unused
  // CHECK-SAME: (%[[X:.*]]: !msl.ptr<f32, device>, %[[F:.*]]: f32, %[[C:.*]]: i1)
  // CHECK: %[[MASK:.*]] = msl.splat %[[C]] : vector<1xi1>
  // CHECK: msl.in_threads lanes 16 = 0 simdgroups 3 = 0 {
  // CHECK-NEXT: msl.atomic_rmw fadd %[[X]][%{{.*}}], %{{.*}} mask %[[MASK]] : <f32, device>, vector<1xi32>, vector<1xf32>
  // CHECK-NEXT: }
  tt.func public @unused(%x: !tt.ptr<f32>, %f: f32, %c: i1) {
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #l>
    %v = tt.splat %f : f32 -> tensor<16xf32, #l>
    %mask = tt.splat %c : i1 -> tensor<16xi1, #l>
    %old = ttm.atomic_rmw fadd, relaxed, gpu, %x[%i], %v mask %mask : tensor<16xi32, #l>, !tt.ptr<f32>, tensor<16xf32, #l>
    tt.return
  }

  // The first thread alone has the result, which it hands to the others through a tile.
  // CHECK-LABEL: msl.kernel @used
  // CHECK: %[[M:.*]] = msl.alloc "broadcast", 1 : <i32, threadgroup>
  // CHECK: %[[OLD:.*]] = msl.in_threads lanes 31 = 0 simdgroups 3 = 0 -> (i32) {
  // CHECK-NEXT: %[[RESULT:.*]] = msl.atomic_rmw add %arg0[%c0_i32], %arg1 order acq_rel : <i32, device>, i32, i32
  // CHECK-NEXT: msl.yield %[[RESULT]] : i32
  // CHECK-NEXT: }
  // CHECK: %[[ROW:.*]] = msl.splat %[[OLD]] : vector<1xi32>
  // CHECK: msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
  // CHECK-NEXT: msl.store %[[ROW]], %[[M]]
  // CHECK: msl.load %[[M]]
  tt.func public @used(%x: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %tile = ttm.alloc_tile "broadcast" : !ttm.tile<1xi32>
    %old = ttm.in_first_copies #one -> (i32) {
      %found = ttm.atomic_rmw add, acq_rel, gpu, %x[%c0], %n : i32, !tt.ptr<i32>, i32
      ttm.yield %found : i32
    }
    %row = tt.splat %old : i32 -> tensor<1xi32, #one>
    ttm.store_tile %row, %tile : tensor<1xi32, #one>, !ttm.tile<1xi32>
    %all = ttm.load_tile %tile : !ttm.tile<1xi32> -> tensor<1xi32, #one>
    %same = tt.unsplat %all : tensor<1xi32, #one>
    ttm.store %same, %x[%c0] : i32, i32, !tt.ptr<i32>
    tt.return
  }

  // Floats are compared by their bits.
  // CHECK-LABEL: msl.kernel @compare_and_swap
  // CHECK-SAME: (%[[X:.*]]: !msl.ptr<f32, device>, %[[OLD:.*]]: f32, %[[NEW:.*]]: f32)
  // CHECK: %[[FOUND:.*]] = msl.in_threads lanes 31 = 0 simdgroups 3 = 0 -> (f32) {
  // CHECK-DAG: %[[OLD_BITS:.*]] = arith.bitcast %[[OLD]] : f32 to i32
  // CHECK-DAG: %[[NEW_BITS:.*]] = arith.bitcast %[[NEW]] : f32 to i32
  // CHECK-DAG: %[[WORDS:.*]] = msl.ptr_cast %[[X]] : <f32, device> -> <i32, device>
  // CHECK: %[[RESULT:.*]] = msl.atomic_cas %[[WORDS]][%c0_i32], %[[OLD_BITS]], %[[NEW_BITS]] order acquire
  // CHECK-NEXT: %[[FLOAT:.*]] = arith.bitcast %[[RESULT]] : i32 to f32
  // CHECK-NEXT: msl.yield %[[FLOAT]] : f32
  // CHECK: msl.store %[[FOUND]]
  tt.func public @compare_and_swap(%x: !tt.ptr<f32>, %old: f32, %new: f32) {
    %c0 = arith.constant 0 : i32
    %own = ttm.in_first_copies #one -> (f32) {
      %found = ttm.atomic_cas acquire, gpu, %x[%c0], %old, %new : i32, !tt.ptr<f32>, f32
      ttm.yield %found : f32
    }
    ttm.store %own, %x[%c0] : f32, i32, !tt.ptr<f32>
    tt.return
  }

  // Every kind and order has its counterpart. Among the threads of one program (cta) barriers keep the order; sys is gpu.
  // CHECK-LABEL: msl.kernel @kinds
  // CHECK: msl.atomic_rmw and {{.*}} : <i32, device>
  // CHECK: msl.atomic_rmw or %{{.*}} order acquire
  // CHECK: msl.atomic_rmw xor %{{.*}} order release
  // CHECK: msl.atomic_rmw max %{{.*}} order acq_rel
  // CHECK: msl.atomic_rmw min {{.*}}%arg1 : <i32, device>
  // CHECK: msl.atomic_rmw umax %{{.*}} order acq_rel
  // CHECK: msl.atomic_rmw umin
  // CHECK: msl.atomic_rmw exchange
  tt.func public @kinds(%x: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %0 = ttm.atomic_rmw and, relaxed, gpu, %x[%c0], %n : i32, !tt.ptr<i32>, i32
    %1 = ttm.atomic_rmw or, acquire, gpu, %x[%c0], %n : i32, !tt.ptr<i32>, i32
    %2 = ttm.atomic_rmw xor, release, gpu, %x[%c0], %n : i32, !tt.ptr<i32>, i32
    %3 = ttm.atomic_rmw max, acq_rel, gpu, %x[%c0], %n : i32, !tt.ptr<i32>, i32
    %4 = ttm.atomic_rmw min, acq_rel, cta, %x[%c0], %n : i32, !tt.ptr<i32>, i32
    %5 = ttm.atomic_rmw umax, acq_rel, sys, %x[%c0], %n : i32, !tt.ptr<i32>, i32
    %6 = ttm.atomic_rmw umin, relaxed, gpu, %x[%c0], %n : i32, !tt.ptr<i32>, i32
    %7 = ttm.atomic_rmw exch, relaxed, gpu, %x[%c0], %n : i32, !tt.ptr<i32>, i32
    tt.return
  }
}
