// RUN: triton-metal-opt %s --tt-choose-threads=num-warps=4 | FileCheck %s

// What a loop stages for the first product waits in registers before it is multiplied, not while it
// is, and what it stages for the second one lies in the same threadgroup memory: 64 rows of 64 bytes
// with 16 of padding, once. The left operand that stays is there besides, for each product: 32 rows
// of 128 bytes.
// CHECK: module attributes
// CHECK-SAME: 4 SIMD-groups, 1 stages: about {{[4-7][0-9]}} registers, 14336 bytes of threadgroup memory
module {
  tt.func public @pair(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %pa = tt.splat %a : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    %pb = tt.splat %b : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %left = tt.load %pa : tensor<32x64x!tt.ptr<f16>>
    %sums:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %zero) -> (tensor<32x32xf32>, tensor<32x32xf32>) : i32 {
      %first = tt.load %pb : tensor<64x32x!tt.ptr<f16>>
      %u = tt.dot %left, %first, %x : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
      %second = tt.load %pb : tensor<64x32x!tt.ptr<f16>>
      %v = tt.dot %left, %second, %y : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
      scf.yield %u, %v : tensor<32x32xf32>, tensor<32x32xf32>
    }
    %sum = arith.addf %sums#0, %sums#1 : tensor<32x32xf32>
    %out = arith.truncf %sum : tensor<32x32xf32> to tensor<32x32xf16>
    %po = tt.splat %a : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
    tt.store %po, %out : tensor<32x32x!tt.ptr<f16>>
    tt.return
  }
}
