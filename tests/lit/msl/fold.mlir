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

// A sum of 64 bits goes to the pointer part by part, and those of 32 bits stay so; single bytes have one offset.
// CHECK-LABEL: msl.kernel @parts
// CHECK:       %[[WIDE:.*]] = msl.ptr_add %arg0, %arg4 : <f32, device>, i64
// CHECK:       %[[ROW:.*]] = msl.ptr_add %[[WIDE]], %arg2 : <f32, device>, i32
// CHECK:       %[[V:.*]] = msl.read %[[ROW]][%arg3 : i32]
// CHECK:       %[[OUT:.*]] = msl.ptr_add %arg0, %arg2 : <f32, device>, i32
// CHECK:       msl.write %[[V]], %[[OUT]][%arg3 : i32]
// CHECK:       msl.read %arg1[%{{.*}} : i64] : <i8, device>
msl.kernel @parts(%x: !msl.ptr<f32, device>, %b: !msl.ptr<i8, device>, %row: i32, %column: i32, %far: i64) threads 32 {
  %r = arith.extsi %row : i32 to i64
  %c = arith.extsi %column : i32 to i64
  %rc = arith.addi %r, %c : i64
  %fr = arith.addi %far, %r : i64
  %frc = arith.addi %fr, %c : i64
  %v = msl.read %x[%frc : i64] : !msl.ptr<f32, device> -> f32
  msl.write %v, %x[%rc : i64] : f32, !msl.ptr<f32, device>
  %w = msl.read %b[%rc : i64] : !msl.ptr<i8, device> -> i8
  msl.write %w, %b : i8, !msl.ptr<i8, device>
  msl.return
}
