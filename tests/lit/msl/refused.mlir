// RUN: triton-metal-opt %s --split-input-file --verify-diagnostics --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null

// What has no form in Metal is refused where it stands, never written as something else.

msl.kernel @no_function(%x: !msl.ptr<f32, device>) threads 32 {
  %zero = arith.constant 0 : i32
  %v = msl.load %x[%zero] : !msl.ptr<f32, device>, i32 -> f32
  // expected-error @below {{cannot be written in Metal: 'math.cbrt' is a function that Metal does not have}}
  %c = math.cbrt %v : f32
  msl.store %c, %x[%zero] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

msl.kernel @atomic_of_64_bits(%x: !msl.ptr<i64, device>, %n: i64) threads 32 {
  %zero = arith.constant 0 : i32
  // expected-error @below {{Metal has no such atomic operation: msl-legalize-atomics comes first}}
  %old = msl.atomic_rmw add %x[%zero], %n : !msl.ptr<i64, device>, i32, i64
  msl.return
}

// -----

msl.kernel @threadgroup_float_add(%n: f32) threads 32 {
  %zero = arith.constant 0 : i32
  %a = msl.alloc "a", 4 at 0 : !msl.ptr<f32, threadgroup>
  // expected-error @below {{Metal adds floats atomically in device memory alone}}
  %old = msl.atomic_rmw fadd %a[%zero], %n : !msl.ptr<f32, threadgroup>, i32, f32
  msl.return
}

// -----

msl.kernel @reduction_of_64_bits(%x: !msl.ptr<i64, device>) threads 32 {
  %zero = arith.constant 0 : i32
  %v = msl.load %x[%zero] : !msl.ptr<i64, device>, i32 -> i64
  // expected-error @below {{Metal has no such function over a SIMD-group}}
  %s = msl.simd_reduce sum %v : i64
  msl.store %s, %x[%zero] : i64, !msl.ptr<i64, device>, i32
  msl.return
}

// -----

msl.kernel @unknown_operation(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %v = msl.load %x[%o] : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  // expected-error @below {{this operation on tiles cannot be turned into Metal}}
  %w = vector.shuffle %v, %v [0, 2, 4, 6] : vector<4xf32>, vector<4xf32>
  msl.store %w, %x[%o] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}

// -----

msl.kernel @division_by_the_constant_zero(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  // expected-error @below {{divides by the constant 0, which C++ leaves undefined}}
  %v = arith.divsi %n, %zero : i32
  msl.store %v, %x[%zero] : i32, !msl.ptr<i32, device>, i32
  msl.return
}

// -----

msl.kernel @shift_by_the_width(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %width = arith.constant 32 : i32
  // expected-error @below {{shifts by the width or more, which C++ leaves undefined}}
  %v = arith.shli %n, %width : i32
  msl.store %v, %x[%zero] : i32, !msl.ptr<i32, device>, i32
  msl.return
}

// -----

// Every pass takes an instruction of another shape; only the text has no form for its matrices.
msl.kernel @larger_matrices(%x: !msl.ptr<f32, device>, %f: f32) threads 32 {
  %a = msl.alloc "a", 256 at 0 : !msl.ptr<f16, threadgroup>
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %o = arith.constant dense<[0, 1, 2, 3, 128, 129, 130, 131]> : vector<8xi32>
  // expected-error @below {{cannot be written in Metal: 'msl.var' declares a type that Metal does not have}}
  %r = msl.mma <16x16x16> %zero, %a, %a {m = 1 : i32, n = 1 : i32, k = 1 : i32, a_stride = 16 : i32, b_stride = 16 : i32}
      : vector<8xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
  msl.store %r, %x[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}
