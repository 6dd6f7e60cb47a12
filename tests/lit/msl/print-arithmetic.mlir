// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// Signed, unsigned and wrapping integers, bfloat through float, comparisons with NaN, atomics.
// CHECK:      #include <metal_stdlib>
// CHECK-NEXT: using namespace metal;
// CHECK-EMPTY:
// CHECK-NEXT: #pragma METAL fp math_mode(safe)
// CHECK-NEXT: #pragma METAL fp contract(off)
// CHECK-EMPTY:
// CHECK-NEXT: // The greater number, NaN if either is NaN, +0 over -0.
// CHECK-NEXT: template <typename T> __attribute__((always_inline)) T maximum(T a, T b) {
// CHECK-NEXT:   return select(b, a, (a > b) | (a != a) | ((a == b) & signbit(b)));
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: // Compare and exchange that does not fail where the values agree; gives what was there.
// CHECK-NEXT: __attribute__((always_inline)) inline uint compare_exchange(device atomic_uint *p, uint expected, uint desired) {
// CHECK-NEXT:   uint old = expected;
// CHECK-NEXT:   while (!atomic_compare_exchange_weak_explicit(p, &old, desired, memory_order_relaxed,
// CHECK-NEXT:                                                 memory_order_relaxed) &&
// CHECK-NEXT:          old == expected) {
// CHECK-NEXT:   }
// CHECK-NEXT:   return old;
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: {{\[\[}}kernel, max_total_threads_per_threadgroup(64)]] void arith(
// CHECK-NEXT:     device int *arg0 {{\[\[}}buffer(0)]],
// CHECK-NEXT:     device int *arg1 {{\[\[}}buffer(1)]],
// CHECK-NEXT:     device float *arg2 {{\[\[}}buffer(2)]],
// CHECK-NEXT:     device bfloat *arg3 {{\[\[}}buffer(3)]],
// CHECK-NEXT:     device long *arg4 {{\[\[}}buffer(4)]],
// CHECK-NEXT:     constant uint *args {{\[\[}}buffer(5)]],
// CHECK-NEXT:     uint3 program_id {{\[\[}}threadgroup_position_in_grid]],
// CHECK-NEXT:     ushort lane {{\[\[}}thread_index_in_simdgroup]]) {
// CHECK-NEXT:   const int n = as_type<int>(args[0]);
// CHECK-NEXT:   const long big = as_type<long>(uint2(args[1], args[2]));
// CHECK-NEXT:   const half hf = as_type<half>(ushort(args[3]));
// CHECK-NEXT:   const bool flag = args[4] != 0;
// CHECK-NEXT:   int p = program_id.x;
// CHECK-NEXT:   int difference = int((uint(p) + n) * n) / n - 1u;
// CHECK-NEXT:   short chosen = short(flag ? difference : 3);
// CHECK-NEXT:   int index = (int(uint(ushort(short(chosen + chosen)))) >> 3) + int(flag);
// CHECK-NEXT:   int bits = index ^ int(as_type<short>(half(precise::exp(float(hf * hf)))));
// CHECK-NEXT:   bool is_equal = lane == 3;
// CHECK-NEXT:   int offset = lane * 4;
// CHECK-NEXT:   int4 a = *(device const int4 *)(arg0 + offset);
// CHECK-NEXT:   int4 b = *(device const int4 *)(arg1 + offset);
// CHECK-NEXT:   float4 f = *(device const float4 *)(arg2 + offset);
// CHECK-NEXT:   bfloat4 h = *(device const bfloat4 *)(arg3 + offset);
// CHECK-NEXT:   int4 div = int4((uint4(a) + uint4(b)) * uint(n) - 4u);
// CHECK-NEXT:   uint4 sh = (uint4(div / b) / uint4(b) % uint(n)) << uint4(b);
// CHECK-NEXT:   int4 shs = int4(sh >> uint4(b)) >> b;
// CHECK-NEXT:   uint4 min_1 = uint4(select(shs, a, (shs < a) & (uint4(shs) < uint4(a))));
// CHECK-NEXT:   uint4 mh = mulhi(uint4(max(int4(min(min_1, uint4(a))), int4(4))), uint4(uint(n)));
// CHECK-NEXT:   *(device int4 *)(arg1 + offset) = int4(mh);
// CHECK-NEXT:   float4 h3 = float4(bfloat4(float4(h) + float4(h))) * float4(h);
// CHECK-NEXT:   float4 mn = fmin(maximum(f, float4(h)), f);
// CHECK-NEXT:   bool4 either = isnan(mn) | isnan(f) | !((mn < f) | (mn > f));
// CHECK-NEXT:   float4 fsum = float4(a) + float4(uint4(a)) + select(mn, -mn, either);
// CHECK-NEXT:   float4 sqrt_fsum = precise::sqrt(fsum);
// CHECK-NEXT:   *(device float4 *)(arg2 + offset) = precise::divide(fast::exp(sqrt_fsum), sqrt_fsum);
// CHECK-NEXT:   *(device bfloat4 *)(arg3 + offset) = bfloat4(h3);
// CHECK-NEXT:   int offset_1 = offset + 2;
// CHECK-NEXT:   ulong4 lb = ulong4(long4(*(device const long2 *)(arg4 + offset), *(device const long2 *)(arg4 + offset_1))) + ulong(big);
// CHECK-NEXT:   ulong4 lc = lb ^ 7ul;
// CHECK-NEXT:   *(device long2 *)(arg4 + offset) = long2(lc.xy);
// CHECK-NEXT:   *(device long2 *)(arg4 + offset_1) = long2(lc.zw);
// CHECK-NEXT:   if (is_equal)
// CHECK-NEXT:     arg0[n] = bits;
// CHECK-NEXT:   int old = is_equal ? atomic_fetch_add_explicit((device atomic_int *)(arg0 + p), n, memory_order_relaxed) : 0;
// CHECK-NEXT:   atomic_fetch_add_explicit((device atomic_float *)(arg2 + old), 0.1f, memory_order_relaxed);
// CHECK-NEXT:   int4 oldv;
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 4; ++i) {
// CHECK-NEXT:     uint oldv_1 = atomic_fetch_max_explicit((device atomic_uint *)(arg0 + offset + i), uint(a[i]), memory_order_relaxed);
// CHECK-NEXT:     oldv[i] = oldv_1;
// CHECK-NEXT:   }
// CHECK-NEXT:   *(device int4 *)(arg1 + offset) = oldv;
// CHECK-NEXT:   uint cas = compare_exchange((device atomic_uint *)(arg0 + p), uint(n), 3u);
// CHECK-NEXT:   arg1[p] = cas;
// CHECK-NEXT: }

msl.kernel @arith(%x: !msl.ptr<i32, device>, %y: !msl.ptr<i32, device>, %f: !msl.ptr<f32, device>, %h: !msl.ptr<bf16, device>, %l: !msl.ptr<i64, device>, %n: i32 {msl.name = "n"}, %big: i64 {msl.name = "big"}, %hf: f16 {msl.name = "hf"}, %flag: i1 {msl.name = "flag"}) threads 32 {
  %lane = msl.lane : i32
  %ls = msl.splat %lane : vector<4xi32>
  %c4 = arith.constant dense<4> : vector<4xi32>
  %r = arith.constant dense<[0,1,2,3]> : vector<4xi32>
  %o0 = arith.muli %ls, %c4 : vector<4xi32>
  %o = arith.addi %o0, %r : vector<4xi32>
  %a = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<i32, device>, vector<4xi32> -> vector<4xi32> loc("a")
  %b = msl.load %y[%o] {width = 4 : i32} : !msl.ptr<i32, device>, vector<4xi32> -> vector<4xi32> loc("b")
  %fv = msl.load %f[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32> loc("f")
  %hv = msl.load %h[%o] {width = 4 : i32} : !msl.ptr<bf16, device>, vector<4xi32> -> vector<4xbf16> loc("h")
  %add = arith.addi %a, %b : vector<4xi32> loc("add")
  %ns = msl.splat %n : vector<4xi32>
  %mul = arith.muli %add, %ns : vector<4xi32> loc("mul")
  %sub = arith.subi %mul, %c4 : vector<4xi32> loc("sub")
  %div = arith.divsi %sub, %b : vector<4xi32> loc("div")
  %divu = arith.divui %div, %b : vector<4xi32> loc("divu")
  %rem = arith.remui %divu, %ns : vector<4xi32> loc("rem")
  %sh = arith.shli %rem, %b : vector<4xi32> loc("sh")
  %shr = arith.shrui %sh, %b : vector<4xi32> loc("shr")
  %shs = arith.shrsi %shr, %b : vector<4xi32> loc("shs")
  %lt = arith.cmpi slt, %shs, %a : vector<4xi32>
  %ult = arith.cmpi ult, %shs, %a : vector<4xi32>
  %and = arith.andi %lt, %ult : vector<4xi1>
  %sel = arith.select %and, %a, %shs : vector<4xi1>, vector<4xi32> loc("sel")
  %min = arith.minui %sel, %a : vector<4xi32> loc("min")
  %max = arith.maxsi %min, %c4 : vector<4xi32> loc("max")
  %mh = msl.mulhi unsigned %max, %ns : vector<4xi32> loc("mh")
  msl.store %mh, %y[%o] {width = 4 : i32} : vector<4xi32>, !msl.ptr<i32, device>, vector<4xi32>
  %hf32 = arith.extf %hv : vector<4xbf16> to vector<4xf32>
  %h2 = arith.addf %hv, %hv : vector<4xbf16> loc("h2")
  %h3 = arith.mulf %h2, %hv : vector<4xbf16> loc("h3")
  %mx = arith.maximumf %fv, %hf32 : vector<4xf32> loc("mx")
  %mn = arith.minnumf %mx, %fv : vector<4xf32> loc("mn")
  %uno = arith.cmpf uno, %mn, %fv : vector<4xf32>
  %ueq = arith.cmpf ueq, %mn, %fv : vector<4xf32>
  %or = arith.ori %uno, %ueq : vector<4xi1>
  %neg = arith.negf %mn : vector<4xf32>
  %fs = arith.select %or, %neg, %mn : vector<4xi1>, vector<4xf32> loc("fs")
  %si = arith.sitofp %a : vector<4xi32> to vector<4xf32> loc("si")
  %ui = arith.uitofp %a : vector<4xi32> to vector<4xf32> loc("ui")
  %fsum = arith.addf %si, %ui : vector<4xf32>
  %fsum2 = arith.addf %fsum, %fs : vector<4xf32> loc("fsum")
  %sq = math.sqrt %fsum2 : vector<4xf32>
  %ex = math.exp %sq fastmath<afn> : vector<4xf32>
  %pd = msl.precise_div %ex, %sq : vector<4xf32>
  msl.store %pd, %f[%o] {width = 4 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.store %h3, %h[%o] {width = 4 : i32} : vector<4xbf16>, !msl.ptr<bf16, device>, vector<4xi32>
  %o64 = arith.extsi %o : vector<4xi32> to vector<4xi64>
  %bigs = msl.splat %big : vector<4xi64>
  %la = msl.load %l[%o64] {width = 2 : i32} : !msl.ptr<i64, device>, vector<4xi64> -> vector<4xi64> loc("la")
  %lb = arith.addi %la, %bigs : vector<4xi64> loc("lb")
  %c7 = arith.constant dense<7> : vector<4xi64>
  %lc = arith.xori %lb, %c7 : vector<4xi64> loc("lc")
  msl.store %lc, %l[%o64] {width = 2 : i32} : vector<4xi64>, !msl.ptr<i64, device>, vector<4xi64>
  // scalars
  %p = msl.program_id 0 : i32 loc("p")
  %s1 = arith.addi %p, %n : i32
  %s2 = arith.muli %s1, %n : i32
  %s3 = arith.divsi %s2, %n : i32 loc("s3")
  %c3 = arith.constant 3 : i32
  %cm1 = arith.constant -1 : i32
  %s4 = arith.addi %s3, %cm1 : i32
  %s5 = arith.select %flag, %s4, %c3 : i32
  %s6 = arith.trunci %s5 : i32 to i16
  %s7 = arith.addi %s6, %s6 : i16 loc("s7")
  %s8 = arith.extui %s7 : i16 to i32
  %s9 = arith.shrsi %s8, %c3 : i32
  %e = arith.extui %flag : i1 to i32
  %s10 = arith.addi %s9, %e : i32
  %hx = arith.mulf %hf, %hf : f16
  %hexp = math.exp %hx : f16
  %hb = arith.bitcast %hexp : f16 to i16
  %hbe = arith.extsi %hb : i16 to i32
  %s11 = arith.xori %s10, %hbe : i32
  %first = arith.cmpi eq, %lane, %c3 : i32
  msl.store %s11, %x[%n] mask %first : i32, !msl.ptr<i32, device>, i32
  %old = msl.atomic_rmw add %x[%p], %n mask %first : !msl.ptr<i32, device>, i32, i32 loc("old")
  %fo = arith.constant 0.1 : f32
  %u = msl.atomic_rmw fadd %f[%old], %fo : !msl.ptr<f32, device>, i32, f32
  %oldv = msl.atomic_rmw umax %x[%o], %a : !msl.ptr<i32, device>, vector<4xi32>, vector<4xi32> loc("oldv")
  msl.store %oldv, %y[%o] {width = 4 : i32} : vector<4xi32>, !msl.ptr<i32, device>, vector<4xi32>
  %cas = msl.atomic_cas %x[%p], %n, %c3 : !msl.ptr<i32, device>, i32, i32 loc("cas")
  msl.store %cas, %y[%p] : i32, !msl.ptr<i32, device>, i32
  msl.return
}
