// RUN: triton-metal-opt %s --split-input-file --msl-single-steps | FileCheck %s

// What nobody reads is no result of the branch.
// CHECK-LABEL: msl.kernel @carries
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[WHOLE:.*]], %[[N:.*]] : i32
// CHECK: %[[X:.*]] = scf.if %[[RUNS]] -> (f32) {
// CHECK:   %[[I:.*]] = arith.sitofp %[[WHOLE]] : i32 to f32
// CHECK:   %[[S:.*]] = arith.addf %[[INIT:.*]], %[[I]] : f32
// CHECK:   scf.yield %[[S]] : f32
// CHECK: } else {
// CHECK:   scf.yield %[[INIT]] : f32
// CHECK: msl.store %[[X]]
msl.kernel @carries(%p: !msl.ptr<f32, device>, %whole: i32, %n: i32, %init: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %x, %y = scf.for %k = %whole to %n step %c32 iter_args(%a = %init, %b = %init) -> (f32, f32) : i32 {
    %i = arith.sitofp %k : i32 to f32
    %s = arith.addf %a, %i : f32
    scf.yield %s, %s : f32, f32
  } {msl.at_most_once}
  msl.store %x, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// Without a sign, and without results. Other loops stay.
// CHECK-LABEL: msl.kernel @effects
// CHECK: %[[RUNS:.*]] = arith.cmpi ult, %[[WHOLE:.*]], %{{.*}} : i32
// CHECK: scf.if %[[RUNS]] {
// CHECK:   msl.store %{{.*}}, %{{.*}}[%[[WHOLE]]]
// CHECK-NOT: else
// CHECK: scf.for
msl.kernel @effects(%p: !msl.ptr<f32, device>, %whole: i32, %n: i32, %v: f32) threads 32 {
  %c32 = arith.constant 32 : i32
  scf.for unsigned %k = %whole to %n step %c32 : i32 {
    msl.store %v, %p[%k] : f32, !msl.ptr<f32, device>, i32
  } {msl.at_most_once}
  scf.for %k = %whole to %n step %c32 : i32 {
    msl.store %v, %p[%k] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}
