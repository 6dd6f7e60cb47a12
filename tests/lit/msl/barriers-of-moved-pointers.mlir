// Pointers that a loop moves on by the same number of elements in each step.
// RUN: triton-metal-opt %s --split-input-file --msl-insert-barriers --msl-check-barriers | FileCheck %s

// Each step stores behind all that the one before it did.
// CHECK-LABEL: @moved_behind
// CHECK: scf.for
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @moved_behind(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c128 = arith.constant 128 : i32
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %first = arith.muli %simdgroup, %c32 : i32
  %thread = arith.addi %lane, %first : i32
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.store %f, %p[%thread] : f32, <f32, device>, i32
    %q = msl.ptr_add %p, %c128 : <f32, device>, i32
    scf.yield %q : !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// And in front of it.
// CHECK-LABEL: @moved_before
// CHECK: scf.for
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @moved_before(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c128 = arith.constant -128 : i32
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %first = arith.muli %simdgroup, %c32 : i32
  %thread = arith.addi %lane, %first : i32
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.store %f, %p[%thread] : f32, <f32, device>, i32
    %q = msl.ptr_add %p, %c128 : <f32, device>, i32
    scf.yield %q : !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// Half a step: other threads stored to the same places before.
// CHECK-LABEL: @moved_half
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @moved_half(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %first = arith.muli %simdgroup, %c32 : i32
  %thread = arith.addi %lane, %first : i32
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    msl.store %f, %p[%thread] : f32, <f32, device>, i32
    %q = msl.ptr_add %p, %c64 : <f32, device>, i32
    scf.yield %q : !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// The counter takes back what the pointer is moved on by.
// CHECK-LABEL: @moved_back
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @moved_back(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c128 = arith.constant 128 : i32
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %first = arith.muli %simdgroup, %c32 : i32
  %thread = arith.addi %lane, %first : i32
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    %long = arith.extsi %i : i32 to i64
    %size = arith.constant -96 : i64
    %back = arith.muli %long, %size : i64
    %r = msl.ptr_add %p, %back : <f32, device>, i64
    msl.store %f, %r[%thread] : f32, <f32, device>, i32
    %q = msl.ptr_add %p, %c128 : <f32, device>, i32
    scf.yield %q : !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// A loop around the loop begins anew at the same place.
// CHECK-LABEL: @moved_again
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @moved_again(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c128 = arith.constant 128 : i32
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %first = arith.muli %simdgroup, %c32 : i32
  %thread = arith.addi %lane, %first : i32
  scf.for %j = %c0 to %n step %c1 : i32 {
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
      msl.store %f, %p[%thread] : f32, <f32, device>, i32
      %q = msl.ptr_add %p, %c128 : <f32, device>, i32
      scf.yield %q : !msl.ptr<f32, device>
    }
  }
  msl.return
}

// -----

// What is written where other threads read in the same step needs a barrier; rows of two arrays that overlap do not tell.
// CHECK-LABEL: @read_elsewhere
// CHECK: msl.load
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @read_elsewhere(%x: !msl.ptr<f32, device>, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %first = arith.muli %simdgroup, %c32 : i32
  %thread = arith.addi %lane, %first : i32
  %mirror = arith.subi %c127, %thread : i32
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (!msl.ptr<f32, device>) : i32 {
    %f = msl.load %p[%mirror] : <f32, device>, i32 -> f32
    msl.store %f, %p[%thread] : f32, <f32, device>, i32
    %q = msl.ptr_add %p, %c128 : <f32, device>, i32
    scf.yield %q : !msl.ptr<f32, device>
  }
  msl.return
}
