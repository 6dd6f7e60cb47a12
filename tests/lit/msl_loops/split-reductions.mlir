// RUN: triton-metal-opt %s --split-input-file --msl-split-reductions | FileCheck %s

// The highest range first.
// CHECK-LABEL: msl.kernel @two_ranges
// CHECK:       %[[V0:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:  %[[V1:.*]] = msl.reduce_registers(%[[V0]]) bits 4 {
// CHECK-NEXT:  ^bb0(%[[ARG1:.*]]: f32, %[[ARG2:.*]]: f32):
// CHECK-NEXT:    %[[V3:.*]] = arith.addf %[[ARG1]], %[[ARG2]] : f32
// CHECK-NEXT:    msl.yield %[[V3]] : f32
// CHECK-NEXT:  } : (vector<8xf32>) -> vector<4xf32>
// CHECK-NEXT:  %[[V2:.*]] = msl.reduce_registers(%[[V1]]) bits 1 {
// CHECK-NEXT:  ^bb0(%[[ARG1]]: f32, %[[ARG2]]: f32):
// CHECK-NEXT:    %[[V3]] = arith.addf %[[ARG1]], %[[ARG2]] : f32
// CHECK-NEXT:    msl.yield %[[V3]] : f32
// CHECK-NEXT:  } : (vector<4xf32>) -> vector<2xf32>
// CHECK:       msl.store %[[V2]], %[[ARG0]][%{{.*}}] : vector<2xf32>, <f32, device>, vector<2xi32>
msl.kernel @two_ranges(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %r = msl.reduce_registers (%v) bits 5 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      msl.yield %c : f32
  } : (vector<8xf32>) -> vector<2xf32>
  %p = arith.constant dense<[0, 1]> : vector<2xi32>
  msl.store %r, %x[%p] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}

// -----

// No bits at all: the value itself.
// CHECK-LABEL: msl.kernel @no_bits
// CHECK:       %[[V0:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] : <f32, device>, vector<2xi32> -> vector<2xf32>
// CHECK-NEXT:  msl.store %[[V0]], %[[ARG0]][%{{.*}}] : vector<2xf32>, <f32, device>, vector<2xi32>
msl.kernel @no_bits(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1]> : vector<2xi32>
  %v = msl.load %x[%o] : !msl.ptr<f32, device>, vector<2xi32> -> vector<2xf32>
  %r = msl.reduce_registers (%v) bits 0 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      msl.yield %c : f32
  } : (vector<2xf32>) -> vector<2xf32>
  msl.store %r, %x[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}
