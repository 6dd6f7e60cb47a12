// RUN: triton-metal-opt %s --msl-expand-thread-indices | FileCheck %s

// One sum at the top for all that are equal: neighbouring bits whose numbers double are one field of the position.
// CHECK-LABEL: msl.kernel @sums
// CHECK-NEXT: %[[LANE:.*]] = msl.lane : i32
// CHECK-NEXT: %[[SIMDGROUP:.*]] = msl.simdgroup : i32
// CHECK: %[[A:.*]] = arith.muli %[[SIMDGROUP]], %c16_i32
// CHECK: %[[LOW:.*]] = arith.andi %[[LANE]], %c7_i32
// CHECK: %[[B:.*]] = arith.muli %[[LOW]], %c2_i32
// CHECK: %[[SUM:.*]] = arith.addi %[[A]], %[[B]]
// CHECK: scf.for
// CHECK-NOT: msl.thread_index
// CHECK: msl.store %arg1, %arg0[%[[SUM]]]
// CHECK: msl.store %arg1, %arg0[%[[SUM]]]
msl.kernel @sums(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %t = msl.thread_index lanes [2, 4, 8, 0, 0] simdgroups [16, 32] : i32
    msl.store %f, %x[%t] : f32, !msl.ptr<f32, device>, i32
  }
  %u = msl.thread_index lanes [2, 4, 8, 0, 0] simdgroups [16, 32] : i32
  msl.store %f, %x[%u] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// The positions themselves.
// CHECK-LABEL: msl.kernel @positions
// CHECK: %[[LANE:.*]] = msl.lane : i32
// CHECK-NOT: msl.simdgroup
// CHECK: msl.store %arg1, %arg0[%[[LANE]]]
msl.kernel @positions(%x: !msl.ptr<f32, device>, %f: f32) threads 32 {
  %t = msl.thread_index lanes [1, 2, 4, 8, 16] simdgroups [] : i32
  msl.store %f, %x[%t] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// A thread index that is the kernel's first operation.
// CHECK-LABEL: msl.kernel @first
// CHECK-NEXT: %[[LANE:.*]] = msl.lane : i32
// CHECK: %[[TWICE:.*]] = arith.muli %[[LANE]], %c2_i32
// CHECK: msl.store %arg1, %arg0[%[[TWICE]]]
// CHECK: msl.store %arg1, %arg0[%[[LANE]]]
msl.kernel @first(%x: !msl.ptr<f32, device>, %f: f32) threads 32 {
  %t = msl.thread_index lanes [2, 4, 8, 16, 32] simdgroups [] : i32
  msl.store %f, %x[%t] : f32, !msl.ptr<f32, device>, i32
  %u = msl.thread_index lanes [1, 2, 4, 8, 16] simdgroups [] : i32
  msl.store %f, %x[%u] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// A place in a tile with rows of 24 numbers is made of its row and its column.
// CHECK-LABEL: msl.kernel @place
// CHECK: %[[LANE:.*]] = msl.lane
// CHECK: %[[GROUP:.*]] = msl.simdgroup
// CHECK: %[[GROUPS:.*]] = arith.muli %[[GROUP]], %c16_i32
// CHECK: %[[HIGH:.*]] = arith.shrui %[[LANE]], %c1_i32
// CHECK: %[[ROW:.*]] = arith.addi %[[GROUPS]], %[[HIGH]]
// CHECK: %[[ROWS:.*]] = arith.muli %[[ROW]], %c24_i32
// CHECK: %[[LOW:.*]] = arith.andi %[[LANE]], %c1_i32
// CHECK: %[[COLUMN:.*]] = arith.muli %[[LOW]], %c8_i32
// CHECK: %[[PLACE:.*]] = arith.addi %[[ROWS]], %[[COLUMN]]
// CHECK: msl.store %[[PLACE]], %arg0[%[[ROW]]]
msl.kernel @place(%x: !msl.ptr<i32, device>) threads 64 {
  %place = msl.thread_index lanes [8, 24, 48, 96, 192] simdgroups [384] : i32
  %row = msl.thread_index lanes [0, 1, 2, 4, 8] simdgroups [16] : i32
  msl.store %place, %x[%row] : i32, <i32, device>, i32
  msl.return
}

// -----

// One whose bits have other ratios is a sum of its own, and so is what has a number for a bit that the row has not.
// CHECK-LABEL: msl.kernel @no_multiple
// CHECK: %[[LANE:.*]] = msl.lane
// CHECK: %[[GROUP:.*]] = msl.simdgroup
// CHECK: %[[GROUPS:.*]] = arith.muli %[[GROUP]], %c100_i32
// CHECK: %[[HIGH:.*]] = arith.shrui %[[LANE]], %c1_i32
// CHECK: %[[ROWS:.*]] = arith.muli %[[HIGH]], %c24_i32
// CHECK: %[[PLACE:.*]] = arith.addi %[[GROUPS]], %[[ROWS]]
msl.kernel @no_multiple(%x: !msl.ptr<i32, device>) threads 64 {
  %place = msl.thread_index lanes [0, 24, 48, 96, 192] simdgroups [100] : i32
  %row = msl.thread_index lanes [0, 1, 2, 4, 8] simdgroups [16] : i32
  msl.store %place, %x[%row] : i32, <i32, device>, i32
  msl.return
}

// A row of a fragment is part of a row of the tile, and times 68 part of a place: it is computed once.
// CHECK-LABEL: msl.kernel @shared
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: %[[ROWS:.*]] = arith.addi %[[ROW]], %{{.*}} : i32
// CHECK: %[[FAR:.*]] = arith.muli %{{.*}}, %c68_i32 : i32
// CHECK-NOT: %c272_i32
// CHECK: msl.store %arg1, %arg0[%[[ROWS]]]
msl.kernel @shared(%x: !msl.ptr<f32, device>, %f: f32) threads 128 {
  %rows = msl.thread_index lanes [0, 1, 2, 0, 4] simdgroups [0, 32] : i32
  %place = msl.thread_index lanes [2, 68, 136, 4, 272] simdgroups [32, 0] : i32
  msl.store %f, %x[%rows] : f32, !msl.ptr<f32, device>, i32
  msl.store %f, %x[%place] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
