// RUN: triton-metal-opt %s --tt-narrow-indices --canonicalize --split-input-file | FileCheck %s

// What each kind of operation needs to be done in 32 bits. %u is any 32-bit number as an unsigned one, %s as a signed
// one, %r from 0 to 63.

// A number from 2^31 on is negative as a signed 32-bit one: signed operations become unsigned ones.
// CHECK-LABEL: @signed_operations_of_unsigned_numbers
tt.func @signed_operations_of_unsigned_numbers(%n: i32, %p: !tt.ptr<i64>, %m: !tt.ptr<i1>) {
  // CHECK-DAG: %[[C5:.*]] = arith.constant 5 : i32
  // CHECK-DAG: %[[C7:.*]] = arith.constant 7 : i32
  %u = arith.extui %n : i32 to i64
  %c5 = arith.constant 5 : i64
  %c7 = arith.constant 7 : i64
  // CHECK: %[[R:.*]] = arith.divui %arg0, %[[C5]] : i32
  // CHECK: arith.ext{{.*}} %[[R]] : i32 to i64
  %0 = arith.divsi %u, %c5 : i64
  tt.store %p, %0 : !tt.ptr<i64>
  // CHECK: arith.remui %arg0, %[[C5]] : i32
  %1 = arith.remsi %u, %c5 : i64
  tt.store %p, %1 : !tt.ptr<i64>
  // CHECK: %[[MAX:.*]] = arith.maxui %arg0, %[[C7]] : i32
  // CHECK: arith.extui %[[MAX]]
  %2 = arith.maxsi %u, %c7 : i64
  tt.store %p, %2 : !tt.ptr<i64>
  // CHECK: arith.minui %arg0, %[[C7]] : i32
  %3 = arith.minsi %u, %c7 : i64
  tt.store %p, %3 : !tt.ptr<i64>
  // CHECK: arith.shrui %arg0, %[[C7]] : i32
  %4 = arith.shrsi %u, %c7 : i64
  tt.store %p, %4 : !tt.ptr<i64>
  // CHECK: arith.cmpi ult, %arg0, %[[C7]] : i32
  %5 = arith.cmpi slt, %u, %c7 : i64
  tt.store %m, %5 : !tt.ptr<i1>
  // CHECK: arith.cmpi uge, %arg0, %[[C7]] : i32
  %6 = arith.cmpi sge, %u, %c7 : i64
  tt.store %m, %6 : !tt.ptr<i1>
  tt.return
}

// -----

// Signed numbers keep both orders, and an unsigned division of them stays as it is.
// CHECK-LABEL: @unsigned_operations_of_signed_numbers
tt.func @unsigned_operations_of_signed_numbers(%n: i32, %p: !tt.ptr<i64>, %m: !tt.ptr<i1>) {
  %s = arith.extsi %n : i32 to i64
  %c5 = arith.constant 5 : i64
  // CHECK: arith.divui %{{.*}} : i64
  %0 = arith.divui %s, %c5 : i64
  tt.store %p, %0 : !tt.ptr<i64>
  // CHECK: arith.remui %{{.*}} : i64
  %1 = arith.remui %s, %c5 : i64
  tt.store %p, %1 : !tt.ptr<i64>
  // CHECK: arith.shrui %{{.*}} : i64
  %2 = arith.shrui %s, %c5 : i64
  tt.store %p, %2 : !tt.ptr<i64>
  // CHECK: %[[MAX:.*]] = arith.maxui %arg0, %{{.*}} : i32
  // CHECK: arith.extsi %[[MAX]]
  %3 = arith.maxui %s, %c5 : i64
  tt.store %p, %3 : !tt.ptr<i64>
  // CHECK: arith.cmpi ult, %arg0, %{{.*}} : i32
  %4 = arith.cmpi ult, %s, %c5 : i64
  tt.store %m, %4 : !tt.ptr<i1>
  // CHECK: arith.divsi %arg0, %{{.*}} : i32
  %5 = arith.divsi %s, %c5 : i64
  tt.store %p, %5 : !tt.ptr<i64>
  // CHECK: arith.shrsi %arg0, %{{.*}} : i32
  %6 = arith.shrsi %s, %c5 : i64
  tt.store %p, %6 : !tt.ptr<i64>
  tt.return
}

// -----

// Signed and unsigned numbers together have no 32-bit order.
// CHECK-LABEL: @mixed
tt.func @mixed(%a: i32, %b: i32, %p: !tt.ptr<i64>, %m: !tt.ptr<i1>) {
  %s = arith.extsi %a : i32 to i64
  %u = arith.extui %b : i32 to i64
  // CHECK: arith.maxsi %{{.*}} : i64
  %0 = arith.maxsi %s, %u : i64
  tt.store %p, %0 : !tt.ptr<i64>
  // CHECK: arith.cmpi slt, %{{.*}} : i64
  %1 = arith.cmpi slt, %s, %u : i64
  tt.store %m, %1 : !tt.ptr<i1>
  // CHECK: arith.cmpi eq, %{{.*}} : i64
  %2 = arith.cmpi eq, %s, %u : i64
  tt.store %m, %2 : !tt.ptr<i1>
  // CHECK: arith.addi %{{.*}} : i64
  %3 = arith.addi %s, %u : i64
  tt.store %p, %3 : !tt.ptr<i64>
  // CHECK: arith.divsi %{{.*}} : i64
  %4 = arith.divsi %s, %u : i64
  tt.store %p, %4 : !tt.ptr<i64>
  tt.return
}

// -----

// A shift by 32 and more is no shift of 32 bits.
// CHECK-LABEL: @amounts
tt.func @amounts(%n: i32, %k: i32, %p: !tt.ptr<i64>) {
  %u = arith.extui %n : i32 to i64
  %amount = arith.extui %k : i32 to i64
  %c31 = arith.constant 31 : i64
  %c32 = arith.constant 32 : i64
  %c63 = arith.constant 63 : i64
  // CHECK: arith.shrui %{{.*}} : i32
  %0 = arith.shrui %u, %c31 : i64
  tt.store %p, %0 : !tt.ptr<i64>
  // CHECK: arith.shrui %{{.*}} : i64
  %1 = arith.shrui %u, %c32 : i64
  tt.store %p, %1 : !tt.ptr<i64>
  // CHECK: arith.shrsi %{{.*}} : i64
  %2 = arith.shrsi %u, %c63 : i64
  tt.store %p, %2 : !tt.ptr<i64>
  // CHECK: arith.andi %{{.*}} : i32
  // CHECK: arith.shrui %{{.*}} : i64
  %m63 = arith.andi %amount, %c63 : i64
  %3 = arith.shrui %u, %m63 : i64
  tt.store %p, %3 : !tt.ptr<i64>
  // CHECK: arith.andi %{{.*}} : i32
  // CHECK: arith.shrui %{{.*}} : i32
  %m31 = arith.andi %amount, %c31 : i64
  %4 = arith.shrui %u, %m31 : i64
  tt.store %p, %4 : !tt.ptr<i64>
  // CHECK: arith.shli %{{.*}} : i64
  %5 = arith.shli %u, %c31 : i64
  tt.store %p, %5 : !tt.ptr<i64>
  tt.return
}

// -----

// The least number by -1 does not fit; its remainder would overflow.
// CHECK-LABEL: @least_by_minus_one
tt.func @least_by_minus_one(%a: i32, %b: i32, %p: !tt.ptr<i64>) {
  %x = arith.extsi %a : i32 to i64
  %y0 = arith.extsi %b : i32 to i64
  %least = arith.constant -5 : i64
  %greatest = arith.constant -1 : i64
  %y1 = arith.maxsi %y0, %least : i64
  %y = arith.minsi %y1, %greatest : i64
  // CHECK: arith.divsi %{{.*}} : i64
  %0 = arith.divsi %x, %y : i64
  tt.store %p, %0 : !tt.ptr<i64>
  // CHECK: arith.remsi %{{.*}} : i64
  %1 = arith.remsi %x, %y : i64
  tt.store %p, %1 : !tt.ptr<i64>
  tt.return
}

// -----

// Sums and products fit or not by their result; a 64-bit promise about overflow says nothing of 32 bits.
// CHECK-LABEL: @modular
tt.func @modular(%n: i32, %p: !tt.ptr<i64>) {
  %c255 = arith.constant 255 : i64
  %c3 = arith.constant 3 : i64
  %s = arith.extsi %n : i32 to i64
  %small = arith.andi %s, %c255 : i64
  // CHECK: arith.muli %{{.*}} : i32
  %0 = arith.muli %small, %c255 overflow<nsw, nuw> : i64
  tt.store %p, %0 : !tt.ptr<i64>
  // CHECK: %[[SUB:.*]] = arith.subi %{{.*}} : i32
  // CHECK: arith.extsi %[[SUB]]
  %1 = arith.subi %small, %c255 : i64
  tt.store %p, %1 : !tt.ptr<i64>
  // CHECK: arith.muli %{{.*}} : i64
  %2 = arith.muli %s, %c3 overflow<nsw> : i64
  tt.store %p, %2 : !tt.ptr<i64>
  // CHECK: arith.addi %{{.*}} : i64
  %3 = arith.addi %s, %c3 : i64
  tt.store %p, %3 : !tt.ptr<i64>
  tt.return
}

// -----

// What a loop with unsigned bounds counts may be any unsigned number.
// CHECK-LABEL: @unsigned_loop
tt.func @unsigned_loop(%n: i64, %p: !tt.ptr<i64>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c100 = arith.constant 100 : i64
  %bound = arith.minui %n, %c100 : i64
  // CHECK: scf.for unsigned
  scf.for unsigned %i = %c0 to %n step %c1 : i64 {
    // CHECK: arith.divsi %{{.*}} : i64
    %0 = arith.divsi %i, %c100 : i64
    tt.store %p, %0 : !tt.ptr<i64>
  }
  tt.return
}
