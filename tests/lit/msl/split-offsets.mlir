// RUN: triton-metal-opt %s --msl-split-offsets | FileCheck %s

// In the branch, `row + 62` and `column + 62` fit: what is the same in every step is added before the steps.
// CHECK-LABEL: msl.kernel @inside
// CHECK-SAME: (%[[X:.*]]: !msl.ptr<f16, device>
msl.kernel @inside(%x: !msl.ptr<f16, device>, %n: i32, %column: i32, %stride: i32) threads 32 {
  %c8 = arith.constant 8 : i32
  %c63 = arith.constant 63 : i64
  %v = arith.constant 0.0 : f16
  %lane = msl.lane : i32
  %wide = arith.extsi %column : i32 to i64
  %last = arith.addi %wide, %c63 : i64
  %end = arith.extsi %n : i32 to i64
  %isInside = arith.cmpi slt, %last, %end : i64
  // CHECK: scf.if
  scf.if %isInside {
    // CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} overflow<nsw> : i32
    // CHECK: %[[P:.*]] = msl.ptr_add %[[X]], %[[SUM]] : <f16, device>, i32
    // CHECK: msl.unroll %[[I:.*]] = 0 to 2
    // CHECK:   msl.unroll %[[J:.*]] = 0 to 4
    // CHECK:     %[[ROW:.*]] = msl.ptr_add %[[P]], %{{.*}} : <f16, device>, i32
    // CHECK:     %[[EIGHTS:.*]] = arith.muli %[[J]], %c8_i32 : i32
    // CHECK:     msl.write %{{.*}}, %[[ROW]][%[[EIGHTS]] : i32]
    msl.unroll %i = 0 to 2 {
      msl.unroll %j = 0 to 4 {
        %mine = arith.addi %i, %lane : i32
        %far = arith.muli %mine, %stride : i32
        %row = msl.ptr_add %x, %far : !msl.ptr<f16, device>, i32
        %eights = arith.muli %j, %c8 : i32
        %place = arith.addi %lane, %eights : i32
        %offset = arith.addi %column, %place : i32
        msl.write %v, %row[%offset : i32] : f16, !msl.ptr<f16, device>
      }
    }
  // Outside of it, the sum may wrap around.
  // CHECK: } else {
  } else {
    // CHECK-NOT: msl.ptr_add
    // CHECK: %[[PLACE:.*]] = arith.addi %arg{{.*}}, %{{.*}} : i32
    // CHECK: msl.write %{{.*}}, %[[X]][%[[PLACE]] : i32]
    msl.unroll %j = 0 to 4 {
      %eights = arith.muli %j, %c8 : i32
      %place = arith.addi %lane, %eights : i32
      %offset = arith.addi %column, %place : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  msl.return
}

// The number may be the least one, or what a branch says of it may not be enough.
// CHECK-LABEL: msl.kernel @edges
msl.kernel @edges(%x: !msl.ptr<f16, device>, %n: i32, %m: i32) threads 32 {
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %most = arith.constant 2147483644 : i32
  %v = arith.constant 0.0 : f16
  %fits = arith.cmpi sle, %n, %most : i32
  %less = arith.cmpi slt, %n, %m : i32
  // 2,147,483,644 + 3 is the greatest number.
  // CHECK: scf.if
  // CHECK: msl.ptr_add
  scf.if %fits {
    msl.unroll %j = 0 to 4 {
      %offset = arith.addi %n, %j : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  // CHECK: scf.if
  // CHECK-NOT: msl.ptr_add
  scf.if %fits {
    msl.unroll %j = 0 to 5 {
      %offset = arith.addi %n, %j : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  // CHECK: scf.if
  // CHECK-NOT: msl.ptr_add
  scf.if %less {
    msl.unroll %j = 0 to 4 {
      %offset = arith.addi %n, %j : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  // Bytes keep one offset, threadgroup memory keeps its sums, and two steps keep theirs.
  // CHECK: scf.if
  // CHECK-NOT: msl.ptr_add
  // CHECK: msl.return
  scf.if %fits {
    msl.unroll %j = 0 to 2 {
      %offset = arith.addi %n, %j : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  msl.return
}

// A thread's offset stays beside a pointer that all threads have.
// CHECK-LABEL: msl.kernel @shared
// CHECK-NOT: msl.ptr_add
// CHECK-LABEL: msl.kernel @others
msl.kernel @shared(%x: !msl.ptr<f16, device>, %v: f16) threads 32 {
  %c8 = arith.constant 8 : i32
  %lane = msl.lane : i32
  msl.unroll %j = 0 to 8 {
    %eights = arith.muli %j, %c8 : i32
    %offset = arith.addi %lane, %eights : i32
    msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
  }
  msl.return
}

// Single bytes keep one offset.
// CHECK-NOT: msl.ptr_add
msl.kernel @others(%x: !msl.ptr<i8, device>, %v: i8) threads 32 {
  %c8 = arith.constant 8 : i32
  %lane = msl.lane : i32
  msl.unroll %j = 0 to 8 {
    %eights = arith.muli %j, %c8 : i32
    %offset = arith.addi %lane, %eights : i32
    msl.write %v, %x[%offset : i32] : i8, !msl.ptr<i8, device>
  }
  msl.return
}
