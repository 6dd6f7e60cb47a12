// RUN: triton-metal-opt %s --ttm-uniform-masks --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#wide = #ttm.linear<{register = [[1], [2], [128]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // A range against a bound: its last element, without any overflow.
  // CHECK-LABEL: @range
  // CHECK: %[[FULL:.*]] = arith.cmpi sgt, %arg1, %c63_i32
  // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} full %[[FULL]]
  tt.func public @range(%x: !tt.ptr<f32>, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %m = arith.cmpi slt, %r, %b : tensor<64xi32, #l>
    %v = ttm.load %x[%r] mask %m : tensor<64xi32, #l>, !tt.ptr<f32> -> tensor<64xf32, #l>
    ttm.store %v, %x[%r] : tensor<64xf32, #l>, tensor<64xi32, #l>, !tt.ptr<f32>
    tt.return
  }

  // A multiple of 64 plus 63 does not wrap around; another number may.
  // CHECK-LABEL: @multiple
  // CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c64_i32 : i32
  // CHECK: %[[LAST:.*]] = arith.addi %[[FIRST]], %c63_i32 overflow<nsw> : i32
  // CHECK: arith.cmpi slt, %[[LAST]], %arg1 : i32
  // CHECK: arith.extsi %arg2 : i32 to i64
  tt.func public @multiple(%x: !tt.ptr<f32>, %n: i32, %start: i32) {
    %c = arith.constant 64 : i32
    %p = tt.get_program_id x : i32
    %first = arith.muli %p, %c : i32
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %s = tt.splat %first : i32 -> tensor<64xi32, #l>
    %o = arith.addi %s, %r : tensor<64xi32, #l>
    %m = arith.cmpi slt, %o, %b : tensor<64xi32, #l>
    %v = ttm.load %x[%o] mask %m : tensor<64xi32, #l>, !tt.ptr<f32> -> tensor<64xf32, #l>
    %t = tt.splat %start : i32 -> tensor<64xi32, #l>
    %q = arith.addi %t, %r : tensor<64xi32, #l>
    %k = arith.cmpi slt, %q, %b : tensor<64xi32, #l>
    ttm.store %v, %x[%q] mask %k : tensor<64xf32, #l>, tensor<64xi32, #l>, !tt.ptr<f32>
    tt.return
  }

  // A row that ends within a thread's registers, in each program alike: threads test their own.
  // CHECK-LABEL: @ragged
  // CHECK-NOT: full
  // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} {mask_run = 4 : i32, unaligned, width = 4 : i32}
  // CHECK-NOT: full
  // CHECK: tt.return
  tt.func public @ragged(%x: !tt.ptr<f32>, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #wide>
    %b = tt.splat %n : i32 -> tensor<256xi32, #wide>
    %m = arith.cmpi slt, %r, %b : tensor<256xi32, #wide>
    %v = ttm.load %x[%r] mask %m {mask_run = 4 : i32, unaligned, width = 4 : i32} : tensor<256xi32, #wide>, !tt.ptr<f32> -> tensor<256xf32, #wide>
    ttm.store %v, %x[%r] : tensor<256xf32, #wide>, tensor<256xi32, #wide>, !tt.ptr<f32>
    tt.return
  }

  // Most programs are inside as a whole.
  // CHECK-LABEL: @ragged_grid
  // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} full %{{[^ ]*}} {mask_run = 4 : i32, unaligned, width = 4 : i32}
  tt.func public @ragged_grid(%x: !tt.ptr<f32>, %n: i32) {
    %c = arith.constant 256 : i32
    %p = tt.get_program_id x : i32
    %s = arith.muli %p, %c : i32
    %ss = tt.splat %s : i32 -> tensor<256xi32, #wide>
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #wide>
    %i = arith.addi %r, %ss : tensor<256xi32, #wide>
    %b = tt.splat %n : i32 -> tensor<256xi32, #wide>
    %m = arith.cmpi slt, %i, %b : tensor<256xi32, #wide>
    %v = ttm.load %x[%i] mask %m {mask_run = 4 : i32, unaligned, width = 4 : i32} : tensor<256xi32, #wide>, !tt.ptr<f32> -> tensor<256xf32, #wide>
    ttm.store %v, %x[%i] : tensor<256xf32, #wide>, tensor<256xi32, #wide>, !tt.ptr<f32>
    tt.return
  }

  // Two ends: start + 63 < n, and nothing of start + [0, 63] has wrapped around below 0.
  // CHECK-LABEL: @both
  // CHECK-DAG: %[[S:.*]] = arith.extsi %arg1 : i32 to i64
  // CHECK-DAG: %[[N:.*]] = arith.extsi %arg2 : i32 to i64
  // CHECK-DAG: %[[LAST:.*]] = arith.addi %[[S]], %c63_i64
  // CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[LAST]], %[[N]]
  // CHECK: arith.cmpi sge, %arg1, %c0_i32
  // CHECK: arith.cmpi sle, %[[LAST]], %c2147483647_i64
  tt.func public @both(%x: !tt.ptr<f32>, %start: i32, %n: i32) {
    %zero = arith.constant dense<0> : tensor<64xi32, #l>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %s = tt.splat %start : i32 -> tensor<64xi32, #l>
    %i = arith.addi %s, %r : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %below = arith.cmpi slt, %i, %b : tensor<64xi32, #l>
    %above = arith.cmpi sge, %i, %zero : tensor<64xi32, #l>
    %m = arith.andi %below, %above : tensor<64xi1, #l>
    %v = ttm.load %x[%r] mask %m : tensor<64xi32, #l>, !tt.ptr<f32> -> tensor<64xf32, #l>
    ttm.store %v, %x[%r] : tensor<64xf32, #l>, tensor<64xi32, #l>, !tt.ptr<f32>
    tt.return
  }

  // A mask that is no comparison of ranges has no uniform test.
  // CHECK-LABEL: @unknown
  // CHECK-NOT: full
  // CHECK: tt.return
  tt.func public @unknown(%x: !tt.ptr<f32>, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %b = tt.splat %n : i32 -> tensor<64xi32, #l>
    %i = arith.xori %r, %b : tensor<64xi32, #l>
    %m = arith.cmpi slt, %i, %b : tensor<64xi32, #l>
    %v = ttm.load %x[%r] mask %m : tensor<64xi32, #l>, !tt.ptr<f32> -> tensor<64xf32, #l>
    ttm.store %v, %x[%r] : tensor<64xf32, #l>, tensor<64xi32, #l>, !tt.ptr<f32>
    tt.return
  }

  // All pointers are tested at once. Accesses are wide where they are aligned and every mask is true.
  // CHECK-LABEL: @tested
  // CHECK-DAG: %[[X:.*]] = tt.ptr_to_int %arg0
  // CHECK-DAG: %[[Y:.*]] = tt.ptr_to_int %arg1
  // CHECK: %[[BOTH:.*]] = arith.ori %[[X]], %[[Y]]
  // CHECK: %[[LOW:.*]] = arith.andi %[[BOTH]], %c15_i64
  // CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[LOW]], %c0_i64
  // CHECK: %[[INSIDE:.*]] = arith.cmpi sgt, %arg2, %c255_i32
  // CHECK: ttm.load {{.*}} full %[[ALIGNED]] {width = 4 : i32}
  // CHECK: %[[FULL:.*]] = arith.andi %[[ALIGNED]], %[[INSIDE]]
  // CHECK: ttm.store {{.*}} full %[[FULL]] {width = 4 : i32}
  tt.func public @tested(%x: !tt.ptr<f32> {tt.tested_divisibility = 16 : i32},
                         %y: !tt.ptr<f32> {tt.tested_divisibility = 16 : i32}, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #wide>
    %b = tt.splat %n : i32 -> tensor<256xi32, #wide>
    %m = arith.cmpi slt, %i, %b : tensor<256xi32, #wide>
    %v = ttm.load %x[%i] {width = 4 : i32} : tensor<256xi32, #wide>, !tt.ptr<f32> -> tensor<256xf32, #wide>
    ttm.store %v, %y[%i] mask %m {width = 4 : i32, mask_width = 4 : i32} : tensor<256xf32, #wide>, tensor<256xi32, #wide>, !tt.ptr<f32>
    tt.return
  }

  // A mask that no uniform test speaks for leaves one body, which is right for any alignment.
  // CHECK-LABEL: @no_test
  // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} :
  tt.func public @no_test(%x: !tt.ptr<f32> {tt.tested_divisibility = 16 : i32}, %f: !tt.ptr<i8>) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #wide>
    %w = ttm.load %f[%i] : tensor<256xi32, #wide>, !tt.ptr<i8> -> tensor<256xi8, #wide>
    %zero = arith.constant dense<0> : tensor<256xi8, #wide>
    %m = arith.cmpi ne, %w, %zero : tensor<256xi8, #wide>
    %v = ttm.load %x[%i] mask %m {width = 4 : i32} : tensor<256xi32, #wide>, !tt.ptr<f32> -> tensor<256xf32, #wide>
    ttm.store %v, %x[%i] mask %m {width = 4 : i32} : tensor<256xf32, #wide>, tensor<256xi32, #wide>, !tt.ptr<f32>
    tt.return
  }
}
