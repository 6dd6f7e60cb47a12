// RUN: triton-metal-opt %s --ttm-lower-pointers --split-input-file --verify-diagnostics | FileCheck %s

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#t = #ttm.linear<{register = [[32, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // A uniform offset moves the base; two offsets are added in 64 bits.
  // CHECK-LABEL: @base
  // CHECK: %[[R:.*]] = tt.make_range
  // CHECK: %[[MOVED:.*]] = tt.addptr %arg0, %arg1 : !tt.ptr<f32>, i32
  // CHECK: %[[A:.*]] = arith.extsi %[[R]]
  // CHECK: %[[B:.*]] = arith.extsi %[[R]]
  // CHECK: %[[SUM:.*]] = arith.addi %[[A]], %[[B]] : tensor<64xi64, #{{.*}}>
  // CHECK: %[[V:.*]] = ttm.load %[[MOVED]][%[[SUM]]] : tensor<64xi64, #{{.*}}>, !tt.ptr<f32> -> tensor<64xf32, #{{.*}}>
  // CHECK: ttm.store %[[V]], %[[MOVED]][%[[R]]] : tensor<64xf32, #{{.*}}>, tensor<64xi32, #{{.*}}>, !tt.ptr<f32>
  // CHECK-NOT: tensor<64x!tt.ptr
  tt.func public @base(%x: !tt.ptr<f32>, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %s = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %a = tt.addptr %p, %s : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    %b = tt.addptr %a, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    %d = tt.addptr %b, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    %v = tt.load %d : tensor<64x!tt.ptr<f32>, #l>
    tt.store %b, %v : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }

  // Shapes change the offsets; scalars are at offset 0; a mask that is true everywhere goes.
  // CHECK-LABEL: @shapes
  // CHECK: %[[R:.*]] = tt.make_range
  // CHECK: %[[E:.*]] = tt.expand_dims %[[R]] {axis = 1 : i32}
  // CHECK: ttm.load %arg0[%[[E]]] : tensor<64x1xi32
  // CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK: ttm.load %arg0[%[[ZERO]]] : i32, !tt.ptr<f32> -> f32
  tt.func public @shapes(%x: !tt.ptr<f32>) {
    %true = arith.constant dense<true> : tensor<64x1xi1, #t>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %a = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    %e = tt.expand_dims %a {axis = 1 : i32} : tensor<64x!tt.ptr<f32>, #l> -> tensor<64x1x!tt.ptr<f32>, #t>
    %v = tt.load %e, %true : tensor<64x1x!tt.ptr<f32>, #t>
    tt.store %e, %v : tensor<64x1x!tt.ptr<f32>, #t>
    %w = tt.load %x : !tt.ptr<f32>
    tt.store %x, %w : !tt.ptr<f32>
    tt.return
  }

  // What a loop carries is addresses in bytes; so is a choice between two arrays, and what is loaded.
  // CHECK-LABEL: @addresses
  // CHECK: %[[INT:.*]] = tt.ptr_to_int %arg0 : !tt.ptr<f32> -> i64
  // CHECK: %[[START:.*]] = arith.addi
  // CHECK: scf.for {{.*}} iter_args(%[[Q:.*]] = %[[START]]) -> (tensor<64xi64, #{{.*}}>)
  // CHECK: ttm.load[%[[Q]]] : tensor<64xi64, #{{.*}}> -> tensor<64xf32, #{{.*}}>
  // CHECK: %[[NEXT:.*]] = arith.addi %[[Q]]
  // CHECK: scf.yield %[[NEXT]]
  // CHECK: %[[CHOSEN:.*]] = arith.select %arg2
  // CHECK: ttm.load[%[[CHOSEN]]]
  // CHECK: %[[NUMBERS:.*]] = tt.bitcast %arg4 : !tt.ptr<!tt.ptr<f32>> -> !tt.ptr<i64>
  // CHECK: %[[LOADED:.*]] = ttm.load %[[NUMBERS]]
  // CHECK: ttm.load[%[[LOADED]]]
  tt.func public @addresses(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %c: i1, %n: i32, %z: !tt.ptr<!tt.ptr<f32>>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p) -> (tensor<64x!tt.ptr<f32>, #l>) : i32 {
      %v = tt.load %q : tensor<64x!tt.ptr<f32>, #l>
      tt.store %p, %v : tensor<64x!tt.ptr<f32>, #l>
      %next = tt.addptr %q, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      scf.yield %next : tensor<64x!tt.ptr<f32>, #l>
    }
    %t = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %e = arith.select %c, %p, %t : tensor<64x!tt.ptr<f32>, #l>
    %w = tt.load %e : tensor<64x!tt.ptr<f32>, #l>
    tt.store %last, %w : tensor<64x!tt.ptr<f32>, #l>
    %zz = tt.splat %z : !tt.ptr<!tt.ptr<f32>> -> tensor<64x!tt.ptr<!tt.ptr<f32>>, #l>
    %u = tt.load %zz : tensor<64x!tt.ptr<!tt.ptr<f32>>, #l>
    %f = tt.load %u : tensor<64x!tt.ptr<f32>, #l>
    tt.store %p, %f : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }
}

// -----

// Tiles of pointers that come together, or apart, are tiles of addresses.
#half = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#pairs = #ttm.linear<{register = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: tt.func public @joined
  // CHECK: %[[JOINED:.*]] = tt.join %{{.*}}, %{{.*}} : tensor<32xi64, #{{.*}}> -> tensor<32x2xi64, #{{.*}}>
  // CHECK: %[[L:.*]], %[[R:.*]] = tt.split %[[JOINED]] : tensor<32x2xi64, #{{.*}}> -> tensor<32xi64, #{{.*}}>
  // CHECK: %[[V:.*]] = ttm.load[%[[L]]]
  // CHECK: ttm.store %[[V]],[%[[R]]]
  tt.func public @joined(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #half>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #half>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #half>
    %xp = tt.addptr %xs, %r : tensor<32x!tt.ptr<f32>, #half>, tensor<32xi32, #half>
    %j = tt.join %xp, %ys : tensor<32x!tt.ptr<f32>, #half> -> tensor<32x2x!tt.ptr<f32>, #pairs>
    %a, %b = tt.split %j : tensor<32x2x!tt.ptr<f32>, #pairs> -> tensor<32x!tt.ptr<f32>, #half>
    %v = tt.load %a : tensor<32x!tt.ptr<f32>, #half>
    tt.store %b, %v : tensor<32x!tt.ptr<f32>, #half>
    tt.return
  }
}

// -----

// A choice between elements of one array is one of offsets, though scalars have moved the base.
#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: tt.func public @neighbours
  // CHECK-SAME: (%[[X:.*]]: !tt.ptr<i32>, %[[C:.*]]: tensor<32xi1, #{{.*}}>, %[[S:.*]]: i32
  // CHECK: %[[WIDE:.*]] = arith.extsi %[[S]] : i32 to i64
  // CHECK: %[[SHIFT:.*]] = tt.splat %[[WIDE]]
  // CHECK: %[[MOVED:.*]] = arith.addi %{{.*}}, %[[SHIFT]]
  // CHECK: %[[CHOSEN:.*]] = arith.select %[[C]], %{{.*}}, %[[MOVED]]
  // CHECK: ttm.atomic_rmw add, relaxed, gpu, %[[X]][%[[CHOSEN]]]
  tt.func public @neighbours(%x: !tt.ptr<i32>, %c: tensor<32xi1, #l>, %s: i32, %v: tensor<32xi32, #l>) {
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #l>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #l>
    %ss = tt.splat %s : i32 -> tensor<32xi32, #l>
    %p = tt.addptr %xs, %r : tensor<32x!tt.ptr<i32>, #l>, tensor<32xi32, #l>
    %q = tt.addptr %p, %ss : tensor<32x!tt.ptr<i32>, #l>, tensor<32xi32, #l>
    %e = arith.select %c, %p, %q : tensor<32xi1, #l>, tensor<32x!tt.ptr<i32>, #l>
    %old = tt.atomic_rmw add, relaxed, gpu, %e, %v : (tensor<32x!tt.ptr<i32>, #l>, tensor<32xi32, #l>) -> tensor<32xi32, #l>
    tt.return
  }
}

// -----

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: tt.func public @atomics
  // CHECK: %[[ADDRESSES:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<64xi64
  // CHECK: ttm.atomic_rmw add, relaxed, gpu,[%[[ADDRESSES]]], %{{.*}} : tensor<64xi64, #{{.*}}>, tensor<64xi32, #{{.*}}>
  tt.func public @atomics(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %c: i1, %v: tensor<64xi32, #l>) {
    %s = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #l>
    %t = tt.splat %y : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #l>
    %p = arith.select %c, %s, %t : tensor<64x!tt.ptr<i32>, #l>
    %old = tt.atomic_rmw add, relaxed, gpu, %p, %v : (tensor<64x!tt.ptr<i32>, #l>, tensor<64xi32, #l>) -> tensor<64xi32, #l>
    tt.return
  }
}
