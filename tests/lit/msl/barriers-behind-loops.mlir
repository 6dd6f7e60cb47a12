// RUN: triton-metal-opt %s --split-input-file --msl-insert-barriers --msl-check-barriers | FileCheck %s

// A loop goes on where another one ends: their stores do not meet. What runs at most once has no step before it.
// CHECK-LABEL: @goes_on
// CHECK: scf.for
// CHECK: msl.store
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @goes_on(%x: !msl.ptr<f32, device>, %f: f32, %whole: i32, %n: i32) threads 64 {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c32 = arith.constant 32 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %first = arith.muli %group, %c32 : i32
  %thread = arith.addi %first, %lane : i32
  scf.for %i = %c0 to %whole step %c64 : i32 {
    %at = msl.ptr_add %x, %i : !msl.ptr<f32, device>, i32
    msl.store %f, %at[%thread] : f32, !msl.ptr<f32, device>, i32
  } {msl.whole_steps}
  scf.for %i = %whole to %n step %c64 : i32 {
    %at = msl.ptr_add %x, %whole : !msl.ptr<f32, device>, i32
    msl.store %f, %at[%thread] : f32, !msl.ptr<f32, device>, i32
  } {msl.at_most_once}
  msl.return
}

// -----

// The second loop may have several steps.
// CHECK-LABEL: @steps
// CHECK: scf.for
// CHECK: msl.store
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @steps(%x: !msl.ptr<f32, device>, %f: f32, %whole: i32, %n: i32) threads 64 {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c32 = arith.constant 32 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %first = arith.muli %group, %c32 : i32
  %thread = arith.addi %first, %lane : i32
  scf.for %i = %c0 to %whole step %c64 : i32 {
    %at = msl.ptr_add %x, %i : !msl.ptr<f32, device>, i32
    msl.store %f, %at[%thread] : f32, !msl.ptr<f32, device>, i32
  } {msl.whole_steps}
  scf.for %i = %whole to %n step %c64 : i32 {
    %at = msl.ptr_add %x, %i : !msl.ptr<f32, device>, i32
    msl.store %f, %at[%thread] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// The last step of the first loop may pass the bound, where the second one begins.
// CHECK-LABEL: @passes
// CHECK: scf.for
// CHECK: msl.store
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @passes(%x: !msl.ptr<f32, device>, %f: f32, %whole: i32, %n: i32) threads 64 {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c32 = arith.constant 32 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %first = arith.muli %group, %c32 : i32
  %thread = arith.addi %first, %lane : i32
  scf.for %i = %c0 to %whole step %c64 : i32 {
    %at = msl.ptr_add %x, %i : !msl.ptr<f32, device>, i32
    msl.store %f, %at[%thread] : f32, !msl.ptr<f32, device>, i32
  }
  scf.for %i = %whole to %n step %c64 : i32 {
    %at = msl.ptr_add %x, %i : !msl.ptr<f32, device>, i32
    msl.store %f, %at[%thread] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// Two threads store 65 numbers in a step of 64; and an outer loop begins again.
// CHECK-LABEL: @meets
// CHECK: scf.for
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.store
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @meets(%x: !msl.ptr<f32, device>, %f: f32, %whole: i32, %n: i32) threads 64 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c33 = arith.constant 33 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %first = arith.muli %group, %c33 : i32
  %thread = arith.addi %first, %lane : i32
  scf.for %j = %c0 to %n step %c1 : i32 {
    scf.for %i = %c0 to %whole step %c64 : i32 {
      %at = msl.ptr_add %x, %i : !msl.ptr<f32, device>, i32
      msl.store %f, %at[%thread] : f32, !msl.ptr<f32, device>, i32
    } {msl.whole_steps}
    scf.for %i = %whole to %n step %c64 : i32 {
      %at = msl.ptr_add %x, %i : !msl.ptr<f32, device>, i32
      msl.store %f, %at[%thread] : f32, !msl.ptr<f32, device>, i32
    }
  }
  msl.return
}
