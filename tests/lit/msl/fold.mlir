// RUN: triton-metal-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: msl.kernel @folds
// CHECK-DAG:   %[[C:.*]] = arith.constant dense<[4, 6, 5, 7]> : vector<4xi32>
// CHECK-DAG:   %[[SEVEN:.*]] = arith.constant dense<7> : vector<4xi32>
// CHECK:       msl.store %[[C]], %arg0[%[[SEVEN]]]
// CHECK:       msl.store %[[C]], %arg0[%[[C]]]
// CHECK:       msl.return
msl.kernel @folds(%x: !msl.ptr<i32, device>) threads 32 {
  %seven = arith.constant 7 : i32
  %zero = arith.constant 0 : i32
  %splat = msl.splat %seven : vector<4xi32>
  %c = arith.constant dense<[4, 5, 6, 7]> : vector<4xi32>
  %p = msl.permute_registers %c {bases = array<i64: 2, 1>} : vector<4xi32> -> vector<4xi32>
  %same = msl.permute_registers %p {bases = array<i64: 1, 2>} : vector<4xi32> -> vector<4xi32>
  %at = msl.ptr_add %x, %zero : !msl.ptr<i32, device>, i32
  msl.store %p, %at[%splat] : vector<4xi32>, !msl.ptr<i32, device>, vector<4xi32>
  msl.store %same, %x[%p] : vector<4xi32>, !msl.ptr<i32, device>, vector<4xi32>
  msl.return
}
