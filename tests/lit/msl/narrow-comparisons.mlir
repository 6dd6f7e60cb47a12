// RUN: triton-metal-opt %s --split-input-file --msl-narrow-comparisons | FileCheck %s

// What is asked in each step of a loop is asked in 32 bits, and the bound is computed before the loop. No number below the
// least one has a sum that is below the least sum.
// CHECK-LABEL: msl.kernel @in_loop
// CHECK-SAME: %{{.*}}: !msl.ptr<i32, device>, %[[N:[^:]*]]: i32
// CHECK: %[[LEAST:.*]] = arith.constant -2147483521 : i32
// CHECK: %[[MOST:.*]] = arith.maxsi %[[N]], %[[LEAST]] : i32
// CHECK: %[[C:.*]] = arith.constant 127 : i32
// CHECK: %[[LAST:.*]] = arith.subi %[[MOST]], %[[C]] overflow<nsw> : i32
// CHECK-NOT: i64
// CHECK: scf.for %[[I:.*]] =
// CHECK:   arith.cmpi slt, %[[I]], %[[LAST]] : i32
// CHECK:   arith.cmpi sge, %[[I]], %[[LAST]] : i32
// CHECK-NOT: i64
// CHECK: msl.return
msl.kernel @in_loop(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c127 = arith.constant 127 : i64
  %bound = arith.extsi %n : i32 to i64
  scf.for %i = %c0 to %n step %c128 : i32 {
    %wide = arith.extsi %i : i32 to i64
    %last = arith.addi %wide, %c127 : i64
    %full = arith.cmpi sgt, %bound, %last : i64
    %cut = arith.cmpi sge, %last, %bound : i64
    scf.if %full {
      msl.store %i, %x[%c0] : i32, <i32, device>, i32
    }
    scf.if %cut {
      msl.store %n, %x[%c0] : i32, <i32, device>, i32
    }
  }
  msl.return
}

// -----

// A test before a loop whose result the loop reads.
// CHECK-LABEL: msl.kernel @before_loop
// CHECK: %[[FULL:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK: scf.for
// CHECK: scf.if %[[FULL]]
msl.kernel @before_loop(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i64
  %id = msl.program_id 0 : i32
  %bound = arith.extsi %n : i32 to i64
  %wide = arith.extsi %id : i32 to i64
  %last = arith.addi %wide, %c127 : i64
  %full = arith.cmpi slt, %last, %bound : i64
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.if %full {
      msl.store %i, %x[%c0] : i32, <i32, device>, i32
    }
  }
  msl.return
}

// -----

// Without a loop nothing is gained. A negative addend and "at most" have no such bound.
// CHECK-LABEL: msl.kernel @kept
// CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : i64
// CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : i64
// CHECK: arith.cmpi sle, %{{.*}}, %{{.*}} : i64
msl.kernel @kept(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i64
  %minus = arith.constant -1 : i64
  %id = msl.program_id 0 : i32
  %bound = arith.extsi %n : i32 to i64
  %wide = arith.extsi %id : i32 to i64
  %last = arith.addi %wide, %c127 : i64
  %full = arith.cmpi slt, %last, %bound : i64
  scf.if %full {
    msl.store %n, %x[%c0] : i32, <i32, device>, i32
  }
  %before = arith.addi %wide, %minus : i64
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = arith.cmpi slt, %before, %bound : i64
    %b = arith.cmpi sle, %last, %bound : i64
    %both = arith.andi %a, %b : i1
    scf.if %both {
      msl.store %i, %x[%c0] : i32, <i32, device>, i32
    }
  }
  msl.return
}

// -----

// What another comparison has answered in 32 bits is not asked again.
// CHECK-LABEL: msl.kernel @answered
// CHECK: %[[INSIDE:.*]] = arith.cmpi sgt, %{{.*}}, %{{.*}} : i32
// CHECK-NOT: arith.cmpi
// CHECK: scf.if %[[INSIDE]]
msl.kernel @answered(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c127 = arith.constant 127 : i64
  %less = arith.constant -127 : i32
  %least = arith.constant -2147483521 : i32
  %id = msl.program_id 0 : i32
  %most = arith.maxsi %n, %least : i32
  %end = arith.addi %most, %less : i32
  %inside = arith.cmpi sgt, %end, %id : i32
  scf.if %inside {
    msl.store %id, %x[%c0] : i32, <i32, device>, i32
  }
  %bound = arith.extsi %n : i32 to i64
  %wide = arith.extsi %id : i32 to i64
  %last = arith.addi %wide, %c127 : i64
  %full = arith.cmpi slt, %last, %bound : i64
  scf.if %full {
    msl.store %n, %x[%c0] : i32, <i32, device>, i32
  }
  msl.return
}
