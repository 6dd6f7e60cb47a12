// RUN: triton-metal-opt %s -split-input-file "--convert-tt-to-ttm=num-warps=4" --ttm-coalesce --ttm-assign-dot-layouts --ttm-remove-layout-conversions | FileCheck %s

// Through the loop the accumulator stays on simdgroup matrices. What is added to it at the end is read where it is
// needed, and the sum is stored from there: nothing is converted.
// CHECK-LABEL: @matmul_bias_res
// CHECK-NOT: ttm.convert_layout
// CHECK: scf.for {{.*}} -> (!tt.ptr<f16>, !tt.ptr<f16>, tensor<64x64xf32, #[[MMA:[a-z0-9]+]]>)
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.dot {{.*}} : tensor<64x32xf16, #{{.*}}> * tensor<32x64xf16, #{{.*}}> -> tensor<64x64xf32, #[[MMA]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.load {{.*}} : tensor<64x!tt.ptr<f32>, #[[SLICE:[a-z0-9]+]]>
// CHECK: tt.load {{.*}} : tensor<64x64x!tt.ptr<f16>, #[[MMA]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.store {{.*}} : tensor<64x64x!tt.ptr<f16>, #[[MMA]]>
// CHECK-NOT: ttm.convert_layout
tt.func public @matmul_bias_res(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %bias: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %res: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}, %K: i32) attributes {noinline = false} {
  %acc = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %c0_i32 = arith.constant 0 : i32
  %c32_i32 = arith.constant 32 : i32
  %m = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %k = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %ap = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %ap_0 = tt.splat %s : i32 -> tensor<64x1xi32>
  %ap_1 = arith.muli %ap, %ap_0 : tensor<64x1xi32>
  %ap_2 = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %ap_3 = arith.extsi %ap_1 : tensor<64x1xi32> to tensor<64x1xi64>
  %ap_4 = tt.broadcast %ap_3 : tensor<64x1xi64> -> tensor<64x32xi64>
  %ap_5 = arith.extsi %ap_2 : tensor<1x32xi32> to tensor<1x32xi64>
  %ap_6 = tt.broadcast %ap_5 : tensor<1x32xi64> -> tensor<64x32xi64>
  %ap_7 = arith.addi %ap_4, %ap_6 : tensor<64x32xi64>
  %bp = tt.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %bp_8 = tt.splat %s : i32 -> tensor<32x1xi32>
  %bp_9 = arith.muli %bp, %bp_8 : tensor<32x1xi32>
  %bp_10 = tt.expand_dims %m {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %bp_11 = arith.extsi %bp_9 : tensor<32x1xi32> to tensor<32x1xi64>
  %bp_12 = tt.broadcast %bp_11 : tensor<32x1xi64> -> tensor<32x64xi64>
  %bp_13 = arith.extsi %bp_10 : tensor<1x64xi32> to tensor<1x64xi64>
  %bp_14 = tt.broadcast %bp_13 : tensor<1x64xi64> -> tensor<32x64xi64>
  %bp_15 = arith.addi %bp_12, %bp_14 : tensor<32x64xi64>
  %bp_16 = arith.muli %s, %c32_i32 : i32
  %acc_17:3 = scf.for %arg7 = %c0_i32 to %K step %c32_i32 iter_args(%arg8 = %a, %arg9 = %b, %arg10 = %acc) -> (!tt.ptr<f16>, !tt.ptr<f16>, tensor<64x64xf32>)  : i32 {
    %3 = tt.splat %arg8 : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %4 = tt.addptr %3, %ap_7 : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi64>
    %5 = tt.splat %arg9 : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    %6 = tt.addptr %5, %bp_15 : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi64>
    %acc_32 = tt.load %4 : tensor<64x32x!tt.ptr<f16>>
    %acc_33 = tt.load %6 : tensor<32x64x!tt.ptr<f16>>
    %acc_34 = tt.dot %acc_32, %acc_33, %arg10, inputPrecision = tf32 : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %ap_35 = tt.addptr %arg8, %c32_i32 : !tt.ptr<f16>, i32
    %bp_36 = tt.addptr %arg9, %bp_16 : !tt.ptr<f16>, i32
    scf.yield %ap_35, %bp_36, %acc_34 : !tt.ptr<f16>, !tt.ptr<f16>, tensor<64x64xf32>
  }
  %acc_18 = tt.splat %bias : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %acc_19 = tt.addptr %acc_18, %m : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %acc_20 = tt.load %acc_19 : tensor<64x!tt.ptr<f32>>
  %acc_21 = tt.expand_dims %acc_20 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %acc_22 = tt.broadcast %acc_21 : tensor<1x64xf32> -> tensor<64x64xf32>
  %acc_23 = arith.addf %acc_17#2, %acc_22 : tensor<64x64xf32>
  %acc_24 = tt.broadcast %ap_3 : tensor<64x1xi64> -> tensor<64x64xi64>
  %acc_25 = tt.broadcast %bp_13 : tensor<1x64xi64> -> tensor<64x64xi64>
  %acc_26 = arith.addi %acc_24, %acc_25 : tensor<64x64xi64>
  %acc_27 = tt.splat %res : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %acc_28 = tt.addptr %acc_27, %acc_26 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi64>
  %acc_29 = tt.load %acc_28 : tensor<64x64x!tt.ptr<f16>>
  %acc_30 = arith.extf %acc_29 : tensor<64x64xf16> to tensor<64x64xf32>
  %acc_31 = arith.addf %acc_23, %acc_30 : tensor<64x64xf32>
  %0 = tt.splat %c : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %1 = tt.addptr %0, %acc_26 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi64>
  %2 = arith.truncf %acc_31 : tensor<64x64xf32> to tensor<64x64xf16>
  tt.store %1, %2 : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// -----

// Rows in, columns out: both accesses are coalesced, and the tile is converted between them once. The pointers are made
// anew in the store's layout.
// CHECK-LABEL: @transposed_store
// CHECK-NOT: ttm.convert_layout
// CHECK: %[[V:.*]] = tt.load {{.*}} : tensor<64x64x!tt.ptr<f32>, #[[LOAD:[a-z0-9]+]]>
// CHECK-NEXT: %[[W:.*]] = ttm.convert_layout %[[V]] : tensor<64x64xf32, #[[LOAD]]> -> tensor<64x64xf32, #[[STORE:[a-z0-9]+]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.store %{{.*}}, %[[W]] : tensor<64x64x!tt.ptr<f32>, #[[STORE]]>
tt.func public @transposed_store(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %v = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %v_0 = tt.splat %s : i32 -> tensor<64x1xi32>
  %v_1 = arith.muli %v, %v_0 : tensor<64x1xi32>
  %v_2 = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %v_3 = arith.extsi %v_1 : tensor<64x1xi32> to tensor<64x1xi64>
  %v_4 = tt.broadcast %v_3 : tensor<64x1xi64> -> tensor<64x64xi64>
  %v_5 = arith.extsi %v_2 : tensor<1x64xi32> to tensor<1x64xi64>
  %v_6 = tt.broadcast %v_5 : tensor<1x64xi64> -> tensor<64x64xi64>
  %v_7 = arith.addi %v_4, %v_6 : tensor<64x64xi64>
  %v_8 = tt.splat %x : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %v_9 = tt.addptr %v_8, %v_7 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi64>
  %v_10 = tt.load %v_9 : tensor<64x64x!tt.ptr<f32>>
  %0 = tt.splat %s : i32 -> tensor<1x64xi32>
  %1 = arith.muli %v_2, %0 : tensor<1x64xi32>
  %2 = arith.extsi %v : tensor<64x1xi32> to tensor<64x1xi64>
  %3 = tt.broadcast %2 : tensor<64x1xi64> -> tensor<64x64xi64>
  %4 = arith.extsi %1 : tensor<1x64xi32> to tensor<1x64xi64>
  %5 = tt.broadcast %4 : tensor<1x64xi64> -> tensor<64x64xi64>
  %6 = arith.addi %3, %5 : tensor<64x64xi64>
  %7 = tt.splat %y : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %8 = tt.addptr %7, %6 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi64>
  tt.store %8, %v_10 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// The same of a small tile, of which a thread has eight elements: lines that are used in part cost more than two barriers.
// CHECK-LABEL: @small_transposed_store
// CHECK: %[[V:.*]] = tt.load {{.*}} : tensor<32x32x!tt.ptr<f32>, #[[LOAD:[a-z0-9]+]]>
// CHECK-NEXT: %[[W:.*]] = ttm.convert_layout %[[V]] : tensor<32x32xf32, #[[LOAD]]> -> tensor<32x32xf32, #[[STORE:[a-z0-9]+]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.store %{{.*}}, %[[W]] : tensor<32x32x!tt.ptr<f32>, #[[STORE]]>
tt.func public @small_transposed_store(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
  %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %v = tt.expand_dims %i {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %v_0 = tt.splat %s : i32 -> tensor<32x1xi32>
  %v_1 = arith.muli %v, %v_0 : tensor<32x1xi32>
  %v_2 = tt.expand_dims %i {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %v_3 = arith.extsi %v_1 : tensor<32x1xi32> to tensor<32x1xi64>
  %v_4 = tt.broadcast %v_3 : tensor<32x1xi64> -> tensor<32x32xi64>
  %v_5 = arith.extsi %v_2 : tensor<1x32xi32> to tensor<1x32xi64>
  %v_6 = tt.broadcast %v_5 : tensor<1x32xi64> -> tensor<32x32xi64>
  %v_7 = arith.addi %v_4, %v_6 : tensor<32x32xi64>
  %v_8 = tt.splat %x : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %v_9 = tt.addptr %v_8, %v_7 : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi64>
  %v_10 = tt.load %v_9 : tensor<32x32x!tt.ptr<f32>>
  %0 = tt.splat %s : i32 -> tensor<1x32xi32>
  %1 = arith.muli %v_2, %0 : tensor<1x32xi32>
  %2 = arith.extsi %v : tensor<32x1xi32> to tensor<32x1xi64>
  %3 = tt.broadcast %2 : tensor<32x1xi64> -> tensor<32x32xi64>
  %4 = arith.extsi %1 : tensor<1x32xi32> to tensor<1x32xi64>
  %5 = tt.broadcast %4 : tensor<1x32xi64> -> tensor<32x32xi64>
  %6 = arith.addi %3, %5 : tensor<32x32xi64>
  %7 = tt.splat %y : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %8 = tt.addptr %7, %6 : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi64>
  tt.store %8, %v_10 : tensor<32x32x!tt.ptr<f32>>
  tt.return
}

// -----

// The sums of rows come back to the rows without moving, and the weights are read where the rows need them.
// CHECK-LABEL: @rms_rows
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.load {{.*}} : tensor<4x1024x!tt.ptr<f32>, #[[ROWS:[a-z0-9]+]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: (tensor<4x1024xf32, #[[ROWS]]>) -> tensor<4xf32, #[[SUMS:[a-z0-9]+]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.store {{.*}} : tensor<4x1024x!tt.ptr<f32>, #[[ROWS]]>
tt.func public @rms_rows(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %w: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
  %rs = arith.constant dense<1.000000e+00> : tensor<4xf32>
  %rs_0 = arith.constant dense<9.99999974E-6> : tensor<4xf32>
  %v = arith.constant dense<0.000000e+00> : tensor<4x1024xf32>
  %r = arith.constant 4 : i32
  %r_1 = tt.get_program_id x : i32
  %r_2 = arith.muli %r_1, %r : i32
  %r_3 = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %r_4 = tt.splat %r_2 : i32 -> tensor<4xi32>
  %r_5 = arith.addi %r_4, %r_3 : tensor<4xi32>
  %c = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %m = tt.expand_dims %c {axis = 0 : i32} : tensor<1024xi32> -> tensor<1x1024xi32>
  %m_6 = tt.splat %n : i32 -> tensor<1x1024xi32>
  %m_7 = arith.cmpi slt, %m, %m_6 : tensor<1x1024xi32>
  %v_8 = tt.expand_dims %r_5 {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %v_9 = tt.splat %s : i32 -> tensor<4x1xi32>
  %v_10 = arith.muli %v_8, %v_9 : tensor<4x1xi32>
  %v_11 = arith.extsi %v_10 : tensor<4x1xi32> to tensor<4x1xi64>
  %v_12 = tt.broadcast %v_11 : tensor<4x1xi64> -> tensor<4x1024xi64>
  %v_13 = arith.extsi %m : tensor<1x1024xi32> to tensor<1x1024xi64>
  %v_14 = tt.broadcast %v_13 : tensor<1x1024xi64> -> tensor<4x1024xi64>
  %v_15 = arith.addi %v_12, %v_14 : tensor<4x1024xi64>
  %v_16 = tt.splat %x : !tt.ptr<f32> -> tensor<4x1024x!tt.ptr<f32>>
  %v_17 = tt.addptr %v_16, %v_15 : tensor<4x1024x!tt.ptr<f32>>, tensor<4x1024xi64>
  %v_18 = tt.broadcast %m_7 : tensor<1x1024xi1> -> tensor<4x1024xi1>
  %v_19 = tt.load %v_17, %v_18, %v : tensor<4x1024x!tt.ptr<f32>>
  %rs_20 = arith.mulf %v_19, %v_19 : tensor<4x1024xf32>
  %rs_21 = "tt.reduce"(%rs_20) <{axis = 1 : i32}> ({
  ^bb0(%rs_28: f32, %rs_29: f32):
    %rs_30 = arith.addf %rs_28, %rs_29 : f32
    tt.reduce.return %rs_30 : f32
  }) : (tensor<4x1024xf32>) -> tensor<4xf32>
  %rs_22 = arith.sitofp %n : i32 to f32
  %rs_23 = tt.splat %rs_22 : f32 -> tensor<4xf32>
  %rs_24 = arith.divf %rs_21, %rs_23 : tensor<4xf32>
  %rs_25 = arith.addf %rs_24, %rs_0 : tensor<4xf32>
  %rs_26 = math.sqrt %rs_25 : tensor<4xf32>
  %rs_27 = arith.divf %rs, %rs_26 : tensor<4xf32>
  %0 = tt.splat %o : !tt.ptr<f32> -> tensor<4x1024x!tt.ptr<f32>>
  %1 = tt.addptr %0, %v_15 : tensor<4x1024x!tt.ptr<f32>>, tensor<4x1024xi64>
  %2 = tt.expand_dims %rs_27 {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %3 = tt.broadcast %2 : tensor<4x1xf32> -> tensor<4x1024xf32>
  %4 = arith.mulf %v_19, %3 : tensor<4x1024xf32>
  %5 = tt.splat %n : i32 -> tensor<1024xi32>
  %6 = arith.cmpi slt, %c, %5 : tensor<1024xi32>
  %7 = tt.splat %w : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %8 = tt.addptr %7, %c : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %9 = tt.load %8, %6 : tensor<1024x!tt.ptr<f32>>
  %10 = tt.expand_dims %9 {axis = 0 : i32} : tensor<1024xf32> -> tensor<1x1024xf32>
  %11 = tt.broadcast %10 : tensor<1x1024xf32> -> tensor<4x1024xf32>
  %12 = arith.mulf %4, %11 : tensor<4x1024xf32>
  tt.store %1, %12, %v_18 : tensor<4x1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Loops with a condition carry tiles and pointers in the layout of their loads.
// CHECK-LABEL: @newton
// CHECK-NOT: ttm.convert_layout
// CHECK: scf.while {{.*}} -> (tensor<32xf32, #[[L:[a-z0-9]+]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.store {{.*}} : tensor<32x!tt.ptr<f32>, #[[L]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.return
tt.func public @newton(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
  %c32_i32 = arith.constant 32 : i32
  %c1_i32 = arith.constant 1 : i32
  %cst = arith.constant dense<5.000000e-01> : tensor<32xf32>
  %k = arith.constant 0 : i32
  %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %v = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %v_0 = tt.addptr %v, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %v_1 = tt.load %v_0 : tensor<32x!tt.ptr<f32>>
  %k_2:3 = scf.while (%arg3 = %v_1, %arg4 = %x, %arg5 = %k) : (tensor<32xf32>, !tt.ptr<f32>, i32) -> (tensor<32xf32>, !tt.ptr<f32>, i32) {
    %2 = arith.cmpi slt, %arg5, %n : i32
    scf.condition(%2) %arg3, %arg4, %arg5 : tensor<32xf32>, !tt.ptr<f32>, i32
  } do {
  ^bb0(%v_5: tensor<32xf32>, %p: !tt.ptr<f32>, %k_6: i32):
    %p_7 = tt.splat %p : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %p_8 = tt.addptr %p_7, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %v_9 = arith.mulf %v_5, %cst : tensor<32xf32>
    %v_10 = tt.load %p_8 : tensor<32x!tt.ptr<f32>>
    %v_11 = arith.addf %v_9, %v_10 : tensor<32xf32>
    %p_12 = tt.addptr %p, %c32_i32 : !tt.ptr<f32>, i32
    %k_13 = arith.addi %k_6, %c1_i32 : i32
    scf.yield %v_11, %p_12, %k_13 : tensor<32xf32>, !tt.ptr<f32>, i32
  }
  %k_3 = tt.splat %k_2#1 : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %k_4 = tt.addptr %k_3, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %0 = tt.splat %o : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %1 = tt.addptr %0, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  tt.store %1, %k_2#0 : tensor<32x!tt.ptr<f32>>
  tt.store %k_4, %k_2#0 : tensor<32x!tt.ptr<f32>>
  tt.return
}

// -----

// Sums over rows are kept for each element of a tile and added up after the loop.
// CHECK-LABEL: @column_sums
// CHECK-NOT: ttm.convert_layout
// CHECK: scf.for {{.*}} -> (tensor<32x128xf32, #[[T:[a-z0-9]+]]>)
// CHECK: tt.load {{.*}} : tensor<32x128x!tt.ptr<f32>, #[[T]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.return
tt.func public @column_sums(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %w: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32) attributes {noinline = false} {
  %c32_i32 = arith.constant 32 : i32
  %c0_i32 = arith.constant 0 : i32
  %cst = arith.constant dense<0.000000e+00> : tensor<32x128xf32>
  %cst_0 = arith.constant dense<128> : tensor<32x1xi32>
  %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %n = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %row = tt.splat %M : i32 -> tensor<32xi32>
  %acc = tt.expand_dims %n {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %acc_1 = tt.broadcast %acc : tensor<1x128xi32> -> tensor<32x128xi32>
  %acc_2 = tt.splat %x : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>>
  %acc_3 = scf.for %arg4 = %c0_i32 to %M step %c32_i32 iter_args(%arg5 = %cst) -> (tensor<32x128xf32>)  : i32 {
    %row_4 = tt.splat %arg4 : i32 -> tensor<32xi32>
    %row_5 = arith.addi %row_4, %r : tensor<32xi32>
    %row_6 = arith.cmpi slt, %row_5, %row : tensor<32xi32>
    %acc_7 = tt.expand_dims %row_6 {axis = 1 : i32} : tensor<32xi1> -> tensor<32x1xi1>
    %acc_8 = tt.expand_dims %row_5 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %acc_9 = arith.muli %acc_8, %cst_0 : tensor<32x1xi32>
    %acc_10 = tt.broadcast %acc_9 : tensor<32x1xi32> -> tensor<32x128xi32>
    %acc_11 = arith.addi %acc_10, %acc_1 : tensor<32x128xi32>
    %acc_12 = tt.addptr %acc_2, %acc_11 : tensor<32x128x!tt.ptr<f32>>, tensor<32x128xi32>
    %acc_13 = tt.broadcast %acc_7 : tensor<32x1xi1> -> tensor<32x128xi1>
    %acc_14 = tt.load %acc_12, %acc_13, %cst : tensor<32x128x!tt.ptr<f32>>
    %acc_15 = arith.addf %arg5, %acc_14 : tensor<32x128xf32>
    scf.yield %acc_15 : tensor<32x128xf32>
  }
  %0 = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %1 = tt.addptr %0, %n : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %2 = "tt.reduce"(%acc_3) <{axis = 0 : i32}> ({
  ^bb0(%arg4: f32, %arg5: f32):
    %7 = arith.addf %arg4, %arg5 : f32
    tt.reduce.return %7 : f32
  }) : (tensor<32x128xf32>) -> tensor<128xf32>
  %3 = tt.splat %w : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %4 = tt.addptr %3, %n : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %5 = tt.load %4 : tensor<128x!tt.ptr<f32>>
  %6 = arith.mulf %2, %5 : tensor<128xf32>
  tt.store %1, %6 : tensor<128x!tt.ptr<f32>>
  tt.return
}

// -----

// Nothing but the store says what layout the loop carries; the vectors are read where its rows and columns are.
// CHECK-LABEL: @outer
// CHECK-NOT: ttm.convert_layout
// CHECK: scf.for {{.*}} -> (tensor<32x32xf32, #[[O:[a-z0-9]+]]>)
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.store {{.*}} : tensor<32x32x!tt.ptr<f32>, #[[O]]>
tt.func public @outer(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %K: i32) attributes {noinline = false} {
  %acc = arith.constant dense<0.000000e+00> : tensor<32x32xf32>
  %c1_i32 = arith.constant 1 : i32
  %c0_i32 = arith.constant 0 : i32
  %cst = arith.constant dense<32> : tensor<32x1xi32>
  %c32_i32 = arith.constant 32 : i32
  %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %acc_0 = scf.for %arg4 = %c0_i32 to %K step %c1_i32 iter_args(%arg5 = %acc) -> (tensor<32x32xf32>)  : i32 {
    %acc_1 = arith.muli %arg4, %c32_i32 : i32
    %acc_2 = tt.addptr %x, %acc_1 : !tt.ptr<f32>, i32
    %acc_3 = tt.splat %acc_2 : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %acc_4 = tt.addptr %acc_3, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %acc_5 = tt.load %acc_4 : tensor<32x!tt.ptr<f32>>
    %acc_6 = tt.expand_dims %acc_5 {axis = 1 : i32} : tensor<32xf32> -> tensor<32x1xf32>
    %acc_7 = tt.addptr %y, %acc_1 : !tt.ptr<f32>, i32
    %acc_8 = tt.splat %acc_7 : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %acc_9 = tt.addptr %acc_8, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %acc_10 = tt.load %acc_9 : tensor<32x!tt.ptr<f32>>
    %acc_11 = tt.expand_dims %acc_10 {axis = 0 : i32} : tensor<32xf32> -> tensor<1x32xf32>
    %acc_12 = tt.broadcast %acc_6 : tensor<32x1xf32> -> tensor<32x32xf32>
    %acc_13 = tt.broadcast %acc_11 : tensor<1x32xf32> -> tensor<32x32xf32>
    %acc_14 = arith.mulf %acc_12, %acc_13 : tensor<32x32xf32>
    %acc_15 = arith.addf %arg5, %acc_14 : tensor<32x32xf32>
    scf.yield %acc_15 : tensor<32x32xf32>
  }
  %0 = tt.expand_dims %i {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %1 = arith.muli %0, %cst : tensor<32x1xi32>
  %2 = tt.expand_dims %i {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %3 = tt.broadcast %1 : tensor<32x1xi32> -> tensor<32x32xi32>
  %4 = tt.broadcast %2 : tensor<1x32xi32> -> tensor<32x32xi32>
  %5 = arith.addi %3, %4 : tensor<32x32xi32>
  %6 = tt.splat %o : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %7 = tt.addptr %6, %5 : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  tt.store %7, %acc_0 : tensor<32x32x!tt.ptr<f32>>
  tt.return
}

// -----

// Scores that are operand B of the next dot stay in registers as well.
// CHECK-LABEL: @kt_first
// CHECK-NOT: ttm.convert_layout
// CHECK: %[[S:.*]] = tt.dot {{.*}} -> tensor<64x64xf32, #[[B:[a-z0-9]+]]>
// CHECK: %[[E:.*]] = math.exp2 %[[S]] : tensor<64x64xf32, #[[B]]>
// CHECK: %[[P:.*]] = arith.truncf %[[E]] : tensor<64x64xf32, #[[B]]> to tensor<64x64xf16, #[[B]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.dot %{{.*}}, %[[P]], %{{.*}} -> tensor<64x64xf32, #[[B]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.return
tt.func public @kt_first(%q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
  %c64_i32 = arith.constant 64 : i32
  %c0_i32 = arith.constant 0 : i32
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %cst_0 = arith.constant dense<64> : tensor<64x1xi32>
  %cst_1 = arith.constant dense<64> : tensor<1x64xi32>
  %m = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %qt = tt.expand_dims %m {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %qt_2 = arith.muli %qt, %cst_1 : tensor<1x64xi32>
  %qt_3 = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %qt_4 = tt.broadcast %qt_2 : tensor<1x64xi32> -> tensor<64x64xi32>
  %qt_5 = tt.broadcast %qt_3 : tensor<64x1xi32> -> tensor<64x64xi32>
  %qt_6 = arith.addi %qt_4, %qt_5 : tensor<64x64xi32>
  %qt_7 = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %qt_8 = tt.addptr %qt_7, %qt_6 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %qt_9 = tt.load %qt_8 : tensor<64x64x!tt.ptr<f16>>
  %kk = tt.broadcast %qt : tensor<1x64xi32> -> tensor<64x64xi32>
  %kk_10 = tt.splat %k : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %vt = tt.splat %v : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %acc = scf.for %arg5 = %c0_i32 to %n step %c64_i32 iter_args(%arg6 = %cst) -> (tensor<64x64xf32>)  : i32 {
    %kk_11 = tt.splat %arg5 : i32 -> tensor<64xi32>
    %kk_12 = arith.addi %kk_11, %m : tensor<64xi32>
    %kk_13 = tt.expand_dims %kk_12 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %kk_14 = arith.muli %kk_13, %cst_0 : tensor<64x1xi32>
    %kk_15 = tt.broadcast %kk_14 : tensor<64x1xi32> -> tensor<64x64xi32>
    %kk_16 = arith.addi %kk_15, %kk : tensor<64x64xi32>
    %kk_17 = tt.addptr %kk_10, %kk_16 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %kk_18 = tt.load %kk_17 : tensor<64x64x!tt.ptr<f16>>
    %vt_19 = tt.expand_dims %kk_12 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %vt_20 = arith.muli %vt_19, %cst_1 : tensor<1x64xi32>
    %vt_21 = tt.broadcast %vt_20 : tensor<1x64xi32> -> tensor<64x64xi32>
    %vt_22 = arith.addi %vt_21, %qt_5 : tensor<64x64xi32>
    %vt_23 = tt.addptr %vt, %vt_22 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %vt_24 = tt.load %vt_23 : tensor<64x64x!tt.ptr<f16>>
    %p = tt.dot %kk_18, %qt_9, %cst, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %p_25 = math.exp2 %p : tensor<64x64xf32>
    %p_26 = arith.truncf %p_25 : tensor<64x64xf32> to tensor<64x64xf16>
    %acc_27 = tt.dot %vt_24, %p_26, %arg6, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %acc_27 : tensor<64x64xf32>
  }
  %0 = tt.splat %o : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %1 = tt.addptr %0, %qt_6 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %2 = arith.truncf %acc : tensor<64x64xf32> to tensor<64x64xf16>
  tt.store %1, %2 : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// -----

// A value that two uses want in two layouts is converted once, where it is defined, however often it is used.
// CHECK-LABEL: @two_layouts
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[Y:.*]] = ttm.convert_layout %[[X]]
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.store %{{.*}}, %[[X]]
// CHECK: tt.store %{{.*}}, %[[Y]]
// CHECK: tt.store %{{.*}}, %[[Y]]
tt.func public @two_layouts(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %i = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %j = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %si = tt.splat %s : i32 -> tensor<128x1xi32>
  %sj = tt.splat %s : i32 -> tensor<1x128xi32>
  %is = arith.muli %i, %si : tensor<128x1xi32>
  %js = arith.muli %j, %sj : tensor<1x128xi32>
  %ib = tt.broadcast %is : tensor<128x1xi32> -> tensor<128x128xi32>
  %jb = tt.broadcast %j : tensor<1x128xi32> -> tensor<128x128xi32>
  %it = tt.broadcast %i : tensor<128x1xi32> -> tensor<128x128xi32>
  %jt = tt.broadcast %js : tensor<1x128xi32> -> tensor<128x128xi32>
  %o = arith.addi %ib, %jb : tensor<128x128xi32>
  %t = arith.addi %it, %jt : tensor<128x128xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
  %q = tt.addptr %b, %o : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
  %u = tt.addptr %b, %t : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
  %x = tt.load %q : tensor<128x128x!tt.ptr<f32>>
  tt.store %q, %x : tensor<128x128x!tt.ptr<f32>>
  tt.store %u, %x : tensor<128x128x!tt.ptr<f32>>
  tt.store %u, %x : tensor<128x128x!tt.ptr<f32>>
  tt.return
}

// -----

// The halves of a row's pairs scale the rows of a tile, and so do their sums. The load takes the layout that the tile
// asks for, and with it the reduction, which moves nothing then.
// CHECK-LABEL: @pairs_and_their_sums
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.load {{.*}} : tensor<32x2x!tt.ptr<f32>, #[[PAIRS:[a-z0-9]+]]>
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.split {{.*}} : tensor<32x2xf32, #[[PAIRS]]>
// CHECK: "tt.reduce"({{.*}}
// CHECK: (tensor<32x2xf32, #[[PAIRS]]>)
// CHECK-NOT: ttm.convert_layout
// CHECK: tt.return
tt.func public @pairs_and_their_sums(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %w: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %n = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %k = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %two = tt.make_range {start = 0 : i32, end = 2 : i32} : tensor<2xi32>
  %c2 = arith.constant dense<2> : tensor<32x1xi32>
  %c32 = arith.constant dense<32> : tensor<64x1xi32>
  %kc = tt.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %k2 = arith.muli %kc, %c2 : tensor<32x1xi32>
  %tr = tt.expand_dims %two {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
  %kb = tt.broadcast %k2 : tensor<32x1xi32> -> tensor<32x2xi32>
  %tb = tt.broadcast %tr : tensor<1x2xi32> -> tensor<32x2xi32>
  %xo = arith.addi %kb, %tb : tensor<32x2xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x2x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %xo : tensor<32x2x!tt.ptr<f32>>, tensor<32x2xi32>
  %xv = tt.load %xp : tensor<32x2x!tt.ptr<f32>>
  %even, %odd = tt.split %xv : tensor<32x2xf32> -> tensor<32xf32>
  %sum = "tt.reduce"(%xv) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<32x2xf32>) -> tensor<32xf32>
  %nc = tt.expand_dims %n {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %nm = arith.muli %nc, %c32 : tensor<64x1xi32>
  %kr = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %nb = tt.broadcast %nm : tensor<64x1xi32> -> tensor<64x32xi32>
  %krb = tt.broadcast %kr : tensor<1x32xi32> -> tensor<64x32xi32>
  %wo = arith.addi %nb, %krb : tensor<64x32xi32>
  %ws = tt.splat %w : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %wp = tt.addptr %ws, %wo : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  %wv = tt.load %wp : tensor<64x32x!tt.ptr<f32>>
  %ee = tt.expand_dims %even {axis = 0 : i32} : tensor<32xf32> -> tensor<1x32xf32>
  %eb = tt.broadcast %ee : tensor<1x32xf32> -> tensor<64x32xf32>
  %oe = tt.expand_dims %odd {axis = 0 : i32} : tensor<32xf32> -> tensor<1x32xf32>
  %ob = tt.broadcast %oe : tensor<1x32xf32> -> tensor<64x32xf32>
  %se = tt.expand_dims %sum {axis = 0 : i32} : tensor<32xf32> -> tensor<1x32xf32>
  %sb = tt.broadcast %se : tensor<1x32xf32> -> tensor<64x32xf32>
  %p0 = arith.mulf %wv, %eb : tensor<64x32xf32>
  %p1 = arith.mulf %p0, %ob : tensor<64x32xf32>
  %p2 = arith.addf %p1, %sb : tensor<64x32xf32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %wo : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  tt.store %yp, %p2 : tensor<64x32x!tt.ptr<f32>>
  tt.return
}
