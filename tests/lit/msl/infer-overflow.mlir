// RUN: triton-metal-opt %s --msl-infer-overflow | FileCheck %s

// CHECK-LABEL: msl.kernel @k
msl.kernel @k(%x: !msl.ptr<i32, device>, %y: !msl.ptr<bf16, device>, %n: i32, %s: i16) threads 128 {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %id = msl.program_id 0 : i32
  // CHECK: arith.muli %{{.*}}, %{{.*}} overflow<nsw> : i32
  %a = arith.muli %lane, %c4 : i32
  // CHECK: arith.addi %{{.*}}, %{{.*}} overflow<nsw> : i32
  %b = arith.addi %a, %group : i32
  // A program's index may be large.
  // CHECK: arith.muli %{{.*}}, %c64{{.*}} : i32
  // CHECK-NOT: overflow
  // CHECK: arith.addi %{{.*}}, %{{.*}} : i32
  %c = arith.muli %id, %c64 : i32
  %d = arith.addi %c, %n : i32
  // Nothing is shifted into the sign, nor is it shifted.
  // CHECK: arith.shli %{{.*}}, %{{.*}} overflow<nsw, nuw> : i32
  // CHECK: arith.shli %{{.*}}, %{{.*}} : i32
  %e = arith.shli %lane, %c2 : i32
  %f = arith.shli %n, %c2 : i32
  // CHECK: arith.divui %{{.*}}, %{{.*}} {msl.nonnegative} : i32
  // CHECK: arith.divui %{{.*}}, %{{.*}} : i32
  %g = arith.divui %lane, %c4 : i32
  %h = arith.divui %n, %c4 : i32
  // CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} {msl.nonnegative} : i32
  %less = arith.cmpi ult, %lane, %c4 : i32
  // CHECK: msl.write %{{.*}}, %{{.*}}[%{{.*}} : i32] {msl.nonnegative} : i32
  msl.write %g, %x[%e : i32] : i32, !msl.ptr<i32, device>
  // CHECK: msl.write %{{.*}}, %{{.*}}[%{{.*}} : i32] : i32
  msl.write %h, %x[%d : i32] : i32, !msl.ptr<i32, device>
  msl.write %f, %x[%b : i32] : i32, !msl.ptr<i32, device>
  // Counters lie within their bounds, and the indices of unrolled loops too.
  // CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step
  // CHECK:   arith.addi %[[K]], %{{.*}} overflow<nsw> : i32
  scf.for %k = %c0 to %c64 step %c4 : i32 {
    %sum = arith.addi %k, %lane : i32
    // CHECK: msl.unroll %[[I:.*]] = 0 to 8 {
    // CHECK:   arith.muli %[[I]], %{{.*}} overflow<nsw> : i32
    msl.unroll %i = 0 to 8 {
      %p = arith.muli %i, %sum : i32
      msl.write %p, %x[%sum : i32] : i32, !msl.ptr<i32, device>
    }
  }
  // What a float holds exactly is rounded behind it; any other number stays.
  // CHECK: %[[EXACT:.*]] = arith.sitofp %{{.*}} : i16 to f32
  // CHECK: arith.truncf %[[EXACT]] : f32 to bf16
  %u = arith.sitofp %s : i16 to bf16
  // CHECK: arith.sitofp %{{.*}} : i32 to bf16
  %v = arith.sitofp %n : i32 to bf16
  msl.write %u, %y : bf16, !msl.ptr<bf16, device>
  msl.write %v, %y[%lane : i32] : bf16, !msl.ptr<bf16, device>
  scf.if %less {
    msl.barrier
  }
  msl.return
}

// A condition bounds what it compares, in the branch in which it holds.
// CHECK-LABEL: msl.kernel @conditions
msl.kernel @conditions(%x: !msl.ptr<i32, device>, %n: i32, %m: i32) threads 128 {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  %low = arith.constant -2147483641 : i32
  %v = arith.constant 5 : i32
  %most = arith.maxsi %m, %low : i32
  %end = arith.subi %most, %c7 : i32
  %isLess = arith.cmpi sgt, %end, %n : i32
  %isPositive = arith.cmpi sge, %n, %c0 : i32
  %both = arith.andi %isLess, %isPositive : i1
  // CHECK: scf.if
  scf.if %both {
    // CHECK: arith.addi %{{.*}}, %c7{{.*}} overflow<nsw> : i32
    // CHECK: msl.write {{.*}} {msl.nonnegative}
    %sum = arith.addi %n, %c7 : i32
    msl.write %v, %x[%sum : i32] : i32, !msl.ptr<i32, device>
    // Seven more may be too many.
    // CHECK: arith.addi %{{.*}}, %{{.*}} : i32
    %more = arith.addi %n, %n : i32
    msl.write %v, %x[%more : i32] : i32, !msl.ptr<i32, device>
  } else {
    // CHECK: arith.addi %{{.*}}, %c7{{.*}} : i32
    %sum = arith.addi %n, %c7 : i32
    msl.write %v, %x[%sum : i32] : i32, !msl.ptr<i32, device>
  }
  msl.return
}
