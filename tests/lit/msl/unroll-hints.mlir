// RUN: triton-metal-opt %s --msl-unroll-hints | FileCheck %s

// CHECK-LABEL: msl.kernel @k
msl.kernel @k(%x: !msl.ptr<f32, device>) threads 32 {
  // CHECK: msl.unroll %{{.*}} = 0 to 8 pragma {
  msl.unroll %i = 0 to 8 {
    %v = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.write %v, %x[%i : i32] : f32, !msl.ptr<f32, device>
  }
  // More iterations than are worth it, counted through what is inside.
  // CHECK: msl.unroll %{{.*}} = 0 to 32 {
  // CHECK:   msl.unroll %{{.*}} = 0 to 16 pragma {
  msl.unroll %i = 0 to 32 {
    msl.unroll %j = 0 to 16 {
      %v = msl.read %x[%j : i32] : !msl.ptr<f32, device> -> f32
      msl.write %v, %x[%i : i32] : f32, !msl.ptr<f32, device>
    }
  }
  // More numbers than a thread's registers hold.
  %large = msl.var : !msl.array<128 x vector<4xf32>>
  // CHECK: msl.unroll %{{.*}} = 0 to 128 {
  msl.unroll %i = 0 to 128 {
    %v = msl.get %large[%i] : !msl.array<128 x vector<4xf32>> -> vector<4xf32>
    msl.set %v, %large[%i] : vector<4xf32>, !msl.array<128 x vector<4xf32>>
  }
  // Matrices have no index at run time.
  %matrices = msl.var : !msl.array<512 x !msl.matrix<8x8xf32>>
  %zero = arith.constant 0.0 : f32
  // CHECK: msl.unroll %{{.*}} = 0 to 512 pragma {
  msl.unroll %i = 0 to 512 {
    msl.fill %zero, %matrices[%i] : f32, !msl.array<512 x !msl.matrix<8x8xf32>>
  }
  msl.return
}

// A kernel whose loops become long together has none that is unrolled, but for those over matrices.
// CHECK-LABEL: msl.kernel @together
msl.kernel @together(%x: !msl.ptr<f32, device>) threads 32 {
  // CHECK: msl.unroll %{{.*}} = 0 to 256 {
  msl.unroll %i0 = 0 to 256 {
    %v = msl.read %x[%i0 : i32] : !msl.ptr<f32, device> -> f32
    %a0 = arith.addf %v, %v : f32
    %a1 = arith.addf %a0, %v : f32
    %a2 = arith.addf %a1, %v : f32
    %a3 = arith.addf %a2, %v : f32
    %a4 = arith.addf %a3, %v : f32
    %a5 = arith.addf %a4, %v : f32
    %a6 = arith.addf %a5, %v : f32
    %a7 = arith.addf %a6, %v : f32
    %a8 = arith.addf %a7, %v : f32
    %a9 = arith.addf %a8, %v : f32
    %a10 = arith.addf %a9, %v : f32
    %a11 = arith.addf %a10, %v : f32
    msl.write %a11, %x[%i0 : i32] : f32, !msl.ptr<f32, device>
  }
  // CHECK: msl.unroll %{{.*}} = 0 to 256 {
  msl.unroll %i1 = 0 to 256 {
    %v = msl.read %x[%i1 : i32] : !msl.ptr<f32, device> -> f32
    %a0 = arith.addf %v, %v : f32
    %a1 = arith.addf %a0, %v : f32
    %a2 = arith.addf %a1, %v : f32
    %a3 = arith.addf %a2, %v : f32
    %a4 = arith.addf %a3, %v : f32
    %a5 = arith.addf %a4, %v : f32
    %a6 = arith.addf %a5, %v : f32
    %a7 = arith.addf %a6, %v : f32
    %a8 = arith.addf %a7, %v : f32
    %a9 = arith.addf %a8, %v : f32
    %a10 = arith.addf %a9, %v : f32
    %a11 = arith.addf %a10, %v : f32
    msl.write %a11, %x[%i1 : i32] : f32, !msl.ptr<f32, device>
  }
  // CHECK: msl.unroll %{{.*}} = 0 to 256 {
  msl.unroll %i2 = 0 to 256 {
    %v = msl.read %x[%i2 : i32] : !msl.ptr<f32, device> -> f32
    %a0 = arith.addf %v, %v : f32
    %a1 = arith.addf %a0, %v : f32
    %a2 = arith.addf %a1, %v : f32
    %a3 = arith.addf %a2, %v : f32
    %a4 = arith.addf %a3, %v : f32
    %a5 = arith.addf %a4, %v : f32
    %a6 = arith.addf %a5, %v : f32
    %a7 = arith.addf %a6, %v : f32
    %a8 = arith.addf %a7, %v : f32
    %a9 = arith.addf %a8, %v : f32
    %a10 = arith.addf %a9, %v : f32
    %a11 = arith.addf %a10, %v : f32
    msl.write %a11, %x[%i2 : i32] : f32, !msl.ptr<f32, device>
  }
  // CHECK: msl.unroll %{{.*}} = 0 to 256 {
  msl.unroll %i3 = 0 to 256 {
    %v = msl.read %x[%i3 : i32] : !msl.ptr<f32, device> -> f32
    %a0 = arith.addf %v, %v : f32
    %a1 = arith.addf %a0, %v : f32
    %a2 = arith.addf %a1, %v : f32
    %a3 = arith.addf %a2, %v : f32
    %a4 = arith.addf %a3, %v : f32
    %a5 = arith.addf %a4, %v : f32
    %a6 = arith.addf %a5, %v : f32
    %a7 = arith.addf %a6, %v : f32
    %a8 = arith.addf %a7, %v : f32
    %a9 = arith.addf %a8, %v : f32
    %a10 = arith.addf %a9, %v : f32
    %a11 = arith.addf %a10, %v : f32
    msl.write %a11, %x[%i3 : i32] : f32, !msl.ptr<f32, device>
  }
  // CHECK: msl.unroll %{{.*}} = 0 to 256 {
  msl.unroll %i4 = 0 to 256 {
    %v = msl.read %x[%i4 : i32] : !msl.ptr<f32, device> -> f32
    %a0 = arith.addf %v, %v : f32
    %a1 = arith.addf %a0, %v : f32
    %a2 = arith.addf %a1, %v : f32
    %a3 = arith.addf %a2, %v : f32
    %a4 = arith.addf %a3, %v : f32
    %a5 = arith.addf %a4, %v : f32
    %a6 = arith.addf %a5, %v : f32
    %a7 = arith.addf %a6, %v : f32
    %a8 = arith.addf %a7, %v : f32
    %a9 = arith.addf %a8, %v : f32
    %a10 = arith.addf %a9, %v : f32
    %a11 = arith.addf %a10, %v : f32
    msl.write %a11, %x[%i4 : i32] : f32, !msl.ptr<f32, device>
  }
  %matrices = msl.var : !msl.array<8 x !msl.matrix<8x8xf32>>
  %zero = arith.constant 0.0 : f32
  // CHECK: msl.unroll %{{.*}} = 0 to 8 pragma {
  msl.unroll %i = 0 to 8 {
    msl.fill %zero, %matrices[%i] : f32, !msl.array<8 x !msl.matrix<8x8xf32>>
  }
  msl.return
}
