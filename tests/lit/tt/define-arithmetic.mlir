// RUN: triton-metal-opt %s --define-arithmetic --split-input-file | FileCheck %s
// RUN: triton-metal-opt %s --define-arithmetic="constants-only" --split-input-file | FileCheck %s --check-prefix=CONSTANTS

// Amounts count modulo the width: 33 is 1 for 32 bits, 9 is 1 for 8.
// CHECK-LABEL: @amounts
// CONSTANTS-LABEL: @amounts
tt.func private @amounts(%x: i32, %n: i32, %y: tensor<32xi8>) -> (i32, i32, i32, tensor<32xi8>, i32) {
  %c33 = arith.constant 33 : i32
  %c31 = arith.constant 31 : i32
  %c9 = arith.constant dense<9> : tensor<32xi8>
  // CHECK: %[[C1:.*]] = arith.constant 1 : i32
  // CHECK: arith.shli %arg0, %[[C1]] : i32
  %0 = arith.shli %x, %c33 : i32
  // CHECK: %[[C31:.*]] = arith.constant 31 : i32
  // CHECK: %[[N:.*]] = arith.andi %arg1, %[[C31]] : i32
  // CHECK: arith.shrsi %arg0, %[[N]] : i32
  // CONSTANTS: arith.shrsi %arg0, %arg1 : i32
  %1 = arith.shrsi %x, %n : i32
  // CHECK: %[[M:.*]] = arith.andi
  // CHECK-NEXT: arith.shrui %arg0, %[[M]] : i32
  %m = arith.andi %n, %c31 : i32
  %2 = arith.shrui %x, %m : i32
  // CHECK: %[[B1:.*]] = arith.constant dense<1> : tensor<32xi8>
  // CHECK: arith.shli %arg2, %[[B1]]
  %3 = arith.shli %y, %c9 : tensor<32xi8>
  // CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK: arith.shrui %arg0, %[[ZERO]]
  %c64 = arith.constant 64 : i32
  %4 = arith.shrui %x, %c64 : i32
  tt.return %0, %1, %2, %3, %4 : i32, i32, i32, tensor<32xi8>, i32
}

// -----

// A division by zero is one by 1, and the least number by -1 wraps.
// CHECK-LABEL: @divisions
tt.func private @divisions(%x: i32, %y: tensor<4xi32>, %n: i32) -> (i32, i32, tensor<4xi32>, i32, i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %minus = arith.constant -1 : i32
  %some = arith.constant dense<[3, 0, -1, 0]> : tensor<4xi32>
  // CHECK: %[[A:.*]] = arith.constant 1 : i32
  // CHECK: arith.divsi %arg0, %[[A]]
  %0 = arith.divsi %x, %c0 : i32
  // CHECK: %[[B:.*]] = arith.constant 1 : i32
  // CHECK: arith.remui %arg0, %[[B]]
  %1 = arith.remui %x, %c0 : i32
  // CHECK: %[[C:.*]] = arith.constant dense<[3, 1, -1, 1]>
  // CHECK: arith.divsi %arg1, %[[C]]
  %2 = arith.divsi %y, %some : tensor<4xi32>
  // CHECK: %[[Z:.*]] = arith.constant 0 : i32
  // CHECK: %[[NEG:.*]] = arith.subi %[[Z]], %arg0
  %3 = arith.divsi %x, %minus : i32
  // CHECK: %[[REM:.*]] = arith.constant 0 : i32
  %4 = arith.remsi %x, %minus : i32
  // CHECK: arith.divui %arg0, %{{.*}} : i32
  %5 = arith.divui %x, %minus : i32
  // CHECK: arith.divsi %arg0, %arg2 : i32
  %6 = arith.divsi %x, %n : i32
  // CHECK: tt.return %{{.*}}, %{{.*}}, %{{.*}}, %[[NEG]], %[[REM]]
  tt.return %0, %1, %2, %3, %4, %5, %6 : i32, i32, tensor<4xi32>, i32, i32, i32, i32
}

// -----

// Floats saturate; NaN is 0.
// CHECK-LABEL: @conversions
tt.func private @conversions() -> (i32, i8, i8, i64, i32, tensor<4xi16>, i8) {
  %large = arith.constant 1.0e20 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %negative = arith.constant -1.5 : f32
  %infinity = arith.constant 0xFF800000 : f32
  %tile = arith.constant dense<3.0e5> : tensor<4xf32>
  %fits = arith.constant -1.5 : bf16
  // CHECK-DAG: arith.constant 2147483647 : i32
  %0 = arith.fptosi %large : f32 to i32
  // CHECK-DAG: arith.constant 0 : i8
  %1 = arith.fptoui %negative : f32 to i8
  // CHECK-DAG: arith.constant -1 : i8
  %2 = arith.fptoui %large : f32 to i8
  // CHECK-DAG: arith.constant -9223372036854775808 : i64
  %3 = arith.fptosi %infinity : f32 to i64
  // CHECK-DAG: arith.constant 0 : i32
  %4 = arith.fptosi %nan : f32 to i32
  // CHECK-DAG: arith.constant dense<32767> : tensor<4xi16>
  %5 = arith.fptosi %tile : tensor<4xf32> to tensor<4xi16>
  // CHECK-NOT: arith.fpto
  %6 = arith.fptosi %fits : bf16 to i8
  tt.return %0, %1, %2, %3, %4, %5, %6 : i32, i8, i8, i64, i32, tensor<4xi16>, i8
}

// -----

// Truth values: 1 is the only divisor, no amount is below the width but 0, and true is the least signed number.
// CHECK-LABEL: @booleans
tt.func private @booleans(%x: i1, %y: i1) -> (i1, i1, i1, i1, i1, i1) {
  // CHECK: %[[F:.*]] = arith.constant false
  // CHECK: %[[AND:.*]] = arith.andi %arg0, %arg1
  // CHECK: %[[OR:.*]] = arith.ori %arg0, %arg1
  // CHECK: tt.return %arg0, %arg0, %arg0, %[[F]], %[[AND]], %[[OR]]
  %0 = arith.shli %x, %y : i1
  %1 = arith.shrui %x, %y : i1
  %2 = arith.divui %x, %y : i1
  %3 = arith.remui %x, %y : i1
  %4 = arith.minui %x, %y : i1
  %5 = arith.minsi %x, %y : i1
  tt.return %0, %1, %2, %3, %4, %5 : i1, i1, i1, i1, i1, i1
}

// -----

// MLIR takes bounds this far apart for those of an empty loop.
// CHECK-LABEL: @far_bounds
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: scf.for unsigned %[[I:.*]] = %[[ZERO]] to %[[FOUR]] step %[[ONE]]
// CHECK:   %[[OFFSET:.*]] = arith.muli %[[I]], %c1073741824_i32
// CHECK:   %[[K:.*]] = arith.addi %c-2147483648_i32{{.*}}, %[[OFFSET]]
// CHECK:   arith.xori %{{.*}}, %[[K]]
tt.func private @far_bounds(%x: i32) -> i32 {
  %lower = arith.constant -2147483648 : i32
  %upper = arith.constant 2147483647 : i32
  %step = arith.constant 1073741824 : i32
  %r = scf.for %k = %lower to %upper step %step iter_args(%sum = %x) -> (i32) : i32 {
    %new = arith.xori %sum, %k : i32
    scf.yield %new : i32
  }
  tt.return %r : i32
}

// -----

// A step that may be negative: the loop counts its iterations.
// CHECK-LABEL: @any_step
// CHECK-SAME: (%[[LOWER:.*]]: i32, %[[UPPER:.*]]: i32, %[[STEP:.*]]: i32)
tt.func private @any_step(%lower: i32, %upper: i32, %step: i32) -> i32 {
  %zero = arith.constant 0 : i32
  // CHECK: %[[UP:.*]] = arith.cmpi sgt, %[[STEP]]
  // CHECK: arith.divui
  // CHECK: %[[COUNT:.*]] = arith.select
  // CHECK: scf.for unsigned %[[K:.*]] = %{{.*}} to %[[COUNT]] step
  // CHECK:   %[[OFFSET:.*]] = arith.muli %[[K]], %[[STEP]]
  // CHECK:   %[[I:.*]] = arith.addi %[[LOWER]], %[[OFFSET]]
  // CHECK:   arith.addi %{{.*}}, %[[I]]
  %r = scf.for %i = %lower to %upper step %step iter_args(%sum = %zero) -> (i32) : i32 {
    %s = arith.addi %sum, %i : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// -----

// The number of programs is positive.
// CHECK-LABEL: @positive_step
tt.func private @positive_step(%lower: i32, %upper: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %step = tt.get_num_programs x : i32
  // CHECK-NOT: arith.divui
  // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step
  %r = scf.for %i = %lower to %upper step %step iter_args(%sum = %zero) -> (i32) : i32 {
    %s = arith.addi %sum, %i : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}
