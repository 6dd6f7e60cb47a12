// RUN: triton-metal-opt %s --msl-legalize-divisions | FileCheck %s

// Numbers that are never negative are divided without a sign.
// CHECK-LABEL: msl.kernel @unsigned
msl.kernel @unsigned(%y: !msl.ptr<i32, device>, %n: i32) threads 128 {
  %lane = msl.lane : i32
  %c5 = arith.constant 5 : i32
  %c8 = arith.constant 8 : i32
  // CHECK: %[[LANE:.*]] = msl.lane
  // CHECK: arith.divui %[[LANE]], %c5
  // CHECK: arith.remui %[[LANE]], %c5
  // CHECK: arith.andi %[[LANE]], %c7
  %0 = arith.divsi %lane, %c5 : i32
  %1 = arith.remsi %lane, %c5 : i32
  %2 = arith.remsi %lane, %c8 : i32
  // Nothing is known of n: a division is as in C++.
  // CHECK: arith.divsi %{{.*}}, %c5
  %3 = arith.divsi %n, %c5 : i32
  msl.store %0, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.store %1, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.store %2, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.store %3, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.return
}

// Metal leaves the remainder of a negative number undefined.
// CHECK-LABEL: msl.kernel @signed
// CHECK-SAME: (%{{.*}}, %[[N:.*]]: i32, %[[M:.*]]: i32)
msl.kernel @signed(%y: !msl.ptr<i32, device>, %n: i32, %m: i32) threads 32 {
  %lane = msl.lane : i32
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant -3 : i32
  // CHECK: %[[QUOTIENT:.*]] = arith.divsi %[[N]], %[[C3:.*]] : i32
  // CHECK: %[[PRODUCT:.*]] = arith.muli %[[QUOTIENT]], %[[C3]] overflow<nsw> : i32
  // CHECK: %[[REST:.*]] = arith.subi %[[N]], %[[PRODUCT]] overflow<nsw> : i32
  // CHECK: msl.store %[[REST]]
  %0 = arith.remsi %n, %c3 : i32
  msl.store %0, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  // The dividend is not the least number, so that nothing overflows.
  // CHECK: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK: %[[DIVISOR:.*]] = arith.maxui %[[M]], %[[ONE]] : i32
  // CHECK: %[[QUOTIENT2:.*]] = arith.divsi %{{.*}}, %[[DIVISOR]] : i32
  // CHECK: arith.muli %[[QUOTIENT2]], %[[DIVISOR]] overflow<nsw> : i32
  // CHECK: arith.subi %{{.*}}, %{{.*}} overflow<nsw> : i32
  %1 = arith.remsi %lane, %m : i32
  msl.store %1, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  // -2^31 % -1: what overflows wraps.
  // CHECK: %[[DIVISOR3:.*]] = arith.maxui
  // CHECK: %[[QUOTIENT3:.*]] = arith.divsi %[[N]], %[[DIVISOR3]] : i32
  // CHECK: %[[PRODUCT3:.*]] = arith.muli %[[QUOTIENT3]], %[[DIVISOR3]] : i32
  // CHECK: arith.subi %[[N]], %[[PRODUCT3]] : i32
  %least = arith.remsi %n, %m : i32
  msl.store %least, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  // Whether a number is even does not depend on its sign.
  // CHECK: %[[PARITY:.*]] = arith.andi %[[N]]
  // CHECK: arith.cmpi eq, %[[PARITY]]
  %c2 = arith.constant 2 : i32
  %2 = arith.remsi %n, %c2 : i32
  %3 = arith.cmpi eq, %2, %c0 : i32
  %4 = arith.extui %3 : i1 to i32
  msl.store %4, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.return
}

// One division gives a quotient and a remainder, whichever comes first. The divisor is the same for both.
// CHECK-LABEL: msl.kernel @both
// CHECK-SAME: (%{{.*}}, %[[N:.*]]: i32, %[[M:.*]]: i32)
// CHECK: %[[DIVISOR:.*]] = arith.maxui %[[M]], %{{.*}} : i32
// CHECK: %[[QUOTIENT:.*]] = arith.divsi %[[N]], %[[DIVISOR]] : i32
// CHECK: msl.store %[[QUOTIENT]]
// CHECK: %[[PRODUCT:.*]] = arith.muli %[[QUOTIENT]], %[[DIVISOR]] : i32
// CHECK: %[[REST:.*]] = arith.subi %[[N]], %[[PRODUCT]] : i32
// CHECK: msl.store %[[REST]]
// CHECK: %[[OTHER:.*]] = arith.maxui %[[N]], %{{.*}} : i32
// CHECK: %[[SECOND:.*]] = arith.divsi %[[M]], %[[OTHER]] : i32
// CHECK-NOT: arith.divsi
// CHECK: msl.store %[[SECOND]]
// CHECK: msl.return
msl.kernel @both(%y: !msl.ptr<i32, device>, %n: i32, %m: i32) threads 32 {
  %lane = msl.lane : i32
  %0 = arith.divsi %n, %m : i32
  msl.store %0, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  %1 = arith.remsi %n, %m : i32
  msl.store %1, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  %2 = arith.remsi %m, %n : i32
  msl.store %2, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  %3 = arith.divsi %m, %n : i32
  msl.store %3, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.return
}

// The remainder of a quotient: the remainder comes first.
// CHECK-LABEL: msl.kernel @quotients
// CHECK-SAME: (%{{.*}}, %[[N:.*]]: i32)
msl.kernel @quotients(%y: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %lane = msl.lane : i32
  %c6 = arith.constant 6 : i32
  %c10 = arith.constant 10 : i32
  %c16 = arith.constant 16 : i32
  %c65536 = arith.constant 65536 : i32
  // CHECK: %[[REST:.*]] = arith.remui %[[N]], %c393216
  // CHECK: arith.divui %[[REST]], %c65536
  %0 = arith.divui %n, %c65536 : i32
  %1 = arith.remui %0, %c6 : i32
  // CHECK: %[[SECOND:.*]] = arith.remui %[[N]], %c393216
  // CHECK: arith.divui %[[SECOND]], %c65536
  %2 = arith.shrui %n, %c16 : i32
  %3 = arith.remui %2, %c6 : i32
  // Twice: n / 10 / 65536 % 6, and 10 * 65536 * 6 fits into 32 bits.
  // CHECK: %[[ALL:.*]] = arith.remui %[[N]], %c3932160
  // CHECK: %[[PART:.*]] = arith.divui %[[ALL]], %c10
  // CHECK: arith.divui %[[PART]], %c65536
  %4 = arith.divui %n, %c10 : i32
  %5 = arith.divui %4, %c65536 : i32
  %6 = arith.remui %5, %c6 : i32
  // No quotient is as large as the divisor.
  // CHECK: %[[QUOTIENT:.*]] = arith.divui %[[N]], %c65536
  // CHECK: msl.store %[[QUOTIENT]]
  %c70001 = arith.constant 70001 : i32
  %7 = arith.divui %n, %c65536 : i32
  %8 = arith.remui %7, %c70001 : i32
  msl.store %8, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.store %1, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.store %3, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.store %6, %y[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.return
}

// 64-bit divisions of numbers that fit into 32 bits.
// CHECK-LABEL: msl.kernel @narrow
// CHECK-SAME: (%{{.*}}, %[[N:.*]]: i32, %[[M:.*]]: i32, %[[W:.*]]: i64)
msl.kernel @narrow(%y: !msl.ptr<i64, device>, %n: i32, %m: i32, %w: i64) threads 32 {
  %lane = msl.lane : i32
  %a = arith.extui %n : i32 to i64
  %b = arith.extui %m : i32 to i64
  // CHECK: %[[REST:.*]] = arith.remui %[[N]], %[[M]] : i32
  // CHECK: arith.extui %[[REST]] : i32 to i64
  %0 = arith.remui %a, %b : i64
  // The product may be anything.
  // CHECK: arith.remui %{{.*}}, %{{.*}} : i64
  %c = arith.muli %a, %b : i64
  %1 = arith.remui %c, %b : i64
  // CHECK: %[[LOW:.*]] = arith.trunci %{{.*}} : i64 to i32
  // CHECK: arith.divui %[[LOW]], %{{.*}} : i32
  %mask = arith.constant 0xffffffff : i64
  %c7 = arith.constant 7 : i64
  %d = arith.andi %w, %mask : i64
  %2 = arith.divui %d, %c7 : i64
  // -2^31 / -1 leaves 32 bits, but the magnitudes are unsigned numbers of 32 bits.
  // CHECK: %[[UP:.*]] = arith.divui %{{.*}}, %{{.*}} : i32
  // CHECK: %[[SIGNS:.*]] = arith.xori %[[N]], %[[M]] : i32
  // CHECK: %[[DIFFER:.*]] = arith.cmpi slt, %[[SIGNS]], %{{.*}} : i32
  // CHECK: %[[WIDE:.*]] = arith.extui %[[UP]] : i32 to i64
  // CHECK: %[[MINUS:.*]] = arith.subi %{{.*}}, %[[WIDE]] : i64
  // CHECK: arith.select %[[DIFFER]], %[[MINUS]], %[[WIDE]] : i64
  %e = arith.extsi %n : i32 to i64
  %f = arith.extsi %m : i32 to i64
  %3 = arith.divsi %e, %f : i64
  // The remainder of a division by zero is 0: the divisor is 1 then.
  // CHECK: %[[BY:.*]] = arith.maxui %[[M]], %{{.*}} : i32
  // CHECK: %[[TIMES:.*]] = arith.divui %{{.*}}, %{{.*}} : i32
  // CHECK: %[[PRODUCT:.*]] = arith.muli %{{.*}}, %[[BY]] : i32
  // CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[PRODUCT]] : i32
  // CHECK: arith.extsi %[[LEFT]] : i32 to i64
  %r = arith.remsi %e, %f : i64
  msl.store %r, %y[%lane] : i64, !msl.ptr<i64, device>, i32
  // By 3, nothing leaves 32 bits.
  // CHECK: arith.divsi %[[N]], %{{.*}} : i32
  %c3_i64 = arith.constant 3 : i64
  %q3 = arith.divsi %e, %c3_i64 : i64
  msl.store %q3, %y[%lane] : i64, !msl.ptr<i64, device>, i32
  msl.store %0, %y[%lane] : i64, !msl.ptr<i64, device>, i32
  msl.store %1, %y[%lane] : i64, !msl.ptr<i64, device>, i32
  msl.store %2, %y[%lane] : i64, !msl.ptr<i64, device>, i32
  msl.store %3, %y[%lane] : i64, !msl.ptr<i64, device>, i32
  msl.return
}
