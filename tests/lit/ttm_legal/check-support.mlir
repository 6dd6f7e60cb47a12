// RUN: triton-metal-opt %s --ttm-check-support --split-input-file --verify-diagnostics

#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // expected-error @+1 {{uses 'f80', which Metal does not have: its numbers are}}
  tt.func public @doubles(%x: !tt.ptr<f80>) {
    tt.return
  }
}

// -----

#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  tt.func public @scans(%x: !tt.ptr<f32>) {
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #l>
    // expected-error @+1 {{has pointers in its scan; take their offsets instead}}
    %s = "tt.scan"(%p) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>):
      tt.scan.return %b : !tt.ptr<f32>
    }) : (tensor<32x!tt.ptr<f32>, #l>) -> tensor<32x!tt.ptr<f32>, #l>
    tt.return
  }
}

// -----

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  tt.func public @foreign(%x: !tt.ptr<f32>, %f: f32) {
    // expected-error @+1 {{calls '__nv_nothingf' of a device library that Metal does not have: use tl.math}}
    %t = tt.extern_elementwise %f {libname = "libdevice", libpath = "", symbol = "__nv_nothingf", pure = true} : (f32) -> f32
    tt.store %x, %t : !tt.ptr<f32>
    tt.return
  }
}

// -----

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  tt.func public @toward_zero(%x: !tt.ptr<f16>, %f: f32) {
    // expected-error @+1 {{rounds toward zero, which Metal's conversions do not: use the default}}
    %t = tt.fp_to_fp %f, rounding = rtz : f32 -> f16
    tt.store %x, %t : !tt.ptr<f16>
    tt.return
  }
}

// -----

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  tt.func public @bits(%x: !tt.ptr<i1>, %f: i1) {
    %true = arith.constant true
    // expected-error @+1 {{updates 'i1' atomically; atomics are of integers of 8, 16, 32 and 64 bits, float16, bfloat16, float32 and float64}}
    %t = tt.atomic_rmw or, relaxed, gpu, %x, %f, %true : (!tt.ptr<i1>, i1, i1) -> i1
    tt.return
  }
}

// -----

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // expected-error @+1 {{uses '!tt.ptr<f32, 3>', which points into address space 3; a kernel's pointers go to device memory, which is 1 (or 0, any memory, or 4, memory that is only read)}}
  tt.func public @shared(%x: !tt.ptr<f32, 3>) {
    tt.return
  }
}
