// RUN: triton-metal-opt %s --split-input-file --msl-single-steps | FileCheck %s

// One of two loops takes all steps: they are the sides of a branch.
// CHECK-LABEL: msl.kernel @versions
// CHECK: %[[X:.*]] = scf.if %[[ALL:.*]] -> (f32) {
// CHECK:   %[[FIRST:.*]]:2 = scf.for %{{.*}} = %c0_i32 to %[[N:.*]] step %c32_i32 iter_args(%{{.*}} = %[[INIT:.*]], %{{.*}} = %[[INIT]])
// CHECK:   scf.yield %[[FIRST]]#0 : f32
// CHECK: } else {
// CHECK:   %[[SECOND:.*]]:2 = scf.for %{{.*}} = %c0_i32 to %[[N]] step %c32_i32 iter_args(%{{.*}} = %[[INIT]], %{{.*}} = %[[INIT]])
// CHECK:   scf.yield %[[SECOND]]#0 : f32
// CHECK: }
// CHECK: msl.store %[[X]]
msl.kernel @versions(%p: !msl.ptr<f32, device>, %m: i32, %n: i32, %init: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %all = arith.cmpi sge, %m, %n : i32
  %bound = arith.select %all, %n, %c0 : i32
  %a, %b = scf.for %k = %c0 to %bound step %c32 iter_args(%x = %init, %y = %init) -> (f32, f32) : i32 {
    %s = arith.addf %x, %y : f32
    scf.yield %s, %y : f32, f32
  } {msl.version}
  %c, %d = scf.for %k = %bound to %n step %c32 iter_args(%x = %a, %y = %b) -> (f32, f32) : i32 {
    %s = arith.subf %x, %y : f32
    scf.yield %s, %y : f32, f32
  } {msl.version}
  msl.store %c, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// What is stored between them keeps its place: they stay loops, and are as right.
// CHECK-LABEL: msl.kernel @between
// CHECK-NOT: scf.if
// CHECK: msl.return
msl.kernel @between(%p: !msl.ptr<f32, device>, %m: i32, %n: i32, %init: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %all = arith.cmpi sge, %m, %n : i32
  %bound = arith.select %all, %n, %c0 : i32
  %a = scf.for %k = %c0 to %bound step %c32 iter_args(%x = %init) -> (f32) : i32 {
    %s = arith.addf %x, %x : f32
    scf.yield %s : f32
  } {msl.version}
  msl.store %init, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  %c = scf.for %k = %bound to %n step %c32 iter_args(%x = %a) -> (f32) : i32 {
    %s = arith.subf %x, %x : f32
    scf.yield %s : f32
  } {msl.version}
  msl.store %c, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
