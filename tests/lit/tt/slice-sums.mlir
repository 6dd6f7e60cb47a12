// RUN: triton-metal-opt %s --split-input-file --tt-slice-tiles | FileCheck %s

// Operands of 36 KB do not fit in threadgroup memory. The loop only adds up: it takes half of 64 columns in each step, and has as many steps more.
// CHECK-LABEL: module attributes {ttm.num_stages = 1 : i32, ttm.num_warps = 8 : i32, ttm.slices = 2 : i32}
// CHECK-LABEL: tt.func public @steps
// CHECK-SAME:    %[[N:[^:]*]]: i32)
// CHECK:       %[[LAST:.*]] = arith.subi %[[N]], %{{.*}} : i32
// CHECK:       %[[MORE:.*]] = arith.divui %[[LAST]], %{{.*}} : i32
// CHECK:       %[[STEPS:.*]] = arith.addi %[[MORE]], %{{.*}} : i32
// CHECK:       %[[SOME:.*]] = arith.cmpi sgt, %[[N]], %{{.*}} : i32
// CHECK:       %[[COUNT:.*]] = arith.select %[[SOME]], %[[STEPS]], %{{.*}} : i32
// CHECK:       %[[SLICES:.*]] = arith.muli %[[COUNT]], %{{.*}} : i32
// CHECK:       scf.for %[[I:.*]] = %{{.*}} to %[[SLICES]] step %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<128x128xf32>)
// CHECK:         arith.shrui %[[I]], %{{.*}} : i32
// CHECK:         %[[SLICE:.*]] = arith.andi %[[I]], %{{.*}} : i32
// CHECK:         arith.muli %[[SLICE]], %{{.*}} : i32
// CHECK:         %[[D:.*]] = tt.dot %{{.*}}, %{{.*}}, %[[ACC]] : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
// CHECK-NEXT:    scf.yield %[[D]]
// CHECK-NOT:   step_slices
module attributes {ttm.num_warps = 8 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @steps(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %k = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %kb = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %rowsA = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x64xi32>
    %kA = tt.broadcast %ka : tensor<1x64xi32> -> tensor<128x64xi32>
    %placeA = arith.addi %rowsA, %kA : tensor<128x64xi32>
    %kB = tt.broadcast %kb : tensor<64x1xi32> -> tensor<64x128xi32>
    %columnsB = tt.broadcast %columns : tensor<1x128xi32> -> tensor<64x128xi32>
    %placeB = arith.addi %kB, %columnsB : tensor<64x128xi32>
    %rowsC = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
    %columnsC = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %placeC = arith.addi %rowsC, %columnsC : tensor<128x128xi32>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %pa = tt.addptr %a, %i : !tt.ptr<f16>, i32
      %pb = tt.addptr %b, %i : !tt.ptr<f16>, i32
      %baseA = tt.splat %pa : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
      %ptrA = tt.addptr %baseA, %placeA : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
      %baseB = tt.splat %pb : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
      %ptrB = tt.addptr %baseB, %placeB : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
      %x = tt.load %ptrA : tensor<128x64x!tt.ptr<f16>>
      %y = tt.load %ptrB : tensor<64x128x!tt.ptr<f16>>
      %d = tt.dot %x, %y, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %baseC = tt.splat %c : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %ptrC = tt.addptr %baseC, %placeC : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    tt.store %ptrC, %sum : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Without such a loop, the slices have one of their own, which starts from what the product adds to.
// CHECK-LABEL: module attributes {ttm.num_stages = 1 : i32, ttm.num_warps = 4 : i32, ttm.slices = 8 : i32}
// CHECK-LABEL: tt.func public @once
// CHECK:       %[[Z:.*]] = tt.load %{{.*}} : tensor<64x64x!tt.ptr<f32>>
// CHECK:       %[[SUM:.*]] = scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ACC:.*]] = %[[Z]]) -> (tensor<64x64xf32>)
// CHECK:         %[[D:.*]] = tt.dot %{{.*}}, %{{.*}}, %[[ACC]] : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
// CHECK:         scf.yield %[[D]]
// CHECK:       tt.store %{{.*}}, %[[SUM]]
module attributes {ttm.num_warps = 4 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @once(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>) {
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %k = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
    %kb = tt.expand_dims %k {axis = 1 : i32} : tensor<512xi32> -> tensor<512x1xi32>
    %rowsA = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x512xi32>
    %kA = tt.broadcast %ka : tensor<1x512xi32> -> tensor<64x512xi32>
    %placeA = arith.addi %rowsA, %kA : tensor<64x512xi32>
    %kB = tt.broadcast %kb : tensor<512x1xi32> -> tensor<512x64xi32>
    %columnsB = tt.broadcast %columns : tensor<1x64xi32> -> tensor<512x64xi32>
    %placeB = arith.addi %kB, %columnsB : tensor<512x64xi32>
    %rowsC = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %columnsC = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %placeC = arith.addi %rowsC, %columnsC : tensor<64x64xi32>
    %baseA = tt.splat %a : !tt.ptr<f16> -> tensor<64x512x!tt.ptr<f16>>
    %ptrA = tt.addptr %baseA, %placeA : tensor<64x512x!tt.ptr<f16>>, tensor<64x512xi32>
    %baseB = tt.splat %b : !tt.ptr<f16> -> tensor<512x64x!tt.ptr<f16>>
    %ptrB = tt.addptr %baseB, %placeB : tensor<512x64x!tt.ptr<f16>>, tensor<512x64xi32>
    %baseC = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %ptrC = tt.addptr %baseC, %placeC : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %x = tt.load %ptrA : tensor<64x512x!tt.ptr<f16>>
    %y = tt.load %ptrB : tensor<512x64x!tt.ptr<f16>>
    %z = tt.load %ptrC : tensor<64x64x!tt.ptr<f32>>
    %d = tt.dot %x, %y, %z : tensor<64x512xf16> * tensor<512x64xf16> -> tensor<64x64xf32>
    tt.store %ptrC, %d : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Sums of halves are rounded once in a product, and would be in each slice.
// CHECK-LABEL: tt.func public @halves
// CHECK:         tt.dot {{.*}} : tensor<{{[0-9]+}}x512xf16> * tensor<512x{{[0-9]+}}xf16>
module attributes {ttm.num_warps = 32 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @halves(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f16>) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf16>
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %k = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
    %kb = tt.expand_dims %k {axis = 1 : i32} : tensor<512xi32> -> tensor<512x1xi32>
    %rowsA = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x512xi32>
    %kA = tt.broadcast %ka : tensor<1x512xi32> -> tensor<64x512xi32>
    %placeA = arith.addi %rowsA, %kA : tensor<64x512xi32>
    %kB = tt.broadcast %kb : tensor<512x1xi32> -> tensor<512x64xi32>
    %columnsB = tt.broadcast %columns : tensor<1x64xi32> -> tensor<512x64xi32>
    %placeB = arith.addi %kB, %columnsB : tensor<512x64xi32>
    %rowsC = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %columnsC = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %placeC = arith.addi %rowsC, %columnsC : tensor<64x64xi32>
    %baseA = tt.splat %a : !tt.ptr<f16> -> tensor<64x512x!tt.ptr<f16>>
    %ptrA = tt.addptr %baseA, %placeA : tensor<64x512x!tt.ptr<f16>>, tensor<64x512xi32>
    %baseB = tt.splat %b : !tt.ptr<f16> -> tensor<512x64x!tt.ptr<f16>>
    %ptrB = tt.addptr %baseB, %placeB : tensor<512x64x!tt.ptr<f16>>, tensor<512x64xi32>
    %baseC = tt.splat %c : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %ptrC = tt.addptr %baseC, %placeC : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %x = tt.load %ptrA : tensor<64x512x!tt.ptr<f16>>
    %y = tt.load %ptrB : tensor<512x64x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %zero : tensor<64x512xf16> * tensor<512x64xf16> -> tensor<64x64xf16>
    tt.store %ptrC, %d : tensor<64x64x!tt.ptr<f16>>
    tt.return
  }
}

// -----

// 32 columns of a share a number: a slice has 32 of 128 columns and one of four such numbers.
// CHECK-LABEL: tt.func public @groups
// CHECK:       scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<128x128xf32>)
// CHECK:         tt.load %{{.*}} : tensor<128x1x!tt.ptr<f16>>
// CHECK:         tt.broadcast %{{.*}} : tensor<128x1x1xf16> -> tensor<128x1x32xf16>
// CHECK:         tt.reshape %{{.*}} : tensor<128x1x32xf16> -> tensor<128x32xf16>
// CHECK:         tt.dot %{{.*}}, %{{.*}}, %[[ACC]] : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
module attributes {ttm.num_warps = 8 : i32, ttm.num_stages = 1 : i32} {
  tt.func public @groups(%a: !tt.ptr<f16>, %s: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %k = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %g = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %kb = tt.expand_dims %k {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %groups = tt.expand_dims %g {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
    %rowsA = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
    %kA = tt.broadcast %ka : tensor<1x128xi32> -> tensor<128x128xi32>
    %placeA = arith.addi %rowsA, %kA : tensor<128x128xi32>
    %rowsS = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x4xi32>
    %groupsS = tt.broadcast %groups : tensor<1x4xi32> -> tensor<128x4xi32>
    %placeS = arith.addi %rowsS, %groupsS : tensor<128x4xi32>
    %kB = tt.broadcast %kb : tensor<128x1xi32> -> tensor<128x128xi32>
    %columnsB = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %placeB = arith.addi %kB, %columnsB : tensor<128x128xi32>
    %rowsC = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
    %columnsC = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %placeC = arith.addi %rowsC, %columnsC : tensor<128x128xi32>
    %baseA = tt.splat %a : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %ptrA = tt.addptr %baseA, %placeA : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
    %baseS = tt.splat %s : !tt.ptr<f16> -> tensor<128x4x!tt.ptr<f16>>
    %ptrS = tt.addptr %baseS, %placeS : tensor<128x4x!tt.ptr<f16>>, tensor<128x4xi32>
    %baseB = tt.splat %b : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %ptrB = tt.addptr %baseB, %placeB : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
    %x = tt.load %ptrA : tensor<128x128x!tt.ptr<f16>>
    %scale = tt.load %ptrS : tensor<128x4x!tt.ptr<f16>>
    %y = tt.load %ptrB : tensor<128x128x!tt.ptr<f16>>
    %one = tt.expand_dims %scale {axis = 2 : i32} : tensor<128x4xf16> -> tensor<128x4x1xf16>
    %each = tt.broadcast %one : tensor<128x4x1xf16> -> tensor<128x4x32xf16>
    %scales = tt.reshape %each : tensor<128x4x32xf16> -> tensor<128x128xf16>
    %scaled = arith.mulf %x, %scales : tensor<128x128xf16>
    %d = tt.dot %scaled, %y, %zero : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
    %baseC = tt.splat %c : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %ptrC = tt.addptr %baseC, %placeC : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    tt.store %ptrC, %d : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}
