// RUN: triton-metal-opt %s --msl-follow-counters | FileCheck %s

// A pointer that moves as the counter does stays; up to two places begin before the loop.
// CHECK-LABEL: msl.kernel @stays
// CHECK-SAME: (%[[X:.*]]: !msl.ptr<f16, device>, %[[Y:.*]]: !msl.ptr<f16, device>, %[[N:.*]]: i32, %[[STRIDE:.*]]: i32)
msl.kernel @stays(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f16, device>, %n: i32, %stride: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %other = arith.constant 0.0 : f16
  %lane = msl.lane : i32
  %isLess = arith.cmpi slt, %lane, %n : i32
  // The other pointer moves by another number, and is carried.
  // CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[Q:.*]] = %[[Y]])
  %end:2 = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x, %q = %y) -> (!msl.ptr<f16, device>, !msl.ptr<f16, device>) : i32 {
    // CHECK: msl.unroll %[[I:.*]] = 0 to 2
    // CHECK: %[[OFFSET:.*]] = arith.muli %[[I]], %[[STRIDE]]
    // CHECK: %[[PLACE:.*]] = msl.ptr_add %[[X]], %[[OFFSET]] : <f16, device>, i32
    // CHECK: msl.read %[[PLACE]][%[[K]] : i32]
    msl.unroll %i = 0 to 2 {
      %offset = arith.muli %i, %stride : i32
      %v = msl.read %p[%offset : i32] : !msl.ptr<f16, device> -> f16
      msl.write %v, %q[%lane : i32] : f16, !msl.ptr<f16, device>
    }
    scf.if %isLess {
      // The same places, in a loop of its own.
      msl.unroll %i = 0 to 2 {
        %offset = arith.muli %i, %stride : i32
        // CHECK: %[[SAME:.*]] = msl.ptr_add %[[X]], %{{.*}} : <f16, device>, i32
        // CHECK: %[[ROW:.*]] = msl.ptr_add %[[SAME]], %[[K]] : <f16, device>, i32
        // CHECK: msl.unroll %[[J:.*]] = 0 to 4
        // CHECK: msl.read %[[ROW]][%[[J]] : i32] if
        %row = msl.ptr_add %p, %offset : !msl.ptr<f16, device>, i32
        msl.unroll %j = 0 to 4 {
          %v = msl.read %row[%j : i32] if %isLess else %other : !msl.ptr<f16, device> -> f16
          msl.write %v, %q[%j : i32] : f16, !msl.ptr<f16, device>
        }
      }
    }
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f16, device>, i32
    // CHECK: %[[NEXT:.*]] = msl.ptr_add %[[Q]], %[[STRIDE]]
    // CHECK-NEXT: scf.yield %[[NEXT]] : !msl.ptr<f16, device>
    %moved = msl.ptr_add %q, %stride : !msl.ptr<f16, device>, i32
    scf.yield %next, %moved : !msl.ptr<f16, device>, !msl.ptr<f16, device>
  }
  msl.return
}

// Accesses without an offset read at the counter, and those at constants add it first.
// CHECK-LABEL: msl.kernel @plain
// CHECK-SAME: (%[[X:.*]]: !msl.ptr<f32, device>, %[[STEP:.*]]: i32, %{{.*}}: i32)
msl.kernel @plain(%x: !msl.ptr<f32, device>, %step: i32, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  // CHECK: scf.for %[[K:.*]] = %{{.*}} step %[[STEP]]{{ +}}: i32 {
  %end = scf.for %k = %c0 to %n step %step iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    // CHECK: %[[V:.*]] = msl.read %[[X]][%[[K]] : i32]
    // CHECK: msl.write %[[V]], %[[X]][%[[K]] : i32]
    %v = msl.read %p : !msl.ptr<f32, device> -> f32
    msl.write %v, %p : f32, !msl.ptr<f32, device>
    // CHECK: msl.unroll %[[I:.*]] = 0 to 4
    // CHECK: %[[HERE:.*]] = msl.ptr_add %[[X]], %[[K]]
    // CHECK: msl.read %[[HERE]][%[[I]] : i32]
    msl.unroll %i = 0 to 4 {
      %w = msl.read %p[%i : i32] : !msl.ptr<f32, device> -> f32
      msl.write %w, %p : f32, !msl.ptr<f32, device>
    }
    %next = msl.ptr_add %p, %step : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  msl.return
}

// Carried as before: three places, bytes, another step, another beginning, no sign, an offset that changes, and what goes on behind
// the loop.
// CHECK-LABEL: msl.kernel @moves
msl.kernel @moves(%x: !msl.ptr<f32, device>, %bytes: !msl.ptr<i8, device>, %n: i32, %stride: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i8
  // CHECK: scf.for {{.*}} iter_args
  %a = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.unroll %i = 0 to 3 {
      %offset = arith.muli %i, %stride : i32
      msl.write %zero, %p[%offset : i32] : f32, !msl.ptr<f32, device>
    }
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  // CHECK: scf.for {{.*}} iter_args
  %b = scf.for %k = %c0 to %n step %c16 iter_args(%p = %bytes) -> (!msl.ptr<i8, device>) : i32 {
    msl.write %none, %p : i8, !msl.ptr<i8, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<i8, device>, i32
    scf.yield %next : !msl.ptr<i8, device>
  }
  // CHECK: scf.for {{.*}} iter_args
  %c = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.write %zero, %p : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c8 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  // CHECK: scf.for {{.*}} iter_args
  %d = scf.for %k = %c1 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.write %zero, %p : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  // CHECK: scf.for unsigned {{.*}} iter_args
  %e = scf.for unsigned %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.write %zero, %p : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  // CHECK: scf.for {{.*}} iter_args
  %f = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.write %zero, %p[%k : i32] : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  // CHECK: scf.for {{.*}} iter_args
  %g = scf.for %k = %c0 to %n step %c16 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.write %zero, %p : f32, !msl.ptr<f32, device>
    %next = msl.ptr_add %p, %c16 : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  msl.write %zero, %g : f32, !msl.ptr<f32, device>
  msl.return
}

// A number that the loop carries, and not its counter, moves a pointer with three places: accesses add it, each to a place from before.
// CHECK-LABEL: msl.kernel @number
// CHECK:       scf.for %{{.*}} iter_args(%[[AT:.*]] = %{{.*}}) -> (i32)
// CHECK-NEXT:    msl.unroll %[[I:.*]] = 0 to 2
// CHECK-NEXT:      %[[OFFSET:.*]] = arith.muli %[[I]], %[[STRIDE:.*]] : i32
// CHECK-NEXT:      %[[PLACE:.*]] = msl.ptr_add %[[X:.*]], %[[OFFSET]] : <f32, device>, i32
// CHECK-NEXT:      msl.write %{{.*}}, %[[PLACE]][%[[AT]] : i32] : f32, <f32, device>
// CHECK:         %[[OTHER:.*]] = msl.ptr_add %[[X]], %[[COLUMN:.*]] : <f32, device>, i32
// CHECK-NEXT:    msl.write %{{.*}}, %[[OTHER]][%[[AT]] : i32] : f32, <f32, device>
// CHECK-NEXT:    arith.addi %[[AT]], %[[STRIDE]]
msl.kernel @number(%x: !msl.ptr<f32, device>, %n: i32, %stride: i32, %column: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %a = scf.for %k = %c0 to %n step %c16 iter_args(%at = %c0) -> (i32) : i32 {
    %p = msl.ptr_add %x, %at : !msl.ptr<f32, device>, i32
    msl.unroll %i = 0 to 2 {
      %offset = arith.muli %i, %stride : i32
      msl.write %zero, %p[%offset : i32] : f32, !msl.ptr<f32, device>
    }
    msl.write %zero, %p[%column : i32] : f32, !msl.ptr<f32, device>
    %next = arith.addi %at, %stride : i32
    scf.yield %next : i32
  }
  msl.return
}

// One place, five places, bytes, an offset that changes, a sum that goes on to another use, and the counter itself stay.
// CHECK-LABEL: msl.kernel @sums_stay
msl.kernel @sums_stay(%x: !msl.ptr<f32, device>, %bytes: !msl.ptr<i8, device>, %n: i32, %stride: i32, %column: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i8
  // CHECK: scf.for %{{.*}} iter_args(%[[A:[a-z0-9_]+]] =
  // CHECK-NEXT: %[[P:.*]] = msl.ptr_add %{{.*}}, %[[A]]
  // CHECK-NEXT: msl.write %{{.*}}, %[[P]][%{{.*}} : i32]
  %a = scf.for %k = %c0 to %n step %c16 iter_args(%at = %c0) -> (i32) : i32 {
    %p = msl.ptr_add %x, %at : !msl.ptr<f32, device>, i32
    msl.write %zero, %p[%column : i32] : f32, !msl.ptr<f32, device>
    %next = arith.addi %at, %stride : i32
    scf.yield %next : i32
  }
  // CHECK: scf.for %{{.*}} iter_args(%[[B:[a-z0-9_]+]] =
  // CHECK-NEXT: msl.ptr_add %{{.*}}, %[[B]]
  %b = scf.for %k = %c0 to %n step %c16 iter_args(%at = %c0) -> (i32) : i32 {
    %p = msl.ptr_add %x, %at : !msl.ptr<f32, device>, i32
    msl.unroll %i = 0 to 5 {
      %offset = arith.muli %i, %stride : i32
      msl.write %zero, %p[%offset : i32] : f32, !msl.ptr<f32, device>
    }
    %next = arith.addi %at, %stride : i32
    scf.yield %next : i32
  }
  // CHECK: scf.for %{{.*}} iter_args(%[[C:[a-z0-9_]+]] =
  // CHECK-NEXT: msl.ptr_add %{{.*}}, %[[C]]
  %c = scf.for %k = %c0 to %n step %c16 iter_args(%at = %c0) -> (i32) : i32 {
    %p = msl.ptr_add %bytes, %at : !msl.ptr<i8, device>, i32
    msl.unroll %i = 0 to 2 {
      %offset = arith.muli %i, %stride : i32
      msl.write %none, %p[%offset : i32] : i8, !msl.ptr<i8, device>
    }
    %next = arith.addi %at, %stride : i32
    scf.yield %next : i32
  }
  // CHECK: scf.for %[[K:[a-z0-9_]+]] = %{{.*}} iter_args(%[[D:[a-z0-9_]+]] =
  // CHECK-NEXT: %[[PD:.*]] = msl.ptr_add %{{.*}}, %[[D]]
  // CHECK-NEXT: msl.write %{{.*}}, %[[PD]][%[[K]] : i32]
  %d = scf.for %k = %c0 to %n step %c16 iter_args(%at = %c0) -> (i32) : i32 {
    %p = msl.ptr_add %x, %at : !msl.ptr<f32, device>, i32
    msl.write %zero, %p[%k : i32] : f32, !msl.ptr<f32, device>
    msl.write %zero, %p[%column : i32] : f32, !msl.ptr<f32, device>
    %next = arith.addi %at, %stride : i32
    scf.yield %next : i32
  }
  // CHECK: scf.for %{{.*}} iter_args(%[[E:[a-z0-9_]+]] = %{{.*}}, %{{.*}} =
  // CHECK-NEXT: %[[PE:.*]] = msl.ptr_add %{{.*}}, %[[E]]
  // CHECK: scf.yield %{{.*}}, %[[PE]]
  %e:2 = scf.for %k = %c0 to %n step %c16 iter_args(%at = %c0, %last = %x) -> (i32, !msl.ptr<f32, device>) : i32 {
    %p = msl.ptr_add %x, %at : !msl.ptr<f32, device>, i32
    msl.write %zero, %p[%stride : i32] : f32, !msl.ptr<f32, device>
    msl.write %zero, %p[%column : i32] : f32, !msl.ptr<f32, device>
    %next = arith.addi %at, %stride : i32
    scf.yield %next, %p : i32, !msl.ptr<f32, device>
  }
  msl.write %zero, %e#1 : f32, !msl.ptr<f32, device>
  // CHECK: scf.for %[[F:[a-z0-9_]+]] = %
  // CHECK-NEXT: msl.ptr_add %{{.*}}, %[[F]]
  scf.for %k = %c0 to %n step %c16 : i32 {
    %p = msl.ptr_add %x, %k : !msl.ptr<f32, device>, i32
    msl.write %zero, %p[%stride : i32] : f32, !msl.ptr<f32, device>
    msl.write %zero, %p[%column : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}
