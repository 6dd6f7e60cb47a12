// RUN: triton-metal-opt %s --ttm-split-loops --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#one = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#mma = #ttm.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
#row = #ttm.linear<{register = [[0, 1]], lane = [[0, 2], [0, 0], [0, 0], [0, 4], [0, 0]], simdgroup = []}>
#column = #ttm.linear<{register = [[1]], lane = [[2], [0], [0], [4], [0]], simdgroup = []}>
#wide = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], simdgroup = []}>
#wrow = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 0], [0, 0], [0, 0]], simdgroup = []}>
#wcolumn = #ttm.linear<{register = [[1], [2], [4]], lane = [[8], [16], [0], [0], [0]], simdgroup = []}>
#wcol = #ttm.linear<{register = [], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], simdgroup = []}>
#wrows = #ttm.linear<{register = [], lane = [[0], [0], [1], [2], [4]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // Steps below n - 63 are whole; one more is cut.
  // CHECK-LABEL: @row
  // CHECK: %[[N:.*]] = arith.maxsi %arg1, %c-2147483585_i32
  // CHECK: %[[LIMIT:.*]] = arith.addi %[[N]], %c-63_i32
  // CHECK-NOT: arith.minsi
  // CHECK: %[[FROM:.*]] = arith.maxsi %[[LIMIT]], %c0_i32
  // CHECK: %[[UP:.*]] = arith.addi %[[FROM]], %c63_i32
  // CHECK: %[[WHOLE:.*]] = arith.andi %[[UP]], %c-64_i32 {tt.divisibility = 64 : i32}
  // CHECK: scf.for %{{.*}} = %c0_i32 to %[[WHOLE]] step %c64_i32
  // CHECK-NOT: arith.cmpi
  // CHECK: tt.load %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK: tt.store %{{[^,]*}}, %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK: } {msl.whole_steps}
  // CHECK: scf.for %{{.*}} = %[[WHOLE]] to %arg1 step %c64_i32
  // CHECK: arith.cmpi slt
  // CHECK: tt.load %{{[^,]*}}, %{{.*}} {ttm.cut}
  // CHECK: tt.store %{{[^,]*}}, %{{[^,]*}}, %{{.*}} {ttm.cut}
  // CHECK: } {msl.at_most_once}
  tt.func public @row(%x: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    scf.for %i = %c0 to %n step %c64 : i32 {
      %s = tt.splat %i : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %v, %m : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }

  // The index counts slices of 64 in blocks of 128: its bits are the block and the slice. Those below (n - 63) / 64 are whole.
  // CHECK-LABEL: @slices
  // CHECK: %[[LEFT:.*]] = arith.addi %{{.*}}, %c-64_i64
  // CHECK: %[[WHOLE:.*]] = arith.shrsi %[[LEFT]], %c6_i64
  // CHECK: scf.for
  // CHECK-NOT: arith.cmpi
  // CHECK: tt.load %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK: } {msl.whole_steps}
  // CHECK: scf.for
  // CHECK: arith.cmpi slt
  // CHECK: tt.load %{{[^,]*}}, %
  tt.func public @slices(%x: !tt.ptr<f32>, %n: i32, %count: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    scf.for %i = %c0 to %count step %c1 : i32 {
      %block = arith.shrui %i, %c1 : i32
      %slice = arith.andi %i, %c1 : i32
      %k = arith.muli %block, %c128 : i32
      %start = arith.muli %slice, %c64 : i32
      %starts = tt.splat %start : i32 -> tensor<64xi32, #l>
      %o = arith.addi %r, %starts : tensor<64xi32, #l>
      %left = arith.subi %n, %k : i32
      %b = tt.splat %left : i32 -> tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %ks = tt.splat %k : i32 -> tensor<64xi32, #l>
      %at = arith.addi %ks, %o : tensor<64xi32, #l>
      %q = tt.addptr %p, %at : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %v, %m : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }

  // Parts that do not make up the index: with blocks of 64 slices overlap, and the loop stays one.
  // CHECK-LABEL: @overlapping
  // CHECK: scf.for
  // CHECK: arith.cmpi slt
  // CHECK-NOT: scf.for
  // CHECK: tt.return
  tt.func public @overlapping(%x: !tt.ptr<f32>, %n: i32, %count: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    scf.for %i = %c0 to %count step %c1 : i32 {
      %block = arith.shrui %i, %c1 : i32
      %slice = arith.andi %i, %c1 : i32
      %both = arith.addi %block, %slice : i32
      %k = arith.muli %both, %c64 : i32
      %ks = tt.splat %k : i32 -> tensor<64xi32, #l>
      %o = arith.addi %ks, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %v, %m : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }

  // A bound that falls from step to step, beside a mask that nothing is known of: it stays.
  // CHECK-LABEL: @falling
  // CHECK: scf.for
  // CHECK-NOT: arith.cmpi
  // CHECK: tt.load %{{[^,]*}}, %arg2, %{{.*}} : tensor<64x!tt.ptr<f32>
  // CHECK: {msl.whole_steps}
  // CHECK: scf.for
  // CHECK: arith.subi %arg1
  // CHECK: arith.cmpi slt
  // CHECK: %[[BOTH:.*]] = arith.andi
  // CHECK: tt.load %{{[^,]*}}, %[[BOTH]], %{{.*}} {ttm.cut}
  tt.func public @falling(%x: !tt.ptr<f32>, %n: i32, %other: tensor<64xi1, #l>) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64xf32, #l>) : i32 {
      %left = arith.subi %n, %i : i32
      %b = tt.splat %left : i32 -> tensor<64xi32, #l>
      %m = arith.cmpi slt, %r, %b : tensor<64xi32, #l>
      %both = arith.andi %m, %other : tensor<64xi1, #l>
      %v = tt.load %q, %both, %zero : tensor<64x!tt.ptr<f32>, #l>
      %next = arith.addf %acc, %v : tensor<64xf32, #l>
      scf.yield %next : tensor<64xf32, #l>
    }
    tt.store %q, %sum : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }

  // Choices too. What differs between programs is asked once; then more than one step may be cut.
  // CHECK-LABEL: @programs
  // CHECK: %[[INSIDE:.*]] = arith.cmpi sgt, %arg2, %{{.*}} : i32
  // CHECK: %[[BOUND:.*]] = arith.select %[[INSIDE]], %{{.*}}, %c0_i32
  // CHECK: %[[FROM:.*]] = arith.maxsi %[[BOUND]], %c0_i32
  // CHECK: scf.for
  // CHECK-NOT: arith.select
  // CHECK: {msl.whole_steps}
  // CHECK: scf.for
  // CHECK: arith.select
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK-NOT: msl.at_most_once
  // CHECK: tt.return
  tt.func public @programs(%x: !tt.ptr<f32>, %n: i32, %rows: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %pid = tt.get_program_id x : i32
    %row = tt.splat %pid : i32 -> tensor<64xi32, #l>
    %brow = tt.splat %rows : i32 -> tensor<64xi32, #l>
    %mrow = arith.cmpi slt, %row, %brow : tensor<64xi32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64xf32, #l>) : i32 {
      %s = tt.splat %i : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %chosen = arith.select %m, %acc, %zero : tensor<64xi1, #l>, tensor<64xf32, #l>
      %v = tt.load %q, %mrow, %zero : tensor<64x!tt.ptr<f32>, #l>
      %next = arith.addf %chosen, %v : tensor<64xf32, #l>
      scf.yield %next : tensor<64xf32, #l>
    }
    %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    tt.store %q, %sum : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }

  // Rows of the program and columns of the step: the second loop never has a block that is whole in both, and
  // a mask of both says so. One of columns alone may be whole. What a thread has one register of is
  // no reason for a second loop, but is known in the first one.
  // CHECK-LABEL: @both
  // CHECK: scf.for
  // CHECK: tt.load %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK: tt.load %{{[^,]*}} : tensor<32x!tt.ptr<f32>
  // CHECK: {msl.whole_steps}
  // CHECK: scf.for
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {ttm.cut} : tensor<64x!tt.ptr<f32>
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} : tensor<32x!tt.ptr<f32>
  // CHECK: tt.return
  tt.func public @both(%x: !tt.ptr<f32>, %n: i32, %rows: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %zero1 = arith.constant dense<0.0> : tensor<32xf32, #one>
    %pid = tt.get_program_id x : i32
    %row = tt.splat %pid : i32 -> tensor<64xi32, #l>
    %brow = tt.splat %rows : i32 -> tensor<64xi32, #l>
    %mrow = arith.cmpi slt, %row, %brow : tensor<64xi32, #l>
    %row1 = tt.splat %pid : i32 -> tensor<32xi32, #one>
    %brow1 = tt.splat %rows : i32 -> tensor<32xi32, #one>
    %mrow1 = arith.cmpi slt, %row1, %brow1 : tensor<32xi32, #one>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %r1 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #one>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %p1 = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #one>
    %q1 = tt.addptr %p1, %r1 : tensor<32x!tt.ptr<f32>, #one>, tensor<32xi32, #one>
    %sum:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %acc1 = %zero1) -> (tensor<64xf32, #l>, tensor<32xf32, #one>) : i32 {
      %s = tt.splat %i : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %mboth = arith.andi %mrow, %m : tensor<64xi1, #l>
      %v = tt.load %q, %mboth, %zero : tensor<64x!tt.ptr<f32>, #l>
      %w = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      %u = tt.load %q1, %mrow1, %zero1 : tensor<32x!tt.ptr<f32>, #one>
      %product = arith.mulf %v, %w : tensor<64xf32, #l>
      %next = arith.addf %acc, %product : tensor<64xf32, #l>
      %next1 = arith.addf %acc1, %u : tensor<32xf32, #one>
      scf.yield %next, %next1 : tensor<64xf32, #l>, tensor<32xf32, #one>
    }
    %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    tt.store %q, %sum#0 : tensor<64x!tt.ptr<f32>, #l>
    tt.store %q1, %sum#1 : tensor<32x!tt.ptr<f32>, #one>
    tt.return
  }

  // What grows by a constant in each step, two elements for each index.
  // CHECK-LABEL: @carried
  // CHECK: arith.shrsi
  // CHECK: scf.for
  // CHECK: tt.load %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK: {msl.whole_steps}
  tt.func public @carried(%x: !tt.ptr<f32>, %n: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %c64s = arith.constant dense<64> : tensor<64xi32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %r0, %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%o = %r, %acc = %zero) -> (tensor<64xi32, #l>, tensor<64xf32, #l>) : i32 {
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      %next = arith.addf %acc, %v : tensor<64xf32, #l>
      %o1 = arith.addi %o, %c64s : tensor<64xi32, #l>
      scf.yield %o1, %next : tensor<64xi32, #l>, tensor<64xf32, #l>
    }
    %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    tt.store %q, %sum : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }

  // A start of which nothing is known must not be below 0.
  // CHECK-LABEL: @from
  // CHECK: %[[UP:.*]] = arith.cmpi sgt, %arg2, %c-1_i32
  // CHECK: arith.select %[[UP]], %{{.*}}, %arg2
  // CHECK: {msl.whole_steps}
  tt.func public @from(%x: !tt.ptr<f32>, %n: i32, %from: i32) {
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    scf.for %i = %from to %n step %c64 : i32 {
      %s = tt.splat %i : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      tt.store %q, %zero, %m : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }

  // One test an element is no more than one for the block; steps that are no constants, indices
  // without a sign, comparisons of products of two numbers and those that only become true stay.
  // CHECK-LABEL: @stays
  // CHECK-NOT: msl.whole_steps
  // CHECK: tt.return
  tt.func public @stays(%x: !tt.ptr<f32>, %n: i32, %step: i32) {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %zero1 = arith.constant dense<0.0> : tensor<32xf32, #one>
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r1 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #one>
    %b1 = tt.splat %n : i32 -> tensor<32xi32, #one>
    %p1 = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #one>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    scf.for %i = %c0 to %n step %c32 : i32 {
      %s = tt.splat %i : i32 -> tensor<32xi32, #one>
      %o = arith.addi %s, %r1 : tensor<32xi32, #one>
      %m = arith.cmpi slt, %o, %b1 : tensor<32xi32, #one>
      %q = tt.addptr %p1, %o : tensor<32x!tt.ptr<f32>, #one>, tensor<32xi32, #one>
      tt.store %q, %zero1, %m : tensor<32x!tt.ptr<f32>, #one>
    }
    scf.for %i = %c0 to %n step %step : i32 {
      %s = tt.splat %i : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      tt.store %q, %zero, %m : tensor<64x!tt.ptr<f32>, #l>
    }
    scf.for unsigned %i = %c0 to %n step %c64 : i32 {
      %s = tt.splat %i : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      tt.store %q, %zero, %m : tensor<64x!tt.ptr<f32>, #l>
    }
    scf.for %i = %c0 to %n step %c64 : i32 {
      %j = arith.muli %i, %step : i32
      %s = tt.splat %j : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %u = arith.cmpi ult, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      tt.store %q, %zero, %m : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %zero, %u : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }

  // What only goes to threadgroup memory for a product: where the bound is not known as a multiple of 16, the last step is cut.
  // The loop stays one, as sums of products that live through two take registers; the load and its tile are in both sides of a branch.
  // CHECK-LABEL: @product(
  // CHECK: %[[END:.*]] = arith.addi %{{.*}}, %c-7_i32
  // CHECK: scf.for %[[I:.*]] = %c0_i32 to %arg1 step %c8_i32
  // CHECK-NOT: arith.subi
  // CHECK: %[[WHOLE:.*]] = arith.cmpi slt, %[[I]], %[[END]]
  // CHECK-NEXT: scf.if %[[WHOLE]]
  // CHECK-NEXT: %[[V:.*]] = tt.load %{{[^,]*}} : tensor<8x8x!tt.ptr<f16>
  // CHECK-NEXT: ttm.store_tile %[[V]]
  // CHECK: else
  // CHECK: arith.subi %arg1, %[[I]]
  // CHECK: %[[U:.*]] = tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {ttm.cut}
  // CHECK: ttm.store_tile %[[U]]
  // CHECK: ttm.mma
  // CHECK-NOT: scf.for
  // CHECK: tt.return
  tt.func public @product(%x: !tt.ptr<f16>, %n: i32, %out: tensor<8x8x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<8x8xf16, #mma>
    %sum0 = arith.constant dense<0.0> : tensor<8x8xf32, #mma>
    %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #row>
    %k = tt.broadcast %e : tensor<1x8xi32, #row> -> tensor<8x8xi32, #mma>
    %p = tt.splat %x : !tt.ptr<f16> -> tensor<8x8x!tt.ptr<f16>, #mma>
    %q = tt.addptr %p, %k : tensor<8x8x!tt.ptr<f16>, #mma>, tensor<8x8xi32, #mma>
    %sum = scf.for %i = %c0 to %n step %c8 iter_args(%acc = %sum0) -> (tensor<8x8xf32, #mma>) : i32 {
      %left = arith.subi %n, %i : i32
      %b = tt.splat %left : i32 -> tensor<8x8xi32, #mma>
      %m = arith.cmpi slt, %k, %b : tensor<8x8xi32, #mma>
      %v = tt.load %q, %m, %zero : tensor<8x8x!tt.ptr<f16>, #mma>
      %t = ttm.alloc_tile : !ttm.tile<8x8xf16>
      ttm.store_tile %v, %t : tensor<8x8xf16, #mma>, !ttm.tile<8x8xf16>
      %d = ttm.mma <8x8x8> %t, %t, %acc : !ttm.tile<8x8xf16>, !ttm.tile<8x8xf16>, tensor<8x8xf32, #mma>
      scf.yield %d : tensor<8x8xf32, #mma>
    }
    tt.store %out, %sum : tensor<8x8x!tt.ptr<f32>, #mma>
    tt.return
  }

  // Rows are cut in all steps of a program, or in none. Whole steps have their mask, which is computed once, and nothing asks
  // for the rows where the bound of the steps is.
  // CHECK-LABEL: @product_of_rows
  // CHECK: %[[ROWS:.*]] = arith.cmpi slt
  // CHECK: %[[MASK:.*]] = tt.broadcast %[[ROWS]]
  // CHECK-NOT: arith.select
  // CHECK: %[[END:.*]] = arith.addi %{{.*}}, %c-7_i32
  // CHECK-NEXT: scf.for %[[I:.*]] = %c0_i32 to %arg1 step %c8_i32
  // CHECK: %[[WHOLE:.*]] = arith.cmpi slt, %[[I]], %[[END]]
  // CHECK-NEXT: scf.if %[[WHOLE]]
  // CHECK-NEXT: tt.load %{{[^,]*}}, %[[MASK]], %{{[^,]*}} : tensor<8x8x!tt.ptr<f16>
  // CHECK: else
  // CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %[[MASK]]
  // CHECK: tt.load %{{[^,]*}}, %[[BOTH]], %{{[^,]*}} {ttm.cut} : tensor<8x8x!tt.ptr<f16>
  tt.func public @product_of_rows(%x: !tt.ptr<f16>, %n: i32, %rows: i32, %out: tensor<8x8x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<8x8xf16, #mma>
    %sum0 = arith.constant dense<0.0> : tensor<8x8xf32, #mma>
    %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #row>
    %k = tt.broadcast %e : tensor<1x8xi32, #row> -> tensor<8x8xi32, #mma>
    %pid = tt.get_program_id x : i32
    %first = arith.muli %pid, %c8 : i32
    %there = arith.subi %rows, %first : i32
    %there1 = tt.splat %there : i32 -> tensor<1x8xi32, #row>
    %isThere1 = arith.cmpi slt, %e, %there1 : tensor<1x8xi32, #row>
    %isThere = tt.broadcast %isThere1 : tensor<1x8xi1, #row> -> tensor<8x8xi1, #mma>
    %p = tt.splat %x : !tt.ptr<f16> -> tensor<8x8x!tt.ptr<f16>, #mma>
    %q = tt.addptr %p, %k : tensor<8x8x!tt.ptr<f16>, #mma>, tensor<8x8xi32, #mma>
    %sum = scf.for %i = %c0 to %n step %c8 iter_args(%acc = %sum0) -> (tensor<8x8xf32, #mma>) : i32 {
      %left = arith.subi %n, %i : i32
      %b = tt.splat %left : i32 -> tensor<8x8xi32, #mma>
      %m = arith.cmpi slt, %k, %b : tensor<8x8xi32, #mma>
      %both = arith.andi %m, %isThere : tensor<8x8xi1, #mma>
      %v = tt.load %q, %both, %zero : tensor<8x8x!tt.ptr<f16>, #mma>
      %t = ttm.alloc_tile : !ttm.tile<8x8xf16>
      ttm.store_tile %v, %t : tensor<8x8xf16, #mma>, !ttm.tile<8x8xf16>
      %d = ttm.mma <8x8x8> %t, %t, %acc : !ttm.tile<8x8xf16>, !ttm.tile<8x8xf16>, tensor<8x8xf32, #mma>
      scf.yield %d : tensor<8x8xf32, #mma>
    }
    tt.store %out, %sum : tensor<8x8x!tt.ptr<f32>, #mma>
    tt.return
  }

  // Loads keep their place between other accesses, and what is read behind the branch is its result.
  // CHECK-LABEL: @products_apart
  // CHECK: scf.for
  // CHECK: %[[A:.*]] = scf.if
  // CHECK: tt.load %{{[^,]*}} : tensor<8x8x!tt.ptr<f16>
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {ttm.cut}
  // CHECK: tt.store %{{[^,]*}}, %[[A]]
  // CHECK: scf.if
  // CHECK: tt.load %{{[^,]*}} : tensor<8x8x!tt.ptr<f16>
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {ttm.cut}
  // CHECK: ttm.mma
  tt.func public @products_apart(%x: !tt.ptr<f16>, %n: i32, %out: tensor<8x8x!tt.ptr<f32>, #mma>, %seen: tensor<8x8x!tt.ptr<f16>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<8x8xf16, #mma>
    %sum0 = arith.constant dense<0.0> : tensor<8x8xf32, #mma>
    %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #row>
    %k = tt.broadcast %e : tensor<1x8xi32, #row> -> tensor<8x8xi32, #mma>
    %p = tt.splat %x : !tt.ptr<f16> -> tensor<8x8x!tt.ptr<f16>, #mma>
    %q = tt.addptr %p, %k : tensor<8x8x!tt.ptr<f16>, #mma>, tensor<8x8xi32, #mma>
    %sum = scf.for %i = %c0 to %n step %c8 iter_args(%acc = %sum0) -> (tensor<8x8xf32, #mma>) : i32 {
      %left = arith.subi %n, %i : i32
      %b = tt.splat %left : i32 -> tensor<8x8xi32, #mma>
      %m = arith.cmpi slt, %k, %b : tensor<8x8xi32, #mma>
      %v = tt.load %q, %m, %zero : tensor<8x8x!tt.ptr<f16>, #mma>
      %s = ttm.alloc_tile : !ttm.tile<8x8xf16>
      ttm.store_tile %v, %s : tensor<8x8xf16, #mma>, !ttm.tile<8x8xf16>
      tt.store %seen, %v : tensor<8x8x!tt.ptr<f16>, #mma>
      %w = tt.load %q, %m, %zero : tensor<8x8x!tt.ptr<f16>, #mma>
      %t = ttm.alloc_tile : !ttm.tile<8x8xf16>
      ttm.store_tile %w, %t : tensor<8x8xf16, #mma>, !ttm.tile<8x8xf16>
      %d = ttm.mma <8x8x8> %s, %t, %acc : !ttm.tile<8x8xf16>, !ttm.tile<8x8xf16>, tensor<8x8xf32, #mma>
      scf.yield %d : tensor<8x8xf32, #mma>
    }
    tt.store %out, %sum : tensor<8x8x!tt.ptr<f32>, #mma>
    tt.return
  }

  // The loads of the next step, which stand in a branch of their own, are in both sides of one in there.
  // CHECK-LABEL: @product_ahead
  // CHECK: scf.for %[[I:.*]] = %c0_i32 to %arg1
  // CHECK: scf.if
  // CHECK: %[[WHOLE:.*]] = arith.cmpi slt, %[[I]], %{{.*}}
  // CHECK-NEXT: %[[V:.*]] = scf.if %[[WHOLE]]
  // CHECK-NEXT: tt.load %{{[^,]*}} : tensor<8x8x!tt.ptr<f16>
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {ttm.cut}
  // CHECK: scf.yield %[[V]]
  // CHECK: ttm.mma
  tt.func public @product_ahead(%x: !tt.ptr<f16>, %n: i32, %out: tensor<8x8x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<8x8xf16, #mma>
    %sum0 = arith.constant dense<0.0> : tensor<8x8xf32, #mma>
    %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #row>
    %k = tt.broadcast %e : tensor<1x8xi32, #row> -> tensor<8x8xi32, #mma>
    %p = tt.splat %x : !tt.ptr<f16> -> tensor<8x8x!tt.ptr<f16>, #mma>
    %q = tt.addptr %p, %k : tensor<8x8x!tt.ptr<f16>, #mma>, tensor<8x8xi32, #mma>
    %t = ttm.alloc_tile : !ttm.tile<8x8xf16>
    %sum = scf.for %i = %c0 to %n step %c8 iter_args(%acc = %sum0) -> (tensor<8x8xf32, #mma>) : i32 {
      %next = arith.addi %i, %c8 : i32
      %left = arith.subi %n, %next : i32
      %b = tt.splat %left : i32 -> tensor<8x8xi32, #mma>
      %m = arith.cmpi slt, %k, %b : tensor<8x8xi32, #mma>
      %more = arith.cmpi slt, %next, %n : i32
      %v = scf.if %more -> tensor<8x8xf16, #mma> {
        %w = tt.load %q, %m, %zero : tensor<8x8x!tt.ptr<f16>, #mma>
        scf.yield %w : tensor<8x8xf16, #mma>
      } else {
        scf.yield %zero : tensor<8x8xf16, #mma>
      }
      %d = ttm.mma <8x8x8> %t, %t, %acc : !ttm.tile<8x8xf16>, !ttm.tile<8x8xf16>, tensor<8x8xf32, #mma>
      ttm.store_tile %v, %t : tensor<8x8xf16, #mma>, !ttm.tile<8x8xf16>
      scf.yield %d : tensor<8x8xf32, #mma>
    }
    tt.store %out, %sum : tensor<8x8x!tt.ptr<f32>, #mma>
    tt.return
  }

  // Where it is, one of two loops takes all steps: sums that live through one after the other take registers.
  // CHECK-LABEL: @versions
  // CHECK: %[[WHOLE:.*]] = arith.andi %{{.*}}, %c-32_i32
  // CHECK: %[[ALL:.*]] = arith.cmpi sge, %[[WHOLE]], %arg1
  // CHECK: %[[BOUND:.*]] = arith.select %[[ALL]], %arg1, %c0_i32
  // CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c0_i32 to %[[BOUND]] step %c32_i32
  // CHECK: tt.load %{{[^,]*}} : tensor<8x32x!tt.ptr<f16>
  // CHECK: {msl.version}
  // CHECK: scf.for %{{.*}} = %[[BOUND]] to %arg1 step %c32_i32 iter_args(%{{.*}} = %[[SUM]])
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} : tensor<8x32x!tt.ptr<f16>
  // CHECK: {msl.version}
  tt.func public @versions(%x: !tt.ptr<f16>, %n: i32 {tt.divisibility = 16 : i32}, %out: tensor<8x8x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<8x32xf16, #wide>
    %sum0 = arith.constant dense<0.0> : tensor<8x8xf32, #mma>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #wcolumn>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32, #wcolumn> -> tensor<1x32xi32, #wrow>
    %k = tt.broadcast %e : tensor<1x32xi32, #wrow> -> tensor<8x32xi32, #wide>
    %p = tt.splat %x : !tt.ptr<f16> -> tensor<8x32x!tt.ptr<f16>, #wide>
    %q = tt.addptr %p, %k : tensor<8x32x!tt.ptr<f16>, #wide>, tensor<8x32xi32, #wide>
    %sum = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %sum0) -> (tensor<8x8xf32, #mma>) : i32 {
      %left = arith.subi %n, %i : i32
      %b = tt.splat %left : i32 -> tensor<8x32xi32, #wide>
      %m = arith.cmpi slt, %k, %b : tensor<8x32xi32, #wide>
      %v = tt.load %q, %m, %zero : tensor<8x32x!tt.ptr<f16>, #wide>
      %t = ttm.alloc_tile : !ttm.tile<8x32xf16>
      ttm.store_tile %v, %t : tensor<8x32xf16, #wide>, !ttm.tile<8x32xf16>
      %d = ttm.mma <8x8x8> %t, %t, %acc {b_transposed} : !ttm.tile<8x32xf16>, !ttm.tile<8x32xf16>, tensor<8x8xf32, #mma>
      scf.yield %d : tensor<8x8xf32, #mma>
    }
    tt.store %out, %sum : tensor<8x8x!tt.ptr<f32>, #mma>
    tt.return
  }

  // What no step cuts has no mask in either of two loops. In the second one, each step is cut: `ttm.cut`.
  // CHECK-LABEL: @rows_of_versions
  // CHECK: tt.load %{{[^,]*}} : tensor<8x32x!tt.ptr<f16>
  // CHECK: {msl.version}
  // CHECK: scf.for
  // CHECK-NOT: arith.andi
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {ttm.cut} : tensor<8x32x!tt.ptr<f16>
  // CHECK: {msl.version}
  tt.func public @rows_of_versions(%x: !tt.ptr<f16>, %n: i32 {tt.divisibility = 32 : i32}, %rows: i32 {tt.divisibility = 16 : i32}, %out: tensor<8x8x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %c32 = arith.constant 32 : i32
    %pid = tt.get_program_id x : i32
    %first = arith.muli %pid, %c8 : i32
    %zero = arith.constant dense<0.0> : tensor<8x32xf16, #wide>
    %sum0 = arith.constant dense<0.0> : tensor<8x8xf32, #mma>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #wcolumn>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32, #wcolumn> -> tensor<1x32xi32, #wrow>
    %k = tt.broadcast %e : tensor<1x32xi32, #wrow> -> tensor<8x32xi32, #wide>
    %r8 = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #wrows>
    %f = tt.splat %first : i32 -> tensor<8xi32, #wrows>
    %i8 = arith.addi %f, %r8 : tensor<8xi32, #wrows>
    %e8 = tt.expand_dims %i8 {axis = 1 : i32} : tensor<8xi32, #wrows> -> tensor<8x1xi32, #wcol>
    %m8 = tt.broadcast %e8 : tensor<8x1xi32, #wcol> -> tensor<8x32xi32, #wide>
    %b8 = tt.splat %rows : i32 -> tensor<8x32xi32, #wide>
    %isRow = arith.cmpi slt, %m8, %b8 : tensor<8x32xi32, #wide>
    %p = tt.splat %x : !tt.ptr<f16> -> tensor<8x32x!tt.ptr<f16>, #wide>
    %q = tt.addptr %p, %k : tensor<8x32x!tt.ptr<f16>, #wide>, tensor<8x32xi32, #wide>
    %sum = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %sum0) -> (tensor<8x8xf32, #mma>) : i32 {
      %left = arith.subi %n, %i : i32
      %b = tt.splat %left : i32 -> tensor<8x32xi32, #wide>
      %isColumn = arith.cmpi slt, %k, %b : tensor<8x32xi32, #wide>
      %m = arith.andi %isRow, %isColumn : tensor<8x32xi1, #wide>
      %v = tt.load %q, %m, %zero : tensor<8x32x!tt.ptr<f16>, #wide>
      %t = ttm.alloc_tile : !ttm.tile<8x32xf16>
      ttm.store_tile %v, %t : tensor<8x32xf16, #wide>, !ttm.tile<8x32xf16>
      %d = ttm.mma <8x8x8> %t, %t, %acc {b_transposed} : !ttm.tile<8x32xf16>, !ttm.tile<8x32xf16>, tensor<8x8xf32, #mma>
      scf.yield %d : tensor<8x8xf32, #mma>
    }
    tt.store %out, %sum : tensor<8x8x!tt.ptr<f32>, #mma>
    tt.return
  }

  // A program's loop ends behind its own rows: one step at most is cut, as both bounds are multiples of the step.
  // CHECK-LABEL: @causal
  // CHECK: {msl.whole_steps}
  // CHECK: scf.for
  // CHECK: {msl.at_most_once}
  tt.func public @causal(%x: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %pid = tt.get_program_id x : i32
    %first = arith.muli %pid, %c64 : i32
    %end = arith.addi %first, %c64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %f = tt.splat %first : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    scf.for %i = %c0 to %end step %c64 : i32 {
      %s = tt.splat %i : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi sle, %o, %f : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %v, %m : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }

  // A bound that is a multiple of the step cuts none: no mask is left, in one loop.
  // CHECK-LABEL: @multiple
  // CHECK: scf.for
  // CHECK-NOT: arith.cmpi
  // CHECK: tt.load %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK-NOT: scf.for
  // CHECK: tt.return
  tt.func public @multiple(%x: !tt.ptr<f32>, %blocks: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %n = arith.muli %blocks, %c64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    scf.for %i = %c0 to %n step %c64 : i32 {
      %s = tt.splat %i : i32 -> tensor<64xi32, #l>
      %o = arith.addi %s, %r : tensor<64xi32, #l>
      %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
      %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %v, %m : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }

  // A choice stands in a branch, too; its mask is computed in the steps that it cuts alone.
  // CHECK-LABEL: @chosen_product
  // CHECK: %[[END:.*]] = arith.addi %{{.*}}, %c-7_i32
  // CHECK: scf.for %[[I:.*]] = %c0_i32 to %arg1 step %c8_i32
  // CHECK-NEXT: %[[WHOLE:.*]] = arith.cmpi slt, %[[I]], %[[END]]
  // CHECK-NEXT: %[[CHOSEN:.*]] = scf.if %[[WHOLE]]
  // CHECK-NEXT: scf.yield %[[V:.*]] :
  // CHECK-NEXT: else
  // CHECK: %[[MASK:.*]] = arith.cmpi slt
  // CHECK: arith.select %[[MASK]], %[[V]]
  // CHECK: ttm.store_tile %[[CHOSEN]]
  // CHECK: ttm.mma
  // CHECK-NOT: scf.for
  // CHECK: tt.return
  tt.func public @chosen_product(%x: !tt.ptr<f16>, %n: i32, %out: tensor<8x8x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<8x8xf16, #mma>
    %sum0 = arith.constant dense<0.0> : tensor<8x8xf32, #mma>
    %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #row>
    %k = tt.broadcast %e : tensor<1x8xi32, #row> -> tensor<8x8xi32, #mma>
    %p = tt.splat %x : !tt.ptr<f16> -> tensor<8x8x!tt.ptr<f16>, #mma>
    %q = tt.addptr %p, %k : tensor<8x8x!tt.ptr<f16>, #mma>, tensor<8x8xi32, #mma>
    %v = tt.load %q : tensor<8x8x!tt.ptr<f16>, #mma>
    %sum = scf.for %i = %c0 to %n step %c8 iter_args(%acc = %sum0) -> (tensor<8x8xf32, #mma>) : i32 {
      %left = arith.subi %n, %i : i32
      %b = tt.splat %left : i32 -> tensor<8x8xi32, #mma>
      %m = arith.cmpi slt, %k, %b : tensor<8x8xi32, #mma>
      %w = arith.select %m, %v, %zero : tensor<8x8xi1, #mma>, tensor<8x8xf16, #mma>
      %t = ttm.alloc_tile : !ttm.tile<8x8xf16>
      ttm.store_tile %w, %t : tensor<8x8xf16, #mma>, !ttm.tile<8x8xf16>
      %d = ttm.mma <8x8x8> %t, %t, %acc : !ttm.tile<8x8xf16>, !ttm.tile<8x8xf16>, tensor<8x8xf32, #mma>
      scf.yield %d : tensor<8x8xf32, #mma>
    }
    tt.store %out, %sum : tensor<8x8x!tt.ptr<f32>, #mma>
    tt.return
  }

  // Loads and choices that ask for different numbers have different bounds: what a choice cuts may be loaded whole.
  // CHECK-LABEL: @seen_product
  // CHECK-DAG: %[[KEYS:.*]] = arith.addi %{{.*}}, %c-7_i32
  // CHECK-DAG: %[[SEEN:.*]] = arith.minsi
  // CHECK: scf.for %[[I:.*]] = %c0_i32 to %arg1 step %c8_i32
  // CHECK: arith.cmpi slt, %[[I]], %[[KEYS]]
  // CHECK: tt.load %{{[^,]*}} : tensor<8x8x!tt.ptr<f16>
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {ttm.cut}
  // CHECK: ttm.mma
  // CHECK: arith.cmpi slt, %[[I]], %[[SEEN]]
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: scf.yield
  // CHECK-NEXT: else
  // CHECK: arith.andi
  // CHECK: arith.select
  // CHECK-NOT: scf.for
  // CHECK: tt.return
  tt.func public @seen_product(%x: !tt.ptr<f16>, %n: i32, %seen: i32, %out: tensor<8x8x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<8x8xf16, #mma>
    %sum0 = arith.constant dense<0.0> : tensor<8x8xf32, #mma>
    %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #row>
    %k = tt.broadcast %e : tensor<1x8xi32, #row> -> tensor<8x8xi32, #mma>
    %p = tt.splat %x : !tt.ptr<f16> -> tensor<8x8x!tt.ptr<f16>, #mma>
    %q = tt.addptr %p, %k : tensor<8x8x!tt.ptr<f16>, #mma>, tensor<8x8xi32, #mma>
    %s = tt.splat %seen : i32 -> tensor<8x8xi32, #mma>
    %b = tt.splat %n : i32 -> tensor<8x8xi32, #mma>
    %sum = scf.for %i = %c0 to %n step %c8 iter_args(%acc = %sum0) -> (tensor<8x8xf32, #mma>) : i32 {
      %j = tt.splat %i : i32 -> tensor<8x8xi32, #mma>
      %o = arith.addi %j, %k : tensor<8x8xi32, #mma>
      %m = arith.cmpi slt, %o, %b : tensor<8x8xi32, #mma>
      %v = tt.load %q, %m, %zero : tensor<8x8x!tt.ptr<f16>, #mma>
      %t = ttm.alloc_tile : !ttm.tile<8x8xf16>
      ttm.store_tile %v, %t : tensor<8x8xf16, #mma>, !ttm.tile<8x8xf16>
      %d = ttm.mma <8x8x8> %t, %t, %acc : !ttm.tile<8x8xf16>, !ttm.tile<8x8xf16>, tensor<8x8xf32, #mma>
      %c = arith.cmpi slt, %o, %s : tensor<8x8xi32, #mma>
      %both = arith.andi %m, %c : tensor<8x8xi1, #mma>
      %w = arith.select %both, %d, %sum0 : tensor<8x8xi1, #mma>, tensor<8x8xf32, #mma>
      scf.yield %w : tensor<8x8xf32, #mma>
    }
    tt.store %out, %sum : tensor<8x8x!tt.ptr<f32>, #mma>
    tt.return
  }
}
