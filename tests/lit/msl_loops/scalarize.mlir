// RUN: triton-metal-opt %s --split-input-file --msl-scalarize | FileCheck %s

// A vector of one register is a number, in loops too.
// CHECK-LABEL: msl.kernel @numbers
// CHECK:       %[[V0:.*]] = arith.addi %c3_i32, %[[ARG1:.*]] : i32
// CHECK-NEXT:  %[[V1:.*]] = scf.for %[[ARG2:.*]] = %c0_i32 to %[[ARG1]] step %c1_i32 iter_args(%[[ARG3:.*]] = %{{.*}}) -> (f32)  : i32 {
// CHECK-NEXT:    %[[V2:.*]] = msl.load %[[ARG0:.*]][%[[V0]]] : <f32, device>, i32 -> f32
// CHECK-NEXT:    %[[V3:.*]] = arith.addf %[[ARG3]], %[[V2]] : f32
// CHECK-NEXT:    scf.yield %[[V3]] : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.store %[[V1]], %[[ARG0]][%[[ARG1]]] : f32, <f32, device>, i32
msl.kernel @numbers(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<3> : vector<1xi32>
  %init = arith.constant dense<0.0> : vector<1xf32>
  %ns = msl.splat %n : vector<1xi32>
  %at = arith.addi %o, %ns : vector<1xi32>
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> (vector<1xf32>) : i32 {
    %v = msl.load %x[%at] : !msl.ptr<f32, device>, vector<1xi32> -> vector<1xf32>
    %next = arith.addf %sum, %v : vector<1xf32>
    scf.yield %next : vector<1xf32>
  }
  %e = vector.extract %r[0] : f32 from vector<1xf32>
  %u = msl.uniform %e : f32
  msl.store %u, %x[%n] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// One register of a tile is a chunk; a tile of one number is a splat.
// CHECK-LABEL: msl.kernel @tiles
// CHECK:       %[[V0:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] : <f32, device>, vector<4xi32> -> vector<4xf32>
// CHECK-NEXT:  %[[V1:.*]] = msl.chunk %[[V0]] offset 2 : vector<4xf32> -> f32
// CHECK-NEXT:  %[[V2:.*]] = msl.splat %[[V1]] : vector<4xf32>
// CHECK-NEXT:  %[[V3:.*]] = msl.chunk %[[V0]] offset 3 : vector<4xf32> -> f32
// CHECK-NEXT:  msl.store %[[V2]], %[[ARG0]][%{{.*}}] : vector<4xf32>, <f32, device>, vector<4xi32>
// CHECK-NEXT:  msl.store %[[V3]], %[[ARG0]][%[[ARG1:.*]]] : f32, <f32, device>, i32
msl.kernel @tiles(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %t = msl.load %x[%o] : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  %one = msl.permute_registers %t {bases = array<i64>, offset = 2 : i64} : vector<4xf32> -> vector<1xf32>
  %all = msl.permute_registers %one {bases = array<i64: 0, 0>} : vector<1xf32> -> vector<4xf32>
  %third = vector.extract %t[3] : f32 from vector<4xf32>
  msl.store %all, %x[%o] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.store %third, %x[%n] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
