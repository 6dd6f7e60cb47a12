// RUN: triton-metal-opt %s --split-input-file --tt-narrow-shapes | FileCheck %s

// CHECK-LABEL: tt.func private @halves
// CHECK-SAME:    %[[A:[^:]*]]: tensor<64x64xf32>
// CHECK-NEXT:    %[[H:.*]] = arith.truncf %[[A]] : tensor<64x64xf32> to tensor<64x64xf16>
// CHECK-NEXT:    %[[R:.*]] = tt.reshape %[[H]] : tensor<64x64xf16> -> tensor<64x2x32xf16>
// CHECK-NEXT:    %[[T:.*]] = tt.trans %[[R]] {order = array<i32: 0, 2, 1>} : tensor<64x2x32xf16> -> tensor<64x32x2xf16>
// CHECK-NEXT:    %[[X:.*]], %[[Y:.*]] = tt.split %[[T]]
// CHECK-NEXT:    tt.return %[[X]], %[[Y]]
tt.func private @halves(%a: tensor<64x64xf32>) -> (tensor<64x32xf16>, tensor<64x32xf16>) {
  %r = tt.reshape %a : tensor<64x64xf32> -> tensor<64x2x32xf32>
  %t = tt.trans %r {order = array<i32: 0, 2, 1>} : tensor<64x2x32xf32> -> tensor<64x32x2xf32>
  %x, %y = tt.split %t : tensor<64x32x2xf32> -> tensor<64x32xf32>
  %0 = arith.truncf %x : tensor<64x32xf32> to tensor<64x32xf16>
  %1 = arith.truncf %y : tensor<64x32xf32> to tensor<64x32xf16>
  tt.return %0, %1 : tensor<64x32xf16>, tensor<64x32xf16>
}

// -----

// CHECK-LABEL: tt.func private @joined
// CHECK-SAME:    %[[A:[^:]*]]: tensor<64xi32>, %[[B:[^:]*]]: tensor<64xi32>
// CHECK-NEXT:    %[[X:.*]] = arith.trunci %[[A]] : tensor<64xi32> to tensor<64xi8>
// CHECK-NEXT:    %[[Y:.*]] = arith.trunci %[[B]] : tensor<64xi32> to tensor<64xi8>
// CHECK-NEXT:    %[[J:.*]] = tt.join %[[X]], %[[Y]]
// CHECK-NEXT:    tt.return %[[J]], %[[J]]
tt.func private @joined(%a: tensor<64xi32>, %b: tensor<64xi32>) -> (tensor<64x2xi8>, tensor<64x2xi8>) {
  %j = tt.join %a, %b : tensor<64xi32> -> tensor<64x2xi32>
  %0 = arith.trunci %j : tensor<64x2xi32> to tensor<64x2xi8>
  %1 = arith.trunci %j : tensor<64x2xi32> to tensor<64x2xi8>
  tt.return %0, %1 : tensor<64x2xi8>, tensor<64x2xi8>
}

// -----

// Each half is shortened to another type, or one is used as it is.
// CHECK-LABEL: tt.func private @unlike
// CHECK-NEXT:    tt.split
// CHECK-LABEL: tt.func private @whole
// CHECK-NEXT:    tt.split
tt.func private @unlike(%a: tensor<64x2xf32>) -> (tensor<64xf16>, tensor<64xbf16>) {
  %x, %y = tt.split %a : tensor<64x2xf32> -> tensor<64xf32>
  %0 = arith.truncf %x : tensor<64xf32> to tensor<64xf16>
  %1 = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.return %0, %1 : tensor<64xf16>, tensor<64xbf16>
}
tt.func private @whole(%a: tensor<64x2xf32>) -> (tensor<64xf16>, tensor<64xf32>) {
  %x, %y = tt.split %a : tensor<64x2xf32> -> tensor<64xf32>
  %0 = arith.truncf %x : tensor<64xf32> to tensor<64xf16>
  tt.return %0, %y : tensor<64xf16>, tensor<64xf32>
}
