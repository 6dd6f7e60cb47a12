// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // A range against a bound: its last element, without any overflow.
  // CHECK-LABEL: msl.kernel @range
  // CHECK: %[[FULL:.*]] = arith.cmpi sgt, %arg1, %c63_i32
  // CHECK: msl.load {{.*}} full %[[FULL]]
  tt.func public @range(%x: !tt.ptr<f32>, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %m = arith.cmpi slt, %r, %b : tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %v = tt.load %p, %m : tensor<64x!tt.ptr<f32>, #l>
    tt.store %p, %v : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }

  // Two ends: start + 63 < n, and nothing of start + [0, 63] has wrapped around below 0.
  // CHECK-LABEL: msl.kernel @both
  // CHECK-DAG: %[[S:.*]] = arith.extsi %arg1 : i32 to i64
  // CHECK-DAG: %[[N:.*]] = arith.extsi %arg2 : i32 to i64
  // CHECK-DAG: %[[LAST:.*]] = arith.addi %[[S]], %c63_i64
  // CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[LAST]], %[[N]]
  // CHECK: arith.cmpi sge, %[[S]], %c0_i64
  // CHECK: arith.cmpi sle, %[[LAST]], %c2147483647_i64
  tt.func public @both(%x: !tt.ptr<f32>, %start: i32, %n: i32) {
    %zero = arith.constant dense<0> : tensor<64xi32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %s = tt.splat %start : i32 -> tensor<64xi32, #l>
    %i = arith.addi %s, %r : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %below = arith.cmpi slt, %i, %b : tensor<64xi32, #l>
    %above = arith.cmpi sge, %i, %zero : tensor<64xi32, #l>
    %m = arith.andi %below, %above : tensor<64xi1, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %v = tt.load %p, %m : tensor<64x!tt.ptr<f32>, #l>
    tt.store %p, %v : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }

  // A mask that is no comparison of ranges has no uniform test.
  // CHECK-LABEL: msl.kernel @unknown
  // CHECK-NOT: full
  // CHECK: msl.return
  tt.func public @unknown(%x: !tt.ptr<f32>, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %i = arith.xori %r, %b : tensor<64xi32, #l>
    %m = arith.cmpi slt, %i, %b : tensor<64xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %v = tt.load %p, %m : tensor<64x!tt.ptr<f32>, #l>
    tt.store %p, %v : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }
}
