// RUN: triton-metal-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{has 48 threads, but a threadgroup has a multiple of 32, up to 1024}}
msl.kernel @threads() threads 48 {
  msl.return
}

// -----

// expected-error @below {{argument 0 points to an address space that cannot be bound}}
msl.kernel @argument(%x: !msl.ptr<f32, threadgroup>) threads 32 {
  msl.return
}

// -----

// expected-error @below {{Metal has no pointer to 'f80'}}
msl.kernel @pointer(%x: !msl.ptr<f80, device>) threads 32 {
  msl.return
}

// -----

msl.kernel @wide(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<0> : vector<8xi32>
  // expected-error @below {{accesses more than 16 bytes at once}}
  %v = msl.load %x[%o] {width = 8 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  msl.return
}

// -----

msl.kernel @element(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<0> : vector<8xi32>
  // expected-error @below {{accesses 'i32' through a pointer to 'f32'}}
  %v = msl.load %x[%o] : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xi32>
  msl.return
}

// -----

msl.kernel @permute(%n: i32) threads 32 {
  %v = msl.splat %n : vector<4xi32>
  // expected-error @below {{has a base beyond the operand's registers}}
  %p = msl.permute_registers %v {bases = array<i64: 4>} : vector<4xi32> -> vector<2xi32>
  msl.return
}

// -----

msl.kernel @reduce(%n: i32) threads 32 {
  %v = msl.splat %n : vector<4xi32>
  // expected-error @below {{result 0 must be 'vector<2xi32>'}}
  %r = msl.reduce_registers (%v) bits 2 {
    ^bb0(%a: i32, %b: i32):
      msl.yield %a : i32
  } : (vector<4xi32>) -> vector<1xi32>
  msl.return
}

// -----

msl.kernel @mma(%f: f32) threads 32 {
  %acc = msl.splat %f : vector<4xf32>
  %a = msl.alloc "a", 64 : !msl.ptr<f16, threadgroup>
  // expected-error @below {{the accumulator must have 2 registers for each of its 4 fragments}}
  %r = msl.mma <8x8x8> %acc, %a, %a {m = 2 : i32, n = 2 : i32, k = 1 : i32, a_stride = 8 : i32, b_stride = 8 : i32}
      : vector<4xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
  msl.return
}

// -----

msl.kernel @mma_stride(%f: f32) threads 32 {
  %acc = msl.splat %f : vector<8xf32>
  %a = msl.alloc "a", 256 : !msl.ptr<f16, threadgroup>
  // expected-error @below {{a_stride must be at least 16 elements}}
  %r = msl.mma <16x16x16> %acc, %a, %a {m = 1 : i32, n = 1 : i32, k = 1 : i32, a_stride = 8 : i32, b_stride = 16 : i32}
      : vector<8xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
  msl.return
}

// -----

msl.kernel @matrix_product() threads 32 {
  %acc = msl.var : !msl.array<4x!msl.matrix<8x8xf32>>
  %a = msl.alloc "a", 256 : !msl.ptr<f16, threadgroup>
  // expected-error @below {{the accumulator must be 1 matrices of 16x16}}
  msl.matrix_product <16x16x16> %acc, %a, %a {m = 1 : i32, n = 1 : i32, k = 1 : i32, a_stride = 16 : i32, b_stride = 16 : i32}
      : !msl.array<4x!msl.matrix<8x8xf32>>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
  msl.return
}

// -----

msl.kernel @multiply_accumulate() threads 32 {
  %acc = msl.var : !msl.array<1x!msl.matrix<16x16xf32>>
  %a = msl.var : !msl.array<1x!msl.matrix<16x8xf16>>
  // expected-error @below {{cannot add the product of 16x8 and 16x8 to 16x16}}
  msl.multiply_accumulate %acc, %a, %a : !msl.array<1x!msl.matrix<16x16xf32>>, !msl.array<1x!msl.matrix<16x8xf16>>, !msl.array<1x!msl.matrix<16x8xf16>>
  msl.return
}

// -----

msl.kernel @fill(%f: f32) threads 32 {
  %v = msl.var : !msl.array<1xf32>
  // expected-error @below {{must be an array of simdgroup matrices}}
  msl.fill %f, %v : f32, !msl.array<1xf32>
  msl.return
}

// -----

msl.kernel @few_elements() threads 32 {
  // expected-error @below {{a matrix of 4x4 leaves lanes of a SIMD-group without elements}}
  %v = msl.var : !msl.array<1x!msl.matrix<4x4xf32>>
  msl.return
}

// -----

msl.kernel @few_terms() threads 32 {
  %acc = msl.var : !msl.array<1x!msl.matrix<8x8xf32>>
  %a = msl.alloc "a", 256 : !msl.ptr<f16, threadgroup>
  // expected-error @below {{a matrix instruction of 8x8x2 leaves lanes of a SIMD-group without elements}}
  msl.matrix_product <8x8x2> %acc, %a, %a {m = 1 : i32, n = 1 : i32, k = 1 : i32} : !msl.array<1x!msl.matrix<8x8xf32>>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
  msl.return
}

// -----

msl.kernel @variable(%f: f32) threads 32 {
  %v = msl.var : !msl.array<4xf32>
  // expected-error @below {{needs an index into '!msl.array<4xf32>'}}
  msl.set %f, %v : f32, !msl.array<4xf32>
  msl.return
}

// -----

// C++ gives the result its type.
msl.kernel @types_of_operators(%a: i16, %b: i16, %x: !msl.ptr<i32, device>) threads 32 {
  // expected-error @below {{gives 'i16', where C++ gives 'i32'}}
  %c = msl.binary add %a, %b : (i16, i16) -> i16
  msl.return
}

// -----

msl.kernel @bfloat_has_no_operators(%a: bf16, %b: bf16) threads 32 {
  // expected-error @below {{has operands that C++ does not combine: 'bf16', 'bf16'}}
  %c = msl.binary add %a, %b : (bf16, bf16) -> bf16
  msl.return
}

// -----

msl.kernel @first_value_of_an_array(%a: f32) threads 32 {
  // expected-error @below {{has a first value, which '!msl.array<4xf32>' does not take}}
  %c = msl.var = %a (f32) : !msl.array<4xf32>
  msl.return
}

// -----

msl.kernel @lanes(%x: !msl.ptr<f32, device>, %i: !msl.ptr<i32, device>) threads 32 {
  %v = msl.read %x : !msl.ptr<f32, device> -> vector<4xf32>
  %l = msl.read %i : !msl.ptr<i32, device> -> vector<2xi32>
  // expected-error @+1 {{takes 2 lanes for 4 registers}}
  %s = msl.simd_shuffle %v, %l : vector<4xf32>, vector<2xi32>
  msl.return
}

// -----

msl.kernel @prefix(%x: !msl.ptr<f32, device>) threads 32 {
  %v = msl.read %x : !msl.ptr<f32, device> -> f32
  // expected-error @+1 {{attribute 'kind' failed to satisfy constraint}}
  %s = msl.simd_prefix max %v : f32
  msl.return
}
