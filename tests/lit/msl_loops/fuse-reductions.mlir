// RUN: triton-metal-opt %s --msl-fuse-reductions | FileCheck %s

// What a reduction adds is fused where it is marked, and its product has no other reader.
// CHECK-LABEL: @sums
// CHECK-SAME: (%[[X:.*]]: vector<4xf32>, %[[S:.*]]: vector<4xf32>)
tt.func private @sums(%x: vector<4xf32>, %s: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>) {
  // CHECK: %[[F:.*]] = math.fma %[[X]], %[[X]], %[[S]]
  %0 = arith.mulf %x, %x : vector<4xf32>
  %1 = arith.addf %s, %0 fastmath<contract> : vector<4xf32>
  // CHECK-NOT: math.fma
  // CHECK: arith.addf
  %2 = arith.mulf %x, %x : vector<4xf32>
  %3 = arith.addf %s, %2 : vector<4xf32>
  // CHECK: %[[P:.*]] = arith.mulf
  // CHECK: arith.addf %[[S]], %[[P]]
  %4 = arith.mulf %x, %s : vector<4xf32>
  %5 = arith.addf %s, %4 fastmath<contract> : vector<4xf32>
  tt.return %1, %3, %4, %5 : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>
}

// CHECK-LABEL: @bfloats
// CHECK-NOT: math.fma
tt.func private @bfloats(%x: bf16, %s: bf16) -> bf16 {
  %0 = arith.mulf %x, %x : bf16
  %1 = arith.addf %s, %0 fastmath<contract> : bf16
  tt.return %1 : bf16
}
