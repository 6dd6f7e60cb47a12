// RUN: triton-metal-opt %s --msl-bound-loops --split-input-file | FileCheck %s

// From 0 up: counted without a sign.
// CHECK-LABEL: @from_zero
// CHECK: %[[N:.*]] = arith.maxsi %arg0, %{{.*}} : i32
// CHECK: scf.for unsigned %{{.*}} = %c0_i32 to %[[N]] step %c32_i32
msl.kernel @from_zero(%n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  scf.for %k = %c0 to %n step %c32 : i32 {
    msl.barrier
  }
  msl.return
}

// -----

// A program's index is not negative, and neither is this bound. The step is a number of the caller's.
// CHECK-LABEL: @from_program
// CHECK-NOT: arith.maxsi
// CHECK: scf.for unsigned %{{.*}} = %{{.*}} to %{{.*}} step %arg1
msl.kernel @from_program(%n: i32, %step: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %pid = msl.program_id 0 : i32
  %upper = arith.shrui %n, %c1 : i32
  scf.for %k = %pid to %upper step %step : i32 {
    msl.barrier
  }
  msl.return
}

// -----

// CHECK-LABEL: @from_anywhere
// CHECK: %[[MOST:.*]] = arith.subi %c9223372036854775807_i64, %c5_i64
// CHECK: scf.while (%[[K:.*]] = %arg0, %[[SUM:.*]] = %arg0)
// CHECK:   %[[LESS:.*]] = arith.cmpi slt, %[[K]], %arg1
// CHECK:   scf.condition(%[[LESS]]) %[[K]], %[[SUM]]
// CHECK: ^bb0(%[[K:.*]]: i64, %[[SUM:.*]]: i64):
// CHECK:   %[[NEW:.*]] = arith.xori %[[SUM]], %[[K]]
// CHECK:   %[[LAST:.*]] = arith.minsi %[[K]], %[[MOST]]
// CHECK:   %[[NEXT:.*]] = arith.addi %[[LAST]], %c5_i64
// CHECK:   scf.yield %[[NEXT]], %[[NEW]]
msl.kernel @from_anywhere(%lower: i64, %upper: i64, %out: !msl.ptr<i64, device>) threads 32 {
  %c5 = arith.constant 5 : i64
  %r = scf.for %k = %lower to %upper step %c5 iter_args(%sum = %lower) -> (i64) : i64 {
    %new = arith.xori %sum, %k : i64
    scf.yield %new : i64
  }
  %c0 = arith.constant 0 : i32
  msl.write %r, %out[%c0 : i32] : i64, !msl.ptr<i64, device>
  msl.return
}

// -----

// CHECK-LABEL: @without_sign
// CHECK: scf.while
// CHECK: arith.cmpi ult
// CHECK: arith.minui
msl.kernel @without_sign(%lower: i16, %upper: i16) threads 32 {
  %c5 = arith.constant 5 : i16
  scf.for unsigned %k = %lower to %upper step %c5 : i16 {
    msl.barrier
  }
  msl.return
}

// -----

// No step reaches the largest number.
// CHECK-LABEL: @cannot_wrap
// CHECK-NOT: unsigned
// CHECK-NOT: scf.while
// CHECK: msl.return
msl.kernel @cannot_wrap(%lower: i32, %upper: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  %c1000 = arith.constant 1000 : i32
  %most = arith.constant 2147483643 : i32
  scf.for %k = %lower to %upper step %c1 : i32 {
    msl.barrier
  }
  scf.for %k = %lower to %most step %c5 : i32 {
    msl.barrier
  }
  %limited = arith.minsi %upper, %c1000 : i32
  scf.for %k = %c0 to %limited step %c5 : i32 {
    msl.barrier
  }
  scf.for %k = %lower to %limited step %c5 : i32 {
    msl.barrier
  }
  msl.return
}
