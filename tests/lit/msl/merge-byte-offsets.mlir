// RUN: triton-metal-opt %s --msl-merge-byte-offsets | FileCheck %s

// CHECK-LABEL: msl.kernel @rows
// CHECK-SAME: (%[[X:.*]]: !msl.ptr<i8, device>, %{{.*}}: !msl.ptr<i32, device>, %[[N:.*]]: i32)
msl.kernel @rows(%x: !msl.ptr<i8, device>, %y: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %lane = msl.lane : i32
  %c3 = arith.constant 3 : i32
  // CHECK-NOT: msl.ptr_add %[[X]]
  %row = msl.ptr_add %x, %n : !msl.ptr<i8, device>, i32
  %part = msl.ptr_add %row, %c3 : !msl.ptr<i8, device>, i32
  // The lane and the constant fit into 32 bits together, the row may be anywhere.
  // CHECK: %[[SMALL:.*]] = arith.addi %{{.*}}, %c3{{.*}} overflow<nsw> : i32
  // CHECK: %[[WIDE:.*]] = arith.extsi %[[N]] : i32 to i64
  // CHECK: %[[NARROW:.*]] = arith.extsi %[[SMALL]] : i32 to i64
  // CHECK: %[[SUM:.*]] = arith.addi %[[WIDE]], %[[NARROW]] overflow<nsw> : i64
  // CHECK: msl.read %[[X]][%[[SUM]] : i64]
  %v = msl.read %part[%lane : i32] : !msl.ptr<i8, device> -> i8
  // CHECK: %[[SUM2:.*]] = arith.addi
  // CHECK: msl.write %{{.*}}, %[[X]]
  msl.write %v, %row[%lane : i32] : i8, !msl.ptr<i8, device>
  // Wider elements, and wider accesses, stay as they are.
  // CHECK: %[[ROW:.*]] = msl.ptr_add %{{.*}}, %[[N]] : <i32, device>, i32
  // CHECK: msl.read %[[ROW]][%{{.*}} : i32]
  %other = msl.ptr_add %y, %n : !msl.ptr<i32, device>, i32
  %w = msl.read %other[%lane : i32] : !msl.ptr<i32, device> -> i32
  msl.write %w, %y[%lane : i32] : i32, !msl.ptr<i32, device>
  msl.return
}

// Truth values are bytes in memory.
// CHECK-LABEL: msl.kernel @cast
// CHECK-SAME: (%[[X:.*]]: !msl.ptr<i1, device>
msl.kernel @cast(%x: !msl.ptr<i1, device>, %n: i32) threads 32 {
  %lane = msl.lane : i32
  // CHECK-NOT: msl.ptr_add
  // CHECK: %[[BYTES:.*]] = msl.ptr_cast %[[X]]
  // CHECK: msl.read %[[BYTES]][%{{.*}} : i64]
  %row = msl.ptr_add %x, %n : !msl.ptr<i1, device>, i32
  %bytes = msl.ptr_cast %row : !msl.ptr<i1, device> -> !msl.ptr<i8, device>
  %v = msl.read %bytes[%lane : i32] : !msl.ptr<i8, device> -> i8
  msl.write %v, %bytes[%lane : i32] : i8, !msl.ptr<i8, device>
  msl.return
}
