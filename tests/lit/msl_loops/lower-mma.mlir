// RUN: triton-metal-opt %s --split-input-file --msl-lower-mma | FileCheck %s

// Both operands in memory: the fragments of a slice of k are loaded and multiplied, those of b one by one.
// CHECK-LABEL: msl.kernel @in_memory
// CHECK:       %[[V0:.*]] = msl.alloc "a", 256 at 0 : <f16, threadgroup>
// CHECK-NEXT:  %[[V1:.*]] = msl.alloc "b", 256 at 512 : <f16, threadgroup>
// CHECK-NEXT:  %[[V2:.*]] = msl.var : <4x!msl.matrix<8x8xf32>>
// CHECK-NEXT:  msl.unroll %[[ARG1:.*]] = 0 to 2 {
// CHECK-NEXT:    %[[V3:.*]] = msl.var : <2x!msl.matrix<8x8xf16>>
// CHECK-NEXT:    msl.unroll %[[ARG2:.*]] = 0 to 2 {
// CHECK:           %[[V5:.*]] = arith.muli %[[ARG2]], %c128_i32 overflow<nsw> : i32
// CHECK:           %[[V6:.*]] = arith.muli %[[ARG1]], %c8_i32 overflow<nsw> : i32
// CHECK-NEXT:      %[[V7:.*]] = arith.addi %[[V5]], %[[V6]] overflow<nsw> : i32
// CHECK-NEXT:      %[[V8:.*]] = msl.read %[[V0]][%[[V7]] : i32] : <f16, threadgroup> -> vector<2xf16>
// CHECK-NEXT:      msl.set %[[V8]], %[[V3]][%[[ARG2]]] : vector<2xf16>, <2x!msl.matrix<8x8xf16>>
// CHECK-NEXT:    }
// CHECK-NEXT:    msl.unroll %[[N:.*]] = 0 to 2 {
// CHECK-NEXT:      %[[V4:.*]] = msl.var : <1x!msl.matrix<8x8xf16>>
// CHECK:           %[[V5:.*]] = arith.muli %[[N]], %c128_i32 overflow<nsw> : i32
// CHECK:           %[[V6:.*]] = arith.muli %[[ARG1]], %c8_i32 overflow<nsw> : i32
// CHECK-NEXT:      %[[V7:.*]] = arith.addi %[[V5]], %[[V6]] overflow<nsw> : i32
// Neighbours of a transposed fragment are in different rows.
// CHECK-NEXT:      %[[E0:.*]] = msl.read %[[V1]][%[[V7]] : i32] : <f16, threadgroup> -> f16
// CHECK:           %[[NEXT:.*]] = arith.addi %[[V7]], %c16_i32 overflow<nsw> : i32
// CHECK-NEXT:      %[[E1:.*]] = msl.read %[[V1]][%[[NEXT]] : i32] : <f16, threadgroup> -> f16
// CHECK-NEXT:      %[[BOTH:.*]] = msl.vector %[[E0]], %[[E1]] : f16, f16 -> vector<2xf16>
// CHECK-NEXT:      msl.set %[[BOTH]], %[[V4]] : vector<2xf16>, <1x!msl.matrix<8x8xf16>>
// CHECK-NEXT:      msl.unroll %[[M:.*]] = 0 to 2 {
// CHECK:             %[[ROW:.*]] = arith.muli %[[M]], %c2_i32 overflow<nsw> : i32
// CHECK-NEXT:        %[[AT:.*]] = arith.addi %[[ROW]], %[[N]] overflow<nsw> : i32
// CHECK-NEXT:        msl.multiply_accumulate %[[V2]][%[[AT]]], %[[V3]][%[[M]]], %[[V4]] : <4x!msl.matrix<8x8xf32>>, <2x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
msl.kernel @in_memory(%n: i32) threads 32 {
  %a = msl.alloc "a", 256 at 0 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 256 at 512 : !msl.ptr<f16, threadgroup>
  %acc = msl.var : !msl.array<4x!msl.matrix<8x8xf32>>
  msl.matrix_product <8x8x8> %acc, %a, %b {m = 2 : i32, n = 2 : i32, k = 2 : i32, a_stride = 16 : i32, b_stride = 16 : i32, b_transposed}
      : !msl.array<4x!msl.matrix<8x8xf32>>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
  msl.return
}

// -----

// The factor that has more fragments in a slice is loaded one by one, each before its products.
// CHECK-LABEL: msl.kernel @more_rows
// CHECK:       msl.unroll %[[K:.*]] = 0 to 2 {
// CHECK-NEXT:    %[[B:.*]] = msl.var : <2x!msl.matrix<8x8xf16>>
// CHECK-NEXT:    msl.unroll
// CHECK:         msl.unroll %[[M:.*]] = 0 to 4 {
// CHECK-NEXT:      %[[A:.*]] = msl.var : <1x!msl.matrix<8x8xf16>>
// CHECK:           msl.set %{{.*}}, %[[A]] : vector<2xf16>
// CHECK-NEXT:      msl.unroll %[[N:.*]] = 0 to 2 {
// CHECK:             msl.multiply_accumulate %{{.*}}[%{{.*}}], %[[A]], %[[B]][%[[N]]]
msl.kernel @more_rows(%n: i32) threads 32 {
  %a = msl.alloc "a", 512 at 0 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 256 at 1024 : !msl.ptr<f16, threadgroup>
  %acc = msl.var : !msl.array<8x!msl.matrix<8x8xf32>>
  msl.matrix_product <8x8x8> %acc, %a, %b {m = 4 : i32, n = 2 : i32, k = 2 : i32, a_stride = 16 : i32, b_stride = 16 : i32}
      : !msl.array<8x!msl.matrix<8x8xf32>>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
  msl.return
}

// -----

// One operand in registers. What has one element has no index.
// CHECK-LABEL: msl.kernel @in_registers
// CHECK:       %[[V0:.*]] = msl.var : <2x!msl.matrix<8x8xf16>>
// CHECK-NEXT:  %[[V1:.*]] = msl.alloc "b", 128 at 0 : <f16, threadgroup>
// CHECK-NEXT:  %[[V2:.*]] = msl.var : <1x!msl.matrix<8x8xf32>>
// CHECK-NEXT:  msl.unroll %[[ARG1:.*]] = 0 to 2 {
// CHECK-NEXT:    %[[V3:.*]] = msl.var : <1x!msl.matrix<8x8xf16>>
// CHECK:         %[[V4:.*]] = arith.muli %[[ARG1]], %c64_i32 overflow<nsw> : i32
// CHECK-NEXT:    %[[V5:.*]] = msl.read %[[V1]][%[[V4]] : i32] : <f16, threadgroup> -> vector<2xf16>
// CHECK-NEXT:    msl.set %[[V5]], %[[V3]] : vector<2xf16>, <1x!msl.matrix<8x8xf16>>
// CHECK-NEXT:    msl.multiply_accumulate %[[V2]], %[[V0]][%[[ARG1]]], %[[V3]] : <1x!msl.matrix<8x8xf32>>, <2x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
// CHECK-NEXT:  }
msl.kernel @in_registers(%n: i32) threads 32 {
  %a = msl.var : !msl.array<2x!msl.matrix<8x8xf16>>
  %b = msl.alloc "b", 128 at 0 : !msl.ptr<f16, threadgroup>
  %acc = msl.var : !msl.array<1x!msl.matrix<8x8xf32>>
  msl.matrix_product <8x8x8> %acc, %a, %b {m = 1 : i32, n = 1 : i32, k = 2 : i32, b_stride = 8 : i32}
      : !msl.array<1x!msl.matrix<8x8xf32>>, !msl.array<2x!msl.matrix<8x8xf16>>, !msl.ptr<f16, threadgroup>
  msl.return
}

// -----

// An instruction that takes its operands from registers multiplies fragments of vectors. Those of a transposed factor are
// of [n][k], k inner.
// CHECK-LABEL: msl.kernel @in_registers
// CHECK:       msl.unroll %[[K:.*]] = 0 to 2 {
// CHECK-NEXT:    msl.unroll %[[N:.*]] = 0 to 2 {
// CHECK:           %[[ACC:.*]] = arith.muli %[[N]], %c4_i32{{.*}} overflow<nsw> : i32
// CHECK:           %[[A:.*]] = arith.muli %[[K]], %c2_i32{{.*}} overflow<nsw> : i32
// CHECK:           %[[ROW:.*]] = arith.muli %[[N]], %c2_i32{{.*}} overflow<nsw> : i32
// CHECK:           %[[FRAGMENT:.*]] = arith.addi %[[ROW]], %[[K]] overflow<nsw> : i32
// CHECK:           %[[B:.*]] = arith.muli %[[FRAGMENT]], %c4_i32{{.*}} overflow<nsw> : i32
// CHECK-NEXT:      msl.tensor_multiply <16x32x16> %{{.*}}[%[[ACC]]], %{{.*}}[%[[A]]], %{{.*}}[%[[B]]] {b_transposed} : <8xvector<4xf32>>, <4xvector<4xf16>>, <16xvector<4xf16>>
msl.kernel @in_registers(%n: i32) threads 32 {
  %a = msl.var : !msl.array<4xvector<4xf16>>
  %b = msl.var : !msl.array<16xvector<4xf16>>
  %acc = msl.var : !msl.array<8xvector<4xf32>>
  msl.matrix_product <16x32x16> %acc, %a, %b {m = 1 : i32, n = 2 : i32, k = 2 : i32, b_transposed}
      : !msl.array<8xvector<4xf32>>, !msl.array<4xvector<4xf16>>, !msl.array<16xvector<4xf16>>
  msl.return
}

// -----

// A part of a batch: the third and fourth matrix of the accumulator.
// CHECK-LABEL: msl.kernel @batch
// CHECK:       %[[ACC:.*]] = msl.var : <4x!msl.matrix<8x8xf32>>
// CHECK-NEXT:  msl.unroll %[[BATCH:.*]] = 0 to 2 {
// CHECK:         %[[FIRST:.*]] = arith.addi %[[BATCH]], %c2_i32 overflow<nsw> : i32
// CHECK:         %[[A:.*]] = arith.muli %[[BATCH]], %c128_i32 overflow<nsw> : i32
// CHECK:         msl.read %{{.*}}[%[[A]] : i32] : <f16, threadgroup> -> vector<2xf16>
// CHECK:         %[[B:.*]] = arith.muli %[[BATCH]], %c256_i32 overflow<nsw> : i32
// CHECK:         msl.read %{{.*}}[%[[B]] : i32] : <f16, threadgroup> -> vector<2xf16>
// CHECK:         msl.multiply_accumulate %[[ACC]][%[[FIRST]]]
msl.kernel @batch(%n: i32) threads 32 {
  %a = msl.alloc "a", 256 at 0 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 512 at 512 : !msl.ptr<f16, threadgroup>
  %acc = msl.var : !msl.array<4x!msl.matrix<8x8xf32>>
  msl.matrix_product <8x8x8> %acc, %a, %b {m = 1 : i32, n = 1 : i32, k = 1 : i32, a_stride = 8 : i32, b_stride = 16 : i32,
                                           batches = 4 : i32, batch = 2 : i32, first_batch = 2 : i32,
                                           a_batch_stride = 128 : i32, b_batch_stride = 256 : i32}
      : !msl.array<4x!msl.matrix<8x8xf32>>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
  msl.return
}
