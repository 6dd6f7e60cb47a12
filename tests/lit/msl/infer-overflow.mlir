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
