// RUN: triton-metal-opt %s --split-input-file --tt-slice-tiles | FileCheck %s

// A thread of four SIMD-groups would need 128 registers for the sum alone. Rows come in slices: what the slices share, the second factor, is loaded in each.
// CHECK-LABEL: module attributes {{.*}}ttm.slices = 4
// CHECK-LABEL: tt.func public @product
// CHECK-DAG:   %[[LENGTH:.*]] = arith.constant 32 : i32
// CHECK-DAG:   %[[SLICES:.*]] = arith.constant 4 : i32
// CHECK-DAG:   %[[RANGE:.*]] = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
// CHECK:       scf.for %[[SLICE:.*]] = %{{.*}} to %[[SLICES]] step %{{[a-z0-9_]+}} : i32 {
// CHECK:         %[[START:.*]] = arith.muli %[[SLICE]], %[[LENGTH]] : i32
// CHECK-NEXT:    %[[STARTS:.*]] = tt.splat %[[START]] : i32 -> tensor<32xi32>
// CHECK-NEXT:    arith.addi %[[RANGE]], %[[STARTS]] : tensor<32xi32>
// CHECK:         scf.for
// CHECK:           tt.dot {{.*}} : tensor<32x32xf16> * tensor<32x128xf16> -> tensor<32x128xf32>
// CHECK:         tt.store {{.*}} : tensor<32x128x!tt.ptr<f32>>
// CHECK:       tt.return
module attributes {ttm.num_warps = 4 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %k: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rk = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %ka = tt.expand_dims %rk {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %kb = tt.expand_dims %rk {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %rowsA = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x32xi32>
    %kA = tt.broadcast %ka : tensor<1x32xi32> -> tensor<128x32xi32>
    %placeA = arith.addi %rowsA, %kA : tensor<128x32xi32>
    %kB = tt.broadcast %kb : tensor<32x1xi32> -> tensor<32x128xi32>
    %columnsB = tt.broadcast %columns : tensor<1x128xi32> -> tensor<32x128xi32>
    %placeB = arith.addi %kB, %columnsB : tensor<32x128xi32>
    %rowsC = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
    %columnsC = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %placeC = arith.addi %rowsC, %columnsC : tensor<128x128xi32>
    %baseA = tt.splat %a : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
    %ptrA = tt.addptr %baseA, %placeA : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    %baseB = tt.splat %b : !tt.ptr<f16> -> tensor<32x128x!tt.ptr<f16>>
    %ptrB = tt.addptr %baseB, %placeB : tensor<32x128x!tt.ptr<f16>>, tensor<32x128xi32>
    %sum = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %ptrA : tensor<128x32x!tt.ptr<f16>>
      %y = tt.load %ptrB : tensor<32x128x!tt.ptr<f16>>
      %d = tt.dot %x, %y, %acc : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %baseC = tt.splat %c : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %ptrC = tt.addptr %baseC, %placeC : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    tt.store %ptrC, %sum : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// With 32 SIMD-groups a thread needs few registers.
// CHECK-LABEL: tt.func public @small
// CHECK-NOT:   scf.for
module attributes {ttm.num_warps = 32 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @small(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %q = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %q {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %i = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x256xi32>
    %j = tt.broadcast %columns : tensor<1x256xi32> -> tensor<64x256xi32>
    %place = arith.addi %i, %j : tensor<64x256xi32>
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x256x!tt.ptr<f32>>
    %source = tt.addptr %from, %place : tensor<64x256x!tt.ptr<f32>>, tensor<64x256xi32>
    %v = tt.load %source : tensor<64x256x!tt.ptr<f32>>
    %m = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<64x256xf32>) -> tensor<64xf32>
    %me = tt.expand_dims %m {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %mb = tt.broadcast %me : tensor<64x1xf32> -> tensor<64x256xf32>
    %d = arith.subf %v, %mb : tensor<64x256xf32>
    %to = tt.splat %y : !tt.ptr<f32> -> tensor<64x256x!tt.ptr<f32>>
    %target = tt.addptr %to, %place : tensor<64x256x!tt.ptr<f32>>, tensor<64x256xi32>
    tt.store %target, %d : tensor<64x256x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// One SIMD-group: rows come in slices, since the reduction runs along the columns.
// CHECK-LABEL: tt.func public @rows
// CHECK:       scf.for
// CHECK:         tt.load %{{.*}} : tensor<16x256x!tt.ptr<f32>>
// CHECK:         "tt.reduce"
// CHECK:         tt.store %{{.*}} : tensor<16x256x!tt.ptr<f32>>
module attributes {ttm.num_warps = 1 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @rows(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %q = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tt.expand_dims %q {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %i = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x256xi32>
    %j = tt.broadcast %columns : tensor<1x256xi32> -> tensor<128x256xi32>
    %place = arith.addi %i, %j : tensor<128x256xi32>
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %source = tt.addptr %from, %place : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
    %v = tt.load %source : tensor<128x256x!tt.ptr<f32>>
    %m = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<128x256xf32>) -> tensor<128xf32>
    %me = tt.expand_dims %m {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %mb = tt.broadcast %me : tensor<128x1xf32> -> tensor<128x256xf32>
    %d = arith.subf %v, %mb : tensor<128x256xf32>
    %to = tt.splat %y : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %target = tt.addptr %to, %place : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
    tt.store %target, %d : tensor<128x256x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// The same between arrays that overlap: a slice could read what another one has written.
// CHECK-LABEL: tt.func public @overlapping
// CHECK-NOT:   scf.for
module attributes {ttm.num_warps = 1 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @overlapping(%x: !tt.ptr<f32> {tt.memory = 1 : i32}, %y: !tt.ptr<f32> {tt.memory = 1 : i32}) {
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %q = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tt.expand_dims %q {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %i = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x256xi32>
    %j = tt.broadcast %columns : tensor<1x256xi32> -> tensor<128x256xi32>
    %place = arith.addi %i, %j : tensor<128x256xi32>
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %source = tt.addptr %from, %place : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
    %v = tt.load %source : tensor<128x256x!tt.ptr<f32>>
    %m = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<128x256xf32>) -> tensor<128xf32>
    %me = tt.expand_dims %m {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %mb = tt.broadcast %me : tensor<128x1xf32> -> tensor<128x256xf32>
    %d = arith.subf %v, %mb : tensor<128x256xf32>
    %to = tt.splat %y : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %target = tt.addptr %to, %place : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
    tt.store %target, %d : tensor<128x256x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Each step stores rows of 256 numbers, from a multiple of 256 on: a slice has the same columns in all of them.
// CHECK-LABEL: tt.func public @steps
// CHECK:       scf.for
// CHECK:         "tt.reduce"
// CHECK:         scf.for
// CHECK:           tt.store %{{.*}} : tensor<128x{{16|32|64|128}}x!tt.ptr<f32>>
module attributes {ttm.num_warps = 1 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @steps(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c256 = arith.constant 256 : i32
    %width = arith.constant dense<256> : tensor<128x1xi32>
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %q = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %begins = arith.muli %rows, %width : tensor<128x1xi32>
    %columns = tt.expand_dims %q {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %i = tt.broadcast %begins : tensor<128x1xi32> -> tensor<128x256xi32>
    %j = tt.broadcast %columns : tensor<1x256xi32> -> tensor<128x256xi32>
    %place = arith.addi %i, %j : tensor<128x256xi32>
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %source = tt.addptr %from, %place : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
    %v = tt.load %source : tensor<128x256x!tt.ptr<f32>>
    %m = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<128x256xf32>) -> tensor<256xf32>
    %me = tt.expand_dims %m {axis = 0 : i32} : tensor<256xf32> -> tensor<1x256xf32>
    %mb = tt.broadcast %me : tensor<1x256xf32> -> tensor<128x256xf32>
    %last = scf.for %step = %c0 to %n step %c1 iter_args(%w = %v) -> (tensor<128x256xf32>) : i32 {
      %d = arith.subf %w, %mb : tensor<128x256xf32>
      %far = arith.muli %step, %c256 : i32
      %base = tt.addptr %y, %far : !tt.ptr<f32>, i32
      %to = tt.splat %base : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
      %target = tt.addptr %to, %place : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
      tt.store %target, %d : tensor<128x256x!tt.ptr<f32>>
      scf.yield %d : tensor<128x256xf32>
    }
    tt.return
  }
}

// -----

// From a multiple of 64 on, a step would overwrite what another slice has stored in a later one.
// CHECK-LABEL: tt.func public @steps_that_meet
// CHECK:       tt.store %{{.*}} : tensor<128x256x!tt.ptr<f32>>
module attributes {ttm.num_warps = 1 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @steps_that_meet(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %width = arith.constant dense<256> : tensor<128x1xi32>
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %q = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %begins = arith.muli %rows, %width : tensor<128x1xi32>
    %columns = tt.expand_dims %q {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %i = tt.broadcast %begins : tensor<128x1xi32> -> tensor<128x256xi32>
    %j = tt.broadcast %columns : tensor<1x256xi32> -> tensor<128x256xi32>
    %place = arith.addi %i, %j : tensor<128x256xi32>
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %source = tt.addptr %from, %place : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
    %v = tt.load %source : tensor<128x256x!tt.ptr<f32>>
    %m = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<128x256xf32>) -> tensor<256xf32>
    %me = tt.expand_dims %m {axis = 0 : i32} : tensor<256xf32> -> tensor<1x256xf32>
    %mb = tt.broadcast %me : tensor<1x256xf32> -> tensor<128x256xf32>
    %last = scf.for %step = %c0 to %n step %c1 iter_args(%w = %v) -> (tensor<128x256xf32>) : i32 {
      %d = arith.subf %w, %mb : tensor<128x256xf32>
      %far = arith.muli %step, %c64 : i32
      %base = tt.addptr %y, %far : !tt.ptr<f32>, i32
      %to = tt.splat %base : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
      %target = tt.addptr %to, %place : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
      tt.store %target, %d : tensor<128x256x!tt.ptr<f32>>
      scf.yield %d : tensor<128x256xf32>
    }
    tt.return
  }
}

// -----

// The same product, whose SIMD-groups nobody has given: with more of them, it needs no slices.
// CHECK-LABEL: module attributes {ttm.choice = "32 SIMD-groups, {{.*}}", ttm.num_stages = 1 : i32, ttm.num_warps = 32 : i32}
// CHECK-LABEL: tt.func public @chosen
// CHECK:       tt.dot {{.*}} : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
module attributes {ttm.num_warps = 4 : i32, ttm.chosen_warps, ttm.num_stages = 1 : i32} {
  tt.func public @chosen(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %k: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rk = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %ka = tt.expand_dims %rk {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %kb = tt.expand_dims %rk {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %rowsA = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x32xi32>
    %kA = tt.broadcast %ka : tensor<1x32xi32> -> tensor<128x32xi32>
    %placeA = arith.addi %rowsA, %kA : tensor<128x32xi32>
    %kB = tt.broadcast %kb : tensor<32x1xi32> -> tensor<32x128xi32>
    %columnsB = tt.broadcast %columns : tensor<1x128xi32> -> tensor<32x128xi32>
    %placeB = arith.addi %kB, %columnsB : tensor<32x128xi32>
    %rowsC = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
    %columnsC = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %placeC = arith.addi %rowsC, %columnsC : tensor<128x128xi32>
    %baseA = tt.splat %a : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
    %ptrA = tt.addptr %baseA, %placeA : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    %baseB = tt.splat %b : !tt.ptr<f16> -> tensor<32x128x!tt.ptr<f16>>
    %ptrB = tt.addptr %baseB, %placeB : tensor<32x128x!tt.ptr<f16>>, tensor<32x128xi32>
    %sum = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %ptrA : tensor<128x32x!tt.ptr<f16>>
      %y = tt.load %ptrB : tensor<32x128x!tt.ptr<f16>>
      %d = tt.dot %x, %y, %acc : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %baseC = tt.splat %c : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %ptrC = tt.addptr %baseC, %placeC : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    tt.store %ptrC, %sum : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}
