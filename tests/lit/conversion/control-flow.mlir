// RUN: triton-metal-opt %s --ttm-legalization-pipeline --convert-ttm-to-msl --msl-expand-thread-indices --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // Tiles are carried as their registers, and pointers of tiles as addresses in bytes.
  // CHECK-LABEL: msl.kernel @loop
  // CHECK: %[[BASE:.*]] = msl.ptr_to_int %arg0
  // CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) -> (vector<2xf32>, vector<2xi64>)  : i32 {
  // CHECK: %[[X:.*]] = msl.load_address %[[P]]
  // CHECK: %[[NEW:.*]] = arith.addf %[[SUM]], %[[X]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[P]]
  // CHECK: scf.yield %[[NEW]], %[[NEXT]]
  tt.func public @loop(%x: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %p) -> (tensor<64xf32, #l>, tensor<64x!tt.ptr<f32>, #l>) : i32 {
      %v = tt.load %q : tensor<64x!tt.ptr<f32>, #l>
      %a = arith.addf %acc, %v : tensor<64xf32, #l>
      %next = tt.addptr %q, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
      scf.yield %a, %next : tensor<64xf32, #l>, tensor<64x!tt.ptr<f32>, #l>
    }
    tt.store %p, %sum#0 : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }

  // CHECK-LABEL: msl.kernel @branches
  // CHECK: scf.while
  // CHECK: scf.condition(%{{.*}}) %{{.*}} : vector<2xf32>
  // CHECK: scf.if %{{.*}} -> (vector<2xf32>)
  tt.func public @branches(%x: !tt.ptr<f32>, %n: f32) {
    %one = arith.constant dense<1.0> : tensor<64xf32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>, #l>, tensor<64xi32, #l>
    %v = tt.load %p : tensor<64x!tt.ptr<f32>, #l>
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
    %c = arith.cmpf olt, %n, %zero : f32
    %u = scf.if %c -> (tensor<64xf32, #l>) {
      %m = arith.mulf %w#0, %w#0 : tensor<64xf32, #l>
      scf.yield %m : tensor<64xf32, #l>
    } else {
      scf.yield %w#0 : tensor<64xf32, #l>
    }
    tt.store %p, %u : tensor<64x!tt.ptr<f32>, #l>
    tt.return
  }
}
