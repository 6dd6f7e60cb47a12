// RUN: triton-metal-opt %s --msl-mark-read-only | FileCheck %s

// An argument is read-only if no access that may write goes to its memory.

// CHECK-LABEL: msl.kernel @copy(
// CHECK-SAME: %{{.*}}: !msl.ptr<f32, device> {msl.readonly}, %{{.*}}: !msl.ptr<f32, device>)
msl.kernel @copy(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %zero = arith.constant 0 : i32
  %v = msl.load %x[%zero] : !msl.ptr<f32, device>, i32 -> f32
  msl.store %v, %y[%zero] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// A pointer that a loop carries is followed to where it comes from.
// CHECK-LABEL: msl.kernel @carried(
// CHECK-SAME: %{{.*}}: !msl.ptr<f32, device> {msl.readonly}, %{{.*}}: !msl.ptr<f32, device>, %{{.*}}: i32)
msl.kernel @carried(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %end = scf.for %i = %zero to %n step %one iter_args(%p = %y) -> !msl.ptr<f32, device> : i32 {
    %v = msl.load %x[%i] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %v, %p[%zero] : f32, !msl.ptr<f32, device>, i32
    %next = msl.ptr_add %p, %one : !msl.ptr<f32, device>, i32
    scf.yield %next : !msl.ptr<f32, device>
  }
  msl.return
}

// A write to an address that comes from memory may go anywhere.
// CHECK-LABEL: msl.kernel @anywhere(
// CHECK-SAME: %{{.*}}: !msl.ptr<i64, device>, %{{.*}}: !msl.ptr<f32, device>)
msl.kernel @anywhere(%x: !msl.ptr<i64, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %zero = arith.constant 0 : i32
  %address = msl.load %x[%zero] : !msl.ptr<i64, device>, i32 -> i64
  %v = msl.load %y[%zero] : !msl.ptr<f32, device>, i32 -> f32
  msl.store_address %v, %address : f32, i64
  msl.return
}
