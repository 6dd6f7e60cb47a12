// RUN: triton-metal-opt %s | triton-metal-opt | FileCheck %s

// CHECK-LABEL: msl.kernel @values(%arg0: !msl.ptr<f16, device> {msl.name = "x", msl.readonly}, %arg1: i64) threads 64
msl.kernel @values(%x: !msl.ptr<f16, device> {msl.name = "x", msl.readonly}, %n: i64) threads 64 {
  %c0 = arith.constant 0 : i32
  // CHECK: msl.lane : i32
  %lane = msl.lane : i32
  // CHECK: msl.program_id 2 : i32
  %id = msl.program_id 2 : i32
  // CHECK: msl.num_programs 1 : i32
  %count = msl.num_programs 1 : i32
  // CHECK: msl.mulhi unsigned {{.*}} : i32
  %high = msl.mulhi unsigned %id, %count : i32
  %o = msl.splat %high : vector<4xi32>
  %m = arith.cmpi slt, %o, %o : vector<4xi32>
  %f = arith.cmpi slt, %id, %count : i32
  %z = arith.constant dense<0.0> : vector<4xf16>
  // CHECK: msl.load %arg0[{{.*}}] mask {{.*}} other {{.*}} full {{.*}} {mask_width = 2 : i32, width = 4 : i32} : <f16, device>, vector<4xi32> -> vector<4xf16>
  %v = msl.load %x[%o] mask %m other %z full %f {mask_width = 2 : i32, width = 4 : i32} : !msl.ptr<f16, device>, vector<4xi32> -> vector<4xf16>
  // CHECK: msl.simd_reduce max {{.*}} : vector<4xf16>
  %r = msl.simd_reduce max %v : vector<4xf16>
  // CHECK: msl.simd_shuffle_xor {{.*}}, 16 : vector<4xf16>
  %s = msl.simd_shuffle_xor %r, 16 : vector<4xf16>
  // CHECK: msl.simd_shuffle {{.*}} : vector<4xf16>, i32
  %t = msl.simd_shuffle %s, %lane : vector<4xf16>, i32
  // CHECK: msl.alloc "tile", 64 at 128 : <f16, threadgroup>
  %tile = msl.alloc "tile", 64 at 128 : !msl.ptr<f16, threadgroup>
  // CHECK: msl.barrier device
  msl.barrier device
  msl.barrier
  // CHECK: msl.permute_registers {{.*}} {bases = array<i64: 0, 2>, offset = 1 : i64} : vector<4xf16> -> vector<4xf16>
  %p = msl.permute_registers %t {bases = array<i64: 0, 2>, offset = 1} : vector<4xf16> -> vector<4xf16>
  // CHECK: msl.store {{.*}}, {{.*}}[{{.*}}] : vector<4xf16>, <f16, threadgroup>, vector<4xi32>
  msl.store %p, %tile[%o] : vector<4xf16>, !msl.ptr<f16, threadgroup>, vector<4xi32>
  %address = msl.ptr_to_int %x : !msl.ptr<f16, device>
  // CHECK: msl.load_address {{.*}} : i64 -> f16
  %w = msl.load_address %address : i64 -> f16
  // CHECK: msl.reduce_registers({{.*}}) bits 1
  %q = msl.reduce_registers (%p) bits 1 {
    ^bb0(%a: f16, %b: f16):
      %c = arith.addf %a, %b : f16
      msl.yield %c : f16
  } : (vector<4xf16>) -> vector<2xf16>
  msl.return
}

// CHECK-LABEL: msl.kernel @loops
msl.kernel @loops(%x: !msl.ptr<f16, device>) threads 32 {
  %c2 = arith.constant 2 : i32
  // CHECK: msl.var : <2xvector<4xf16>>
  %v = msl.var : !msl.array<2xvector<4xf16>>
  // CHECK: msl.var : <2x!msl.matrix<8x8xf16>>
  %a = msl.var : !msl.array<2x!msl.matrix<8x8xf16>>
  // CHECK: msl.unroll %{{.*}} = 0 to 2 {
  msl.unroll %i = 0 to 2 {
    // CHECK: msl.read %arg0[{{.*}} : i32] : <f16, device> -> vector<4xi32>
    %r = msl.read %x[%i : i32] : !msl.ptr<f16, device> -> vector<4xi32>
    // CHECK: msl.swizzle {{.*}} [0, 1] : vector<4xi32> -> vector<2xi32>
    %s = msl.swizzle %r [0, 1] : vector<4xi32> -> vector<2xi32>
    // CHECK: msl.as_type {{.*}} : vector<2xi32> -> vector<4xf16>
    %h = msl.as_type %s : vector<2xi32> -> vector<4xf16>
    // CHECK: msl.set {{.*}}, {{.*}}[{{.*}}] : vector<4xf16>, <2xvector<4xf16>>
    msl.set %h, %v[%i] : vector<4xf16>, !msl.array<2xvector<4xf16>>
    // CHECK: msl.get {{.*}}[{{.*}}] element {{.*}} : <2xvector<4xf16>> -> f16
    %e = msl.get %v[%i] element %c2 : !msl.array<2xvector<4xf16>> -> f16
    // CHECK: msl.fill {{.*}}, {{.*}}[{{.*}}] : f16, <2x!msl.matrix<8x8xf16>>
    msl.fill %e, %a[%i] : f16, !msl.array<2x!msl.matrix<8x8xf16>>
    // CHECK: msl.write {{.*}}, %arg0 : f16, <f16, device>
    msl.write %e, %x : f16, !msl.ptr<f16, device>
  }
  msl.return
}
