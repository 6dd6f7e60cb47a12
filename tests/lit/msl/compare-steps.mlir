// RUN: triton-metal-opt %s --msl-compare-steps | FileCheck %s

// A counter and a thread's place are added before the unrolled loops, scalars and vectors alike.
// CHECK-LABEL: msl.kernel @masks
// CHECK-SAME: (%[[N:.*]]: i32, %{{.*}}: !msl.ptr<i32, device>)
msl.kernel @masks(%n: i32, %x: !msl.ptr<i32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %pair = arith.constant dense<[0, 1]> : vector<2xi32>
  // CHECK: %[[LANE:.*]] = msl.lane
  %lane = msl.lane : i32
  // CHECK: scf.for %[[K:.*]] =
  scf.for %k = %c0 to %n step %c32 : i32 {
    // CHECK: %[[FIRST:.*]] = arith.addi %[[K]], %[[LANE]] : i32
    // CHECK-NEXT: msl.unroll %[[I:.*]] = 0 to 4
    msl.unroll %i = 0 to 4 {
      // CHECK: %[[PLACE:.*]] = arith.addi %[[FIRST]], %[[I]] : i32
      // CHECK: arith.cmpi slt, %[[PLACE]], %[[N]]
      %place = arith.addi %lane, %i : i32
      %index = arith.addi %k, %place : i32
      %mask = arith.cmpi slt, %index, %n : i32
      %value = arith.extui %mask : i1 to i32
      msl.write %value, %x[%k : i32] : i32, !msl.ptr<i32, device>
      // CHECK: %[[STEPS:.*]] = arith.addi %{{.*}}, %{{.*}} : vector<2xi32>
      // CHECK: %[[ALL:.*]] = msl.splat %[[FIRST]] : vector<2xi32>
      // CHECK: %[[PLACES:.*]] = arith.addi %[[ALL]], %[[STEPS]] : vector<2xi32>
      // CHECK: arith.cmpi sge, %{{.*}}, %[[PLACES]] : vector<2xi32>
      %many = msl.splat %i : vector<2xi32>
      %steps = arith.addi %many, %pair : vector<2xi32>
      %lanes = msl.splat %lane : vector<2xi32>
      %counters = msl.splat %k : vector<2xi32>
      %places = arith.addi %steps, %lanes : vector<2xi32>
      %indices = arith.addi %places, %counters : vector<2xi32>
      %last = msl.splat %n : vector<2xi32>
      %masks = arith.cmpi sge, %last, %indices : vector<2xi32>
      %values = arith.extui %masks : vector<2xi1> to vector<2xi32>
      msl.write %values, %x[%k : i32] : vector<2xi32>, !msl.ptr<i32, device>
    }
  }
  msl.return
}

// A sum that something else reads stays, and so do constants and what stands in no loop.
// CHECK-LABEL: msl.kernel @stays
msl.kernel @stays(%n: i32, %x: !msl.ptr<i32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c5 = arith.constant 5 : i32
  %c32 = arith.constant 32 : i32
  // CHECK: %[[LANE:.*]] = msl.lane
  %lane = msl.lane : i32
  // CHECK: msl.unroll
  // CHECK-NEXT: arith.addi %[[LANE]]
  msl.unroll %i = 0 to 4 {
    %place = arith.addi %lane, %i : i32
    %index = arith.addi %n, %place : i32
    %mask = arith.cmpi slt, %index, %c0 : i32
    %value = arith.extui %mask : i1 to i32
    msl.write %value, %x[%lane : i32] : i32, !msl.ptr<i32, device>
  }
  // CHECK: scf.for %[[K:.*]] =
  scf.for %k = %c0 to %n step %c32 : i32 {
    // CHECK-NEXT: msl.unroll
    // CHECK-NEXT: %[[PLACE:.*]] = arith.addi %[[LANE]]
    // CHECK-NEXT: arith.addi %[[K]], %[[PLACE]]
    msl.unroll %i = 0 to 4 {
      %place = arith.addi %lane, %i : i32
      %index = arith.addi %k, %place : i32
      %mask = arith.cmpi slt, %index, %n : i32
      %value = arith.extui %mask : i1 to i32
      msl.write %value, %x[%place : i32] : i32, !msl.ptr<i32, device>
      // CHECK: %[[FIVE:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
      // CHECK-NEXT: arith.addi %[[K]], %[[FIVE]] : i32
      %five = arith.addi %i, %c5 : i32
      %sum = arith.addi %k, %five : i32
      %below = arith.cmpi slt, %sum, %n : i32
      %number = arith.extui %below : i1 to i32
      msl.write %number, %x[%k : i32] : i32, !msl.ptr<i32, device>
    }
  }
  msl.return
}
