// RUN: triton-metal-opt %s --convert-tt-to-ttm=num-warps=4 -split-input-file -verify-diagnostics
// RUN: not triton-metal-opt %s --convert-tt-to-ttm=num-warps=3 -split-input-file 2>&1 | FileCheck %s

// CHECK: num_warps must be a power of two from 1 to 32, but is 3

// expected-error @+1 {{a kernel cannot take a tile as an argument: 'tensor<32xf32>'}}
tt.func public @argument(%x: tensor<32xf32>) {
  tt.return
}
