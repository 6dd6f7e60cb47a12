// RUN: triton-metal-opt %s --ttm-lower-scans | FileCheck %s

#pairs = #ttm.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], simdgroup = [[0], [0]]}>
#groups = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = [[32], [64]]}>
#columns = #ttm.linear<{register = [[4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], simdgroup = [[1, 0], [2, 0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // Neighbours in registers are combined in pairs. The scan goes on with the pairs, which are in lanes; each pair's first
  // element is combined with what comes before the pair.
  // CHECK-LABEL: @pairs
  // CHECK: %[[ROWS:.*]] = tt.reshape %arg0 : tensor<64xf32, #{{.*}}> -> tensor<32x2xf32, #{{.*}}>
  // CHECK: %[[FIRST:.*]], %[[SECOND:.*]] = tt.split %[[ROWS]]
  // CHECK: %[[PAIR:.*]] = arith.addf %[[FIRST]], %[[SECOND]]
  // CHECK: %[[UPTO:.*]] = "tt.scan"(%[[PAIR]]) <{axis = 0 : i32, reverse = false}>
  // CHECK: %[[PLACE:.*]] = tt.make_range
  // CHECK: %[[HAS:.*]] = arith.cmpi ne, %[[PLACE]]
  // CHECK: %[[BEFORE:.*]] = tt.gather %[[UPTO]][%{{.*}}] {axis = 0 : i32}
  // CHECK: %[[SUM:.*]] = arith.addf %[[BEFORE]], %[[FIRST]]
  // CHECK: %[[UPTOFIRST:.*]] = arith.select %{{.*}}, %[[SUM]], %[[FIRST]]
  // CHECK: tt.join %[[UPTOFIRST]], %[[UPTO]]
  tt.func private @pairs(%x: tensor<64xf32, #pairs>) -> tensor<64xf32, #pairs> {
    %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<64xf32, #pairs>) -> tensor<64xf32, #pairs>
    tt.return %0 : tensor<64xf32, #pairs>
  }

  // In reverse, the second element of a pair comes first.
  // CHECK-LABEL: @reverse
  // CHECK: %[[L:.*]], %[[R:.*]] = tt.split
  // CHECK: %[[PAIR:.*]] = arith.subf %[[R]], %[[L]]
  // CHECK: "tt.scan"(%[[PAIR]]) <{axis = 0 : i32, reverse = true}>
  // CHECK: arith.subf %{{.*}}, %[[R]]
  tt.func private @reverse(%x: tensor<64xf32, #pairs>) -> tensor<64xf32, #pairs> {
    %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.subf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<64xf32, #pairs>) -> tensor<64xf32, #pairs>
    tt.return %0 : tensor<64xf32, #pairs>
  }

  // What lanes add up to moves from SIMD-groups to lanes that hold copies, and back.
  // CHECK-LABEL: @simdgroups
  // CHECK: %[[ROWS:.*]] = tt.reshape %arg0 : tensor<128xi32, #{{.*}}> -> tensor<4x32xi32
  // CHECK: %[[INLANES:.*]] = "tt.scan"(%[[ROWS]]) <{axis = 1 : i32, reverse = false}>
  // CHECK: %[[TOTALS:.*]] = tt.gather %[[INLANES]]
  // CHECK: %[[ROW:.*]] = tt.reshape %[[TOTALS]] : tensor<4x1xi32, #{{.*}}> -> tensor<4xi32
  // CHECK: %[[ALL:.*]] = ttm.convert_layout %[[ROW]]
  // CHECK: "tt.scan"(%[[ALL]]) <{axis = 0 : i32, reverse = false}>
  // CHECK: ttm.convert_layout %{{.*}} : tensor<4xi32
  // CHECK: arith.addi %{{.*}}, %[[INLANES]]
  tt.func private @simdgroups(%x: tensor<128xi32, #groups>) -> tensor<128xi32, #groups> {
    %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128xi32, #groups>) -> tensor<128xi32, #groups>
    tt.return %0 : tensor<128xi32, #groups>
  }

  // Where the axis' lowest bits are in SIMD-groups and no lanes are free, the tile is laid out anew: neighbours along the
  // axis in registers, and its highest bits in the SIMD-groups that the other dimension leaves.
  // CHECK-LABEL: @anew
  // CHECK: %[[TURNED:.*]] = tt.trans %arg0 {order = array<i32: 1, 0>}
  // CHECK: ttm.convert_layout %[[TURNED]]
  // CHECK: tt.split
  // CHECK: tt.split
  tt.func private @anew(%x: tensor<16x32xi32, #columns>) -> tensor<16x32xi32, #columns> {
    %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<16x32xi32, #columns>) -> tensor<16x32xi32, #columns>
    tt.return %0 : tensor<16x32xi32, #columns>
  }
}
