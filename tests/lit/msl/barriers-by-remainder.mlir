// RUN: triton-metal-opt %s --split-input-file --msl-insert-barriers --msl-check-barriers | FileCheck %s

// Each thread stores into the halves of a row of its own or of another's: rows are 64 numbers, halves 32.
// CHECK-LABEL: @halves_of_rows
// CHECK: msl.store
// CHECK-NOT: msl.barrier
// CHECK: msl.store
msl.kernel @halves_of_rows(%x: !msl.ptr<f32, device>, %f: f32, %length: i32) threads 128 {
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  // Of the row itself, nothing is known.
  %product = arith.muli %group, %length : i32
  %row = arith.addi %product, %lane : i32
  %begin = arith.muli %row, %c64 : i32
  %column = arith.andi %lane, %c31 : i32
  %i = arith.addi %begin, %column : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  %second = msl.ptr_add %x, %c32 : !msl.ptr<f32, device>, i32
  msl.store %f, %second[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// One number too many: the last of a first half is the first of a second one.
// CHECK-LABEL: @halves_that_meet
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @halves_that_meet(%x: !msl.ptr<f32, device>, %f: f32, %length: i32) threads 128 {
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %row = arith.muli %group, %length : i32
  %begin = arith.muli %row, %c64 : i32
  %next = arith.addi %lane, %c1 : i32
  %i = arith.addi %begin, %lane : i32
  %j = arith.addi %begin, %next : i32
  msl.store %f, %x[%j] : f32, !msl.ptr<f32, device>, i32
  %second = msl.ptr_add %x, %c32 : !msl.ptr<f32, device>, i32
  msl.store %f, %second[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// Rows of 32: the second half of one is the first of the next.
// CHECK-LABEL: @rows_that_meet
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @rows_that_meet(%x: !msl.ptr<f32, device>, %f: f32, %length: i32) threads 128 {
  %c32 = arith.constant 32 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %row = arith.muli %group, %length : i32
  %begin = arith.muli %row, %c32 : i32
  %i = arith.addi %begin, %lane : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  %second = msl.ptr_add %x, %c32 : !msl.ptr<f32, device>, i32
  msl.store %f, %second[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// A uniform number that only one of them adds moves it by any number of rows, and by any number of halves.
// CHECK-LABEL: @uniform_rows
// CHECK: msl.store
// CHECK-NOT: msl.barrier
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @uniform_rows(%x: !msl.ptr<f32, device>, %f: f32, %length: i32, %n: i32) threads 128 {
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %row = arith.muli %group, %length : i32
  %begin = arith.muli %row, %c64 : i32
  %i = arith.addi %begin, %lane : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  %rows = arith.muli %n, %c64 : i32
  %moved = msl.ptr_add %x, %rows : !msl.ptr<f32, device>, i32
  %second = msl.ptr_add %moved, %c32 : !msl.ptr<f32, device>, i32
  msl.store %f, %second[%i] : f32, !msl.ptr<f32, device>, i32
  %halves = arith.muli %n, %c32 : i32
  %third = msl.ptr_add %x, %halves : !msl.ptr<f32, device>, i32
  msl.store %f, %third[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
