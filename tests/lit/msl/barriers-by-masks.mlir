// RUN: triton-metal-opt %s --split-input-file --msl-insert-barriers --msl-check-barriers | FileCheck %s

// The mask keeps the first store in front of where the second one begins.
// CHECK-LABEL: @below
// CHECK: msl.store
// CHECK-NOT: msl.barrier
// CHECK: msl.store
msl.kernel @below(%x: !msl.ptr<f32, device>, %number: f32, %row: i32, %half: i32) threads 128 {
  %f = msl.splat %number : vector<2xf32>
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %c32 = arith.constant 32 : i32
  %first = arith.muli %group, %c32 : i32
  %thread = arith.addi %first, %lane : i32
  %t = msl.splat %thread : vector<2xi32>
  %r = arith.constant dense<[0, 128]> : vector<2xi32>
  %o = arith.addi %t, %r : vector<2xi32>
  %h = msl.splat %half : vector<2xi32>
  %m = arith.cmpi slt, %o, %h : vector<2xi32>
  %begin = msl.ptr_add %x, %row : !msl.ptr<f32, device>, i32
  msl.store %f, %begin[%o] mask %m : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  %second = msl.ptr_add %begin, %half : !msl.ptr<f32, device>, i32
  msl.store %f, %second[%o] mask %m : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}

// -----

// Up to and with the bound: one element may meet.
// CHECK-LABEL: @meets
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @meets(%x: !msl.ptr<f32, device>, %number: f32, %half: i32) threads 128 {
  %f = msl.splat %number : vector<2xf32>
  %lane = msl.lane : i32
  %t = msl.splat %lane : vector<2xi32>
  %r = arith.constant dense<[0, 32]> : vector<2xi32>
  %o = arith.addi %t, %r : vector<2xi32>
  %h = msl.splat %half : vector<2xi32>
  %m = arith.cmpi sle, %o, %h : vector<2xi32>
  msl.store %f, %x[%o] mask %m : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  %second = msl.ptr_add %x, %half : !msl.ptr<f32, device>, i32
  msl.store %f, %second[%o] mask %m : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}

// -----

// The mask bounds another number than the offset.
// CHECK-LABEL: @other
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @other(%x: !msl.ptr<f32, device>, %number: f32, %half: i32) threads 128 {
  %f = msl.splat %number : vector<2xf32>
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %t = msl.splat %lane : vector<2xi32>
  %g = msl.splat %group : vector<2xi32>
  %r = arith.constant dense<[0, 32]> : vector<2xi32>
  %o = arith.addi %t, %r : vector<2xi32>
  %p = arith.addi %g, %r : vector<2xi32>
  %h = msl.splat %half : vector<2xi32>
  %m = arith.cmpi slt, %p, %h : vector<2xi32>
  msl.store %f, %x[%o] mask %m : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  %second = msl.ptr_add %x, %half : !msl.ptr<f32, device>, i32
  msl.store %f, %second[%o] mask %m : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}

// -----

// A start that may be far below 0: its sum with the bound may wrap around.
// CHECK-LABEL: @wraps
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK: msl.store
msl.kernel @wraps(%x: !msl.ptr<f32, device>, %number: f32, %start: i32, %half: i32) threads 128 {
  %f = msl.splat %number : vector<2xf32>
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %t = msl.splat %lane : vector<2xi32>
  %s = msl.splat %start : vector<2xi32>
  %r = arith.constant dense<[0, 32]> : vector<2xi32>
  %o = arith.addi %t, %r : vector<2xi32>
  %p = arith.addi %o, %s : vector<2xi32>
  %h = msl.splat %half : vector<2xi32>
  %m = arith.cmpi slt, %p, %h : vector<2xi32>
  msl.store %f, %x[%p] mask %m : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  %second = msl.ptr_add %x, %half : !msl.ptr<f32, device>, i32
  msl.store %f, %second[%o] mask %m : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}
