// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// Functions that Metal lacks come with the text; versions are named.
// CHECK:      #include <metal_stdlib>
// CHECK-NEXT: using namespace metal;
// CHECK-EMPTY:
// CHECK-NEXT: #pragma METAL fp math_mode(safe)
// CHECK-NEXT: #pragma METAL fp contract(off)
// CHECK-EMPTY:
// CHECK-NEXT: // The error function, within 3 units in the last place.
// CHECK-NEXT: template <typename T> __attribute__((always_inline)) T error_function(T x) {
// CHECK-NEXT:   T a = fabs(x), s = a * a, t = a - 2.5f;
// CHECK-NEXT:   T p = T(-9.667045e-6f);
// CHECK-NEXT:   p = fma(p, s, T(1.1265959e-4f));
// CHECK-NEXT:   p = fma(p, s, T(-8.4840803e-4f));
// CHECK-NEXT:   p = fma(p, s, T(5.2210316e-3f));
// CHECK-NEXT:   p = fma(p, s, T(-2.686543e-2f));
// CHECK-NEXT:   p = fma(p, s, T(1.1283782e-1f));
// CHECK-NEXT:   p = fma(p, s, T(-3.7612638e-1f));
// CHECK-NEXT:   p = fma(p, s, T(1.1283792f));
// CHECK-NEXT:   T q = T(1.6371514e-6f);
// CHECK-NEXT:   q = fma(q, t, T(-1.3315014e-5f));
// CHECK-NEXT:   q = fma(q, t, T(7.729138e-5f));
// CHECK-NEXT:   q = fma(q, t, T(-4.2012252e-4f));
// CHECK-NEXT:   q = fma(q, t, T(2.1653036e-3f));
// CHECK-NEXT:   q = fma(q, t, T(-1.0858541e-2f));
// CHECK-NEXT:   q = fma(q, t, T(-9.4389373e-1f));
// CHECK-NEXT:   q = fma(q, t, T(-5.3526807f));
// CHECK-NEXT:   q = fma(q, t, T(-7.806815f));
// CHECK-NEXT:   T far = select(T(1.0f), 1.0f - precise::exp(q), a < 4.0f);
// CHECK-NEXT:   return select(copysign(select(far, p * a, a < 1.0f), x), x, x != x);
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: // log(1 + x), exact where x is small too.
// CHECK-NEXT: template <typename T> __attribute__((always_inline)) T log_plus_one(T x) {
// CHECK-NEXT:   T u = 1.0f + x;
// CHECK-NEXT:   T y = precise::log(u) * (x / (u - 1.0f));
// CHECK-NEXT:   return select(select(y, u, u == INFINITY), x, u == 1.0f);
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: // exp(x) - 1, exact where x is small too.
// CHECK-NEXT: template <typename T> __attribute__((always_inline)) T exp_minus_one(T x) {
// CHECK-NEXT:   T u = precise::exp(x);
// CHECK-NEXT:   T y = (u - 1.0f) * (x / precise::log(u));
// CHECK-NEXT:   y = select(select(y, u, u == INFINITY), T(-1.0f), u - 1.0f == -1.0f);
// CHECK-NEXT:   return select(y, x, u == 1.0f);
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: {{\[\[}}kernel, max_total_threads_per_threadgroup(64)]] void math(
// CHECK-NEXT:     device const float *x {{\[\[}}buffer(0)]],
// CHECK-NEXT:     device float *y {{\[\[}}buffer(1)]],
// CHECK-NEXT:     ushort lane {{\[\[}}thread_index_in_simdgroup]]) {
// CHECK-NEXT:   int offset = lane * 4;
// CHECK-NEXT:   float4 a = *(device const float4 *)(x + offset);
// CHECK-NEXT:   *(device float4 *)(y + offset) = error_function(a);
// CHECK-NEXT:   *(device float4 *)(y + offset + 128) = log_plus_one(a);
// CHECK-NEXT:   float erf_a = error_function(a.y);
// CHECK-NEXT:   int offset_1 = lane + 384;
// CHECK-NEXT:   float x_value = x[offset_1];
// CHECK-NEXT:   *(device float4 *)(y + offset + 256) = exp_minus_one(a);
// CHECK-NEXT:   y[offset_1] = fma(erf_a + float(isfinite(erf_a)), x_value, a.y);
// CHECK-NEXT: }

msl.kernel @math(%x: !msl.ptr<f32, device> {msl.readonly, msl.name="x"}, %y: !msl.ptr<f32, device> {msl.name="y"}) threads 32 {
  %lane = msl.lane : i32
  %c4 = arith.constant 4 : i32
  %l4 = arith.muli %lane, %c4 : i32
  %ls = msl.splat %l4 : vector<4xi32>
  %r = arith.constant dense<[0,1,2,3]> : vector<4xi32>
  %o = arith.addi %ls, %r : vector<4xi32>
  %a = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32> loc("a")
  %e = math.erf %a : vector<4xf32>
  %l = math.log1p %a : vector<4xf32>
  %m = math.expm1 %a : vector<4xf32>
  msl.store %e, %y[%o] {width = 4 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  %c128 = arith.constant dense<128> : vector<4xi32>
  %o2 = arith.addi %o, %c128 : vector<4xi32>
  msl.store %l, %y[%o2] {width = 4 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  %o3 = arith.addi %o2, %c128 : vector<4xi32>
  msl.store %m, %y[%o3] {width = 4 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  %s = vector.extract %a[1] : f32 from vector<4xf32>
  %s1 = math.erf %s : f32
  %fin = math.isfinite %s1 : f32
  %f = arith.uitofp %fin : i1 to f32
  %g = arith.addf %s1, %f : f32
  %c384 = arith.constant 384 : i32
  %o4 = arith.addi %lane, %c384 : i32
  %n = msl.load %x[%o4] : !msl.ptr<f32, device>, i32 -> f32
  %g2 = math.fma %g, %n, %s : f32
  msl.store %g2, %y[%o4] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
