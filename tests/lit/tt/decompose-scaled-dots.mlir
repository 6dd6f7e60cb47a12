// RUN: triton-metal-opt %s --tt-decompose-scaled-dots --tt-emulate-floats --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// Two numbers in a byte along K of a; 8-bit products with exponents are bfloats.
// CHECK-LABEL: @mxfp4
tt.func private @mxfp4(%a: tensor<16x32xi8>, %s: tensor<16x2xi8>, %b: tensor<64x16xbf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // CHECK: arith.shrsi
  // CHECK: arith.shrsi
  // CHECK: tt.join %{{.*}}, %{{.*}} : tensor<16x32xf16> -> tensor<16x32x2xf16>
  // CHECK: tt.reshape %{{.*}} : tensor<16x32x2xf16> -> tensor<16x64xf16>
  // The exponent 255 becomes a NaN before there are as many scales as numbers.
  // CHECK: %[[IS_NAN:.*]] = arith.cmpi eq, %{{.*}} : tensor<16x2xi32>
  // CHECK: arith.select %[[IS_NAN]], %{{.*}} : tensor<16x2xi1>, tensor<16x2xi32>
  // CHECK: tt.broadcast %{{.*}} : tensor<16x2x1xf32> -> tensor<16x2x32xf32>
  // CHECK: tt.reshape %{{.*}} : tensor<16x2x32xf32> -> tensor<16x64xf32>
  // CHECK: arith.mulf %{{.*}} : tensor<16x64xf32>
  // CHECK-NOT: arith.select
  // CHECK: arith.truncf %{{.*}} : tensor<16x64xf32> to tensor<16x64xbf16>
  // CHECK: tt.dot %{{.*}}, %arg2, %arg3 : tensor<16x64xbf16> * tensor<64x16xbf16> -> tensor<16x16xf32>
  %d = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = bf16 {fastMath = false} : tensor<16x32xi8>, tensor<16x2xi8> * tensor<64x16xbf16> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// -----

// Halves have too many digits for a bfloat, and too few exponents for the scales. Nothing looks for NaNs with fastMath.
// CHECK-LABEL: @half
tt.func private @half(%a: tensor<16x32xf16>, %s: tensor<16x1xi8>, %b: tensor<32x16xf8E5M2>, %t: tensor<16x1xi8>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // CHECK-NOT: arith.cmp
  // CHECK: tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<16x1xi8> -> tensor<1x16xi8>
  // CHECK: tt.dot %{{.*}} : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
  %d = tt.dot_scaled %a scale %s, %b scale %t, %c lhs = fp16 rhs = e5m2 {fastMath = true} : tensor<16x32xf16>, tensor<16x1xi8> * tensor<32x16xf8E5M2>, tensor<16x1xi8> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// -----

// Without scales, floats of 8 bits are halves.
// CHECK-LABEL: @unscaled
tt.func private @unscaled(%a: tensor<16x32xf8E4M3FN>, %b: tensor<32x16xf8E5M2>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // CHECK: tt.dot %{{.*}} : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
  %d = tt.dot_scaled %a, %b, %c lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<16x32xf8E4M3FN> * tensor<32x16xf8E5M2> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// -----

tt.func private @kind(%a: tensor<16x32xi8>, %b: tensor<32x16xf8E5M2>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // expected-error @+1 {{has a first operand of kind e2m3, which Triton's front end does not make: use e2m1, e4m3, e5m2, bf16 or fp16}}
  %d = tt.dot_scaled %a, %b, %c lhs = e2m3 rhs = e5m2 {fastMath = false} : tensor<16x32xi8> * tensor<32x16xf8E5M2> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// -----

tt.func private @scales(%a: tensor<16x32xf8E5M2>, %s: tensor<8x1xi8>, %b: tensor<32x16xf8E5M2>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // expected-error @+1 {{has scales of shape 'tensor<8x1xi8>'; they have 16 rows, and columns that divide K = 32}}
  %d = tt.dot_scaled %a scale %s, %b, %c lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<16x32xf8E5M2>, tensor<8x1xi8> * tensor<32x16xf8E5M2> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}
