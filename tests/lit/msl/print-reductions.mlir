// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// Reductions over any register bits, of several values; permutations as indices; what has no linear structure written out.
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
// CHECK-NEXT: {{\[\[}}kernel, max_total_threads_per_threadgroup(64)]] void reduce(
// CHECK-NEXT:     device const float *arg0 {{\[\[}}buffer(0)]],
// CHECK-NEXT:     device float *arg1 {{\[\[}}buffer(1)]],
// CHECK-NEXT:     device int *arg2 {{\[\[}}buffer(2)]],
// CHECK-NEXT:     ushort lane {{\[\[}}thread_index_in_simdgroup]]) {
// CHECK-NEXT:   float4 a[8] = {};
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 8; ++i)
// CHECK-NEXT:     a[i] = *(device const float4 *)(arg0 + lane * 32 + i * 4);
// CHECK-NEXT:   float rowsum[4] = {};
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 4; ++i) {
// CHECK-NEXT:     float4 rowsum_1 = a[i * 2];
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort j = 1; j < 2; ++j)
// CHECK-NEXT:       rowsum_1 += a[i * 2 + j];
// CHECK-NEXT:     float2 rowsum_2 = rowsum_1.xy + rowsum_1.zw;
// CHECK-NEXT:     rowsum[i] = rowsum_2.x + rowsum_2.y;
// CHECK-NEXT:   }
// CHECK-NEXT:   float4 colmax[2] = {};
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:     float4 colmax_1 = a[i];
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort j = 1; j < 4; ++j)
// CHECK-NEXT:       colmax_1 = maximum(colmax_1, a[i + j * 2]);
// CHECK-NEXT:     colmax[i] = colmax_1;
// CHECK-NEXT:   }
// CHECK-NEXT:   int index = lane * 32;
// CHECK-NEXT:   float4 best = a[0];
// CHECK-NEXT:   int4 best_1 = index + int4(0, 1, 2, 3);
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 1; i < 8; ++i) {
// CHECK-NEXT:     int4 index_1 = index + (i * 4 + int4(0, 1, 2, 3));
// CHECK-NEXT:     bool4 best_2 = (best > a[i]) | ((best == a[i]) & (best_1 < index_1));
// CHECK-NEXT:     best = select(a[i], best, best_2);
// CHECK-NEXT:     best_1 = select(index_1, best_1, best_2);
// CHECK-NEXT:   }
// CHECK-NEXT:   bool2 best_2 = (best.xy > best.zw) | ((best.xy == best.zw) & (best_1.xy < best_1.zw));
// CHECK-NEXT:   float2 best_3 = select(best.zw, best.xy, best_2);
// CHECK-NEXT:   int2 best_4 = select(best_1.zw, best_1.xy, best_2);
// CHECK-NEXT:   float4 odd[4] = {};
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 4; ++i) {
// CHECK-NEXT:     float4 odd_1 = a[i];
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort j = 1; j < 2; ++j)
// CHECK-NEXT:       odd_1 = fmin(odd_1, a[i + j * 4]);
// CHECK-NEXT:     odd[i] = odd_1;
// CHECK-NEXT:   }
// CHECK-NEXT:   float2 odd_1[2] = {};
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:     float4 odd_2 = fmin(odd[i * 2], odd[i * 2 + 1]);
// CHECK-NEXT:     odd_1[i] = fmin(odd_2.xz, odd_2.yw);
// CHECK-NEXT:   }
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort j = 0; j < 2; ++j) {
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort k = 0; k < 2; ++k)
// CHECK-NEXT:         *(device float4 *)(arg1 + lane * 32 + (i * 16 + j * 8 + k * 4)) = rowsum[i * 2 + j] * colmax[k] + float4(odd_1[j].x, odd_1[j].x, odd_1[j].y, odd_1[j].y) + float4(a[k][i + j * 2], a[k + 4][i + j * 2], a[k + 2][i + j * 2], a[k + 6][i + j * 2]);
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   int offset = lane * 32;
// CHECK-NEXT:   *(device float4 *)(arg1 + offset + 1024) = float4(a[0].x, a[0].y, a[0].w, a[0].z);
// CHECK-NEXT:   *(device float4 *)(arg1 + offset + 1028) = float4(a[1].z, a[1].w, a[1].y, a[1].x);
// CHECK-NEXT:   *(device float4 *)(arg1 + offset + 1032) = float4(a[3].x, a[3].y, a[3].w, a[3].z);
// CHECK-NEXT:   *(device float4 *)(arg1 + offset + 1036) = float4(a[2].z, a[2].w, a[2].y, a[2].x);
// CHECK-NEXT:   *(device float4 *)(arg1 + offset + 1040) = float4(a[6].x, a[6].y, a[6].w, a[6].z);
// CHECK-NEXT:   *(device float4 *)(arg1 + offset + 1044) = float4(a[7].z, a[7].w, a[7].y, a[7].x);
// CHECK-NEXT:   *(device float4 *)(arg1 + offset + 1048) = float4(a[5].x, a[5].y, a[5].w, a[5].z);
// CHECK-NEXT:   *(device float4 *)(arg1 + offset + 1052) = float4(a[4].z, a[4].w, a[4].y, a[4].x);
// CHECK-NEXT:   arg2[lane] = best_3.x > best_3.y || (best_3.x == best_3.y && best_4.x < best_4.y) ? best_4.x : best_4.y;
// CHECK-NEXT: }

// argmax over register bits, partial reductions, permutations
msl.kernel @reduce(%x: !msl.ptr<f32, device> {msl.readonly}, %y: !msl.ptr<f32, device>, %z: !msl.ptr<i32, device>) threads 32 {
  %lane = msl.lane : i32
  %ls = msl.splat %lane : vector<32xi32>
  %c32 = arith.constant dense<32> : vector<32xi32>
  %r = arith.constant dense<[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31]> : vector<32xi32>
  %o0 = arith.muli %ls, %c32 : vector<32xi32>
  %o = arith.addi %o0, %r : vector<32xi32>
  %a = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32> loc("a")
  // rows are bits 3,4; columns bits 0..2
  %rowsum = msl.reduce_registers (%a) bits 7 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      msl.yield %s : f32
  } : (vector<32xf32>) -> vector<4xf32> loc("rowsum")
  %colmax = msl.reduce_registers (%a) bits 24 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.maximumf %p, %q : f32
      msl.yield %s : f32
  } : (vector<32xf32>) -> vector<8xf32> loc("colmax")
  %best:2 = msl.reduce_registers (%a, %o) bits 31 {
    ^bb0(%p: f32, %pi: i32, %q: f32, %qi: i32):
      %gt = arith.cmpf ogt, %p, %q : f32
      %eq = arith.cmpf oeq, %p, %q : f32
      %less = arith.cmpi slt, %pi, %qi : i32
      %tie = arith.andi %eq, %less : i1
      %w = arith.ori %gt, %tie : i1
      %v = arith.select %w, %p, %q : f32
      %i = arith.select %w, %pi, %qi : i32
      msl.yield %v, %i : f32, i32
  } : (vector<32xf32>, vector<32xi32>) -> (vector<1xf32>, vector<1xi32>) loc("best")
  %odd = msl.reduce_registers (%a) bits 21 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.minnumf %p, %q : f32
      msl.yield %s : f32
  } : (vector<32xf32>) -> vector<4xf32> loc("odd")
  %rb = msl.permute_registers %rowsum {bases = array<i64: 0, 0, 0, 1, 2>} : vector<4xf32> -> vector<32xf32>
  %cb = msl.permute_registers %colmax {bases = array<i64: 1, 2, 4, 0, 0>} : vector<8xf32> -> vector<32xf32>
  %ob = msl.permute_registers %odd {bases = array<i64: 0, 1, 0, 2, 0>} : vector<4xf32> -> vector<32xf32>
  %t = msl.permute_registers %a {bases = array<i64: 16, 8, 4, 2, 1>} : vector<32xf32> -> vector<32xf32>
  %sw = msl.permute_registers %a {bases = array<i64: 1, 3, 6, 12, 24>} : vector<32xf32> -> vector<32xf32>
  %m1 = arith.mulf %rb, %cb : vector<32xf32>
  %m2 = arith.addf %m1, %ob : vector<32xf32>
  %m3 = arith.addf %m2, %t : vector<32xf32> loc("m3")
  msl.store %m3, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  %cc = arith.constant dense<1024> : vector<32xi32>
  %o2 = arith.addi %o, %cc : vector<32xi32>
  msl.store %sw, %y[%o2] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  %bi = vector.extract %best#1[0] : i32 from vector<1xi32>
  msl.store %bi, %z[%lane] : i32, !msl.ptr<i32, device>, i32
  msl.return
}
