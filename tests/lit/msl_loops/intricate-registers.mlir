// RUN: triton-metal-opt %s --msl-loops-pipeline | FileCheck %s

// Registers that are no sum of loop indices, and constants that are no multiples of them, are computed from the bits of
// the indices, so that the loop stays a loop.

// CHECK-LABEL: msl.kernel @reversed
// CHECK: msl.set
// CHECK: msl.unroll %[[I:.*]] = 0 to 8
// CHECK-NEXT: arith.xori %[[I]], %c7_i32
// CHECK: msl.write
// CHECK-NOT: msl.write
msl.kernel @reversed(%p: !msl.ptr<f32, device>, %q: !msl.ptr<f32, device>) threads 32 {
  %i = arith.constant dense<[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31]> : vector<32xi32>
  %x = msl.load %p[%i] {width = 4 : i32} : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32>
  msl.store %x, %q[%i] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  %y = msl.permute_registers %x {bases = array<i64: 1, 2, 4, 8, 16>, offset = 28 : i64} : vector<32xf32> -> vector<32xf32>
  msl.store %y, %p[%i] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  msl.return
}

// The parity of two bits, in components and over steps.
// CHECK-LABEL: msl.kernel @parity
// CHECK-DAG: arith.constant dense<[false, true, true, false]> : vector<4xi1>
// CHECK: msl.unroll %[[I:.*]] = 0 to 8
// CHECK: arith.shrui %[[I]]
// CHECK: arith.select
// CHECK-NOT: arith.select
msl.kernel @parity(%p: !msl.ptr<f32, device>) threads 32 {
  %i = arith.constant dense<[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31]> : vector<32xi32>
  %m = arith.constant dense<[0,1,1,0, 1,0,0,1, 0,1,1,0, 1,0,0,1, 1,0,0,1, 0,1,1,0, 1,0,0,1, 0,1,1,0]> : vector<32xi1>
  %x = msl.load %p[%i] {width = 4 : i32} : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32>
  %n = arith.negf %x : vector<32xf32>
  %y = arith.select %m, %x, %n : vector<32xi1>, vector<32xf32>
  msl.store %y, %p[%i] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  msl.return
}

// Decisions: all but the first register.
// CHECK-LABEL: msl.kernel @first
// CHECK: msl.unroll %{{.*}} = 0 to 8
// CHECK: msl.write
// CHECK-NOT: msl.write
msl.kernel @first(%p: !msl.ptr<f32, device>) threads 32 {
  %i = arith.constant dense<[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31]> : vector<32xi32>
  %m = arith.constant dense<[0,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1]> : vector<32xi1>
  %x = msl.load %p[%i] {width = 4 : i32} : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32>
  %n = arith.negf %x : vector<32xf32>
  %y = arith.select %m, %x, %n : vector<32xi1>, vector<32xf32>
  msl.store %y, %p[%i] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  msl.return
}
