// RUN: triton-metal-opt %s --split-input-file --msl-loops-pipeline | FileCheck %s

// One loop for a load, a product and a store; the index is the loop's, and only groups' first offsets are computed.
// CHECK-LABEL: msl.kernel @fused
// CHECK:       msl.unroll %[[I:.*]] = 0 to 8 {
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[I]], %c4_i32 overflow<nsw>
// CHECK-NEXT:    %[[V:.*]] = msl.read %arg0[%[[OFFSET]] : i32] : <f32, device> -> vector<4xf32>
// CHECK-NEXT:    %[[W:.*]] = arith.mulf %[[V]], %[[V]] : vector<4xf32>
// CHECK-NEXT:    msl.write %[[W]], %arg1[%[[OFFSET]] : i32]
// CHECK-NEXT:  }
msl.kernel @fused(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]> : vector<32xi32>
  %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32>
  %w = arith.mulf %v, %v : vector<32xf32>
  msl.store %w, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  msl.return
}

// -----

// Reading through the pointer that is written, elsewhere, cannot share the loop: all is read before anything is written.
// CHECK-LABEL: msl.kernel @moved
// CHECK:       %[[V:.*]] = msl.var : <8xf32>
// CHECK:       msl.unroll
// CHECK:         msl.read
// CHECK:         msl.set {{.*}}, %[[V]]
// CHECK:       }
// CHECK:       msl.unroll
// CHECK:         msl.write
msl.kernel @moved(%x: !msl.ptr<f32, device>) threads 32 {
  %from = arith.constant dense<[0, 2, 4, 6, 8, 10, 12, 14]> : vector<8xi32>
  %to = arith.constant dense<[2, 4, 6, 8, 10, 12, 14, 16]> : vector<8xi32>
  %v = msl.load %x[%from] : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  msl.store %v, %x[%to] : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// -----

// Two arguments whose arrays overlap are one memory.
// CHECK-LABEL: msl.kernel @overlapping
// CHECK:       %[[V:.*]] = msl.var : <8xf32>
// CHECK:       msl.unroll
// CHECK:         msl.read %arg0
// CHECK:       }
// CHECK:       msl.unroll
// CHECK:         msl.write {{.*}}, %arg1
msl.kernel @overlapping(%x: !msl.ptr<f32, device> {msl.memory = 1 : i32}, %y: !msl.ptr<f32, device> {msl.memory = 1 : i32}) threads 32 {
  %o = arith.constant dense<[0, 2, 4, 6, 8, 10, 12, 14]> : vector<8xi32>
  %v = msl.load %x[%o] : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  msl.store %v, %y[%o] : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// -----

// A mask for each element and a uniform condition: vector loop or element loops.
// CHECK-LABEL: msl.kernel @masked
// CHECK:       scf.if %arg3 {
// CHECK:         msl.unroll %{{.*}} = 0 to 2
// CHECK:           msl.read %arg0[{{.*}}] : <f32, device> -> vector<4xf32>
// CHECK:           msl.write {{.*}} : vector<4xf32>
// CHECK:       } else {
// CHECK:         msl.unroll %{{.*}} = 0 to 8
// CHECK:           %[[IN:.*]] = arith.cmpi slt
// CHECK:           scf.if %[[IN]] {
// CHECK-NEXT:        msl.read {{.*}} -> f32
// CHECK-NEXT:        msl.write {{.*}} : f32
msl.kernel @masked(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %all: i1) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %ns = msl.splat %n : vector<8xi32>
  %m = arith.cmpi slt, %o, %ns : vector<8xi32>
  %v = msl.load %x[%o] mask %m full %all {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  msl.store %v, %y[%o] mask %m full %all {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// -----

// One mask for a whole access keeps it whole.
// CHECK-LABEL: msl.kernel @coarse_mask
// CHECK:       msl.unroll
// CHECK:         msl.read {{.*}} if {{.*}} else {{.*}} : <f16, device> -> vector<4xi32>
msl.kernel @coarse_mask(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f16, device>, %n: i32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 64, 65, 66, 67, 68, 69, 70, 71]> : vector<16xi32>
  %row = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]> : vector<16xi32>
  %ns = msl.splat %n : vector<16xi32>
  %m = arith.cmpi slt, %row, %ns : vector<16xi32>
  %v = msl.load %x[%o] mask %m {width = 8 : i32, mask_width = 8 : i32} : !msl.ptr<f16, device>, vector<16xi32> -> vector<16xf16>
  msl.store %v, %y[%o] {width = 8 : i32} : vector<16xf16>, !msl.ptr<f16, device>, vector<16xi32>
  msl.return
}

// -----

// The sum is taken in the loop that loads, from the neutral element of addition, -0.
// CHECK-LABEL: msl.kernel @sum
// CHECK:       %[[NEUTRAL:.*]] = arith.constant dense<-0.000000e+00> : vector<4xf32>
// CHECK:       %[[SUM:.*]] = msl.var : <1xvector<4xf32>>
// CHECK:       msl.set %[[NEUTRAL]], %[[SUM]]
// CHECK:       msl.unroll
// CHECK:         msl.read
// CHECK:         arith.addf
// CHECK:         msl.set {{.*}}, %[[SUM]]
// CHECK:       }
// CHECK:       msl.swizzle {{.*}} [0, 1]
// CHECK:       msl.swizzle {{.*}} [2, 3]
msl.kernel @sum(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %z = arith.constant 0 : i32
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %s = msl.reduce_registers (%v) bits 7 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      msl.yield %c : f32
  } : (vector<8xf32>) -> vector<1xf32>
  %e = vector.extract %s[0] : f32 from vector<1xf32>
  msl.store %e, %y[%z] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// Offsets that a loop carries and moves by one number are a number that it carries.
// CHECK-LABEL: msl.kernel @moving_offsets
// CHECK:       scf.for {{.*}} iter_args(%[[MOVED:.*]] = %c0_i32) -> (i32)
// CHECK:         %[[NEXT:.*]] = arith.addi %[[MOVED]], %c64_i32
// CHECK:         msl.unroll
// CHECK:         scf.yield %[[NEXT]] : i32
msl.kernel @moving_offsets(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %step = arith.constant dense<64> : vector<8xi32>
  %r = scf.for %i = %zero to %n step %one iter_args(%at = %o) -> (vector<8xi32>) : i32 {
    %v = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
    msl.store %v, %y[%at] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
    %next = arith.addi %at, %step : vector<8xi32>
    scf.yield %next : vector<8xi32>
  }
  msl.return
}

// -----

// The number may be the loop's own index, or a number that it carries: then it is the new loop's.
// CHECK-LABEL: msl.kernel @moved_by_carried_numbers
// CHECK:       scf.for %[[I:.*]] = {{.*}} iter_args(%[[S:.*]] = %c0_i32, %[[A:.*]] = %c0_i32{{.*}}, %[[B:.*]] = %c0_i32{{.*}}) -> (i32, i32, i32)
// CHECK-DAG:     %[[AI:.*]] = arith.addi %[[A]], %[[I]]
// CHECK-DAG:     %[[BS:.*]] = arith.addi %[[B]], %[[S]]
// CHECK:         scf.yield {{.*}}, %[[AI]], %[[BS]] : i32, i32, i32
msl.kernel @moved_by_carried_numbers(%y: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %r:3 = scf.for %i = %zero to %n step %one iter_args(%s = %zero, %a = %o, %b = %o) -> (i32, vector<8xi32>, vector<8xi32>) : i32 {
    %is = msl.splat %i : vector<8xi32>
    %ss = msl.splat %s : vector<8xi32>
    %a1 = arith.addi %a, %is : vector<8xi32>
    %b1 = arith.addi %ss, %b : vector<8xi32>
    %s1 = arith.muli %s, %n : i32
    scf.yield %s1, %a1, %b1 : i32, vector<8xi32>, vector<8xi32>
  }
  msl.store %r#1, %y[%o] {width = 4 : i32} : vector<8xi32>, !msl.ptr<i32, device>, vector<8xi32>
  msl.store %r#2, %y[%o] {width = 4 : i32} : vector<8xi32>, !msl.ptr<i32, device>, vector<8xi32>
  msl.return
}

// -----

// An accumulator of matrix products is an array of matrices, scaled in place between the products.
// CHECK-LABEL: msl.kernel @scaled_products
// CHECK:       %[[ACC:.*]] = msl.var : <2x!msl.matrix<8x8xf32>>
// CHECK:       msl.fill {{.*}}, %[[ACC]]
// CHECK:       scf.for
// CHECK-NOT:     msl.var : <2x!msl.matrix<8x8xf32>>
// CHECK:         msl.get %[[ACC]]
// CHECK:         msl.set {{.*}}, %[[ACC]]
// CHECK:         msl.read %{{.*}} : <f16, threadgroup> -> vector<2xf16>
// CHECK:         msl.multiply_accumulate %[[ACC]]
msl.kernel @scaled_products(%y: !msl.ptr<f32, device>, %n: i32, %f: f32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = msl.alloc "a", 64 at 0 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 128 at 128 : !msl.ptr<f16, threadgroup>
  %init = arith.constant dense<0.0> : vector<4xf32>
  %fs = msl.splat %f : vector<4xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %init) -> (vector<4xf32>) : i32 {
    %scaled = arith.mulf %acc, %fs : vector<4xf32>
    %next = msl.mma <8x8x8> %scaled, %a, %b {m = 1 : i32, n = 2 : i32, k = 1 : i32, a_stride = 8 : i32, b_stride = 16 : i32}
        : vector<4xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
    scf.yield %next : vector<4xf32>
  }
  %o = arith.constant dense<[0, 1, 8, 9]> : vector<4xi32>
  msl.store %r, %y[%o] {width = 2 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}

// -----

// One chunk whose registers go one by one to offsets that are not linear in the register: no loop over its components, in a
// segment without loops too.
// CHECK-LABEL: msl.kernel @one_chunk_nonlinear_offsets
// CHECK-NOT:   msl.unroll
// CHECK:       %[[W:.*]] = math.cos
// CHECK-COUNT-4: msl.write {{.*}}, %arg1[
// CHECK-NOT:   msl.unroll
// CHECK:       msl.return
msl.kernel @one_chunk_nonlinear_offsets(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %from = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %to = arith.constant dense<[1, 2, 3, 0]> : vector<4xi32>
  %v = msl.load %x[%from] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  %w = math.cos %v : vector<4xf32>
  msl.store %w, %y[%to] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}

// -----

// Linear ones keep the loop.
// CHECK-LABEL: msl.kernel @one_chunk_linear_offsets
// CHECK:       msl.unroll %[[I:.*]] = 0 to 4
// CHECK:         msl.write {{.*}}, %arg1[
msl.kernel @one_chunk_linear_offsets(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %from = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %to = arith.constant dense<[3, 2, 1, 0]> : vector<4xi32>
  %v = msl.load %x[%from] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  %w = math.cos %v : vector<4xf32>
  msl.store %w, %y[%to] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}

// -----

// Offsets under an exclusive or: register 3 ^ i is no sum of 3 and i.
// CHECK-LABEL: msl.kernel @one_chunk_reversed
// CHECK-NOT:   msl.unroll
// CHECK-COUNT-4: msl.write {{.*}}, %arg1[
msl.kernel @one_chunk_reversed(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %from = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %ns = msl.splat %n : vector<4xi32>
  %sum = arith.muli %from, %ns : vector<4xi32>
  %to = msl.permute_registers %sum {bases = array<i64: 1, 2>, offset = 3 : i64} : vector<4xi32> -> vector<4xi32>
  %v = msl.load %x[%from] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  %w = math.cos %v : vector<4xf32>
  msl.store %w, %y[%to] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}

// -----

// A constant that is linear in the registers that are asked for, though not in all that it has.
// CHECK-LABEL: msl.kernel @linear_in_what_is_asked
// CHECK:       msl.unroll %[[I:.*]] = 0 to 8
// CHECK:         arith.muli %[[I]], %c5_i32
msl.kernel @linear_in_what_is_asked(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %all = arith.constant dense<[0, 5, 10, 15, 20, 25, 30, 35, 7, 1, 1, 8, 2, 9, 9, 3]> : vector<16xi32>
  %ns = msl.splat %n : vector<16xi32>
  %sum = arith.addi %all, %ns : vector<16xi32>
  %to = msl.permute_registers %sum {bases = array<i64: 1, 2, 4>} : vector<16xi32> -> vector<8xi32>
  %v = arith.constant dense<1> : vector<8xi32>
  msl.store %v, %x[%to] : vector<8xi32>, !msl.ptr<i32, device>, vector<8xi32>
  msl.return
}

// -----

// A register bit that is found under two bits of the source, twice: the second order takes both back.
// CHECK-LABEL: msl.kernel @two_bits_from_one
// CHECK:       msl.unroll %[[I:.*]] = 0 to 2
// CHECK:         %[[TIMES:.*]] = arith.muli %[[I]], %c9_i32
// CHECK-NOT:     arith.andi
// CHECK:         msl.write
msl.kernel @two_bits_from_one(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %all = arith.constant dense<[0, 4, 9, 7]> : vector<4xi32>
  %ns = msl.splat %n : vector<4xi32>
  %sum = arith.addi %all, %ns : vector<4xi32>
  %one = msl.permute_registers %sum {bases = array<i64: 3, 1>} : vector<4xi32> -> vector<4xi32>
  %more = arith.addi %one, %ns : vector<4xi32>
  %to = msl.permute_registers %more {bases = array<i64: 3>} : vector<4xi32> -> vector<2xi32>
  %v = arith.constant dense<1> : vector<2xi32>
  msl.store %v, %x[%to] : vector<2xi32>, !msl.ptr<i32, device>, vector<2xi32>
  msl.return
}

// -----

// The strides of these have no room in 32 bits.
// CHECK-LABEL: msl.kernel @wide_strides
// CHECK-NOT:   msl.unroll
// CHECK:       msl.write %c-2147483648_i32
// CHECK:       msl.write %c2147483647_i32
msl.kernel @wide_strides(%x: !msl.ptr<i32, device>) threads 32 {
  %v = arith.constant dense<[-2147483648, 2147483647]> : vector<2xi32>
  %o = arith.constant dense<[0, 4]> : vector<2xi32>
  msl.store %v, %x[%o] : vector<2xi32>, !msl.ptr<i32, device>, vector<2xi32>
  msl.return
}

// -----

// The pairs that the first store takes are no chunk of the four registers that the second takes one by one.
// CHECK-LABEL: msl.kernel @pairs_and_elements
// CHECK:       msl.unroll
// CHECK:       arith.addi
// CHECK-NOT:   msl.element {{.*}} : vector<2xi32>
// CHECK:       msl.return
msl.kernel @pairs_and_elements(%x: !msl.ptr<f32, device>, %y: !msl.ptr<i32, device>, %z: !msl.ptr<i32, device>, %n: i32, %f: i1) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %p = arith.constant dense<[0, 3, 6, 9]> : vector<4xi32>
  %ns = msl.splat %n : vector<4xi32>
  %lazy = arith.addi %o, %ns : vector<4xi32>
  %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  msl.store %lazy, %y[%o] {width = 2 : i32} : vector<4xi32>, !msl.ptr<i32, device>, vector<4xi32>
  msl.store %lazy, %z[%p] : vector<4xi32>, !msl.ptr<i32, device>, vector<4xi32>
  msl.store %v, %x[%o] {width = 4 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}
