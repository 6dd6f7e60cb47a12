// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// Eight halves are one access of 16 bytes.
// CHECK:      #include <metal_stdlib>
// CHECK-NEXT: using namespace metal;
// CHECK-EMPTY:
// CHECK-NEXT: #pragma METAL fp math_mode(safe)
// CHECK-NEXT: #pragma METAL fp contract(off)
// CHECK-EMPTY:
// CHECK-NEXT: {{\[\[}}kernel, max_total_threads_per_threadgroup(128)]] void softmax(
// CHECK-NEXT:     device half *out {{\[\[}}buffer(0)]],
// CHECK-NEXT:     device const half *x {{\[\[}}buffer(1)]],
// CHECK-NEXT:     constant uint *args {{\[\[}}buffer(2)]],
// CHECK-NEXT:     uint3 program_id {{\[\[}}threadgroup_position_in_grid]],
// CHECK-NEXT:     ushort lane {{\[\[}}thread_index_in_simdgroup]],
// CHECK-NEXT:     ushort simdgroup {{\[\[}}simdgroup_index_in_threadgroup]]) {
// CHECK-NEXT:   const int out_stride = as_type<int>(args[0]);
// CHECK-NEXT:   const int x_stride = as_type<int>(args[1]);
// CHECK-NEXT:   const int cols = as_type<int>(args[2]);
// CHECK-NEXT:   alignas(16) threadgroup float m_partial[4];
// CHECK-NEXT:   alignas(16) threadgroup float s_partial[4];
// CHECK-NEXT:   uint row = program_id.x;
// CHECK-NEXT:   int offset = lane * 8 + simdgroup * 256;
// CHECK-NEXT:   bool full = cols >= 2048;
// CHECK-NEXT:   device const half *x_row = x + int(row * x_stride);
// CHECK-NEXT:   float4 v[4] = {};
// CHECK-NEXT:   float4 m = NAN;
// CHECK-NEXT:   if (full) {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:       uint4 v_1 = *(device const uint4 *)(x_row + offset + i * 1024);
// CHECK-NEXT:       float4 v_2 = float4(as_type<half4>(v_1.xy));
// CHECK-NEXT:       float4 v_3 = float4(as_type<half4>(v_1.zw));
// CHECK-NEXT:       m = fmax(m, v_2);
// CHECK-NEXT:       m = fmax(m, v_3);
// CHECK-NEXT:       v[i * 2] = v_2;
// CHECK-NEXT:       v[i * 2 + 1] = v_3;
// CHECK-NEXT:     }
// CHECK-NEXT:   } else {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort j = 0; j < 2; ++j) {
// CHECK-NEXT:         #pragma unroll
// CHECK-NEXT:         for (ushort k = 0; k < 4; ++k) {
// CHECK-NEXT:           int c = offset + (i * 1024 + j * 4 + k);
// CHECK-NEXT:           float v_1 = float(c < cols ? x_row[c] : half(-INFINITY));
// CHECK-NEXT:           m[k] = fmax(m[k], v_1);
// CHECK-NEXT:           v[i * 2 + j][k] = v_1;
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   float2 m_1 = fmax(m.xy, m.zw);
// CHECK-NEXT:   float m_2 = fmax(m_1.x, m_1.y);
// CHECK-NEXT:   float m_3 = simd_shuffle_xor(m_2, 16);
// CHECK-NEXT:   float m_4 = fmax(m_2, m_3);
// CHECK-NEXT:   float m_5 = simd_shuffle_xor(m_4, 8);
// CHECK-NEXT:   float m_6 = fmax(m_4, m_5);
// CHECK-NEXT:   float m_7 = simd_shuffle_xor(m_6, 4);
// CHECK-NEXT:   float m_8 = fmax(m_6, m_7);
// CHECK-NEXT:   float m_9 = simd_shuffle_xor(m_8, 2);
// CHECK-NEXT:   float m_10 = fmax(m_8, m_9);
// CHECK-NEXT:   float m_11 = simd_shuffle_xor(m_10, 1);
// CHECK-NEXT:   bool is_first_lane = lane == 0;
// CHECK-NEXT:   if (is_first_lane)
// CHECK-NEXT:     m_partial[simdgroup] = fmax(m_10, m_11);
// CHECK-NEXT:   threadgroup_barrier(mem_flags::mem_threadgroup);
// CHECK-NEXT:   float4 m_partials = *(threadgroup const float4 *)m_partial;
// CHECK-NEXT:   float2 m_12 = fmax(m_partials.xy, m_partials.zw);
// CHECK-NEXT:   float m_13 = fmax(m_12.x, m_12.y);
// CHECK-NEXT:   float4 e[4] = {};
// CHECK-NEXT:   float4 s = -0.0f;
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 4; ++i) {
// CHECK-NEXT:     float4 e_1 = precise::exp(v[i] - m_13);
// CHECK-NEXT:     s += e_1;
// CHECK-NEXT:     e[i] = e_1;
// CHECK-NEXT:   }
// CHECK-NEXT:   float2 s_1 = s.xy + s.zw;
// CHECK-NEXT:   float s_2 = simd_sum(s_1.x + s_1.y);
// CHECK-NEXT:   if (is_first_lane)
// CHECK-NEXT:     s_partial[simdgroup] = s_2;
// CHECK-NEXT:   threadgroup_barrier(mem_flags::mem_threadgroup);
// CHECK-NEXT:   float4 s_partials = *(threadgroup const float4 *)s_partial;
// CHECK-NEXT:   float2 s_3 = s_partials.xy + s_partials.zw;
// CHECK-NEXT:   float s_4 = s_3.x + s_3.y;
// CHECK-NEXT:   device half *out_row = out + int(row * out_stride);
// CHECK-NEXT:   if (full) {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:       uint4 y = uint4(as_type<uint2>(half4(e[i * 2] / s_4)), as_type<uint2>(half4(e[i * 2 + 1] / s_4)));
// CHECK-NEXT:       *(device uint4 *)(out_row + offset + i * 1024) = y;
// CHECK-NEXT:     }
// CHECK-NEXT:   } else {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort j = 0; j < 2; ++j) {
// CHECK-NEXT:         #pragma unroll
// CHECK-NEXT:         for (ushort k = 0; k < 4; ++k) {
// CHECK-NEXT:           int c = offset + (i * 1024 + j * 4 + k);
// CHECK-NEXT:           if (c < cols)
// CHECK-NEXT:             out_row[c] = half(e[i * 2 + j][k] / s_4);
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }

msl.kernel @softmax(%out: !msl.ptr<f16, device> {msl.name = "out"}, %x: !msl.ptr<f16, device> {msl.name = "x", msl.readonly},
                %out_stride: i32 {msl.name = "out_stride"}, %x_stride: i32 {msl.name = "x_stride"}, %cols: i32 {msl.name = "cols"}) threads 128 {
  %row = msl.program_id 0 : i32 loc("row")
  %lane = msl.lane : i32
  %sg = msl.simdgroup : i32
  %cw = arith.constant 8 : i32
  %cs = arith.constant 256 : i32
  %l4 = arith.muli %lane, %cw : i32
  %s4 = arith.muli %sg, %cs : i32
  %t = arith.addi %l4, %s4 : i32
  %ts = msl.splat %t : vector<16xi32>
  %reg = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 1024, 1025, 1026, 1027, 1028, 1029, 1030, 1031]> : vector<16xi32>
  %c = arith.addi %ts, %reg : vector<16xi32> loc("c")
  %ns = msl.splat %cols : vector<16xi32>
  %mask = arith.cmpi slt, %c, %ns : vector<16xi32> loc("mask")
  %N = arith.constant 2048 : i32
  %full = arith.cmpi sle, %N, %cols : i32 loc("full")
  %start = arith.muli %row, %x_stride : i32 loc("start")
  %xr = msl.ptr_add %x, %start : !msl.ptr<f16, device>, i32 loc("x_row")
  %inf = arith.constant dense<0xFC00> : vector<16xf16>
  %v0 = msl.load %xr[%c] mask %mask other %inf full %full {width = 8 : i32} : !msl.ptr<f16, device>, vector<16xi32> -> vector<16xf16> loc("v")

  %v = arith.extf %v0 : vector<16xf16> to vector<16xf32> loc("v")

  %m1 = msl.reduce_registers (%v) bits 15 {
    ^bb0(%a: f32, %b: f32):
      %r = arith.maxnumf %a, %b : f32
      msl.yield %r : f32
  } : (vector<16xf32>) -> vector<1xf32> loc("m")
  %m1s = vector.extract %m1[0] : f32 from vector<1xf32>
  %msh16 = msl.simd_shuffle_xor %m1s, 16 : f32 loc("m")
  %mc16 = arith.maxnumf %m1s, %msh16 : f32 loc("m")
  %msh8 = msl.simd_shuffle_xor %mc16, 8 : f32 loc("m")
  %mc8 = arith.maxnumf %mc16, %msh8 : f32 loc("m")
  %msh4 = msl.simd_shuffle_xor %mc8, 4 : f32 loc("m")
  %mc4 = arith.maxnumf %mc8, %msh4 : f32 loc("m")
  %msh2 = msl.simd_shuffle_xor %mc4, 2 : f32 loc("m")
  %mc2 = arith.maxnumf %mc4, %msh2 : f32 loc("m")
  %msh1 = msl.simd_shuffle_xor %mc2, 1 : f32 loc("m")
  %mc1 = arith.maxnumf %mc2, %msh1 : f32 loc("m")
  %m2 = arith.maxnumf %mc1, %mc1 : f32 loc("m")

  %mp = msl.alloc "m_partial", 4 at 0 : !msl.ptr<f32, threadgroup>
  %mz = arith.constant 0 : i32
  %mfirst = arith.cmpi eq, %lane, %mz : i32
  msl.store %m2, %mp[%sg] mask %mfirst : f32, !msl.ptr<f32, threadgroup>, i32
  msl.barrier
  %midx = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %mall = msl.load %mp[%midx] {width = 4 : i32} : !msl.ptr<f32, threadgroup>, vector<4xi32> -> vector<4xf32> loc("m_partials")
  %m3v = msl.reduce_registers (%mall) bits 3 {
    ^bb0(%a: f32, %b: f32):
      %r = arith.maxnumf %a, %b : f32
      msl.yield %r : f32
  } : (vector<4xf32>) -> vector<1xf32> loc("m")
  %m = vector.extract %m3v[0] : f32 from vector<1xf32>

  %ms = msl.splat %m : vector<16xf32>
  %d = arith.subf %v, %ms : vector<16xf32>
  %e = math.exp %d : vector<16xf32> loc("e")

  %s1 = msl.reduce_registers (%e) bits 15 {
    ^bb0(%a: f32, %b: f32):
      %r = arith.addf %a, %b : f32
      msl.yield %r : f32
  } : (vector<16xf32>) -> vector<1xf32> loc("s")
  %s1s = vector.extract %s1[0] : f32 from vector<1xf32>
  %s2 = msl.simd_reduce sum %s1s : f32 loc("s")

  %sp = msl.alloc "s_partial", 4 at 64 : !msl.ptr<f32, threadgroup>
  %sz = arith.constant 0 : i32
  %sfirst = arith.cmpi eq, %lane, %sz : i32
  msl.store %s2, %sp[%sg] mask %sfirst : f32, !msl.ptr<f32, threadgroup>, i32
  msl.barrier
  %sidx = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %sall = msl.load %sp[%sidx] {width = 4 : i32} : !msl.ptr<f32, threadgroup>, vector<4xi32> -> vector<4xf32> loc("s_partials")
  %s3v = msl.reduce_registers (%sall) bits 3 {
    ^bb0(%a: f32, %b: f32):
      %r = arith.addf %a, %b : f32
      msl.yield %r : f32
  } : (vector<4xf32>) -> vector<1xf32> loc("s")
  %s = vector.extract %s3v[0] : f32 from vector<1xf32>

  %ss = msl.splat %s : vector<16xf32>
  %y = arith.divf %e, %ss : vector<16xf32> loc("y")
  %ostart = arith.muli %row, %out_stride : i32
  %or = msl.ptr_add %out, %ostart : !msl.ptr<f16, device>, i32 loc("out_row")
  %yh = arith.truncf %y : vector<16xf32> to vector<16xf16>
  msl.store %yh, %or[%c] mask %mask full %full {width = 8 : i32} : vector<16xf16>, !msl.ptr<f16, device>, vector<16xi32>
  msl.return
}
