// RUN: triton-metal-opt %s --split-input-file --verify-diagnostics --msl-check-target -o /dev/null

// What the target of a module lacks is refused where it is used, once.

module attributes {msl.target = #msl.target<metal(3, 0), threads = 1024, threadgroup_bytes = 32768, registers = 128,
    features = float_atomics>} {
  msl.kernel @bfloat(%x: !msl.ptr<bf16, device>) threads 32 {
    %zero = arith.constant 0 : i32
    // expected-error @below {{uses bfloat (bfloat16), which the target (Metal 3.0) does not have: it takes Metal 3.1}}
    %v = msl.load %x[%zero] : !msl.ptr<bf16, device>, i32 -> bf16
    msl.store %v, %x[%zero] : bf16, !msl.ptr<bf16, device>, i32
    msl.return
  }
}

// -----

module attributes {msl.target = #msl.target<metal(3, 1), threads = 1024, threadgroup_bytes = 32768, registers = 128,
    features = bfloat>} {
  msl.kernel @float_atomic(%x: !msl.ptr<f32, device>, %n: f32) threads 32 {
    %zero = arith.constant 0 : i32
    // expected-error @below {{uses atomic addition of floats, which the target (Metal 3.1) does not have}}
    %old = msl.atomic_rmw fadd %x[%zero], %n : !msl.ptr<f32, device>, i32, f32
    %more = msl.atomic_rmw fadd %x[%zero], %n : !msl.ptr<f32, device>, i32, f32
    msl.return
  }
}

// -----

module attributes {msl.target = #msl.target<metal(3, 2), threads = 64, threadgroup_bytes = 32768, registers = 128,
    features = none>} {
  // expected-error @below {{has num_warps=4, which is 128 threads in a threadgroup, and the target takes 64: launch it with num_warps=2}}
  msl.kernel @threads() threads 128 {
    msl.return
  }
}

// -----

module attributes {msl.target = #msl.target<metal(3, 2), threads = 1024, threadgroup_bytes = 32768, registers = 128,
    features = bfloat>} {
  msl.kernel @matrices(%acc: f32) threads 32 {
    %a = msl.alloc "a", 64 : !msl.ptr<f16, threadgroup>
    %c = msl.splat %acc : vector<2xf32>
    // expected-error @below {{uses simdgroup matrices, which the target (Metal 3.2) does not have: it takes GPU family Apple7 (M1)}}
    %r = msl.mma <8x8x8> %c, %a, %a {m = 1 : i32, n = 1 : i32, k = 1 : i32, a_stride = 8 : i32, b_stride = 8 : i32}
        : vector<2xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
    msl.return
  }
}

// -----

module {
  msl.kernel @no_such_instruction(%acc: f32) threads 32 {
    %a = msl.alloc "a", 256 : !msl.ptr<f16, threadgroup>
    %c = msl.splat %acc : vector<8xf32>
    // expected-error @below {{multiplies matrices of 16x16x16, which no target does}}
    %r = msl.mma <16x16x16> %c, %a, %a {m = 1 : i32, n = 1 : i32, k = 1 : i32, a_stride = 16 : i32, b_stride = 16 : i32}
        : vector<8xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
    msl.return
  }
}

// -----

// Without a target everything that is printed is there.
module {
  msl.kernel @baseline(%x: !msl.ptr<bf16, device>, %y: !msl.ptr<f32, device>, %n: f32) threads 1024 {
    %zero = arith.constant 0 : i32
    %v = msl.load %x[%zero] : !msl.ptr<bf16, device>, i32 -> bf16
    %old = msl.atomic_rmw fadd %y[%zero], %n : !msl.ptr<f32, device>, i32, f32
    msl.return
  }
}

// -----

// expected-error @below {{has "msl.target" = "msl=3.2", which must be an #msl.target}}
module attributes {msl.target = "msl=3.2"} {
}
