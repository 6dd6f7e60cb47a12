// RUN: triton-metal-opt %s --tt-lift-control-flow --tt-inline --canonicalize | FileCheck %s

// CHECK-LABEL: tt.func public @kernel
// CHECK-SAME: (%[[P:.*]]: !tt.ptr<f32>, %[[N:.*]]: i32)
tt.func public @kernel(%p: !tt.ptr<f32>, %n: i32) {
  // CHECK: scf.for
  // CHECK-NEXT: %[[X:.*]] = tt.load %[[P]]
  // CHECK-NEXT: %[[S:.*]] = arith.mulf %[[X]], %[[X]]
  // CHECK-NEXT: %[[C:.*]] = arith.cmpf olt
  // CHECK-NEXT: %[[R:.*]] = arith.select %[[C]]
  // CHECK-NEXT: tt.store %[[P]], %[[R]]
  // CHECK-NOT: tt.call
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    %y = tt.call @outer(%x) : (f32) -> f32
    tt.store %p, %y : !tt.ptr<f32>
  }
  tt.return
}

// Neither of them is left.
// CHECK-NOT: tt.func
tt.func private @outer(%x: f32) -> f32 attributes {noinline = true} {
  %0 = tt.call @square(%x) : (f32) -> f32
  %c = arith.cmpf olt, %0, %x : f32
  cf.cond_br %c, ^a, ^b
^a:
  tt.return %x : f32
^b:
  tt.return %0 : f32
}

tt.func private @square(%x: f32) -> f32 attributes {noinline = true} {
  %0 = arith.mulf %x, %x : f32
  tt.return %0 : f32
}
