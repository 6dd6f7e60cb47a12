// RUN: triton-metal-opt %s --tt-reorder-broadcast | FileCheck %s

// CHECK-LABEL: @splats
// CHECK-SAME: (%[[A:.*]]: i32, %[[P:.*]]: !tt.ptr<f32>)
tt.func private @splats(%a: i32, %p: !tt.ptr<f32>) -> (tensor<8xi1>, tensor<8x!tt.ptr<f32>>) {
  // CHECK: %[[SUM:.*]] = arith.addi %[[A]], %c3{{.*}} : i32
  // CHECK: %[[CMP:.*]] = arith.cmpi slt, %[[SUM]], %[[A]] : i32
  // CHECK: %[[M:.*]] = tt.splat %[[CMP]] : i1 -> tensor<8xi1>
  // CHECK: %[[Q:.*]] = tt.addptr %[[P]], %[[SUM]] : !tt.ptr<f32>, i32
  // CHECK: %[[T:.*]] = tt.splat %[[Q]]
  // CHECK: tt.return %[[M]], %[[T]]
  %three = arith.constant dense<3> : tensor<8xi32>
  %0 = tt.splat %a : i32 -> tensor<8xi32>
  %1 = arith.addi %0, %three : tensor<8xi32>
  %2 = arith.cmpi slt, %1, %0 : tensor<8xi32>
  %3 = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %4 = tt.addptr %3, %1 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.return %2, %4 : tensor<8xi1>, tensor<8x!tt.ptr<f32>>
}

// CHECK-LABEL: @broadcasts
// CHECK-SAME: (%[[X:.*]]: tensor<8x1xf32>, %[[Y:.*]]: tensor<8x1xf32>, %[[Z:.*]]: tensor<1x4xf32>, %[[S:.*]]: f32)
tt.func private @broadcasts(%x: tensor<8x1xf32>, %y: tensor<8x1xf32>, %z: tensor<1x4xf32>, %s: f32) -> tensor<8x4xf32> {
  // CHECK: %[[T:.*]] = tt.splat %[[S]] : f32 -> tensor<8x1xf32>
  // CHECK: %[[F:.*]] = math.fma %[[X]], %[[Y]], %[[T]] : tensor<8x1xf32>
  // CHECK: %[[E:.*]] = math.exp2 %[[F]] : tensor<8x1xf32>
  // CHECK: %[[B:.*]] = tt.broadcast %[[E]] : tensor<8x1xf32> -> tensor<8x4xf32>
  // Tiles of two shapes meet in the larger one.
  // CHECK: %[[C:.*]] = tt.broadcast %[[Z]]
  // CHECK: arith.addf %[[B]], %[[C]] : tensor<8x4xf32>
  %0 = tt.broadcast %x : tensor<8x1xf32> -> tensor<8x4xf32>
  %1 = tt.broadcast %y : tensor<8x1xf32> -> tensor<8x4xf32>
  %2 = tt.splat %s : f32 -> tensor<8x4xf32>
  %3 = math.fma %0, %1, %2 : tensor<8x4xf32>
  %4 = math.exp2 %3 : tensor<8x4xf32>
  %5 = tt.broadcast %z : tensor<1x4xf32> -> tensor<8x4xf32>
  %6 = arith.addf %4, %5 : tensor<8x4xf32>
  tt.return %6 : tensor<8x4xf32>
}

// What is done once for each element stays so.
// CHECK-LABEL: @loads
tt.func private @loads(%p: !tt.ptr<f32>) -> tensor<8xf32> {
  // CHECK: tt.load %{{.*}} : tensor<8x!tt.ptr<f32>>
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.load %0 : tensor<8x!tt.ptr<f32>>
  tt.return %1 : tensor<8xf32>
}
