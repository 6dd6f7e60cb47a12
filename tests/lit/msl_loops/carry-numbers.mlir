// RUN: triton-metal-opt %s --split-input-file --msl-carry-numbers | FileCheck %s

// Offsets that a loop moves by one number are a number that it carries; so they are after the loop.
// CHECK-LABEL: msl.kernel @moving
// CHECK:       %[[V0:.*]] = scf.for %[[ARG2:.*]] = %c0_i32 to %[[ARG1:.*]] step %c1_i32 iter_args(%[[ARG3:.*]] = %c0_i32{{[_0-9]*}}) -> (i32)  : i32 {
// CHECK-NEXT:    %[[V3:.*]] = msl.splat %[[ARG3]] : vector<8xi32>
// CHECK-NEXT:    %[[V4:.*]] = arith.addi %{{.*}}, %[[V3]] : vector<8xi32>
// CHECK-NEXT:    msl.store %{{.*}}, %[[ARG0:.*]][%[[V4]]] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK:         %[[V5:.*]] = arith.addi %[[ARG3]], %c64_i32 : i32
// CHECK-NEXT:    scf.yield %[[V5]] : i32
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V1:.*]] = msl.splat %[[V0]] : vector<8xi32>
// CHECK-NEXT:  %[[V2:.*]] = arith.addi %{{.*}}, %[[V1]] : vector<8xi32>
// CHECK-NEXT:  msl.store %{{.*}}, %[[ARG0]][%[[V2]]] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
msl.kernel @moving(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %step = arith.constant dense<64> : vector<8xi32>
  %v = arith.constant dense<1.0> : vector<8xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%at = %o) -> (vector<8xi32>) : i32 {
    msl.store %v, %x[%at] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
    %next = arith.addi %at, %step : vector<8xi32>
    scf.yield %next : vector<8xi32>
  }
  msl.store %v, %x[%r] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// -----

// What the inner loop adds up, the outer loop adds up too.
// CHECK-LABEL: msl.kernel @nested
// CHECK:       %[[V0:.*]] = msl.splat %[[ARG1:.*]] : vector<8xi32>
// CHECK:       %[[V1:.*]] = scf.for %[[ARG2:.*]] = %c0_i32 to %[[ARG1]] step %c1_i32 iter_args(%[[ARG3:.*]] = %c0_i32{{[_0-9]*}}) -> (i32)  : i32 {
// CHECK-NEXT:    %[[V2:.*]] = msl.splat %[[ARG3]] : vector<8xi32>
// CHECK-NEXT:    %[[V3:.*]] = arith.addi %{{.*}}, %[[V2]] : vector<8xi32>
// CHECK:         %[[V4:.*]] = scf.for %[[ARG4:.*]] = %c0_i32 to %[[ARG1]] step %c1_i32 iter_args(%[[ARG5:.*]] = %c0_i32{{[_0-9]*}}) -> (i32)  : i32 {
// CHECK-NEXT:      %[[V8:.*]] = msl.splat %[[ARG5]] : vector<8xi32>
// CHECK-NEXT:      %[[V9:.*]] = arith.addi %[[V3]], %[[V8]] : vector<8xi32>
// CHECK-NEXT:      %[[V10:.*]] = arith.addi %[[ARG5]], %[[ARG1]] : i32
// CHECK-NEXT:      scf.yield %[[V10]] : i32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[V5:.*]] = msl.splat %[[V4]] : vector<8xi32>
// CHECK-NEXT:    %[[V6:.*]] = arith.addi %[[V3]], %[[V5]] : vector<8xi32>
// CHECK-NEXT:    msl.store %{{.*}}, %[[ARG0:.*]][%[[V6]]] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:    %[[V7:.*]] = arith.addi %[[ARG3]], %[[V4]] : i32
// CHECK-NEXT:    scf.yield %[[V7]] : i32
// CHECK-NEXT:  }
msl.kernel @nested(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %ns = msl.splat %n : vector<8xi32>
  %v = arith.constant dense<1.0> : vector<8xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%at = %o) -> (vector<8xi32>) : i32 {
    %inner = scf.for %j = %zero to %n step %one iter_args(%in = %at) -> (vector<8xi32>) : i32 {
      %next = arith.addi %ns, %in : vector<8xi32>
      scf.yield %next : vector<8xi32>
    }
    msl.store %v, %x[%inner] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
    scf.yield %inner : vector<8xi32>
  }
  msl.return
}

// -----

// Another tile added to it is carried as it is.
// CHECK-LABEL: msl.kernel @tile
// CHECK:       %[[V0:.*]] = scf.for %[[ARG2:.*]] = %c0_i32 to %[[ARG1:.*]] step %c1_i32 iter_args(%[[ARG3:.*]] = %{{.*}}) -> (vector<4xi32>)  : i32 {
// CHECK-NEXT:    msl.store %{{.*}}, %[[ARG0:.*]][%[[ARG3]]] : vector<4xf32>, <f32, device>, vector<4xi32>
// CHECK-NEXT:    %[[V1:.*]] = arith.addi %[[ARG3]], %{{.*}} : vector<4xi32>
// CHECK-NEXT:    scf.yield %[[V1]] : vector<4xi32>
// CHECK-NEXT:  }
msl.kernel @tile(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %v = arith.constant dense<1.0> : vector<4xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%at = %o) -> (vector<4xi32>) : i32 {
    msl.store %v, %x[%at] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
    %next = arith.addi %at, %o : vector<4xi32>
    scf.yield %next : vector<4xi32>
  }
  msl.return
}
