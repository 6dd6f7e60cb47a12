// RUN: triton-metal-opt %s --split-input-file --msl-insert-barriers --msl-check-barriers | FileCheck %s

// Two rows of 64 numbers that lie anywhere, and may be one: a number of both is the same thread's.
// CHECK-LABEL: @rows_anywhere
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @rows_anywhere(%x: !msl.ptr<f32, device>, %f: f32, %n: i32, %m: i32) threads 64 {
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %begin = arith.muli %group, %c32 : i32
  %thread = arith.addi %begin, %lane : i32
  %first = arith.muli %n, %c64 : i32
  %second = arith.muli %m, %c64 : i32
  %i = arith.addi %first, %thread : i32
  %j = arith.addi %second, %thread : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %x[%j] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// Rows of 32, of which two SIMD-groups take two: a row of one may be the other's.
// CHECK-LABEL: @rows_of_others
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @rows_of_others(%x: !msl.ptr<f32, device>, %f: f32, %n: i32, %m: i32) threads 64 {
  %c32 = arith.constant 32 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %begin = arith.muli %group, %c32 : i32
  %thread = arith.addi %begin, %lane : i32
  %first = arith.muli %n, %c32 : i32
  %second = arith.muli %m, %c32 : i32
  %i = arith.addi %first, %thread : i32
  %j = arith.addi %second, %thread : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %x[%j] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// Both SIMD-groups have the same places.
// CHECK-LABEL: @places_of_two_threads
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @places_of_two_threads(%x: !msl.ptr<f32, device>, %f: f32, %n: i32, %m: i32) threads 64 {
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %first = arith.muli %n, %c64 : i32
  %second = arith.muli %m, %c64 : i32
  %i = arith.addi %first, %lane : i32
  %j = arith.addi %second, %lane : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %x[%j] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// One access is a number further on: it is the next thread's.
// CHECK-LABEL: @next_places
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @next_places(%x: !msl.ptr<f32, device>, %f: f32, %n: i32, %m: i32) threads 32 {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %first = arith.muli %n, %c64 : i32
  %second = arith.muli %m, %c64 : i32
  %i = arith.addi %first, %lane : i32
  %next = arith.addi %second, %lane : i32
  %j = arith.addi %next, %c1 : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %x[%j] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// Each step stores both halves of a row. Which row it is, differs between steps.
// CHECK-LABEL: @halves_in_steps
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @halves_in_steps(%x: !msl.ptr<f32, device>, %f: f32, %n: i32, %length: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  scf.for %step = %c0 to %n step %c1 : i32 {
    %row = arith.muli %step, %length : i32
    %begin = arith.muli %row, %c64 : i32
    %i = arith.addi %begin, %lane : i32
    msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
    %second = msl.ptr_add %x, %c32 : !msl.ptr<f32, device>, i32
    msl.store %f, %second[%i] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// A thread reads what its neighbour has stored in an earlier step, perhaps.
// CHECK-LABEL: @reads_in_steps
// CHECK: scf.for
// CHECK: msl.barrier device
msl.kernel @reads_in_steps(%x: !msl.ptr<f32, device>, %n: i32, %length: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  scf.for %step = %c0 to %n step %c1 : i32 {
    %row = arith.muli %step, %length : i32
    %begin = arith.muli %row, %c64 : i32
    %i = arith.addi %begin, %lane : i32
    %next = arith.addi %i, %c1 : i32
    %f = msl.load %x[%next] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}
