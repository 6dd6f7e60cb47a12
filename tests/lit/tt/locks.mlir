// RUN: triton-metal-opt %s --tt-check-progress | FileCheck %s

// Each program gives the lock back: one after the other, all find it free.
// CHECK: tt.func public @lock
// CHECK-SAME: attributes {tt.serial = #loc
tt.func public @lock(%lock: !tt.ptr<i32>, %x: !tt.ptr<f32>, %v: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.while : () -> () {
    %old = tt.atomic_cas acq_rel, gpu, %lock, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32
    %taken = arith.cmpi eq, %old, %c1 : i32
    scf.condition(%taken)
  } do {
    scf.yield
  }
  tt.store %x, %v : !tt.ptr<f32>
  %true = arith.constant true
  %was = tt.atomic_rmw exch, acq_rel, gpu, %lock, %c0, %true : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

// With an exchange, a number that may be any but zero, and a store.
// CHECK: tt.func public @exchange
// CHECK-SAME: attributes {tt.serial = #loc
tt.func public @exchange(%lock: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  scf.while : () -> () {
    %old = tt.atomic_rmw exch, acquire, gpu, %lock, %c7 : (!tt.ptr<i32>, i32) -> i32
    %taken = arith.cmpi ne, %old, %c0 : i32
    scf.condition(%taken)
  } do {
    scf.yield
  }
  tt.atomic_store release, gpu, %lock, %c0 : !tt.ptr<i32>
  tt.return
}
