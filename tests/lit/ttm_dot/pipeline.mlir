// RUN: triton-metal-opt %s --ttm-pipeline=num-stages=2 | FileCheck %s
// RUN: triton-metal-opt %s --ttm-pipeline=num-stages=1 | FileCheck %s --check-prefix=SINGLE

#a = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], simdgroup = [[8, 0], [16, 0]]}>
#b = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [16, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], simdgroup = [[4, 0], [8, 0]]}>
#mma = #ttm.linear<{register = [[0, 1], [0, 8], [0, 16], [8, 0], [16, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = [[0, 32], [32, 0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // CHECK-LABEL: @loop
  // SINGLE-LABEL: @loop
  // SINGLE-NOT: slots
  // CHECK: %[[A:.*]] = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8, slots = 2>
  // CHECK: %[[B:.*]] = ttm.alloc_tile : !ttm.tile<32x64xf16, row_pad = 8, slots = 2>
  // CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0_i32, %arg2
  // CHECK: scf.if %[[ANY]]
  // CHECK: tt.load
  // CHECK: ttm.store_tile %{{.*}}, %[[A]][%c0_i32
  // CHECK: scf.for %[[I:.*]] = %{{.*}} iter_args(%[[P:.*]] = %arg0, %[[ACC:.*]] = %{{.*}}, %[[SLOT:.*]] = %c0_i32
  // CHECK: %[[NEXTP:.*]] = tt.addptr %[[P]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[I]]
  // CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %arg2
  // CHECK: tt.splat %[[NEXTP]]
  // CHECK: %[[LOADED:.*]]:2 = scf.if %[[MORE]]
  // CHECK: tt.load
  // CHECK: tt.load
  // CHECK: ub.poison
  // CHECK: %[[D:.*]] = ttm.mma <8x8x8> %[[A]][%[[SLOT]]], %[[B]][%[[SLOT]]], %[[ACC]]
  // CHECK: %[[OTHER:.*]] = ttm.next_slot %[[SLOT]] of 2
  // CHECK: scf.if %[[MORE]]
  // CHECK-NEXT: ttm.store_tile %[[LOADED]]#0, %[[A]][%[[OTHER]]]
  // CHECK-NEXT: ttm.store_tile %[[LOADED]]#1, %[[B]][%[[OTHER]]]
  // CHECK: scf.yield %{{.*}}, %[[D]], %[[OTHER]]
  tt.func public @loop(%p: !tt.ptr<f16>, %q: tensor<32x64x!tt.ptr<f16>, #b>, %n: i32, %o: tensor<64x64x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%base = %p, %acc = %zero) -> (!tt.ptr<f16>, tensor<64x64xf32, #mma>) : i32 {
      %s = tt.splat %base : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>, #a>
      %a = tt.load %s : tensor<64x32x!tt.ptr<f16>, #a>
      %b = tt.load %q : tensor<32x64x!tt.ptr<f16>, #b>
      %ta = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
      ttm.store_tile %a, %ta : tensor<64x32xf16, #a>, !ttm.tile<64x32xf16, row_pad = 8>
      %tb = ttm.alloc_tile : !ttm.tile<32x64xf16, row_pad = 8>
      ttm.store_tile %b, %tb : tensor<32x64xf16, #b>, !ttm.tile<32x64xf16, row_pad = 8>
      %d = ttm.mma <8x8x8> %ta, %tb, %acc : !ttm.tile<64x32xf16, row_pad = 8>, !ttm.tile<32x64xf16, row_pad = 8>, tensor<64x64xf32, #mma>
      %next = tt.addptr %base, %c32 : !tt.ptr<f16>, i32
      scf.yield %next, %d : !tt.ptr<f16>, tensor<64x64xf32, #mma>
    }
    tt.store %o, %r#1 : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }

  // The index of a next step that is none may have wrapped around: what is left of the loop tells.
  // CHECK-LABEL: @wide_steps
  // CHECK: scf.for %[[I:[^ ]*]] = %
  // CHECK: %[[LEFT:.*]] = arith.subi %arg2, %[[I]]
  // CHECK: %[[MORE:.*]] = arith.cmpi ugt, %[[LEFT]], %c32_i32
  // CHECK: scf.if %[[MORE]]
  // CHECK: scf.if %[[MORE]]
  tt.func public @wide_steps(%q: tensor<32x64x!tt.ptr<f16>, #b>, %p: tensor<64x32x!tt.ptr<f16>, #a>, %n: i32, %o: tensor<64x64x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %a = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
      %b = tt.load %q : tensor<32x64x!tt.ptr<f16>, #b>
      %ta = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
      ttm.store_tile %a, %ta : tensor<64x32xf16, #a>, !ttm.tile<64x32xf16, row_pad = 8>
      %tb = ttm.alloc_tile : !ttm.tile<32x64xf16, row_pad = 8>
      ttm.store_tile %b, %tb : tensor<32x64xf16, #b>, !ttm.tile<32x64xf16, row_pad = 8>
      %d = ttm.mma <8x8x8> %ta, %tb, %acc : !ttm.tile<64x32xf16, row_pad = 8>, !ttm.tile<32x64xf16, row_pad = 8>, tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tt.store %o, %r : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }

  // Loads may not pass stores to device memory.
  // CHECK-LABEL: @stores
  // CHECK-NOT: slots
  // CHECK: tt.return
  tt.func public @stores(%q: tensor<32x64x!tt.ptr<f16>, #b>, %p: tensor<64x32x!tt.ptr<f16>, #a>, %n: i32, %o: tensor<64x64x!tt.ptr<f32>, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %a = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
      %b = tt.load %q : tensor<32x64x!tt.ptr<f16>, #b>
      %ta = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
      ttm.store_tile %a, %ta : tensor<64x32xf16, #a>, !ttm.tile<64x32xf16, row_pad = 8>
      %tb = ttm.alloc_tile : !ttm.tile<32x64xf16, row_pad = 8>
      ttm.store_tile %b, %tb : tensor<32x64xf16, #b>, !ttm.tile<32x64xf16, row_pad = 8>
      %d = ttm.mma <8x8x8> %ta, %tb, %zero : !ttm.tile<64x32xf16, row_pad = 8>, !ttm.tile<32x64xf16, row_pad = 8>, tensor<64x64xf32, #mma>
      tt.store %o, %d : tensor<64x64x!tt.ptr<f32>, #mma>
    }
    tt.return
  }

  // What is made of a loaded tile belongs to the next step: a loop that reads it in this step too stays as it is.
  // CHECK-LABEL: @scaled_and_reduced
  // CHECK-NOT: slots
  // CHECK: tt.return
  tt.func private @scaled_and_reduced(%q: tensor<32x64x!tt.ptr<f16>, #b>, %p: tensor<64x32x!tt.ptr<f16>, #a>, %n: i32, %o: tensor<64x64x!tt.ptr<f32>, #mma>) -> tensor<64x32xf16, #a> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %none = arith.constant dense<0.0> : tensor<64x32xf16, #a>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %sum = %none) -> (tensor<64x64xf32, #mma>, tensor<64x32xf16, #a>) : i32 {
      %x = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
      %a = arith.addf %x, %x : tensor<64x32xf16, #a>
      %b = tt.load %q : tensor<32x64x!tt.ptr<f16>, #b>
      %ta = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
      ttm.store_tile %a, %ta : tensor<64x32xf16, #a>, !ttm.tile<64x32xf16, row_pad = 8>
      %tb = ttm.alloc_tile : !ttm.tile<32x64xf16, row_pad = 8>
      ttm.store_tile %b, %tb : tensor<32x64xf16, #b>, !ttm.tile<32x64xf16, row_pad = 8>
      %d = ttm.mma <8x8x8> %ta, %tb, %acc : !ttm.tile<64x32xf16, row_pad = 8>, !ttm.tile<32x64xf16, row_pad = 8>, tensor<64x64xf32, #mma>
      %s = arith.addf %sum, %a : tensor<64x32xf16, #a>
      scf.yield %d, %s : tensor<64x64xf32, #mma>, tensor<64x32xf16, #a>
    }
    tt.store %o, %r#0 : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return %r#1 : tensor<64x32xf16, #a>
  }

  // The same where a region of the body reads it, or its end passes it on.
  // CHECK-LABEL: @scaled_and_carried
  // CHECK-NOT: slots
  // CHECK: tt.return
  tt.func private @scaled_and_carried(%q: tensor<32x64x!tt.ptr<f16>, #b>, %p: tensor<64x32x!tt.ptr<f16>, #a>, %n: i32, %o: tensor<64x64x!tt.ptr<f32>, #mma>, %which: i1) -> tensor<64x32xf16, #a> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %none = arith.constant dense<0.0> : tensor<64x32xf16, #a>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %last = %none) -> (tensor<64x64xf32, #mma>, tensor<64x32xf16, #a>) : i32 {
      %x = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
      %a = arith.addf %x, %x : tensor<64x32xf16, #a>
      %b = tt.load %q : tensor<32x64x!tt.ptr<f16>, #b>
      %ta = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
      ttm.store_tile %a, %ta : tensor<64x32xf16, #a>, !ttm.tile<64x32xf16, row_pad = 8>
      %tb = ttm.alloc_tile : !ttm.tile<32x64xf16, row_pad = 8>
      ttm.store_tile %b, %tb : tensor<32x64xf16, #b>, !ttm.tile<32x64xf16, row_pad = 8>
      %d = ttm.mma <8x8x8> %ta, %tb, %acc : !ttm.tile<64x32xf16, row_pad = 8>, !ttm.tile<32x64xf16, row_pad = 8>, tensor<64x64xf32, #mma>
      %s = scf.if %which -> tensor<64x32xf16, #a> {
        %t = arith.mulf %a, %a : tensor<64x32xf16, #a>
        scf.yield %t : tensor<64x32xf16, #a>
      } else {
        scf.yield %a : tensor<64x32xf16, #a>
      }
      scf.yield %d, %s : tensor<64x64xf32, #mma>, tensor<64x32xf16, #a>
    }
    tt.store %o, %r#0 : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return %r#1 : tensor<64x32xf16, #a>
  }
}
