// RUN: triton-metal-opt %s --canonicalize | FileCheck %s

// A splat of a constant is a constant, and what changes its shape too.
// CHECK-LABEL: @constants
tt.func private @constants() -> (tensor<4x8xf32>, tensor<32xf32>) {
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<2.000000e+00> : tensor<4x8xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<2.000000e+00> : tensor<32xf32>
  // CHECK: tt.return %[[A]], %[[B]]
  %two = arith.constant 2.0 : f32
  %0 = tt.splat %two : f32 -> tensor<8xf32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %2 = tt.broadcast %1 : tensor<1x8xf32> -> tensor<4x8xf32>
  %3 = tt.reshape %2 : tensor<4x8xf32> -> tensor<32xf32>
  tt.return %2, %3 : tensor<4x8xf32>, tensor<32xf32>
}

// CHECK-LABEL: @splats
// CHECK-SAME: (%[[X:.*]]: f32)
tt.func private @splats(%x: f32) -> tensor<8x4xf32> {
  // CHECK-NEXT: %[[S:.*]] = tt.splat %[[X]] : f32 -> tensor<8x4xf32>
  // CHECK-NEXT: tt.return %[[S]]
  %0 = tt.splat %x : f32 -> tensor<8xf32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %2 = tt.broadcast %1 : tensor<1x8xf32> -> tensor<4x8xf32>
  %3 = tt.trans %2 {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  tt.return %3 : tensor<8x4xf32>
}

// CHECK-LABEL: @shapes
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>)
tt.func private @shapes(%x: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<4x8x2xf32>, tensor<64xf32>) {
  // CHECK-NEXT: %[[T:.*]] = tt.trans %[[X]] {order = array<i32: 1, 2, 0>}
  // CHECK-NEXT: %[[R:.*]] = tt.reshape %[[X]] : tensor<2x4x8xf32> -> tensor<64xf32>
  // CHECK-NEXT: tt.return %[[X]], %[[T]], %[[R]]
  %0 = tt.trans %x {order = array<i32: 2, 0, 1>} : tensor<2x4x8xf32> -> tensor<8x2x4xf32>
  %1 = tt.trans %0 {order = array<i32: 1, 2, 0>} : tensor<8x2x4xf32> -> tensor<2x4x8xf32>
  %2 = tt.trans %0 {order = array<i32: 2, 0, 1>} : tensor<8x2x4xf32> -> tensor<4x8x2xf32>
  %3 = tt.reshape %x : tensor<2x4x8xf32> -> tensor<8x8xf32>
  %4 = tt.reshape %3 : tensor<8x8xf32> -> tensor<64xf32>
  tt.return %1, %2, %4 : tensor<2x4x8xf32>, tensor<4x8x2xf32>, tensor<64xf32>
}

// The order of a free reshape is chosen once for all its readers.
// CHECK-LABEL: @free_order
tt.func private @free_order(%x: tensor<4x8xf32>) -> (tensor<32xf32>, tensor<2x16xf32>) {
  // CHECK-NEXT: %[[F:.*]] = tt.reshape %{{.*}} allow_reorder
  // CHECK-NEXT: tt.reshape %[[F]] : tensor<32xf32> -> tensor<2x16xf32>
  %0 = tt.reshape %x allow_reorder : tensor<4x8xf32> -> tensor<32xf32>
  %1 = tt.reshape %0 : tensor<32xf32> -> tensor<2x16xf32>
  tt.return %0, %1 : tensor<32xf32>, tensor<2x16xf32>
}

// CHECK-LABEL: @halves
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>)
tt.func private @halves(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: tt.return %[[Y]], %[[X]]
  %0 = tt.join %x, %y : tensor<8xf32> -> tensor<8x2xf32>
  %1, %2 = tt.split %0 : tensor<8x2xf32> -> tensor<8xf32>
  tt.return %2, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @pointers
// CHECK-SAME: (%[[P:.*]]: tensor<8x!tt.ptr<f32>>
tt.func private @pointers(%p: tensor<8x!tt.ptr<f32>>) -> tensor<8x!tt.ptr<f32>> {
  // CHECK-NEXT: tt.return %[[P]]
  %zero = arith.constant dense<0> : tensor<8xi32>
  %0 = tt.addptr %p, %zero : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.return %0 : tensor<8x!tt.ptr<f32>>
}

// CHECK-LABEL: @masks
// CHECK-SAME: (%[[P:.*]]: tensor<8x!tt.ptr<f32>>, %[[O:.*]]: tensor<8xf32>)
tt.func private @masks(%p: tensor<8x!tt.ptr<f32>>, %o: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[L:.*]] = tt.load %[[P]] : tensor<8x!tt.ptr<f32>>
  // CHECK-NEXT: tt.store %[[P]], %[[L]] : tensor<8x!tt.ptr<f32>>
  // CHECK-NEXT: tt.return %[[L]], %[[O]]
  %true = arith.constant dense<true> : tensor<8xi1>
  %false = arith.constant dense<false> : tensor<8xi1>
  %0 = tt.load %p, %true, %o : tensor<8x!tt.ptr<f32>>
  %1 = tt.load %p, %false, %o : tensor<8x!tt.ptr<f32>>
  tt.store %p, %0, %true : tensor<8x!tt.ptr<f32>>
  tt.store %p, %1, %false : tensor<8x!tt.ptr<f32>>
  tt.return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// A volatile load stays, even when nobody reads it.
// CHECK-LABEL: @volatile
tt.func private @volatile(%p: !tt.ptr<f32>) {
  // CHECK-NEXT: tt.load %{{.*}} {isVolatile = true}
  // CHECK-NEXT: tt.return
  %0 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  %1 = tt.load %p : !tt.ptr<f32>
  tt.return
}

// CHECK-LABEL: @numbers
tt.func private @numbers(%x: i32) -> (i32, i32, i32, tensor<2xf32>) {
  // CHECK-DAG: %[[H:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[B:.*]] = arith.constant 1065353216 : i32
  // CHECK-DAG: %[[Z:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[F:.*]] = arith.constant dense<1.000000e+00> : tensor<2xf32>
  // CHECK: tt.return %[[H]], %[[B]], %[[Z]], %[[F]]
  %a = arith.constant -2147483648 : i32
  %b = arith.constant 2 : i32
  %0 = tt.mulhiui %a, %b : i32
  %one = arith.constant 1.0 : f32
  %1 = tt.bitcast %one : f32 -> i32
  %zero = arith.constant 0 : i32
  %2 = tt.mulhiui %x, %zero : i32
  %bits = arith.constant dense<1065353216> : tensor<2xi32>
  %3 = tt.bitcast %bits : tensor<2xi32> -> tensor<2xf32>
  tt.return %0, %1, %2, %3 : i32, i32, i32, tensor<2xf32>
}

// CHECK-LABEL: @unsplat
// CHECK-SAME: (%[[X:.*]]: f32)
tt.func private @unsplat(%x: f32) -> f32 {
  // CHECK-NEXT: tt.return %[[X]]
  %0 = tt.splat %x : f32 -> tensor<1x1xf32>
  %1 = tt.unsplat %0 : tensor<1x1xf32>
  tt.return %1 : f32
}

// A loop that yields one result of a branch twice keeps both: LLVM's own pattern makes poison of the second.
// CHECK-LABEL: @twice
tt.func private @twice(%n: i32, %x: i32, %y: i32, %factor: i32) -> (i32, i32) {
  %p = ub.poison : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: scf.while
  // CHECK: %[[PRODUCT:.*]] = arith.muli
  // CHECK: scf.yield %{{.*}}, %[[PRODUCT]], %[[PRODUCT]]
  %r:5 = scf.while (%a = %n, %b = %x, %c = %y) : (i32, i32, i32) -> (i32, i32, i32, i32, i32) {
    %more = arith.cmpi ne, %a, %c0 : i32
    %i:2 = scf.if %more -> (i32, i32) {
      %product = arith.muli %b, %factor : i32
      %less = arith.subi %a, %c1 : i32
      scf.yield %less, %product : i32, i32
    } else {
      scf.yield %p, %p : i32, i32
    }
    scf.condition(%more) %i#0, %i#1, %i#1, %b, %c : i32, i32, i32, i32, i32
  } do {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32):
    scf.yield %a, %b, %c : i32, i32, i32
  }
  tt.return %r#3, %r#4 : i32, i32
}
