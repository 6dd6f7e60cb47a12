// RUN: triton-metal-opt %s --ttm-broadcast-atomics | FileCheck %s

#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [0]], simdgroup = [[0], [0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // Nobody reads the result: nothing is brought anywhere.
  // CHECK-LABEL: @unused
  // CHECK-NOT: ttm.alloc_tile
  // CHECK: ttm.atomic_rmw add, relaxed, gpu, %arg0[%{{.*}}], %{{.*}} : tensor<16xi32
  tt.func public @unused(%x: !tt.ptr<i32>) {
    %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #l>
    %old = ttm.atomic_rmw add, relaxed, gpu, %x[%r], %r : tensor<16xi32, #l>, !tt.ptr<i32>, tensor<16xi32, #l>
    tt.return
  }

  // CHECK-LABEL: @used
  // CHECK: %[[T:.*]] = ttm.alloc_tile "broadcast" : !ttm.tile<1x16xi32>
  // CHECK: %[[OWN:.*]] = ttm.in_first_copies #[[L:.*]] -> (tensor<16xi32, #[[L]]>) {
  // CHECK-NEXT: %[[OLD:.*]] = ttm.atomic_rmw
  // CHECK-NEXT: ttm.yield %[[OLD]]
  // CHECK-NEXT: }
  // CHECK: %[[ROW:.*]] = tt.reshape %[[OWN]]
  // CHECK: ttm.store_tile %[[ROW]], %[[T]]
  // CHECK: %[[ALL:.*]] = ttm.load_tile %[[T]]
  // CHECK: %[[BACK:.*]] = tt.reshape %[[ALL]]
  // CHECK: ttm.store %[[BACK]]
  tt.func public @used(%x: !tt.ptr<i32>) {
    %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #l>
    %old = ttm.atomic_rmw add, relaxed, gpu, %x[%r], %r : tensor<16xi32, #l>, !tt.ptr<i32>, tensor<16xi32, #l>
    ttm.store %old, %x[%r] : tensor<16xi32, #l>, tensor<16xi32, #l>, !tt.ptr<i32>
    tt.return
  }

  // A scalar is one element that every thread repeats.
  // CHECK-LABEL: @scalar
  // CHECK: %[[OWN:.*]] = ttm.in_first_copies #{{.*}} -> (i32) {
  // CHECK-NEXT: ttm.atomic_cas acq_rel, gpu
  // CHECK: tt.splat %[[OWN]] : i32 -> tensor<1xi32
  // CHECK: ttm.store_tile
  // CHECK: ttm.load_tile
  // CHECK: %[[ALL:.*]] = tt.unsplat
  // CHECK: tt.addptr %arg0, %[[ALL]]
  tt.func public @scalar(%x: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %old = ttm.atomic_cas acq_rel, gpu, %x[%c0], %c0, %n : i32, !tt.ptr<i32>, i32
    %p = tt.addptr %x, %old : !tt.ptr<i32>, i32
    ttm.store %n, %p[%c0] : i32, i32, !tt.ptr<i32>
    tt.return
  }
}
