// RUN: triton-metal-opt %s --tt-approximate | FileCheck %s

// CHECK-LABEL: @functions
tt.func private @functions(%x: tensor<8xf32>, %h: f16, %b: bf16, %d: f64) -> (tensor<8xf32>, f16, bf16, f64) {
  // CHECK: math.exp %{{.*}} fastmath<afn> : tensor<8xf32>
  %0 = math.exp %x : tensor<8xf32>
  // CHECK: math.log2 %{{.*}} fastmath<nnan,afn> : tensor<8xf32>
  %1 = math.log2 %0 fastmath<nnan> : tensor<8xf32>
  // CHECK: tt.precise_sqrt
  %2 = tt.precise_sqrt %1 : tensor<8xf32>
  // CHECK: tt.precise_divf
  %3 = tt.precise_divf %2, %x : tensor<8xf32>
  // CHECK: math.erf %{{[^ ]*}} : tensor<8xf32>
  %4 = math.erf %3 : tensor<8xf32>
  // CHECK: math.rsqrt %{{.*}} fastmath<afn> : f16
  %5 = math.rsqrt %h : f16
  // CHECK: arith.divf %{{.*}} fastmath<afn> : bf16
  %6 = arith.divf %b, %b : bf16
  // CHECK: math.sin %{{[^ ]*}} : f64
  %7 = math.sin %d : f64
  // CHECK: arith.divf %{{[^ ]*}}, %{{[^ ]*}} : f64
  %8 = arith.divf %7, %d : f64
  tt.return %4, %5, %6, %8 : tensor<8xf32>, f16, bf16, f64
}
