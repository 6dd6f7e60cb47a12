// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // Loops and branches stay; they carry registers where they carried tiles.
  // CHECK-LABEL: msl.kernel @loop
  // CHECK: %[[SUM:.*]] = scf.for %[[K:.*]] = %c0_i32 to %arg1 step %c1_i32 iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<2xf32>)  : i32 {
  // CHECK: %[[X:.*]] = msl.load
  // CHECK: %[[NEW:.*]] = arith.addf %[[ACC]], %[[X]] : vector<2xf32>
  // CHECK: scf.yield %[[NEW]] : vector<2xf32>
  // CHECK: msl.store %[[SUM]]
  tt.func public @loop(%x: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32, #l>) : i32 {
      %p = tt.addptr %x, %k : !tt.ptr<f32>, i32
      %v = ttm.load %p[%i] : tensor<64xi32, #l>, !tt.ptr<f32> -> tensor<64xf32, #l>
      %new = arith.addf %acc, %v : tensor<64xf32, #l>
      scf.yield %new : tensor<64xf32, #l>
    }
    ttm.store %sum, %x[%i] : tensor<64xf32, #l>, tensor<64xi32, #l>, !tt.ptr<f32>
    tt.return
  }

  // CHECK-LABEL: msl.kernel @branches
  // CHECK: %[[W:.*]]:2 = scf.while (%[[A:.*]] = %{{.*}}, %[[F:.*]] = %arg1) : (vector<2xf32>, f32) -> (vector<2xf32>, f32) {
  // CHECK: scf.condition(%{{.*}}) %[[A]], %[[F]] : vector<2xf32>, f32
  // CHECK: ^bb0(%{{.*}}: vector<2xf32>, %{{.*}}: f32):
  // CHECK: scf.yield %{{.*}} : vector<2xf32>, f32
  // CHECK: scf.if %{{.*}} -> (vector<2xf32>) {
  // CHECK-NEXT: %[[M:.*]] = arith.mulf %[[W]]#0, %[[W]]#0 : vector<2xf32>
  // CHECK-NEXT: scf.yield %[[M]] : vector<2xf32>
  // CHECK-NEXT: } else {
  // CHECK-NEXT: scf.yield %[[W]]#0 : vector<2xf32>
  tt.func public @branches(%x: !tt.ptr<f32>, %n: f32) {
    %one = arith.constant dense<1.0> : tensor<64xf32, #l>
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %v = ttm.load %x[%i] : tensor<64xi32, #l>, !tt.ptr<f32> -> tensor<64xf32, #l>
    %w:2 = scf.while (%a = %v, %f = %n) : (tensor<64xf32, #l>, f32) -> (tensor<64xf32, #l>, f32) {
      %half = arith.constant 0.5 : f32
      %c = arith.cmpf ogt, %f, %half : f32
      scf.condition(%c) %a, %f : tensor<64xf32, #l>, f32
    } do {
    ^bb0(%a: tensor<64xf32, #l>, %f: f32):
      %g = arith.mulf %f, %f : f32
      %b = arith.addf %a, %one : tensor<64xf32, #l>
      scf.yield %b, %g : tensor<64xf32, #l>, f32
    }
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf olt, %w#1, %zero : f32
    %u = scf.if %c -> (tensor<64xf32, #l>) {
      %m = arith.mulf %w#0, %w#0 : tensor<64xf32, #l>
      scf.yield %m : tensor<64xf32, #l>
    } else {
      scf.yield %w#0 : tensor<64xf32, #l>
    }
    ttm.store %u, %x[%i] : tensor<64xf32, #l>, tensor<64xi32, #l>, !tt.ptr<f32>
    tt.return
  }

  // A switch of lifted control flow becomes a chain of ifs, an index 32 bits; a region in place joins its block.
  // CHECK-LABEL: msl.kernel @switch
  // CHECK-NOT: scf.execute_region
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %arg1, %c1_i32 : i32
  // CHECK: %[[V:.*]] = scf.if %[[FIRST]] -> (i32) {
  // CHECK-NEXT: scf.yield %c10_i32 : i32
  // CHECK-NEXT: } else {
  // CHECK-NEXT: %[[SECOND:.*]] = arith.cmpi eq, %arg1, %c2_i32 : i32
  // CHECK-NEXT: %[[W:.*]] = arith.select %[[SECOND]], %c20_i32, %c30_i32
  // CHECK-NEXT: scf.yield %[[W]] : i32
  // CHECK: msl.store %[[V]]
  tt.func public @switch(%x: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %index = arith.index_castui %n : i32 to index
    %v = scf.index_switch %index -> i32
    case 1 {
      %c10 = scf.execute_region -> i32 {
        %ten = arith.constant 10 : i32
        scf.yield %ten : i32
      }
      scf.yield %c10 : i32
    }
    case 2 {
      %c20 = arith.constant 20 : i32
      scf.yield %c20 : i32
    }
    default {
      %c30 = arith.constant 30 : i32
      scf.yield %c30 : i32
    }
    ttm.store %v, %x[%c0] : i32, i32, !tt.ptr<i32>
    tt.return
  }
}
