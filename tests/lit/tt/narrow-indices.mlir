// RUN: triton-metal-opt %s --tt-narrow-indices --canonicalize | FileCheck %s

// A range times a constant fits.
// CHECK-LABEL: @fits
// CHECK-SAME: (%[[P:.*]]: tensor<64x!tt.ptr<f32>>)
tt.func private @fits(%p: tensor<64x!tt.ptr<f32>>) -> tensor<64x!tt.ptr<f32>> {
  // CHECK: %[[R:.*]] = tt.make_range
  // CHECK-NEXT: %[[M:.*]] = arith.muli %[[R]], %{{.*}} : tensor<64xi32>
  // CHECK-NEXT: tt.addptr %[[P]], %[[M]] : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %four = arith.constant dense<4> : tensor<64xi64>
  %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %1 = arith.extsi %0 : tensor<64xi32> to tensor<64xi64>
  %2 = arith.muli %1, %four : tensor<64xi64>
  %3 = tt.addptr %p, %2 : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
  tt.return %3 : tensor<64x!tt.ptr<f32>>
}

// A program id times 3 needs 33 bits.
// CHECK-LABEL: @does_not_fit
tt.func private @does_not_fit(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  // CHECK: arith.muli %{{.*}} : i64
  // CHECK: tt.addptr %{{.*}} : !tt.ptr<f32>, i64
  %three = arith.constant 3 : i64
  %0 = tt.get_program_id x : i32
  %1 = arith.extsi %0 : i32 to i64
  %2 = arith.muli %1, %three : i64
  %3 = tt.addptr %p, %2 : !tt.ptr<f32>, i64
  tt.return %3 : !tt.ptr<f32>
}

// Times 2 it needs 32, but not as a signed number.
// CHECK-LABEL: @fits_unsigned
tt.func private @fits_unsigned(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  // CHECK: %[[M:.*]] = arith.muli %{{.*}} : i32
  // CHECK: %[[E:.*]] = arith.extui %[[M]] : i32 to i64
  // CHECK: tt.addptr %{{.*}}, %[[E]] : !tt.ptr<f32>, i64
  %two = arith.constant 2 : i64
  %0 = tt.get_program_id x : i32
  %1 = arith.extsi %0 : i32 to i64
  %2 = arith.muli %1, %two : i64
  %3 = tt.addptr %p, %2 : !tt.ptr<f32>, i64
  tt.return %3 : !tt.ptr<f32>
}

// A program id itself does not.
// CHECK-LABEL: @program
tt.func private @program(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  // CHECK: %[[ID:.*]] = tt.get_program_id
  // CHECK-NEXT: tt.addptr %{{.*}}, %[[ID]] : !tt.ptr<f32>, i32
  %0 = tt.get_program_id x : i32
  %1 = arith.extui %0 : i32 to i64
  %3 = tt.addptr %p, %1 : !tt.ptr<f32>, i64
  tt.return %3 : !tt.ptr<f32>
}

// Zero extension of what may be negative is not sign extension.
// CHECK-LABEL: @unsigned
tt.func private @unsigned(%p: !tt.ptr<f32>, %n: i32) -> !tt.ptr<f32> {
  // CHECK: %[[E:.*]] = arith.extui
  // CHECK-NEXT: tt.addptr %{{.*}}, %[[E]] : !tt.ptr<f32>, i64
  %1 = arith.extui %n : i32 to i64
  %3 = tt.addptr %p, %1 : !tt.ptr<f32>, i64
  tt.return %3 : !tt.ptr<f32>
}

// Tiles are spread before they are extended, and so not extended at all.
// CHECK-LABEL: @spread
// CHECK-SAME: (%[[P:.*]]: tensor<64x4x!tt.ptr<f32>>, %[[N:.*]]: tensor<64xi32>)
tt.func private @spread(%p: tensor<64x4x!tt.ptr<f32>>, %n: tensor<64xi32>) -> tensor<64x4x!tt.ptr<f32>> {
  // CHECK-NEXT: %[[E:.*]] = tt.expand_dims %[[N]] {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  // CHECK-NEXT: %[[B:.*]] = tt.broadcast %[[E]] : tensor<64x1xi32> -> tensor<64x4xi32>
  // CHECK-NEXT: tt.addptr %[[P]], %[[B]]
  %0 = arith.extsi %n : tensor<64xi32> to tensor<64xi64>
  %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xi64> -> tensor<64x1xi64>
  %2 = tt.broadcast %1 : tensor<64x1xi64> -> tensor<64x4xi64>
  %3 = tt.addptr %p, %2 : tensor<64x4x!tt.ptr<f32>>, tensor<64x4xi64>
  tt.return %3 : tensor<64x4x!tt.ptr<f32>>
}

// Places from 64 to 95 are below 96; those from 0 to 127 may not be.
// CHECK-LABEL: @decided
// CHECK: tt.store %{{.*}}, %{{[a-z0-9_]*}} : tensor<32x!tt.ptr<i32>>
// CHECK: %[[SOME:.*]] = arith.cmpi slt
// CHECK: tt.store %{{.*}}, %{{.*}}, %[[SOME]]
tt.func @decided(%x: !tt.ptr<i32>) {
  %c96 = arith.constant dense<96> : tensor<32xi32>
  %wide_96 = arith.constant dense<96> : tensor<128xi32>
  %c64 = arith.constant dense<64> : tensor<32xi32>
  %range = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %places = arith.addi %range, %c64 : tensor<32xi32>
  %all = arith.cmpi slt, %places, %c96 : tensor<32xi32>
  %splat = tt.splat %x : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
  %at = tt.addptr %splat, %places : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
  tt.store %at, %places, %all : tensor<32x!tt.ptr<i32>>
  %long = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %some = arith.cmpi slt, %long, %wide_96 : tensor<128xi32>
  %wide = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %to = tt.addptr %wide, %long : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  tt.store %to, %long, %some : tensor<128x!tt.ptr<i32>>
  tt.return
}
