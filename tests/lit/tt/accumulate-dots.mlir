// RUN: triton-metal-opt %s --tt-accumulate-dots | FileCheck %s

!a = tensor<64x32xf16>
!b = tensor<32x64xf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: tt.func private @sum
// CHECK: %[[D:.*]] = tt.dot %{{.*}}, %{{.*}}, %arg2, inputPrecision = tf32
// CHECK-NOT: arith.addf
// CHECK: tt.return %[[D]]
tt.func private @sum(%a: !a, %b: !b, %acc: !c) -> !c {
  %zero = arith.constant dense<0.0> : !c
  %0 = tt.dot %a, %b, %zero, inputPrecision = tf32 : !a * !b -> !c
  %1 = arith.addf %acc, %0 : !c
  tt.return %1 : !c
}

// The other tile is computed behind the product.
// CHECK-LABEL: tt.func private @scaled
// CHECK: %[[S:.*]] = arith.mulf %arg2, %arg3
// CHECK: tt.dot %{{.*}}, %{{.*}}, %[[S]]
// CHECK-NOT: arith.addf
tt.func private @scaled(%a: !a, %b: !b, %acc: !c, %alpha: !c) -> !c {
  %zero = arith.constant dense<0.0> : !c
  %0 = tt.dot %a, %b, %zero : !a * !b -> !c
  %1 = arith.mulf %acc, %alpha : !c
  %2 = arith.addf %0, %1 : !c
  tt.return %2 : !c
}

// CHECK-LABEL: tt.func private @two
// CHECK: %[[FIRST:.*]] = tt.dot %arg0, %arg1, %cst
// CHECK: tt.dot %arg2, %arg1, %[[FIRST]]
// CHECK-NOT: arith.addf
tt.func private @two(%a: !a, %b: !b, %a2: !a) -> !c {
  %zero = arith.constant dense<0.0> : !c
  %0 = tt.dot %a, %b, %zero : !a * !b -> !c
  %1 = tt.dot %a2, %b, %zero : !a * !b -> !c
  %2 = arith.addf %1, %0 : !c
  tt.return %2 : !c
}

// CHECK-LABEL: tt.func private @integers
// CHECK: tt.dot %arg0, %arg1, %arg2
// CHECK-NOT: arith.addi
tt.func private @integers(%a: tensor<16x16xi8>, %b: tensor<16x16xi8>, %acc: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %zero = arith.constant dense<0> : tensor<16x16xi32>
  %0 = tt.dot %a, %b, %zero : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
  %1 = arith.addi %acc, %0 : tensor<16x16xi32>
  tt.return %1 : tensor<16x16xi32>
}

// A product that another operation reads, one that starts from a tile of its own, and one in front of the loop stay.
// CHECK-LABEL: tt.func private @kept
// CHECK-COUNT-3: arith.addf
tt.func private @kept(%a: !a, %b: !b, %acc: !c, %n: i32) -> (!c, !c, !c, !c) {
  %zero = arith.constant dense<0.0> : !c
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = tt.dot %a, %b, %zero : !a * !b -> !c
  %1 = arith.addf %acc, %0 : !c
  %2 = tt.dot %a, %b, %acc : !a * !b -> !c
  %3 = arith.addf %acc, %2 : !c
  %4 = tt.dot %a, %b, %zero : !a * !b -> !c
  %5 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %acc) -> (!c) : i32 {
    %6 = arith.addf %sum, %4 : !c
    scf.yield %6 : !c
  }
  tt.return %0, %1, %3, %5 : !c, !c, !c, !c
}
