// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// The accumulators stay simdgroup matrices around the loop; tiles go through threadgroup memory 16 bytes at a time.
// CHECK:      #include <metal_stdlib>
// CHECK-NEXT: #include <metal_simdgroup_matrix>
// CHECK-NEXT: using namespace metal;
// CHECK-EMPTY:
// CHECK-NEXT: #pragma METAL fp math_mode(safe)
// CHECK-NEXT: #pragma METAL fp contract(off)
// CHECK-EMPTY:
// CHECK-NEXT: // The two elements of an 8x8 matrix that this thread holds.
// CHECK-NEXT: template <typename T>
// CHECK-NEXT: __attribute__((always_inline)) thread vec<T, 2> &elements(thread simdgroup_matrix<T, 8, 8> &m) {
// CHECK-NEXT:   return reinterpret_cast<thread vec<T, 2> &>(m.thread_elements());
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: {{\[\[}}kernel, max_total_threads_per_threadgroup(128)]] void matmul(
// CHECK-NEXT:     device const half *a {{\[\[}}buffer(0)]],
// CHECK-NEXT:     device const half *b {{\[\[}}buffer(1)]],
// CHECK-NEXT:     device half *c {{\[\[}}buffer(2)]],
// CHECK-NEXT:     constant uint *args {{\[\[}}buffer(3)]],
// CHECK-NEXT:     uint3 program_id {{\[\[}}threadgroup_position_in_grid]],
// CHECK-NEXT:     ushort lane {{\[\[}}thread_index_in_simdgroup]],
// CHECK-NEXT:     ushort simdgroup {{\[\[}}simdgroup_index_in_threadgroup]]) {
// CHECK-NEXT:   const int M = as_type<int>(args[0]);
// CHECK-NEXT:   const int N = as_type<int>(args[1]);
// CHECK-NEXT:   const int K = as_type<int>(args[2]);
// CHECK-NEXT:   const int stride_a = as_type<int>(args[3]);
// CHECK-NEXT:   const int stride_b = as_type<int>(args[4]);
// CHECK-NEXT:   const int stride_c = as_type<int>(args[5]);
// CHECK-NEXT:   alignas(16) threadgroup half a_tile[2560];
// CHECK-NEXT:   alignas(16) threadgroup half b_tile[2304];
// CHECK-NEXT:   int thread_index = simdgroup * 32 + lane;
// CHECK-NEXT:   uint m0 = program_id.x * 64;
// CHECK-NEXT:   uint n0 = program_id.y * 64;
// CHECK-NEXT:   int quotient = thread_index / 4;
// CHECK-NEXT:   int offset = int(uint(thread_index) % 4u) * 8;
// CHECK-NEXT:   int quotient_1 = thread_index / 8;
// CHECK-NEXT:   int offset_1 = int(uint(thread_index) % 8u) * 8;
// CHECK-NEXT:   int steps = int(K + 31u) / 32;
// CHECK-NEXT:   uint index = stride_b * 32u;
// CHECK-NEXT:   int sm = simdgroup / 2;
// CHECK-NEXT:   int offset_2 = simdgroup % 2 * 32;
// CHECK-NEXT:   threadgroup half *a_tile_sm = a_tile + sm * 1280;
// CHECK-NEXT:   threadgroup half *b_tile_sn = b_tile + offset_2;
// CHECK-NEXT:   bool is_less = int(m0 + 64) <= M;
// CHECK-NEXT:   bool is_less_1 = int(n0 + 64) <= N;
// CHECK-NEXT:   simdgroup_float8x8 acc[16];
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (ushort i = 0; i < 16; ++i)
// CHECK-NEXT:     acc[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
// CHECK-NEXT:   int acc_1 = 0;
// CHECK-NEXT:   int acc_2 = 0;
// CHECK-NEXT:   for (int k = 0; k < steps; ++k) {
// CHECK-NEXT:     int left = uint(K) - k * 32;
// CHECK-NEXT:     half4 at[4] = {};
// CHECK-NEXT:     half4 bt[4] = {};
// CHECK-NEXT:     if (is_less && left >= 32 && is_less_1) {
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:         uint4 at_1 = *(device const uint4 *)(a + int((m0 + (quotient + i * 32)) * stride_a + offset + acc_1));
// CHECK-NEXT:         int bt_1 = (quotient_1 + i * 16) * uint(stride_b) + (n0 + offset_1) + acc_2;
// CHECK-NEXT:         uint4 bt_2 = *(device const uint4 *)(b + bt_1);
// CHECK-NEXT:         at[i * 2] = as_type<half4>(at_1.xy);
// CHECK-NEXT:         at[i * 2 + 1] = as_type<half4>(at_1.zw);
// CHECK-NEXT:         bt[i * 2] = as_type<half4>(bt_2.xy);
// CHECK-NEXT:         bt[i * 2 + 1] = as_type<half4>(bt_2.zw);
// CHECK-NEXT:       }
// CHECK-NEXT:     } else {
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:         #pragma unroll
// CHECK-NEXT:         for (ushort j = 0; j < 2; ++j) {
// CHECK-NEXT:           #pragma unroll
// CHECK-NEXT:           for (ushort k_1 = 0; k_1 < 4; ++k_1) {
// CHECK-NEXT:             int index_1 = m0 + (quotient + i * 32);
// CHECK-NEXT:             int a_col = offset + (j * 4 + k_1);
// CHECK-NEXT:             half at_1 = index_1 < M && a_col < left ? a[int(uint(index_1) * stride_a + a_col + acc_1)] : 0.0h;
// CHECK-NEXT:             int b_row = quotient_1 + i * 16;
// CHECK-NEXT:             int index_2 = n0 + (offset_1 + (j * 4 + k_1));
// CHECK-NEXT:             half bt_1 = index_2 < N && b_row < left ? b[int(uint(b_row) * stride_b + index_2 + acc_2)] : 0.0h;
// CHECK-NEXT:             at[i * 2 + j][k_1] = at_1;
// CHECK-NEXT:             bt[i * 2 + j][k_1] = bt_1;
// CHECK-NEXT:           }
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     threadgroup_barrier(mem_flags::mem_threadgroup);
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:       *(threadgroup uint4 *)(a_tile + ((quotient + i * 32) * 40 + offset)) = uint4(as_type<uint2>(at[i * 2]), as_type<uint2>(at[i * 2 + 1]));
// CHECK-NEXT:       *(threadgroup uint4 *)(b_tile + ((quotient_1 + i * 16) * 72 + offset_1)) = uint4(as_type<uint2>(bt[i * 2]), as_type<uint2>(bt[i * 2 + 1]));
// CHECK-NEXT:     }
// CHECK-NEXT:     threadgroup_barrier(mem_flags::mem_threadgroup);
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 4; ++i) {
// CHECK-NEXT:       simdgroup_half8x8 a_fragment[4];
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort j = 0; j < 4; ++j)
// CHECK-NEXT:         elements(a_fragment[j]) = *(threadgroup const half2 *)(a_tile_sm + j * 320 + i * 8);
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort j = 0; j < 4; ++j) {
// CHECK-NEXT:         simdgroup_half8x8 b_fragment;
// CHECK-NEXT:         elements(b_fragment) = *(threadgroup const half2 *)(b_tile_sn + i * 576 + j * 8);
// CHECK-NEXT:         #pragma unroll
// CHECK-NEXT:         for (ushort k_1 = 0; k_1 < 4; ++k_1)
// CHECK-NEXT:           simdgroup_multiply_accumulate(acc[k_1 * 4 + j], a_fragment[k_1], b_fragment, acc[k_1 * 4 + j]);
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     acc_1 = acc_1 + 32u;
// CHECK-NEXT:     acc_2 = acc_2 + index;
// CHECK-NEXT:   }
// CHECK-NEXT:   int shifted = lane >> 2;
// CHECK-NEXT:   uint index_1 = m0 + (sm * 32 + (((lane >> 1) & 3) | (shifted & 4)));
// CHECK-NEXT:   uint index_2 = n0 + (offset_2 + ((shifted & 2) * 2 + (lane & 1) * 2));
// CHECK-NEXT:   if (is_less && is_less_1) {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 4; ++i) {
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort j = 0; j < 4; ++j)
// CHECK-NEXT:         *(device half2 *)(c + int((index_1 + i * 8) * stride_c + (index_2 + j * 8))) = half2(elements(acc[i * 4 + j]));
// CHECK-NEXT:     }
// CHECK-NEXT:   } else {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 4; ++i) {
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort j = 0; j < 4; ++j) {
// CHECK-NEXT:         #pragma unroll
// CHECK-NEXT:         for (ushort k = 0; k < 2; ++k) {
// CHECK-NEXT:           int row = index_1 + i * 8;
// CHECK-NEXT:           int col = index_2 + (j * 8 + k);
// CHECK-NEXT:           if (row < M && col < N)
// CHECK-NEXT:             c[int(uint(row) * stride_c + col)] = half(elements(acc[i * 4 + j])[k]);
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }

msl.kernel @matmul(%a: !msl.ptr<f16, device> {msl.name = "a", msl.readonly}, %b: !msl.ptr<f16, device> {msl.name = "b", msl.readonly}, %c: !msl.ptr<f16, device> {msl.name = "c"},
   %M: i32 {msl.name = "M"}, %N: i32 {msl.name = "N"}, %K: i32 {msl.name = "K"}, %sa: i32 {msl.name = "stride_a"}, %sb: i32 {msl.name = "stride_b"}, %sc: i32 {msl.name = "stride_c"}) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c31 = arith.constant 31 : i32
  %pid_m = msl.program_id 0 : i32 loc("pid_m")
  %pid_n = msl.program_id 1 : i32 loc("pid_n")
  %lane = msl.lane : i32
  %sg = msl.simdgroup : i32
  %sgl = arith.muli %sg, %c32 : i32
  %t = arith.addi %sgl, %lane : i32 loc("thread_index")
  %m0 = arith.muli %pid_m, %c64 : i32 loc("m0")
  %n0 = arith.muli %pid_n, %c64 : i32 loc("n0")
  %t4 = arith.divui %t, %c4 : i32
  %t4r = arith.remui %t, %c4 : i32
  %ac = arith.muli %t4r, %c8 : i32
  %t8 = arith.divui %t, %c8 : i32
  %t8r = arith.remui %t, %c8 : i32
  %bc = arith.muli %t8r, %c8 : i32
  %ar_s = msl.splat %t4 : vector<16xi32>
  %ar_c = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0, 32, 32, 32, 32, 32, 32, 32, 32]> : vector<16xi32>
  %ar = arith.addi %ar_s, %ar_c : vector<16xi32> loc("a_row")
  %ac_s = msl.splat %ac : vector<16xi32>
  %ac_c = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]> : vector<16xi32>
  %acol = arith.addi %ac_s, %ac_c : vector<16xi32> loc("a_col")
  %br_s = msl.splat %t8 : vector<16xi32>
  %br_c = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0, 16, 16, 16, 16, 16, 16, 16, 16]> : vector<16xi32>
  %brow = arith.addi %br_s, %br_c : vector<16xi32> loc("b_row")
  %bc_s = msl.splat %bc : vector<16xi32>
  %bc_c = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]> : vector<16xi32>
  %bcol = arith.addi %bc_s, %bc_c : vector<16xi32> loc("b_col")
  %as = msl.alloc "a_tile", 2560 at 0 : !msl.ptr<f16, threadgroup>
  %bs = msl.alloc "b_tile", 2304 at 5120 : !msl.ptr<f16, threadgroup>
  %c40 = arith.constant dense<40> : vector<16xi32>
  %c72 = arith.constant dense<72> : vector<16xi32>
  %aso0 = arith.muli %ar, %c40 : vector<16xi32>
  %aso = arith.addi %aso0, %acol : vector<16xi32>
  %bso0 = arith.muli %brow, %c72 : vector<16xi32>
  %bso = arith.addi %bso0, %bcol : vector<16xi32>
  %sa_s = msl.splat %sa : vector<16xi32>
  %sb_s = msl.splat %sb : vector<16xi32>
  %m0s = msl.splat %m0 : vector<16xi32>
  %gar = arith.addi %m0s, %ar : vector<16xi32>
  %ao0 = arith.muli %gar, %sa_s : vector<16xi32>
  %ao = arith.addi %ao0, %acol : vector<16xi32>
  %n0s = msl.splat %n0 : vector<16xi32>
  %gbc = arith.addi %n0s, %bcol : vector<16xi32>
  %bo0 = arith.muli %brow, %sb_s : vector<16xi32>
  %bo = arith.addi %bo0, %gbc : vector<16xi32>
  %Ms = msl.splat %M : vector<16xi32>
  %am = arith.cmpi slt, %gar, %Ms : vector<16xi32>
  %Ns = msl.splat %N : vector<16xi32>
  %bm = arith.cmpi slt, %gbc, %Ns : vector<16xi32>
  %K31 = arith.addi %K, %c31 : i32
  %steps = arith.divsi %K31, %c32 : i32 loc("steps")
  %bstep = arith.muli %sb, %c32 : i32
  %bsteps = msl.splat %bstep : vector<16xi32>
  %c32s = arith.constant dense<32> : vector<16xi32>
  %zero = arith.constant dense<0.0> : vector<32xf32> loc("acc")
  %sgm = arith.divui %sg, %c2 : i32 loc("sm")
  %sgn = arith.remui %sg, %c2 : i32 loc("sn")
  %mrow = arith.muli %sgm, %c32 : i32
  %ncol = arith.muli %sgn, %c32 : i32
  %c40s = arith.constant 40 : i32
  %aoff = arith.muli %mrow, %c40s : i32
  %afrag = msl.ptr_add %as, %aoff : !msl.ptr<f16, threadgroup>, i32
  %bfrag = msl.ptr_add %bs, %ncol : !msl.ptr<f16, threadgroup>, i32
  %mend = arith.addi %m0, %c64 : i32
  %nend = arith.addi %n0, %c64 : i32
  %mfull = arith.cmpi sle, %mend, %M : i32
  %nfull = arith.cmpi sle, %nend, %N : i32
  %r:3 = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero, %aptr = %ao, %bptr = %bo) -> (vector<32xf32>, vector<16xi32>, vector<16xi32>) : i32 {
    %kk = arith.muli %k, %c32 : i32
    %left = arith.subi %K, %kk : i32 loc("left")
    %ls = msl.splat %left : vector<16xi32>
    %am2 = arith.cmpi slt, %acol, %ls : vector<16xi32>
    %amask = arith.andi %am, %am2 : vector<16xi1>
    %bm2 = arith.cmpi slt, %brow, %ls : vector<16xi32>
    %bmask = arith.andi %bm, %bm2 : vector<16xi1>
    %kfull = arith.cmpi sge, %left, %c32 : i32
    %afull = arith.andi %mfull, %kfull : i1
    %bfull = arith.andi %nfull, %kfull : i1
    %at = msl.load %a[%aptr] mask %amask full %afull {width = 8 : i32} : !msl.ptr<f16, device>, vector<16xi32> -> vector<16xf16> loc("at")
    %bt = msl.load %b[%bptr] mask %bmask full %bfull {width = 8 : i32} : !msl.ptr<f16, device>, vector<16xi32> -> vector<16xf16> loc("bt")
    msl.barrier
    msl.store %at, %as[%aso] {width = 8 : i32} : vector<16xf16>, !msl.ptr<f16, threadgroup>, vector<16xi32>
    msl.store %bt, %bs[%bso] {width = 8 : i32} : vector<16xf16>, !msl.ptr<f16, threadgroup>, vector<16xi32>
    msl.barrier
    %acc2 = msl.mma <8x8x8> %acc, %afrag, %bfrag {m = 4 : i32, n = 4 : i32, k = 4 : i32, a_stride = 40 : i32, b_stride = 72 : i32} : vector<32xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup> loc("acc")
    %an = arith.addi %aptr, %c32s : vector<16xi32>
    %bn = arith.addi %bptr, %bsteps : vector<16xi32>
    scf.yield %acc2, %an, %bn : vector<32xf32>, vector<16xi32>, vector<16xi32>
  } loc("acc")
  %l1 = arith.shrui %lane, %c1 : i32
  %r3 = arith.andi %l1, %c3 : i32
  %l4 = arith.shrui %lane, %c2 : i32
  %r4 = arith.andi %l4, %c4 : i32
  %frow = arith.ori %r3, %r4 : i32 loc("fragment_row")
  %q4 = arith.andi %l4, %c2 : i32
  %q4b = arith.muli %q4, %c2 : i32
  %c1a = arith.andi %lane, %c1 : i32
  %c1b = arith.muli %c1a, %c2 : i32
  %fcol = arith.addi %q4b, %c1b : i32 loc("fragment_col")
  %row0 = arith.addi %mrow, %frow : i32
  %row1 = arith.addi %m0, %row0 : i32
  %col0 = arith.addi %ncol, %fcol : i32
  %col1 = arith.addi %n0, %col0 : i32
  %rs = msl.splat %row1 : vector<32xi32>
  %rc = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16, 24, 24, 24, 24, 24, 24, 24, 24]> : vector<32xi32>
  %row = arith.addi %rs, %rc : vector<32xi32> loc("row")
  %cs = msl.splat %col1 : vector<32xi32>
  %cc = arith.constant dense<[0, 1, 8, 9, 16, 17, 24, 25, 0, 1, 8, 9, 16, 17, 24, 25, 0, 1, 8, 9, 16, 17, 24, 25, 0, 1, 8, 9, 16, 17, 24, 25]> : vector<32xi32>
  %col = arith.addi %cs, %cc : vector<32xi32> loc("col")
  %scs = msl.splat %sc : vector<32xi32>
  %co0 = arith.muli %row, %scs : vector<32xi32>
  %co = arith.addi %co0, %col : vector<32xi32>
  %M2 = msl.splat %M : vector<32xi32>
  %N2 = msl.splat %N : vector<32xi32>
  %rm = arith.cmpi slt, %row, %M2 : vector<32xi32>
  %cm = arith.cmpi slt, %col, %N2 : vector<32xi32>
  %cmask = arith.andi %rm, %cm : vector<32xi1>
  %cfull = arith.andi %mfull, %nfull : i1
  %h = arith.truncf %r#0 : vector<32xf32> to vector<32xf16>
  msl.store %h, %c[%co] mask %cmask full %cfull {width = 2 : i32} : vector<32xf16>, !msl.ptr<f16, device>, vector<32xi32>
  msl.return
}
