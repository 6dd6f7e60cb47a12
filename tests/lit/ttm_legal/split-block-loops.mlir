// RUN: triton-metal-opt %s --ttm-split-loops --canonicalize --cse | FileCheck %s

// The bounds of a block are as BlockAccess.cpp makes them: how many of its places are in the tensor.
#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // A tensor descriptor's block at the loop's index: steps below n - 63 are whole.
  // CHECK-LABEL: @index
  // CHECK: %[[N:.*]] = arith.maxsi %arg1, %c-2147483585_i32
  // CHECK: %[[LIMIT:.*]] = arith.addi %[[N]], %c-63_i32
  // CHECK: %[[FROM:.*]] = arith.maxsi %[[LIMIT]], %c0_i32
  // CHECK: %[[UP:.*]] = arith.addi %[[FROM]], %c63_i32
  // CHECK: %[[WHOLE:.*]] = arith.andi %[[UP]], %c-64_i32
  // CHECK: scf.for %{{.*}} = %c0_i32 to %[[WHOLE]] step %c64_i32
  // CHECK-NOT: arith.cmpi
  // CHECK: tt.load %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK: } {msl.whole_steps}
  // CHECK: scf.for %{{.*}} = %[[WHOLE]] to %arg1 step %c64_i32
  // CHECK: tt.load %{{[^,]*}}, %{{.*}} {ttm.cut}
  tt.func public @index(%x: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    scf.for %i = %c0 to %n step %c64 : i32 {
      %rest = arith.subi %n, %i : i32
      %least = arith.minui %rest, %c64 : i32
      %below = arith.cmpi slt, %i, %n : i32
      %end = arith.select %below, %least, %c0 : i32
      %ends = tt.splat %end : i32 -> tensor<64xi32, #l>
      %m = arith.cmpi slt, %r, %ends : tensor<64xi32, #l>
      %base = tt.addptr %x, %i : !tt.ptr<f32>, i32
      %p = tt.splat %base : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
      %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %v : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }

  // A block pointer that a loop moves: its place is a number of 64 bits, from -5 on. Steps in which index - 5 + 63 is below n are
  // whole at their end.
  // CHECK-LABEL: @moved
  // CHECK: %[[N:.*]] = arith.maxsi %arg1, %c-2147483590_i32
  // CHECK: scf.for
  // CHECK-NOT: arith.cmpi
  // CHECK: tt.load %{{[^,]*}} : tensor<64x!tt.ptr<f32>
  // CHECK: } {msl.whole_steps}
  // CHECK: scf.for
  // CHECK: tt.load %{{[^,]*}}, %{{.*}} {ttm.cut}
  tt.func public @moved(%x: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %l0 = arith.constant 0 : i64
    %l5 = arith.constant -5 : i64
    %l64 = arith.constant 64 : i64
    %wide = arith.extsi %n : i32 to i64
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    scf.for %i = %c0 to %n step %c64 iter_args(%at = %l5) -> (i64) : i32 {
      %rest = arith.subi %wide, %at : i64
      %least = arith.minui %rest, %l64 : i64
      %below = arith.cmpi slt, %at, %wide : i64
      %last = arith.select %below, %least, %l0 : i64
      %end = arith.trunci %last : i64 to i32
      %ends = tt.splat %end : i32 -> tensor<64xi32, #l>
      %m = arith.cmpi slt, %r, %ends : tensor<64xi32, #l>
      %base = tt.addptr %x, %at : !tt.ptr<f32>, i64
      %p = tt.splat %base : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
      %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %v : tensor<64x!tt.ptr<f32>, #l>
      %next = arith.addi %at, %l64 : i64
      scf.yield %next : i64
    }
    tt.return
  }

  // What only looks like a bound: places behind the block's length, and a place that may be the end itself.
  // CHECK-LABEL: @others
  // CHECK: scf.for
  // CHECK-NOT: scf.for
  // CHECK: tt.return
  tt.func public @others(%x: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    scf.for %i = %c0 to %n step %c64 : i32 {
      %rest = arith.subi %n, %i : i32
      %below = arith.cmpi slt, %i, %n : i32
      %short = arith.minui %rest, %c32 : i32
      %half = arith.select %below, %short, %c0 : i32
      %halves = tt.splat %half : i32 -> tensor<64xi32, #l>
      %m = arith.cmpi slt, %r, %halves : tensor<64xi32, #l>
      %least = arith.minui %rest, %c64 : i32
      %end = arith.select %below, %least, %c0 : i32
      %ends = tt.splat %end : i32 -> tensor<64xi32, #l>
      %n2 = arith.cmpi sle, %r, %ends : tensor<64xi32, #l>
      %base = tt.addptr %x, %i : !tt.ptr<f32>, i32
      %p = tt.splat %base : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
      %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      %v = tt.load %q, %m, %zero : tensor<64x!tt.ptr<f32>, #l>
      tt.store %q, %v, %n2 : tensor<64x!tt.ptr<f32>, #l>
    }
    tt.return
  }
}
