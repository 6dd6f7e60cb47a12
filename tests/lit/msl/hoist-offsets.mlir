// RUN: triton-metal-opt %s --msl-hoist-offsets | FileCheck %s

// What all accesses add to a carried pointer, the pointer begins with; also where each computes it for itself.
// CHECK-LABEL: msl.kernel @carried
// CHECK-SAME: (%[[X:.*]]: !msl.ptr<f16, device>, %[[Y:.*]]: !msl.ptr<f16, device>
msl.kernel @carried(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f16, device>, %n: i32, %stride: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %other = arith.constant 0.0 : f16
  %lane = msl.lane : i32
  %isLess = arith.cmpi slt, %lane, %n : i32
  // CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
  // CHECK: %[[FIRST:.*]] = msl.ptr_add %[[X]], %[[COLUMN]] : <f16, device>, i32
  // CHECK: scf.for {{.*}} iter_args(%[[P:.*]] = %[[FIRST]])
  %end = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f16, device>) : i32 {
    // CHECK: %[[ROW:.*]] = arith.muli
    // CHECK: msl.read %[[P]][%[[ROW]] : i32] : <f16, device> -> f16
    %row = arith.muli %k, %stride : i32
    %column = arith.addi %lane, %n : i32
    %place = msl.ptr_add %p, %row : !msl.ptr<f16, device>, i32
    %v = msl.read %place[%column : i32] : !msl.ptr<f16, device> -> f16
    scf.if %isLess {
      // CHECK: msl.read %[[P]][%[[ROW]] : i32] if
      %same = arith.addi %lane, %n : i32
      %w = msl.read %place[%same : i32] if %isLess else %other : !msl.ptr<f16, device> -> f16
      %sum = arith.addf %v, %w : f16
      msl.write %sum, %y[%k : i32] : f16, !msl.ptr<f16, device>
    }
    // CHECK: msl.ptr_add %[[P]], %{{.*}} : <f16, device>, i32
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f16, device>, i32
    scf.yield %next : !msl.ptr<f16, device>
  }
  msl.return
}

// A pointer from before the loop gets a second one beside it. What changes in the loop stays there.
// CHECK-LABEL: msl.kernel @before
// CHECK-SAME: (%[[X:.*]]: !msl.ptr<f32, device>, %[[Y:.*]]: !msl.ptr<f32, device>
msl.kernel @before(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %stride: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %lane = msl.lane : i32
  // CHECK: %[[FIRST:.*]] = msl.ptr_add %[[X]], %{{.*}} : <f32, device>, i32
  // CHECK-NEXT: scf.for
  scf.for %k = %c0 to %n step %c16 : i32 {
    // CHECK: %[[ROW:.*]] = msl.ptr_add %[[FIRST]]
    // CHECK: msl.unroll %[[I:.*]] = 0 to 2
    // CHECK: msl.read %[[ROW]][%[[I]] : i32]
    %step = arith.muli %k, %stride : i32
    %row = msl.ptr_add %x, %step : !msl.ptr<f32, device>, i32
    msl.unroll %i = 0 to 2 {
      %part = msl.ptr_add %row, %i : !msl.ptr<f32, device>, i32
      %v = msl.read %part[%lane : i32] : !msl.ptr<f32, device> -> f32
      msl.write %v, %y[%k : i32] : f32, !msl.ptr<f32, device>
    }
  }
  msl.return
}

// One access adds something else: nothing is common.
// CHECK-LABEL: msl.kernel @different
// CHECK-NOT: msl.ptr_add
// CHECK: scf.for
msl.kernel @different(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %lane = msl.lane : i32
  scf.for %k = %c0 to %n step %c16 : i32 {
    %row = msl.ptr_add %x, %k : !msl.ptr<f32, device>, i32
    %v = msl.read %row[%lane : i32] : !msl.ptr<f32, device> -> f32
    %w = msl.read %row[%n : i32] : !msl.ptr<f32, device> -> f32
    %sum = arith.addf %v, %w : f32
    msl.write %sum, %y[%k : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// Bytes have one offset.
// CHECK-LABEL: msl.kernel @kept
// CHECK: scf.for
// CHECK: msl.ptr_add
msl.kernel @kept(%y: !msl.ptr<i8, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %lane = msl.lane : i32
  scf.for %k = %c0 to %n step %c16 : i32 {
    %row = msl.ptr_add %y, %k : !msl.ptr<i8, device>, i32
    %v = msl.read %row[%lane : i32] : !msl.ptr<i8, device> -> i8
    msl.write %v, %row[%lane : i32] : i8, !msl.ptr<i8, device>
  }
  msl.return
}

// Two terms are known before: the pointer begins with one of them, and the access adds the other one.
// CHECK-LABEL: msl.kernel @two
// CHECK: %[[FIRST:.*]] = msl.ptr_add %{{.*}}, %{{.*}} : <f32, device>, i32
// CHECK: scf.for {{.*}} iter_args(%[[P:.*]] = %[[FIRST]])
// CHECK-NEXT: msl.read %[[P]][%{{.*}} : i32] : <f32, device> -> f32
msl.kernel @two(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %m: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %lane = msl.lane : i32
  %end = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    %row = msl.ptr_add %p, %m : !msl.ptr<f32, device>, i32
    %v = msl.read %row[%lane : i32] : !msl.ptr<f32, device> -> f32
    msl.write %v, %y[%k : i32] : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  msl.return
}

// What reads the pointer behind the loop gets it without the term. The least number has no opposite of 32 bits.
// CHECK-LABEL: msl.kernel @behind
// CHECK: %[[P:.*]]:2 = scf.for
// CHECK-DAG: %[[LANE:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK-DAG: msl.ptr_add %[[P]]#0, %[[LANE]] : <f32, device>, i32
// CHECK-DAG: %[[WIDE:.*]] = arith.extsi %arg2 : i32 to i64
// CHECK-DAG: %[[BACK:.*]] = arith.subi %{{.*}}, %[[WIDE]] : i64
// CHECK-DAG: msl.ptr_add %[[P]]#1, %[[BACK]] : <f32, device>, i64
msl.kernel @behind(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %stride: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %lane = msl.lane : i32
  %end:2 = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x, %q = %y) -> (!msl.ptr<f32, device>, !msl.ptr<f32, device>) : i32 {
    %row = arith.muli %k, %stride : i32
    %r = msl.ptr_add %p, %row : !msl.ptr<f32, device>, i32
    %v = msl.read %r[%lane : i32] : !msl.ptr<f32, device> -> f32
    %s = msl.ptr_add %q, %row : !msl.ptr<f32, device>, i32
    msl.write %v, %s[%n : i32] : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    %after = msl.ptr_add %q, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next, %after : !msl.ptr<f32, device>, !msl.ptr<f32, device>
  }
  %v = msl.read %end#0 : !msl.ptr<f32, device> -> f32
  msl.write %v, %end#1 : f32, !msl.ptr<f32, device>
  msl.return
}

// An access behind the loop that adds the term itself takes the pointer as the loop leaves it; one that does not takes it back.
// CHECK-LABEL: msl.kernel @single_step
// CHECK: %[[P:.*]] = scf.for
// CHECK: %[[BACK:.*]] = msl.ptr_add %[[P]], %{{.*}} : <f32, device>, i32
// CHECK: scf.if
// CHECK:   msl.read %[[P]][%arg3 : i32] : <f32, device> -> f32
// CHECK:   msl.read %[[BACK]][%arg3 : i32] : <f32, device> -> f32
msl.kernel @single_step(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %row: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %lane = msl.lane : i32
  %end = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    %far = msl.ptr_add %p, %row : !msl.ptr<f32, device>, i32
    %v = msl.read %far[%lane : i32] : !msl.ptr<f32, device> -> f32
    %w = msl.read %p[%lane : i32] : !msl.ptr<f32, device> -> f32
    %sum = arith.addf %v, %w : f32
    msl.write %sum, %y[%k : i32] : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  %isLeft = arith.cmpi slt, %c16, %n : i32
  scf.if %isLeft {
    %far = msl.ptr_add %end, %row : !msl.ptr<f32, device>, i32
    %v = msl.read %far[%lane : i32] : !msl.ptr<f32, device> -> f32
    %w = msl.read %end[%row : i32] : !msl.ptr<f32, device> -> f32
    %sum = arith.addf %v, %w : f32
    msl.write %sum, %y[%n : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// A second loop goes on with the pointer, and adds the same: it takes it as the first one leaves it. As it adds more in some
// accesses, its pointer begins with all that they have in common.
// CHECK-LABEL: msl.kernel @goes_on
// CHECK: %[[PLACE:.*]] = msl.ptr_add %arg0, %{{.*}} : <f32, device>, i32
// CHECK: %[[FIRST:.*]] = msl.ptr_add %[[PLACE]], %arg2 : <f32, device>, i32
// CHECK: %[[P:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK-NOT: msl.ptr_add %[[P]]
// CHECK: scf.for {{.*}} iter_args(%[[Q:.*]] = %[[P]])
// CHECK: msl.read %[[Q]] : <f32, device> -> f32
// CHECK: msl.unroll %[[I:.*]] = 0 to 4
// CHECK: msl.read %[[Q]][%[[I]] : i32] : <f32, device> -> f32
msl.kernel @goes_on(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %m: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %lane = msl.lane : i32
  %end = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    %place = arith.addi %lane, %m : i32
    %row = msl.ptr_add %p, %n : !msl.ptr<f32, device>, i32
    %v = msl.read %row[%place : i32] : !msl.ptr<f32, device> -> f32
    msl.write %v, %y[%k : i32] : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  %last = scf.for %k = %n to %m step %c16 iter_args(%p = %end) -> (!msl.ptr<f32, device>) : i32 {
    %place = arith.addi %lane, %m : i32
    %row = msl.ptr_add %p, %n : !msl.ptr<f32, device>, i32
    %v = msl.read %row[%place : i32] : !msl.ptr<f32, device> -> f32
    msl.write %v, %y[%k : i32] : f32, !msl.ptr<f32, device>
    %group = msl.ptr_add %row, %place : !msl.ptr<f32, device>, i32
    msl.unroll %i = 0 to 4 {
      %w = msl.read %group[%i : i32] : !msl.ptr<f32, device> -> f32
      msl.write %w, %y[%i : i32] : f32, !msl.ptr<f32, device>
    }
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  msl.return
}

// The opposite of the least number is that number: what was taken in 32 bits is not what is added.
// CHECK-LABEL: msl.kernel @least
// CHECK: %[[BACK:.*]] = msl.ptr_add %arg0, %{{.*}} : <f32, device>, i32
// CHECK: %[[FIRST:.*]] = msl.ptr_add %[[BACK]], %arg3 : <f32, device>, i32
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
msl.kernel @least(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %m: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %opposite = arith.subi %c0, %m : i32
  %back = msl.ptr_add %x, %opposite : !msl.ptr<f32, device>, i32
  %last = scf.for %k = %c0 to %n step %c16 iter_args(%p = %back) -> (!msl.ptr<f32, device>) : i32 {
    %row = msl.ptr_add %p, %k : !msl.ptr<f32, device>, i32
    %v = msl.read %row[%m : i32] : !msl.ptr<f32, device> -> f32
    msl.write %v, %y[%k : i32] : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  msl.return
}
