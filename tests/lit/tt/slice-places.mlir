// Blocks of one tensor in which each place is memory of its own: slices at the same offset along the sliced dimension do not meet.
// RUN: triton-metal-opt %s --split-input-file -tt-rewrite-descriptors -canonicalize -cse -tt-slice-tiles | FileCheck %s

// Rows of length %n follow each other. Both blocks have the same rows, so that a slice has its own of each.
// CHECK-LABEL: module attributes {{.*}}ttm.slices = 4
// CHECK-LABEL: tt.func public @same_rows
// CHECK:       tt.store {{.*}}tt.places = array<i32: 1, 0, 0, 2, 0>{{.*}} : tensor<32x64x!tt.ptr<f32>>
// CHECK:       tt.store {{.*}}tt.places = array<i32: 1, 0, 0, 3, 0>{{.*}} : tensor<32x64x!tt.ptr<f32>>
module attributes {ttm.num_warps = 4 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @same_rows(%x: !tt.ptr<f32>, %c: !tt.ptr<f32>, %m: i32, %n: i32, %i: i32, %j: i32, %k: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %s = arith.extsi %n : i32 to i64
    %dx = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] : <f32>, <128x64xf32>
    %dc = tt.make_tensor_descriptor %c, [%m, %n], [%s, %one] : <f32>, <128x64xf32>
    %sums:2 = scf.for %t = %c0 to %k step %c1 iter_args(%p = %zero, %q = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>) : i32 {
      %v = tt.descriptor_load %dx[%i, %t] : !tt.tensordesc<128x64xf32> -> tensor<128x64xf32>
      %p1 = arith.addf %p, %v : tensor<128x64xf32>
      %q1 = arith.subf %q, %v : tensor<128x64xf32>
      scf.yield %p1, %q1 : tensor<128x64xf32>, tensor<128x64xf32>
    }
    %j1 = arith.addi %j, %c64 : i32
    tt.descriptor_store %dc[%i, %j], %sums#0 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.descriptor_store %dc[%i, %j1], %sums#1 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.return
  }
}

// -----

// The rows, and the columns, of one block may be others of the other block.
// CHECK-LABEL: tt.func public @other_places
// CHECK:       tt.store {{.*}} : tensor<128x64x!tt.ptr<f32>>
module attributes {ttm.num_warps = 4 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @other_places(%x: !tt.ptr<f32>, %c: !tt.ptr<f32>, %m: i32, %n: i32, %i: i32, %j: i32, %k: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %s = arith.extsi %n : i32 to i64
    %dx = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] : <f32>, <128x64xf32>
    %dc = tt.make_tensor_descriptor %c, [%m, %n], [%s, %one] : <f32>, <128x64xf32>
    %sums:2 = scf.for %t = %c0 to %k step %c1 iter_args(%p = %zero, %q = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>) : i32 {
      %v = tt.descriptor_load %dx[%i, %t] : !tt.tensordesc<128x64xf32> -> tensor<128x64xf32>
      %p1 = arith.addf %p, %v : tensor<128x64xf32>
      %q1 = arith.subf %q, %v : tensor<128x64xf32>
      scf.yield %p1, %q1 : tensor<128x64xf32>, tensor<128x64xf32>
    }
    %i1 = arith.addi %i, %c64 : i32
    %j1 = arith.addi %j, %c64 : i32
    tt.descriptor_store %dc[%i, %j], %sums#0 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.descriptor_store %dc[%i1, %j1], %sums#1 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.return
  }
}

// -----

// Rows that a launch may let overlap: nothing tells that %s is at least %n.
// CHECK-LABEL: tt.func public @unknown_stride
// CHECK-NOT:   tt.places
// CHECK:       tt.store {{.*}} : tensor<128x64x!tt.ptr<f32>>
module attributes {ttm.num_warps = 4 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @unknown_stride(%x: !tt.ptr<f32>, %c: !tt.ptr<f32>, %m: i32, %n: i32, %i: i32, %j: i32, %k: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %dx = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] : <f32>, <128x64xf32>
    %dc = tt.make_tensor_descriptor %c, [%m, %n], [%s, %one] : <f32>, <128x64xf32>
    %sums:2 = scf.for %t = %c0 to %k step %c1 iter_args(%p = %zero, %q = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>) : i32 {
      %v = tt.descriptor_load %dx[%i, %t] : !tt.tensordesc<128x64xf32> -> tensor<128x64xf32>
      %p1 = arith.addf %p, %v : tensor<128x64xf32>
      %q1 = arith.subf %q, %v : tensor<128x64xf32>
      scf.yield %p1, %q1 : tensor<128x64xf32>, tensor<128x64xf32>
    }
    %j1 = arith.addi %j, %c64 : i32
    tt.descriptor_store %dc[%i, %j], %sums#0 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.descriptor_store %dc[%i, %j1], %sums#1 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.return
  }
}

// -----

// A launch says that rows do not overlap. What is loaded comes from the rows of its slice alone.
// CHECK-LABEL: module attributes {{.*}}ttm.slices = 4
// CHECK-LABEL: tt.func public @in_place
// CHECK:       tt.store {{.*}} : tensor<32x64x!tt.ptr<f32>>
module attributes {ttm.num_warps = 4 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @in_place(%dc: !tt.tensordesc<128x64xf32> {tt.divisibility = 16 : i32, tt.non_overlapping = true}, %i: i32, %j: i32, %k: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %sums:2 = scf.for %t = %c0 to %k step %c1 iter_args(%p = %zero, %q = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>) : i32 {
      %v = tt.descriptor_load %dc[%i, %t] : !tt.tensordesc<128x64xf32> -> tensor<128x64xf32>
      %p1 = arith.addf %p, %v : tensor<128x64xf32>
      %q1 = arith.subf %q, %v : tensor<128x64xf32>
      scf.yield %p1, %q1 : tensor<128x64xf32>, tensor<128x64xf32>
    }
    %j1 = arith.addi %j, %c64 : i32
    tt.descriptor_store %dc[%i, %j], %sums#0 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.descriptor_store %dc[%i, %j1], %sums#1 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.return
  }
}

// -----

// Rows that change in a loop within a slice may be those of another slice in another step.
// CHECK-LABEL: tt.func public @rows_of_steps
// CHECK:       tt.store {{.*}} : tensor<128x64x!tt.ptr<f32>>
module attributes {ttm.num_warps = 4 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @rows_of_steps(%dc: !tt.tensordesc<128x64xf32> {tt.divisibility = 16 : i32, tt.non_overlapping = true}, %j: i32, %k: i32, %y: f32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %all = tt.splat %y : f32 -> tensor<128x64xf32>
    %sums:2 = scf.for %t = %c0 to %k step %c1 iter_args(%p = %zero, %q = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>) : i32 {
      %at = arith.muli %t, %c64 : i32
      %v = tt.descriptor_load %dc[%at, %at] : !tt.tensordesc<128x64xf32> -> tensor<128x64xf32>
      %p1 = arith.addf %p, %v : tensor<128x64xf32>
      %q1 = arith.subf %q, %v : tensor<128x64xf32>
      tt.descriptor_store %dc[%at, %at], %p1 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
      scf.yield %p1, %q1 : tensor<128x64xf32>, tensor<128x64xf32>
    }
    tt.descriptor_store %dc[%c0, %c0], %sums#1 : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
    tt.return
  }
}
