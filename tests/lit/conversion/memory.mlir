// RUN: triton-metal-opt %s --ttm-legalization-pipeline --convert-ttm-to-msl --msl-expand-thread-indices --canonicalize --cse | FileCheck %s

#wide = #ttm.linear<{register = [[1], [2], [512]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#few = #ttm.linear<{register = [], lane = [[1], [2], [4], [0], [0]], simdgroup = [[0], [8]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // The uniform test is exact: the last element's index, in 64 bits.
  // CHECK-LABEL: msl.kernel @masked
  // CHECK-SAME: msl.name = "x"
  // CHECK: %[[PID:.*]] = msl.program_id 0
  // CHECK: %[[START:.*]] = arith.muli %[[PID]], %c1024_i32
  // CHECK: %[[MASK:.*]] = arith.cmpi slt
  // CHECK: %[[WIDE:.*]] = arith.extsi %[[START]] : i32 to i64
  // CHECK: %[[LAST:.*]] = arith.addi %[[WIDE]], %c1023_i64
  // CHECK: %[[N:.*]] = arith.extsi %arg1 : i32 to i64
  // CHECK: %[[FULL:.*]] = arith.cmpi slt, %[[LAST]], %[[N]] : i64
  // CHECK: msl.load %{{.*}}[%{{.*}}] mask %[[MASK]] full %[[FULL]] {width = 4 : i32}
  // CHECK: msl.store %{{.*}} mask %[[MASK]] full %[[FULL]] {{.*}}width = 4 : i32
  tt.func public @masked(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"), %n: i32) {
    %c1024 = arith.constant 1024 : i32
    %pid = tt.get_program_id x : i32
    %start = arith.muli %pid, %c1024 : i32
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #wide>
    %s = tt.splat %start : i32 -> tensor<1024xi32, #wide>
    %i = arith.addi %s, %r : tensor<1024xi32, #wide>
    %bound = tt.splat %n : i32 -> tensor<1024xi32, #wide>
    %m = arith.cmpi slt, %i, %bound : tensor<1024xi32, #wide>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #wide>
    %a = tt.addptr %p, %i : tensor<1024x!tt.ptr<f32>, #wide>, tensor<1024xi32, #wide>
    %v = tt.load %a, %m {ttm.width = 4 : i32, ttm.mask_width = 1 : i32} : tensor<1024x!tt.ptr<f32>, #wide>
    tt.store %a, %v, %m {ttm.width = 4 : i32, ttm.mask_width = 1 : i32} : tensor<1024x!tt.ptr<f32>, #wide>
    tt.return
  }

  // What several threads hold is stored by one of them.
  // CHECK-LABEL: msl.kernel @repeats
  // CHECK: %[[LANES:.*]] = arith.andi %{{.*}}, %c24_i32
  // CHECK: arith.cmpi eq, %[[LANES]], %c0_i32
  // CHECK: %[[GROUPS:.*]] = arith.andi %{{.*}}, %c1_i32
  // CHECK: arith.cmpi eq, %[[GROUPS]], %c0_i32
  // CHECK: scf.if
  // CHECK-NEXT: msl.store
  // CHECK-NEXT: }
  // CHECK: %[[FIRST:.*]] = arith.andi
  // CHECK: scf.if %[[FIRST]]
  // CHECK-NEXT: msl.store %{{.*}}, %arg0[%c0_i32] : f32
  tt.func public @repeats(%x: !tt.ptr<f32>, %f: f32) {
    %r2 = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #few>
    %p2 = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #few>
    %a2 = tt.addptr %p2, %r2 : tensor<16x!tt.ptr<f32>, #few>, tensor<16xi32, #few>
    %v2 = tt.splat %f : f32 -> tensor<16xf32, #few>
    tt.store %a2, %v2 : tensor<16x!tt.ptr<f32>, #few>
    tt.store %x, %f : !tt.ptr<f32>
    tt.return
  }

  // A uniform offset moves the base; two offsets are added in 64 bits; without a base there are addresses.
  // CHECK-LABEL: msl.kernel @pointers
  // CHECK: %[[MOVED:.*]] = msl.ptr_add %arg0, %arg1
  // CHECK: msl.load %[[MOVED]][%{{.*}}] : <f32, device>, vector<8xi64>
  // CHECK: msl.load_address
  // CHECK-SAME: vector<8xi64> -> vector<8xf32>
  tt.func public @pointers(%x: !tt.ptr<f32>, %n: i32, %y: !tt.ptr<f32>, %c: i1) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #wide>
    %s = tt.splat %n : i32 -> tensor<1024xi32, #wide>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #wide>
    %a = tt.addptr %p, %s : tensor<1024x!tt.ptr<f32>, #wide>, tensor<1024xi32, #wide>
    %b = tt.addptr %a, %r : tensor<1024x!tt.ptr<f32>, #wide>, tensor<1024xi32, #wide>
    %d = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>, #wide>, tensor<1024xi32, #wide>
    %v = tt.load %d : tensor<1024x!tt.ptr<f32>, #wide>
    %q = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #wide>
    %e = arith.select %c, %b, %q : tensor<1024x!tt.ptr<f32>, #wide>
    %w = tt.load %e : tensor<1024x!tt.ptr<f32>, #wide>
    tt.store %b, %v : tensor<1024x!tt.ptr<f32>, #wide>
    tt.store %b, %w : tensor<1024x!tt.ptr<f32>, #wide>
    tt.return
  }
}
