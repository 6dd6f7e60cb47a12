// RUN: triton-metal-opt %s --split-input-file --msl-share-pointers | FileCheck %s

// Four places of a thread behind a pointer that all threads have: one pointer of the thread's own, and constants.
// CHECK-LABEL: @four_places
// CHECK: %[[LANE:.*]] = msl.lane
// CHECK: %[[OWN:.*]] = msl.ptr_add %arg0, %[[LANE]]
// CHECK: msl.read %[[OWN]] :
// CHECK: %[[C32:.*]] = arith.constant 32 : i32
// CHECK: msl.read %[[OWN]][%[[C32]] : i32]
// CHECK: msl.read %[[OWN]][%{{.*}} : i32]
// CHECK: msl.write %{{.*}}, %[[OWN]][%{{.*}} : i32]
msl.kernel @four_places(%x: !msl.ptr<f32, device>) threads 32 {
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %lane = msl.lane : i32
  %second = arith.addi %lane, %c32 : i32
  %third = arith.addi %lane, %c64 : i32
  %fourth = arith.addi %lane, %c96 : i32
  %a = msl.read %x[%lane : i32] : !msl.ptr<f32, device> -> f32
  %b = msl.read %x[%second : i32] : !msl.ptr<f32, device> -> f32
  %c = msl.read %x[%third : i32] : !msl.ptr<f32, device> -> f32
  %ab = arith.addf %a, %b : f32
  %abc = arith.addf %ab, %c : f32
  msl.write %abc, %x[%fourth : i32] : f32, !msl.ptr<f32, device>
  msl.return
}

// -----

// Three take no more registers as they are.
// CHECK-LABEL: @three_places
// CHECK-NOT: msl.ptr_add
// CHECK: msl.return
msl.kernel @three_places(%x: !msl.ptr<f32, device>) threads 32 {
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %lane = msl.lane : i32
  %second = arith.addi %lane, %c32 : i32
  %third = arith.addi %lane, %c64 : i32
  %a = msl.read %x[%lane : i32] : !msl.ptr<f32, device> -> f32
  %b = msl.read %x[%second : i32] : !msl.ptr<f32, device> -> f32
  %ab = arith.addf %a, %b : f32
  msl.write %ab, %x[%third : i32] : f32, !msl.ptr<f32, device>
  msl.return
}

// -----

// A row of the thread's own: two places are enough, also where the pointer itself has a constant. The pointer is
// made before the loop.
// CHECK-LABEL: @row_of_a_thread
// CHECK: %[[ROW:.*]] = msl.ptr_add %arg0, %{{.*}}
// CHECK: %[[OWN:.*]] = msl.ptr_add %[[ROW]], %{{.*}}
// CHECK: scf.for
// CHECK:   msl.read %[[OWN]] :
// CHECK:   %[[C48:.*]] = arith.constant 48 : i32
// CHECK:   msl.write %{{.*}}, %[[OWN]][%[[C48]] : i32]
msl.kernel @row_of_a_thread(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %c3 = arith.constant 3 : i32
  %c48 = arith.constant 48 : i32
  %c96 = arith.constant 96 : i32
  %lane = msl.lane : i32
  %high = arith.shrui %lane, %c3 : i32
  %low = arith.andi %lane, %c7 : i32
  %rows = arith.muli %high, %c96 : i32
  %row = msl.ptr_add %x, %rows : !msl.ptr<f32, device>, i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %half = msl.ptr_add %row, %c48 : !msl.ptr<f32, device>, i32
    %a = msl.read %row[%low : i32] : !msl.ptr<f32, device> -> f32
    msl.write %a, %half[%low : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// The sums may wrap around.
// CHECK-LABEL: @sums_that_wrap
// CHECK-NOT: msl.ptr_add
// CHECK: msl.return
msl.kernel @sums_that_wrap(%x: !msl.ptr<f32, device>, %begin: i32) threads 32 {
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %lane = msl.lane : i32
  %first = arith.addi %lane, %begin : i32
  %second = arith.addi %first, %c32 : i32
  %third = arith.addi %first, %c64 : i32
  %fourth = arith.addi %first, %c96 : i32
  %a = msl.read %x[%first : i32] : !msl.ptr<f32, device> -> f32
  %b = msl.read %x[%second : i32] : !msl.ptr<f32, device> -> f32
  %c = msl.read %x[%third : i32] : !msl.ptr<f32, device> -> f32
  %ab = arith.addf %a, %b : f32
  %abc = arith.addf %ab, %c : f32
  msl.write %abc, %x[%fourth : i32] : f32, !msl.ptr<f32, device>
  msl.return
}

// -----

// Bytes keep one offset from their buffer.
// CHECK-LABEL: @bytes
// CHECK-NOT: msl.ptr_add
// CHECK: msl.return
msl.kernel @bytes(%x: !msl.ptr<i8, device>) threads 32 {
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %lane = msl.lane : i32
  %second = arith.addi %lane, %c32 : i32
  %third = arith.addi %lane, %c64 : i32
  %fourth = arith.addi %lane, %c96 : i32
  %a = msl.read %x[%lane : i32] : !msl.ptr<i8, device> -> i8
  msl.write %a, %x[%second : i32] : i8, !msl.ptr<i8, device>
  msl.write %a, %x[%third : i32] : i8, !msl.ptr<i8, device>
  msl.write %a, %x[%fourth : i32] : i8, !msl.ptr<i8, device>
  msl.return
}
