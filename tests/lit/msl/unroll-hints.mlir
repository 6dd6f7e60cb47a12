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
