// RUN: triton-metal-opt %s --msl-fold-exchanges | FileCheck %s

// CHECK-LABEL: msl.kernel @integers
// CHECK: %[[Y:.*]] = msl.permute_registers %{{.*}} {bases = array<i64: 1, 2, 4>, offset = 2 : i64} : vector<8xi32> -> vector<8xi32>
// CHECK-NEXT: msl.store %[[Y]]
msl.kernel @integers(%p: !msl.ptr<i32, device>) threads 32 {
  %i = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %x = msl.load %p[%i] {width = 4 : i32} : !msl.ptr<i32, device>, vector<8xi32> -> vector<8xi32>
  %pairs = msl.reduce_registers (%x) bits 2 {
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      msl.yield %c : i32
  } : (vector<8xi32>) -> vector<4xi32>
  %both = msl.permute_registers %pairs {bases = array<i64: 1, 0, 2>} : vector<4xi32> -> vector<8xi32>
  %y = arith.xori %both, %x : vector<8xi32>
  msl.store %y, %p[%i] {width = 4 : i32} : vector<8xi32>, !msl.ptr<i32, device>, vector<8xi32>
  msl.return
}

// Floats change places as floats.
// CHECK-LABEL: msl.kernel @floats
// CHECK: %[[X:.*]] = msl.load
// CHECK-NEXT: %[[Y:.*]] = msl.permute_registers %[[X]] {bases = array<i64: 1>, offset = 1 : i64} : vector<2xf32> -> vector<2xf32>
// CHECK-NEXT: msl.store %[[Y]]
msl.kernel @floats(%p: !msl.ptr<f32, device>) threads 32 {
  %i = arith.constant dense<[0, 1]> : vector<2xi32>
  %f = msl.load %p[%i] {width = 2 : i32} : !msl.ptr<f32, device>, vector<2xi32> -> vector<2xf32>
  %x = arith.bitcast %f : vector<2xf32> to vector<2xi32>
  %pairs = msl.reduce_registers (%x) bits 1 {
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      msl.yield %c : i32
  } : (vector<2xi32>) -> vector<1xi32>
  %both = msl.permute_registers %pairs {bases = array<i64: 0>} : vector<1xi32> -> vector<2xi32>
  %y = arith.xori %x, %both : vector<2xi32>
  %g = arith.bitcast %y : vector<2xi32> to vector<2xf32>
  msl.store %g, %p[%i] {width = 2 : i32} : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}

// A sum is no exchange, another tile's pairs are none, and neither are other registers' pairs.
// CHECK-LABEL: msl.kernel @others
// CHECK: arith.xori %{{.*}} : vector<4xi32>
// CHECK: arith.xori %{{.*}} : vector<4xi32>
// CHECK: arith.xori %{{.*}} : vector<4xi32>
msl.kernel @others(%p: !msl.ptr<i32, device>) threads 32 {
  %i = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %x = msl.load %p[%i] {width = 4 : i32} : !msl.ptr<i32, device>, vector<4xi32> -> vector<4xi32>
  %sums = msl.reduce_registers (%x) bits 1 {
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      msl.yield %c : i32
  } : (vector<4xi32>) -> vector<2xi32>
  %pairs = msl.reduce_registers (%x) bits 1 {
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      msl.yield %c : i32
  } : (vector<4xi32>) -> vector<2xi32>
  %0 = msl.permute_registers %sums {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %1 = msl.permute_registers %pairs {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %2 = msl.permute_registers %pairs {bases = array<i64: 1, 0>} : vector<2xi32> -> vector<4xi32>
  %y0 = arith.xori %x, %0 : vector<4xi32>
  %y1 = arith.xori %y0, %1 : vector<4xi32>
  %y2 = arith.xori %x, %2 : vector<4xi32>
  %y = arith.addi %y1, %y2 : vector<4xi32>
  msl.store %y, %p[%i] {width = 4 : i32} : vector<4xi32>, !msl.ptr<i32, device>, vector<4xi32>
  msl.return
}
