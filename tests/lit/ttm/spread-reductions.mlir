// RUN: triton-metal-opt %s --convert-tt-to-ttm=num-warps=4 --ttm-coalesce --ttm-spread-reductions | FileCheck %s

// CHECK-DAG: #[[PAIRS:.*]] = #ttm.linear<{register = {{\[\[}}0, 1], [0, 2], [0, 8], [0, 16], [0, 32]], lane = {{\[\[}}0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], simdgroup = {{\[\[}}16, 0], [32, 0]]}>
// CHECK-DAG: #[[ROWS:.*]] = #ttm.linear<{register = {{\[\[}}0, 1], [0, 2], [8, 0], [16, 0]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], simdgroup = {{\[\[}}2, 0], [4, 0]]}>

// Tiles of rows and columns alone are made where they are reduced: a thread has half of a row.
// CHECK-LABEL: @pairs
// CHECK: scf.for
// CHECK: %[[T:.*]] = ttm.convert_layout %{{.*}} : tensor<64x64xf32, #{{.*}}> -> tensor<64x64xf32, #[[PAIRS]]>
// CHECK: "tt.reduce"(%[[T]])
tt.func public @pairs(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %a = tt.load %xp : tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %ae = tt.expand_dims %a {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %ab = tt.broadcast %ae : tensor<64x1xf32> -> tensor<64x64xf32>
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64xf32>) : i32 {
    %b = tt.load %yp : tensor<64x!tt.ptr<f32>>
    %be = tt.expand_dims %b {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
    %bb = tt.broadcast %be : tensor<1x64xf32> -> tensor<64x64xf32>
    %d = arith.subf %ab, %bb : tensor<64x64xf32>
    %s = "tt.reduce"(%d) <{axis = 1 : i32}> ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tt.reduce.return %t : f32
    }) : (tensor<64x64xf32>) -> tensor<64xf32>
    %next = arith.addf %sum, %s : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  tt.store %xp, %total : tensor<64x!tt.ptr<f32>>
  tt.return
}

// A tile that is read as often as it is reduced keeps the layout that suits memory.
// CHECK-LABEL: @read
// CHECK: tt.load %{{.*}} : tensor<32x64x!tt.ptr<f32>, #[[ROWS]]>
tt.func public @read(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %c64 = arith.constant dense<64> : tensor<32xi32>
  %rm = arith.muli %r, %c64 : tensor<32xi32>
  %re = tt.expand_dims %rm {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %rb = tt.broadcast %re : tensor<32x1xi32> -> tensor<32x64xi32>
  %ce = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %cb = tt.broadcast %ce : tensor<1x64xi32> -> tensor<32x64xi32>
  %o = arith.addi %rb, %cb : tensor<32x64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %o : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
  %a = tt.load %xp : tensor<32x64x!tt.ptr<f32>>
  %s = "tt.reduce"(%a) <{axis = 1 : i32}> ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    tt.reduce.return %t : f32
  }) : (tensor<32x64xf32>) -> tensor<32xf32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  tt.store %yp, %s : tensor<32x!tt.ptr<f32>>
  tt.return
}
