// RUN: triton-metal-opt %s --tt-widen-combine | FileCheck %s

// A sum of bfloats is a sum of floats that is rounded once.
// CHECK-LABEL: @sum
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<128xbf16> to tensor<128xf32>
// CHECK: %[[SUM:.*]] = "tt.scan"(%[[WIDE]])
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK: arith.addf %[[A]], %[[B]] : f32
// CHECK: arith.truncf %[[SUM]] : tensor<128xf32> to tensor<128xbf16>
tt.func private @sum(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: bf16, %b: bf16):
    %c = arith.addf %a, %b : bf16
    tt.scan.return %c : bf16
  }) : (tensor<128xbf16>) -> tensor<128xbf16>
  tt.return %s : tensor<128xbf16>
}

// Other operands keep their types, and constants are widened.
// CHECK-LABEL: @several
// CHECK: "tt.reduce"(%{{.*}}, %{{.*}}) <{axis = 0 : i32}>
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: f32, %{{.*}}: i32):
// CHECK: arith.constant 5.000000e-01 : f32
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
tt.func private @several(%x: tensor<128xbf16>, %y: tensor<128xi32>) -> (bf16, i32) {
  %r:2 = "tt.reduce"(%x, %y) <{axis = 0 : i32}> ({
  ^bb0(%a: bf16, %i: i32, %b: bf16, %j: i32):
    %half = arith.constant 0.5 : bf16
    %h = arith.mulf %a, %half : bf16
    %c = arith.addf %h, %b : bf16
    %k = arith.addi %i, %j : i32
    tt.reduce.return %c, %k : bf16, i32
  }) : (tensor<128xbf16>, tensor<128xi32>) -> (bf16, i32)
  tt.return %r#0, %r#1 : bf16, i32
}

// A maximum is exact as it is, and so are halves, whose arithmetic every chip has.
// CHECK-LABEL: @exact
// CHECK-NOT: extf
tt.func private @exact(%x: tensor<128xbf16>, %y: tensor<128xf16>) -> (bf16, f16) {
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: bf16, %b: bf16):
    %c = arith.maxnumf %a, %b : bf16
    tt.reduce.return %c : bf16
  }) : (tensor<128xbf16>) -> bf16
  %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%a: f16, %b: f16):
    %c = arith.addf %a, %b : f16
    tt.reduce.return %c : f16
  }) : (tensor<128xf16>) -> f16
  tt.return %m, %s : bf16, f16
}

// Bits of a bfloat have no counterpart in a float.
// CHECK-LABEL: @bits
// CHECK-NOT: extf
tt.func private @bits(%x: tensor<128xbf16>) -> bf16 {
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: bf16, %b: bf16):
    %c = arith.addf %a, %b : bf16
    %d = arith.bitcast %c : bf16 to i16
    %e = arith.bitcast %d : i16 to bf16
    tt.reduce.return %e : bf16
  }) : (tensor<128xbf16>) -> bf16
  tt.return %s : bf16
}
