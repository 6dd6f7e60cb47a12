// RUN: triton-metal-opt %s --msl-step-offsets | FileCheck %s

// Modulo 2^32, the first row's offset and multiples of the stride: both loops over rows share what is before the loop.
// CHECK-LABEL: msl.kernel @rows
// CHECK-SAME: (%[[X:.*]]: !msl.ptr<f16, device>, %[[N:.*]]: i32, %[[FIRST:.*]]: i32, %[[STRIDE:.*]]: i32)
// CHECK: %[[BASE:.*]] = arith.muli %[[FIRST]], %[[STRIDE]] : i32
// CHECK: %[[EIGHT:.*]] = arith.muli %[[STRIDE]], %{{.*}} : i32
// CHECK-NOT: arith.muli
// CHECK: scf.for
// CHECK:   msl.unroll %[[I:.*]] = 0 to 4
// CHECK:     %[[STEP:.*]] = arith.muli %[[I]], %[[EIGHT]] : i32
// CHECK:     %[[OFFSET:.*]] = arith.addi %[[BASE]], %[[STEP]] : i32
// CHECK:     msl.write %{{.*}}, %[[X]][%[[OFFSET]] : i32]
// CHECK: scf.for
// CHECK:   msl.unroll %[[J:.*]] = 0 to 2
// CHECK:     %[[AGAIN:.*]] = arith.muli %[[J]], %[[EIGHT]] : i32
// CHECK:     %[[ROW:.*]] = arith.addi %[[BASE]], %[[AGAIN]] : i32
// CHECK:     msl.ptr_add %[[X]], %[[ROW]] : <f16, device>, i32
msl.kernel @rows(%x: !msl.ptr<f16, device>, %n: i32, %first: i32, %stride: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c8 = arith.constant 8 : i32
  %v = arith.constant 0.0 : f16
  scf.for %k = %c0 to %n step %c1 : i32 {
    msl.unroll %i = 0 to 4 {
      %eights = arith.muli %i, %c8 : i32
      %row = arith.addi %first, %eights : i32
      %offset = arith.muli %row, %stride : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  scf.for %k = %c0 to %n step %c1 : i32 {
    msl.unroll %i = 0 to 2 {
      %eights = arith.shli %i, %c3 : i32
      %row = arith.addi %eights, %first : i32
      %offset = arith.muli %row, %stride : i32
      %far = msl.ptr_add %x, %offset : !msl.ptr<f16, device>, i32
      msl.write %v, %far[%k : i32] : f16, !msl.ptr<f16, device>
    }
  }
  msl.return
}

// A loop that changes a term keeps the sum. Steps of constants stay as they are, and so does what is no sum of multiples.
// CHECK-LABEL: msl.kernel @kept
// CHECK: scf.for %[[K:.*]] =
// CHECK:   %[[BASE:.*]] = arith.muli %[[K]], %arg2 : i32
// CHECK:   msl.unroll %[[I:.*]] = 0 to 4
// CHECK:     %[[SUM:.*]] = arith.addi %arg2, %[[I]] : i32
// CHECK:     msl.write %{{.*}}, %arg0[%[[SUM]] : i32]
// CHECK:     %[[SQUARE:.*]] = arith.muli %[[I]], %[[I]] : i32
// CHECK:     msl.write %{{.*}}, %arg0[%[[SQUARE]] : i32]
// CHECK:     %[[STEP:.*]] = arith.muli %[[I]], %arg2 : i32
// CHECK:     %[[OFFSET:.*]] = arith.addi %[[BASE]], %[[STEP]] : i32
// CHECK:     msl.write %{{.*}}, %arg0[%[[OFFSET]] : i32]
msl.kernel @kept(%x: !msl.ptr<f16, device>, %n: i32, %stride: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = arith.constant 0.0 : f16
  scf.for %k = %c0 to %n step %c1 : i32 {
    msl.unroll %i = 0 to 4 {
      %sum = arith.addi %stride, %i : i32
      msl.write %v, %x[%sum : i32] : f16, !msl.ptr<f16, device>
      %square = arith.muli %i, %i : i32
      msl.write %v, %x[%square : i32] : f16, !msl.ptr<f16, device>
      %row = arith.addi %k, %i : i32
      %offset = arith.muli %row, %stride : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  msl.return
}

// A row's pointer in a branch of each step is added before the steps.
// CHECK-LABEL: msl.kernel @branches
// CHECK: msl.unroll %[[I:.*]] = 0 to 4
// CHECK:   %[[ROW:.*]] = msl.ptr_add %arg0, %{{.*}} : <f16, device>, i32
// CHECK:   msl.unroll %[[J:.*]] = 0 to 4
// CHECK:     scf.if
// CHECK-NOT:   msl.ptr_add
// CHECK:       msl.write %{{.*}}, %[[ROW]][%[[J]] : i32]
msl.kernel @branches(%x: !msl.ptr<f16, device>, %n: i32, %stride: i32) threads 32 {
  %v = arith.constant 0.0 : f16
  msl.unroll %i = 0 to 4 {
    msl.unroll %j = 0 to 4 {
      %isLess = arith.cmpi slt, %j, %n : i32
      scf.if %isLess {
        %offset = arith.muli %i, %stride : i32
        %row = msl.ptr_add %x, %offset : !msl.ptr<f16, device>, i32
        msl.write %v, %row[%j : i32] : f16, !msl.ptr<f16, device>
      }
    }
  }
  msl.return
}

// Offsets of 64 bits, modulo 2^64: the row is extended, and its sum does not wrap around in 32 bits.
// CHECK-LABEL: msl.kernel @wide
// CHECK: %[[FIRST:.*]] = msl.lane : i32
// CHECK: %[[LONG:.*]] = arith.extsi %[[FIRST]] : i32 to i64
// CHECK: %[[BASE:.*]] = arith.muli %[[LONG]], %arg1 : i64
// CHECK: %[[EIGHT:.*]] = arith.muli %arg1, %{{.*}} : i64
// CHECK: msl.unroll %[[I:.*]] = 0 to 4
// CHECK:   %[[INDEX:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK:   %[[STEP:.*]] = arith.muli %[[INDEX]], %[[EIGHT]] : i64
// CHECK:   %[[OFFSET:.*]] = arith.addi %[[BASE]], %[[STEP]] : i64
// CHECK:   msl.ptr_add %arg0, %[[OFFSET]] : <f16, device>, i64
msl.kernel @wide(%x: !msl.ptr<f16, device>, %stride: i64) threads 32 {
  %c8 = arith.constant 8 : i32
  %v = arith.constant 0.0 : f16
  %first = msl.lane : i32
  msl.unroll %i = 0 to 4 {
    %eights = arith.muli %i, %c8 : i32
    %row = arith.addi %first, %eights : i32
    %long = arith.extsi %row : i32 to i64
    %offset = arith.muli %long, %stride : i64
    %far = msl.ptr_add %x, %offset : !msl.ptr<f16, device>, i64
    msl.unroll %j = 0 to 2 {
      msl.write %v, %far[%j : i32] : f16, !msl.ptr<f16, device>
    }
  }
  msl.return
}

// A sum of 32 bits that may wrap around stays one.
// CHECK-LABEL: msl.kernel @wraps
// CHECK: msl.unroll
// CHECK:   %[[ROW:.*]] = arith.addi %arg1, %{{.*}} : i32
// CHECK:   %[[LONG:.*]] = arith.extsi %[[ROW]] : i32 to i64
// CHECK:   %[[OFFSET:.*]] = arith.muli %[[LONG]], %arg2 : i64
// CHECK:   msl.write %{{.*}}, %arg0[%[[OFFSET]] : i64]
msl.kernel @wraps(%x: !msl.ptr<f16, device>, %first: i32, %stride: i64) threads 32 {
  %v = arith.constant 0.0 : f16
  msl.unroll %i = 0 to 4 {
    %row = arith.addi %first, %i : i32
    %long = arith.extsi %row : i32 to i64
    %offset = arith.muli %long, %stride : i64
    msl.write %v, %x[%offset : i64] : f16, !msl.ptr<f16, device>
  }
  msl.return
}

// What branches compute, and a loop behind them again, is computed before the first of them.
// CHECK-LABEL: msl.kernel @behind
// CHECK: %[[LANE:.*]] = msl.lane
// CHECK: %[[FIRST:.*]] = arith.muli %[[LANE]], %arg1 : i32
// CHECK: %[[EIGHT:.*]] = arith.muli %arg1, %{{.*}} : i32
// CHECK: scf.if
// CHECK-NOT: arith.muli %[[LANE]], %arg1
// CHECK: scf.for
// CHECK: %[[STEP:.*]] = arith.muli %{{.*}}, %[[EIGHT]] : i32
// CHECK: arith.addi %[[FIRST]], %[[STEP]] : i32
msl.kernel @behind(%x: !msl.ptr<f16, device>, %stride: i32, %n: i32, %whole: i1) threads 32 {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %v = arith.constant 0.0 : f16
  %first = msl.lane : i32
  scf.if %whole {
    msl.unroll %i = 0 to 4 {
      %eights = arith.muli %i, %c8 : i32
      %row = arith.addi %first, %eights : i32
      %offset = arith.muli %row, %stride : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  } else {
    msl.unroll %i = 0 to 4 {
      %eights = arith.muli %i, %c8 : i32
      %row = arith.addi %first, %eights : i32
      %offset = arith.muli %row, %stride : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  scf.for %k = %c0 to %n step %c8 : i32 {
    msl.unroll %i = 0 to 4 {
      %eights = arith.muli %i, %c8 : i32
      %row = arith.addi %first, %eights : i32
      %offset = arith.muli %row, %stride : i32
      msl.write %v, %x[%offset : i32] : f16, !msl.ptr<f16, device>
    }
  }
  msl.return
}
