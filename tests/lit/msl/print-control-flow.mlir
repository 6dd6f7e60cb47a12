// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// Tiles and numbers that loops carry, exchanged in the first one; branches and a loop with a condition.
// CHECK:      #include <metal_stdlib>
// CHECK-NEXT: using namespace metal;
// CHECK-EMPTY:
// CHECK-NEXT: #pragma METAL fp math_mode(safe)
// CHECK-NEXT: #pragma METAL fp contract(off)
// CHECK-EMPTY:
// CHECK-NEXT: {{\[\[}}kernel, max_total_threads_per_threadgroup(64)]] void flow(
// CHECK-NEXT:     device const float *x {{\[\[}}buffer(0)]],
// CHECK-NEXT:     device float *y {{\[\[}}buffer(1)]],
// CHECK-NEXT:     constant uint *args {{\[\[}}buffer(2)]],
// CHECK-NEXT:     ushort lane {{\[\[}}thread_index_in_simdgroup]]) {
// CHECK-NEXT:   const int n = as_type<int>(args[0]);
// CHECK-NEXT:   float a[8] = {};
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 8; ++i)
// CHECK-NEXT:     a[i] = x[lane + i * 32];
// CHECK-NEXT:   float4 s[2] = {};
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 2; ++i)
// CHECK-NEXT:     s[i] = 0.0f;
// CHECK-NEXT:   int s_1 = 0;
// CHECK-NEXT:   for (int k = 0; k < n; ++k) {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:       float4 a_1 = float4(a[i * 4], a[i * 4 + 1], a[i * 4 + 2], a[i * 4 + 3]);
// CHECK-NEXT:       float4 sum = a_1 + s[i];
// CHECK-NEXT:       a[i * 4] = sum.x;
// CHECK-NEXT:       a[i * 4 + 1] = sum.y;
// CHECK-NEXT:       a[i * 4 + 2] = sum.z;
// CHECK-NEXT:       a[i * 4 + 3] = sum.w;
// CHECK-NEXT:       s[i] = a_1;
// CHECK-NEXT:     }
// CHECK-NEXT:     s_1 = uint(s_1) + k;
// CHECK-NEXT:   }
// CHECK-NEXT:   float4 u[2] = {};
// CHECK-NEXT:   float t;
// CHECK-NEXT:   if (s_1 > 5) {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i)
// CHECK-NEXT:       u[i] = float4(a[i * 4], a[i * 4 + 1], a[i * 4 + 2], a[i * 4 + 3]) * s[i];
// CHECK-NEXT:     t = float(s_1);
// CHECK-NEXT:   } else {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i)
// CHECK-NEXT:       u[i] = s[i];
// CHECK-NEXT:     t = 2.5f;
// CHECK-NEXT:   }
// CHECK-NEXT:   float4 difference[2] = {};
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 2; ++i)
// CHECK-NEXT:     difference[i] = u[i];
// CHECK-NEXT:   int counter = 0;
// CHECK-NEXT:   float product = t;
// CHECK-NEXT:   while (counter < n) {
// CHECK-NEXT:     int index = counter + 1u;
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i)
// CHECK-NEXT:       difference[i] -= product;
// CHECK-NEXT:     counter = index;
// CHECK-NEXT:     product *= float(index);
// CHECK-NEXT:   }
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:     float4 difference_1 = difference[i];
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort j = 0; j < 4; ++j)
// CHECK-NEXT:       y[lane + (i * 128 + j * 32)] = difference_1[j];
// CHECK-NEXT:   }
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 8; ++i)
// CHECK-NEXT:     y[lane + i * 32 + 256] = product;
// CHECK-NEXT: }

msl.kernel @flow(%x: !msl.ptr<f32, device> {msl.readonly, msl.name="x"}, %y: !msl.ptr<f32, device> {msl.name="y"}, %n: i32 {msl.name="n"}) threads 32 {
  %lane = msl.lane : i32
  %ls = msl.splat %lane : vector<8xi32>
  %r = arith.constant dense<[0,32,64,96,128,160,192,224]> : vector<8xi32>
  %o = arith.addi %ls, %r : vector<8xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c256 = arith.constant 256 : i32
  %z = arith.constant dense<0.0> : vector<8xf32>
  %a = msl.load %x[%o] : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32> loc("a")
  // swapped carried tiles
  %s:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %z, %k = %c0) -> (vector<8xf32>, vector<8xf32>, i32) : i32 {
    %add = arith.addf %p, %q : vector<8xf32> loc("sum")
    %kk = arith.addi %k, %i : i32
    scf.yield %add, %p, %kk : vector<8xf32>, vector<8xf32>, i32
  } loc("s")
  %c5 = arith.constant 5 : i32
  %cond = arith.cmpi sgt, %s#2, %c5 : i32
  %t:2 = scf.if %cond -> (vector<8xf32>, f32) {
    %u = arith.mulf %s#0, %s#1 : vector<8xf32> loc("u")
    %f = arith.sitofp %s#2 : i32 to f32
    scf.yield %u, %f : vector<8xf32>, f32
  } else {
    %f = arith.constant 2.5 : f32
    scf.yield %s#1, %f : vector<8xf32>, f32
  } loc("t")
  %w:3 = scf.while (%e = %t#0, %j = %c0, %g = %t#1) : (vector<8xf32>, i32, f32) -> (vector<8xf32>, i32, f32) {
    %m = arith.cmpi slt, %j, %n : i32
    scf.condition(%m) %e, %j, %g : vector<8xf32>, i32, f32
  } do {
    ^bb0(%e: vector<8xf32>, %j: i32, %g: f32):
    %gs = msl.splat %g : vector<8xf32>
    %e2 = arith.subf %e, %gs : vector<8xf32>
    %j2 = arith.addi %j, %c1 : i32
    %jf = arith.sitofp %j2 : i32 to f32
    %g2 = arith.mulf %g, %jf : f32
    scf.yield %e2, %j2, %g2 : vector<8xf32>, i32, f32
  } loc("w")
  msl.store %w#0, %y[%o] : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  %g3 = msl.splat %w#2 : vector<8xf32>
  %o256 = arith.constant dense<256> : vector<8xi32>
  %o2 = arith.addi %o, %o256 : vector<8xi32>
  msl.store %g3, %y[%o2] : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// The two parts of a loop are in one pair of braces, and share no names.
// CHECK-LABEL: void both_parts(
// CHECK: bool more = true;
// CHECK-NEXT: while (more) {
// CHECK-NEXT: float tile[4] = {};
// CHECK: more = counter < n;
// CHECK-NEXT: if (more) {
// CHECK-NEXT: float tile_1[8] = {};
msl.kernel @both_parts(%y: !msl.ptr<f32, device> {msl.name="y"}, %n: i32 {msl.name="n"}) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o4 = arith.constant dense<[0,32,64,96]> : vector<4xi32>
  %o8 = arith.constant dense<[0,32,64,96,128,160,192,224]> : vector<8xi32>
  %w = scf.while (%j = %c0) : (i32) -> i32 {
    %a = msl.load %y[%o4] : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32> loc("tile")
    msl.barrier {device}
    msl.store %a, %y[%o4] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
    %m = arith.cmpi slt, %j, %n : i32
    scf.condition(%m) %j : i32
  } do {
    ^bb0(%j: i32):
    %b = msl.load %y[%o8] : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32> loc("tile")
    msl.barrier {device}
    msl.store %b, %y[%o8] : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
    %k = arith.addi %j, %c1 : i32
    scf.yield %k : i32
  }
  msl.return
}

// A condition that no step changes: the loop has a bound that it never reaches.
// CHECK-LABEL: void endless(
// CHECK:      for (ulong steps = 0; steps < 18446744073709551615ul && n > 0; ++steps) {
// CHECK-NEXT: *y = *y + 1u;
// CHECK-NEXT: }
msl.kernel @endless(%y: !msl.ptr<i32, device> {msl.name="y"}, %n: i32 {msl.name="n"}) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.while : () -> () {
    %m = arith.cmpi sgt, %n, %c0 : i32
    scf.condition(%m)
  } do {
    %v = msl.load %y[%c0] : !msl.ptr<i32, device>, i32 -> i32
    %w = arith.addi %v, %c1 : i32
    msl.store %w, %y[%c0] : i32, !msl.ptr<i32, device>, i32
    scf.yield
  }
  msl.return
}
