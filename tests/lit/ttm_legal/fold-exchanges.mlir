// RUN: triton-metal-opt %s --ttm-fold-exchanges | FileCheck %s

#pair = #ttm.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], simdgroup = [[1, 0]]}>
#line = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[0]]}>
#one = #ttm.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], simdgroup = [[0, 0]]}>
#lane = #ttm.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [0, 4], [0, 8], [0, 16], [0, 32]], simdgroup = [[0, 64]]}>
#lines = #ttm.linear<{register = [[1], [2]], lane = [[0], [4], [8], [16], [32]], simdgroup = [[64]]}>
#ones = #ttm.linear<{register = [[0, 1], [0, 2]], lane = [[0, 0], [0, 4], [0, 8], [0, 16], [0, 32]], simdgroup = [[0, 64]]}>

// CHECK: #[[FLAT:.*]] = #ttm.linear<{register = {{\[\[}}1], [2]], lane = {{\[\[}}4], [8], [16], [32], [64]], simdgroup = {{\[\[}}128]]}>

module attributes {ttm.num_simdgroups = 2 : i32, ttm.threads = 64 : i32} {
  // What two SIMD-groups give each other is stored as it lies, and read from the partner's places.
  // CHECK-LABEL: @exchange
  // CHECK-SAME: (%[[X:.*]]: tensor<2x128xi32, #{{.*}}>)
  // CHECK: %[[T:.*]] = ttm.alloc_tile "partial" : !ttm.tile<256xi32>
  // CHECK: %[[FLAT_X:.*]] = tt.reshape %[[X]] : {{.*}} -> tensor<256xi32, #[[FLAT]]>
  // CHECK: ttm.store_tile %[[FLAT_X]], %[[T]]
  // CHECK: %[[READ:.*]] = ttm.load_tile %[[T]] across 128 : !ttm.tile<256xi32> -> tensor<256xi32, #[[FLAT]]>
  // CHECK: %[[Y:.*]] = tt.reshape %[[READ]] : {{.*}} -> tensor<2x128xi32
  // CHECK-NOT: tt.reduce
  // CHECK: tt.return %[[Y]]
  tt.func private @exchange(%x: tensor<2x128xi32, #pair>) -> tensor<2x128xi32, #pair> {
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x128xi32, #pair>) -> tensor<128xi32, #line>
    %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<128xi32, #line> -> tensor<1x128xi32, #one>
    %2 = tt.broadcast %1 : tensor<1x128xi32, #one> -> tensor<2x128xi32, #pair>
    %y = arith.xori %2, %x : tensor<2x128xi32, #pair>
    tt.return %y : tensor<2x128xi32, #pair>
  }

  // A sum that others read, too, stays beside it.
  // CHECK-LABEL: @kept
  // CHECK: ttm.load_tile %{{.*}} across 128
  // CHECK: %[[R:.*]] = "tt.reduce"
  // CHECK: tt.return %{{.*}}, %[[R]]
  tt.func private @kept(%x: tensor<2x128xi32, #pair>) -> (tensor<2x128xi32, #pair>, tensor<128xi32, #line>) {
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x128xi32, #pair>) -> tensor<128xi32, #line>
    %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<128xi32, #line> -> tensor<1x128xi32, #one>
    %2 = tt.broadcast %1 : tensor<1x128xi32, #one> -> tensor<2x128xi32, #pair>
    %y = arith.xori %x, %2 : tensor<2x128xi32, #pair>
    tt.return %y, %0 : tensor<2x128xi32, #pair>, tensor<128xi32, #line>
  }

  // Sums of other numbers, other sums, and exchanges between lanes, which need no memory.
  // CHECK-LABEL: @others
  // CHECK-NOT: ttm.load_tile
  // CHECK-COUNT-3: "tt.reduce"
  // CHECK-NOT: ttm.load_tile
  tt.func private @others(%x: tensor<2x128xi32, #pair>, %z: tensor<2x128xi32, #pair>, %v: tensor<2x128xi32, #lane>)
      -> (tensor<2x128xi32, #pair>, tensor<2x128xi32, #pair>, tensor<2x128xi32, #lane>) {
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x128xi32, #pair>) -> tensor<128xi32, #line>
    %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<128xi32, #line> -> tensor<1x128xi32, #one>
    %2 = tt.broadcast %1 : tensor<1x128xi32, #one> -> tensor<2x128xi32, #pair>
    %3 = arith.xori %z, %2 : tensor<2x128xi32, #pair>
    %4 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x128xi32, #pair>) -> tensor<128xi32, #line>
    %5 = tt.expand_dims %4 {axis = 0 : i32} : tensor<128xi32, #line> -> tensor<1x128xi32, #one>
    %6 = tt.broadcast %5 : tensor<1x128xi32, #one> -> tensor<2x128xi32, #pair>
    %7 = arith.xori %x, %6 : tensor<2x128xi32, #pair>
    %8 = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x128xi32, #lane>) -> tensor<128xi32, #lines>
    %9 = tt.expand_dims %8 {axis = 0 : i32} : tensor<128xi32, #lines> -> tensor<1x128xi32, #ones>
    %10 = tt.broadcast %9 : tensor<1x128xi32, #ones> -> tensor<2x128xi32, #lane>
    %11 = arith.xori %v, %10 : tensor<2x128xi32, #lane>
    tt.return %3, %7, %11 : tensor<2x128xi32, #pair>, tensor<2x128xi32, #pair>, tensor<2x128xi32, #lane>
  }
}
