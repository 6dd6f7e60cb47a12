// RUN: triton-metal-opt %s --ttm-legalization-pipeline --convert-ttm-to-msl --msl-expand-thread-indices --canonicalize --cse --msl-allocate-threadgroup-memory --msl-insert-barriers | FileCheck %s

#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [0]], simdgroup = [[0], [0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // One of the threads that hold the same updates memory.
  // CHECK-LABEL: msl.kernel @unused
  // CHECK: scf.if
  // CHECK-NEXT: msl.atomic_rmw fadd %{{.*}} : <f32, device>
  // CHECK-NOT: msl.alloc
  tt.func public @unused(%x: !tt.ptr<f32>, %f: f32) {
    %true = arith.constant dense<true> : tensor<16xi1, #l>
    %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #l>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #l>
    %p = tt.addptr %s, %r : tensor<16x!tt.ptr<f32>, #l>, tensor<16xi32, #l>
    %v = tt.splat %f : f32 -> tensor<16xf32, #l>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %p, %v, %true : (tensor<16x!tt.ptr<f32>, #l>, tensor<16xf32, #l>, tensor<16xi1, #l>) -> tensor<16xf32, #l>
    tt.return
  }

  // A result that is used goes from the one to all.
  // CHECK-LABEL: msl.kernel @used
  // CHECK: %[[M:.*]] = msl.alloc "broadcast", 1 at 0 : <i32, threadgroup>
  // CHECK: %[[OLD:.*]] = scf.if %[[FIRST:.*]] -> (i32)
  // CHECK-NEXT: msl.atomic_rmw add %arg0
  // CHECK: scf.if %[[FIRST]]
  // CHECK-NEXT: msl.store %{{.*}}, %[[M]]
  // CHECK: msl.barrier
  // CHECK: msl.load %[[M]]
  tt.func public @used(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %n: i32) {
    %true = arith.constant true
    %old = tt.atomic_rmw add, acq_rel, gpu, %x, %n, %true : (!tt.ptr<i32>, i32, i1) -> i32
    %p = tt.addptr %y, %old : !tt.ptr<i32>, i32
    tt.store %p, %n : !tt.ptr<i32>
    tt.return
  }
}
