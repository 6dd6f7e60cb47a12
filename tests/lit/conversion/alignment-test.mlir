// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [[1], [2], [128]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // All pointers are tested at once. Accesses are wide where they are aligned and every mask is true.
  // CHECK-LABEL: msl.kernel @tested
  // CHECK-DAG: %[[X:.*]] = msl.ptr_to_int %arg0
  // CHECK-DAG: %[[Y:.*]] = msl.ptr_to_int %arg1
  // CHECK: %[[BOTH:.*]] = arith.ori %[[X]], %[[Y]]
  // CHECK: %[[LOW:.*]] = arith.andi %[[BOTH]], %c15_i64
  // CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[LOW]], %c0_i64
  // CHECK-DAG: msl.load {{.*}} full %[[ALIGNED]] {width = 4 : i32}
  // CHECK-DAG: %[[INSIDE:.*]] = arith.cmpi sgt, %arg2, %c255_i32
  // CHECK: %[[FULL:.*]] = arith.andi %[[ALIGNED]], %[[INSIDE]]
  // CHECK: msl.store {{.*}} full %[[FULL]] {width = 4 : i32}
  tt.func public @tested(%x: !tt.ptr<f32> {tt.tested_divisibility = 16 : i32},
                         %y: !tt.ptr<f32> {tt.tested_divisibility = 16 : i32}, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #l>
    %b = tt.splat %n : i32 -> tensor<256xi32, #l>
    %m = arith.cmpi slt, %i, %b : tensor<256xi32, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #l>
    %a = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #l>, tensor<256xi32, #l>
    %q = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #l>
    %c = tt.addptr %q, %i : tensor<256x!tt.ptr<f32>, #l>, tensor<256xi32, #l>
    %v = tt.load %a {ttm.width = 4 : i32, ttm.mask_width = 4 : i32} : tensor<256x!tt.ptr<f32>, #l>
    tt.store %c, %v, %m {ttm.width = 4 : i32, ttm.mask_width = 4 : i32} : tensor<256x!tt.ptr<f32>, #l>
    tt.return
  }

  // A mask that no uniform test speaks for leaves one body, which is right for any alignment.
  // CHECK-LABEL: msl.kernel @no_test
  // CHECK: msl.load %{{.*}}[%{{.*}}] mask %{{[^ ]*}} :
  tt.func public @no_test(%x: !tt.ptr<f32> {tt.tested_divisibility = 16 : i32}, %f: !tt.ptr<i8>) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #l>
    %g = tt.splat %f : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>, #l>
    %h = tt.addptr %g, %i : tensor<256x!tt.ptr<i8>, #l>, tensor<256xi32, #l>
    %w = tt.load %h : tensor<256x!tt.ptr<i8>, #l>
    %zero = arith.constant dense<0> : tensor<256xi8, #l>
    %m = arith.cmpi ne, %w, %zero : tensor<256xi8, #l>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #l>
    %a = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #l>, tensor<256xi32, #l>
    %v = tt.load %a, %m {ttm.width = 4 : i32, ttm.mask_width = 1 : i32} : tensor<256x!tt.ptr<f32>, #l>
    tt.store %a, %v, %m {ttm.width = 4 : i32, ttm.mask_width = 1 : i32} : tensor<256x!tt.ptr<f32>, #l>
    tt.return
  }
}
