// RUN: triton-metal-opt %s --msl-test-positions | FileCheck %s

// Both bits are the lane's.
// CHECK-LABEL: msl.kernel @lanes
// CHECK: %[[LANE:.*]] = msl.lane : i32
// CHECK: %[[TOP:.*]] = arith.shli %[[LANE]], %c28_i32
// CHECK: %[[SIGN:.*]] = arith.shrsi %[[TOP]], %c31_i32
// CHECK: %[[DIFFERENT:.*]] = arith.xori %[[LANE]], %[[SIGN]]
// CHECK: %[[BIT:.*]] = arith.andi %[[DIFFERENT]], %c2_i32
// CHECK: %[[TEST:.*]] = arith.cmpi eq, %[[BIT]], %c0_i32
// CHECK: msl.store %[[TEST]], %arg0
msl.kernel @lanes(%x: !msl.ptr<i1, device>) threads 64 {
  %c0 = arith.constant 0 : i32
  %a = msl.thread_index lanes [0, 1, 0, 0, 0] simdgroups [0] : i32
  %b = msl.thread_index lanes [0, 0, 0, 1, 0] simdgroups [0] : i32
  %0 = arith.xori %a, %b : i32
  %1 = arith.cmpi eq, %0, %c0 : i32
  msl.store %1, %x[%c0] : i1, !msl.ptr<i1, device>, i32
  msl.return
}

// One is the SIMD-group's, and all registers ask the same.
// CHECK-LABEL: msl.kernel @simdgroups
// CHECK: %[[PLACE:.*]] = msl.thread_index lanes [1, 2, 4, 8, 16] simdgroups [32, 64] : i32
// CHECK: %[[TOP:.*]] = arith.shli %[[PLACE]], %c25_i32
// CHECK: %[[SIGN:.*]] = arith.shrsi %[[TOP]], %c31_i32
// CHECK: %[[DIFFERENT:.*]] = arith.xori %[[PLACE]], %[[SIGN]]
// CHECK: %[[BIT:.*]] = arith.andi %[[DIFFERENT]], %c16_i32
// CHECK: %[[TEST:.*]] = arith.cmpi ne, %[[BIT]], %c0_i32
// CHECK: msl.splat %[[TEST]] : vector<2xi1>
msl.kernel @simdgroups(%x: !msl.ptr<i1, device>, %i: i32) threads 128 {
  %zero = arith.constant dense<0> : vector<2xi32>
  %a = msl.thread_index lanes [0, 0, 0, 0, 1] simdgroups [0, 0] : i32
  %b = msl.thread_index lanes [0, 0, 0, 0, 0] simdgroups [0, 1] : i32
  %0 = msl.splat %a : vector<2xi32>
  %1 = msl.splat %b : vector<2xi32>
  %2 = arith.xori %0, %1 : vector<2xi32>
  %3 = arith.cmpi ne, %2, %zero : vector<2xi32>
  %4 = msl.splat %i : vector<2xi32>
  msl.store %3, %x[%4] : vector<2xi1>, !msl.ptr<i1, device>, vector<2xi32>
  msl.return
}

// More than one bit, a bit with a factor, one bit twice, and comparisons of other kinds.
// CHECK-LABEL: msl.kernel @others
// CHECK-COUNT-4: arith.xori
// CHECK-NOT: arith.shli
msl.kernel @others(%x: !msl.ptr<i1, device>, %n: i32) threads 64 {
  %c0 = arith.constant 0 : i32
  %a = msl.thread_index lanes [1, 0, 0, 0, 0] simdgroups [0] : i32
  %b = msl.thread_index lanes [0, 1, 2, 0, 0] simdgroups [0] : i32
  %c = msl.thread_index lanes [0, 2, 0, 0, 0] simdgroups [0] : i32
  %d = msl.thread_index lanes [0, 1, 0, 0, 0] simdgroups [0] : i32
  %0 = arith.xori %a, %b : i32
  %1 = arith.cmpi ne, %0, %c0 : i32
  %2 = arith.xori %a, %c : i32
  %3 = arith.cmpi ne, %2, %c0 : i32
  %4 = arith.xori %a, %a : i32
  %5 = arith.cmpi ne, %4, %c0 : i32
  %6 = arith.xori %a, %d : i32
  %7 = arith.cmpi ne, %6, %n : i32
  %8 = arith.cmpi sgt, %6, %c0 : i32
  msl.store %1, %x[%c0] : i1, !msl.ptr<i1, device>, i32
  msl.store %3, %x[%c0] : i1, !msl.ptr<i1, device>, i32
  msl.store %5, %x[%c0] : i1, !msl.ptr<i1, device>, i32
  msl.store %7, %x[%c0] : i1, !msl.ptr<i1, device>, i32
  msl.store %8, %x[%c0] : i1, !msl.ptr<i1, device>, i32
  msl.return
}
