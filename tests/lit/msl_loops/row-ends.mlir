// RUN: triton-metal-opt %s --msl-form-tile-loops --msl-place-tiles --msl-lower-reductions --msl-form-loops --msl-lower-chunks --canonicalize --cse | FileCheck %s

// A mask that is true up to some register (`mask_run`): each step asks its last register, and then its first one. Registers
// that are all inside are one access, those behind the end none, and between them each is asked.
// CHECK-LABEL: msl.kernel @row
// CHECK:       %[[LAST:.*]] = arith.cmpi slt, %{{.*}}, %arg2
// CHECK-NEXT:  scf.if %[[LAST]] {
// CHECK:         %[[V:.*]] = msl.read %arg0[%{{.*}}] {unaligned} : <f32, device> -> vector<4xf32>
// CHECK-NOT:     arith.select
// CHECK:         arith.mulf %[[V]], %[[V]]
// CHECK-NOT:     scf.if
// CHECK:         msl.write %{{.*}}, %arg1[%{{.*}}] {unaligned} : vector<4xf32>
// CHECK:       } else {
// CHECK:         scf.if
// CHECK:           %[[GROUP:.*]] = msl.ptr_add %arg0, %{{.*}} : <f32, device>, i32
// CHECK:           msl.unroll %[[I:.*]] = 0 to 4
// CHECK:           msl.read %[[GROUP]][%[[I]] : i32] if %{{.*}} else %{{.*}} -> f32
// CHECK:           arith.select
// CHECK:           scf.if
// CHECK-NEXT:        msl.write %{{.*}} : f32
// CHECK:         }
// CHECK-NOT:     msl.read
// CHECK-NOT:     msl.write
// CHECK:       msl.return
msl.kernel @row(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %one = arith.constant dense<1.0> : vector<8xf32>
  %ns = msl.splat %n : vector<8xi32>
  %m = arith.cmpi slt, %o, %ns : vector<8xi32>
  %v = msl.load %x[%o] mask %m other %one {width = 4 : i32, mask_run = 4 : i32, unaligned} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %w = arith.mulf %v, %v : vector<8xf32>
  %s = arith.select %m, %w, %one : vector<8xi1>, vector<8xf32>
  msl.store %s, %y[%o] mask %m {width = 4 : i32, mask_run = 4 : i32, unaligned} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// Not every compiler has packed vectors of bfloat: its bits are read.
// CHECK-LABEL: msl.kernel @bits
// CHECK: %[[READ:.*]] = msl.read %arg0[%{{.*}}] {unaligned} : <bf16, device> -> vector<4xi16>
// CHECK: msl.as_type %[[READ]] : vector<4xi16> -> vector<4xbf16>
// CHECK: msl.write %{{.*}}, %arg1[%{{.*}}] {unaligned} : vector<4xi16>
msl.kernel @bits(%x: !msl.ptr<bf16, device>, %y: !msl.ptr<bf16, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %v = msl.load %x[%o] {width = 4 : i32, unaligned} : !msl.ptr<bf16, device>, vector<8xi32> -> vector<8xbf16>
  %w = arith.addf %v, %v : vector<8xbf16>
  msl.store %w, %y[%o] {width = 4 : i32, unaligned} : vector<8xbf16>, !msl.ptr<bf16, device>, vector<8xi32>
  msl.return
}

// Masks of which nothing is known are asked one by one.
// CHECK-LABEL: msl.kernel @anywhere
// CHECK-NOT: scf.if
// CHECK: msl.read %arg0[%{{.*}}] if %{{.*}} -> f32
// CHECK-NOT: scf.if
// CHECK: msl.return
msl.kernel @anywhere(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %ns = msl.splat %n : vector<8xi32>
  %m = arith.cmpi ne, %o, %ns : vector<8xi32>
  %v = msl.load %x[%o] mask %m {width = 4 : i32, unaligned} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  msl.store %v, %y[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// Conditions that are known: the read is made, or not.
// CHECK-LABEL: msl.kernel @known
// CHECK: %[[READ:.*]] = msl.read %arg0[%c0_i32 : i32] : <f32, device> -> f32
// CHECK-NOT: msl.read
// CHECK: msl.write %[[READ]], %arg1[%c0_i32 : i32]
// CHECK: msl.write %arg2, %arg1[%c1_i32 : i32]
msl.kernel @known(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %other: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %false = arith.constant false
  %v = msl.read %x[%c0 : i32] if %true else %other : <f32, device> -> f32
  %w = msl.read %x[%c1 : i32] if %false else %other : <f32, device> -> f32
  msl.write %v, %y[%c0 : i32] : f32, <f32, device>
  msl.write %w, %y[%c1 : i32] : f32, <f32, device>
  msl.return
}

// One access asks for a test of the whole tile: then all accesses under its mask have a body without masks, vectors too.
// CHECK-LABEL: msl.kernel @shared
// CHECK:       scf.if %arg4 {
// CHECK-NEXT:    %[[V:.*]] = msl.read %arg0[%{{.*}}] {unaligned} : <f32, device> -> vector<4xf32>
// CHECK-NOT:     scf.if
// CHECK-NOT:     if %
// CHECK:         msl.read %arg1[%{{.*}} : i32] : <f32, device> -> f32
// CHECK-NOT:     scf.if
// CHECK:         msl.write %{{.*}}, %arg2[%{{.*}}] {unaligned} : vector<4xf32>
// CHECK:       } else {
// CHECK:         scf.if
// CHECK:       msl.return
msl.kernel @shared(%x: !msl.ptr<f32, device>, %rows: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %all: i1) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %one = arith.constant dense<1.0> : vector<4xf32>
  %ns = msl.splat %n : vector<4xi32>
  %m = arith.cmpi slt, %o, %ns : vector<4xi32>
  %v = msl.load %x[%o] mask %m other %one {width = 4 : i32, mask_run = 4 : i32, unaligned} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  %r = arith.divsi %o, %ns : vector<4xi32>
  %w = msl.load %rows[%r] mask %m other %one full %all : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  %p = arith.mulf %v, %w : vector<4xf32>
  msl.store %p, %y[%o] mask %m {width = 4 : i32, mask_run = 4 : i32, unaligned} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}
