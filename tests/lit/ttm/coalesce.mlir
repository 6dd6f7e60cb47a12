// RUN: triton-metal-opt %s --convert-tt-to-ttm=num-warps=4 --ttm-coalesce | FileCheck %s

// CHECK-DAG: #[[F32:.*]] = #ttm.linear<{register = {{\[}}[1], [2], [512]], lane = {{\[}}[4], [8], [16], [32], [64]], simdgroup = {{\[}}[128], [256]]}>
// CHECK-DAG: #[[F16:.*]] = #ttm.linear<{register = {{\[}}[1], [2], [4], [1024]], lane = {{\[}}[8], [16], [32], [64], [128]], simdgroup = {{\[}}[256], [512]]}>
// CHECK-DAG: #[[COLUMNS:.*]] = #ttm.linear<{register = {{\[}}[1, 0], [2, 0], [0, 16]], lane = {{\[}}[4, 0], [8, 0], [16, 0], [0, 1], [0, 2]], simdgroup = {{\[}}[0, 4], [0, 8]]}>
// CHECK-DAG: #[[ROWS:.*]] = #ttm.linear<{register = {{\[}}[0, 1], [0, 2], [4, 0], [8, 0]], lane = {{\[}}[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], simdgroup = {{\[}}[1, 0], [2, 0]]}>
// CHECK-DAG: #[[PACKED:.*]] = #ttm.linear<{register = {{\[}}[1], [2]], lane = {{\[}}[4], [8], [16], [32], [64]], simdgroup = {{\[}}[128], [256]]}>
// CHECK-DAG: #[[LONGS:.*]] = #ttm.linear<{register = {{\[}}[128]], lane = {{\[}}[1], [2], [4], [8], [16]], simdgroup = {{\[}}[32], [64]]}>

// Four floats a thread are 16 bytes.
// CHECK-LABEL: @aligned
// CHECK: tt.load %{{.*}} : tensor<1024x!tt.ptr<f32>, #[[F32]]>
tt.func public @aligned(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %0 = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %1 = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %2 = tt.addptr %1, %0 : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %3 = tt.load %2 : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// Eight halves are; the atomic update of one and the same tile still takes single elements.
// CHECK-LABEL: @halves
// CHECK: tt.load %{{.*}} : tensor<2048x!tt.ptr<f16>, #[[F16]]>
tt.func public @halves(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %0 = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %1 = tt.splat %p : !tt.ptr<f16> -> tensor<2048x!tt.ptr<f16>>
  %2 = tt.addptr %1, %0 : tensor<2048x!tt.ptr<f16>>, tensor<2048xi32>
  %3 = tt.load %2 : tensor<2048x!tt.ptr<f16>>
  tt.return
}

// An address that is aligned to its element only: a packed vector has four of 32 bits, and none of 64, of which neighbouring
// lanes take neighbours.
// CHECK-LABEL: @unaligned
// CHECK: tt.load %{{.*}} : tensor<512x!tt.ptr<f32>, #[[PACKED]]>
// CHECK: tt.load %{{.*}} : tensor<256x!tt.ptr<i64>, #[[LONGS]]>
// CHECK: tt.atomic_rmw {{.*}} -> tensor<512xf32, #[[PACKED]]>
tt.func public @unaligned(%p: !tt.ptr<f32>, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %l: !tt.ptr<i64>) {
  %0 = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %1 = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %2 = tt.addptr %1, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %3 = tt.load %2 : tensor<512x!tt.ptr<f32>>
  %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %ls = tt.splat %l : !tt.ptr<i64> -> tensor<256x!tt.ptr<i64>>
  %la = tt.addptr %ls, %r : tensor<256x!tt.ptr<i64>>, tensor<256xi32>
  %lv = tt.load %la : tensor<256x!tt.ptr<i64>>
  %4 = tt.splat %q : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %5 = tt.addptr %4, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %6 = tt.atomic_rmw fadd, relaxed, gpu, %5, %3 : (tensor<512x!tt.ptr<f32>>, tensor<512xf32>) -> tensor<512xf32>
  tt.return
}

// Consecutive along the first dimension: so are lanes.
// CHECK-LABEL: @column_major
// CHECK: tt.load %{{.*}} : tensor<32x32x!tt.ptr<f32>, #[[COLUMNS]]>
tt.func public @column_major(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %i = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %j = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %ss = tt.splat %s : i32 -> tensor<1x32xi32>
  %js = arith.muli %j, %ss : tensor<1x32xi32>
  %ib = tt.broadcast %i : tensor<32x1xi32> -> tensor<32x32xi32>
  %jb = tt.broadcast %js : tensor<1x32xi32> -> tensor<32x32xi32>
  %o = arith.addi %ib, %jb : tensor<32x32xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %q = tt.addptr %b, %o : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  %x = tt.load %q : tensor<32x32x!tt.ptr<f32>>
  tt.return
}

// Rows that are reduced stay within a SIMD-group, where no barrier is needed.
// CHECK-LABEL: @reduced_rows
// CHECK: tt.load %{{.*}} : tensor<16x128x!tt.ptr<f32>, #[[ROWS]]>
tt.func public @reduced_rows(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %c = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %i = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %j = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ss = tt.splat %s : i32 -> tensor<16x1xi32>
  %is = arith.muli %i, %ss : tensor<16x1xi32>
  %ib = tt.broadcast %is : tensor<16x1xi32> -> tensor<16x128xi32>
  %jb = tt.broadcast %j : tensor<1x128xi32> -> tensor<16x128xi32>
  %o = arith.addi %ib, %jb : tensor<16x128xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<16x128x!tt.ptr<f32>>
  %q = tt.addptr %b, %o : tensor<16x128x!tt.ptr<f32>>, tensor<16x128xi32>
  %x = tt.load %q : tensor<16x128x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %d: f32):
    %e = arith.maxnumf %a, %d : f32
    tt.reduce.return %e : f32
  }) : (tensor<16x128xf32>) -> tensor<16xf32>
  tt.return
}
