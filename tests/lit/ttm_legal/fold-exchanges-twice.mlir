// RUN: triton-metal-opt %s --ttm-fold-exchanges | FileCheck %s

#cube = #ttm.linear<{register = [[0, 0, 1], [0, 0, 2]], lane = [[0, 0, 4], [0, 0, 8], [0, 0, 16], [0, 0, 32], [0, 0, 64]], simdgroup = [[0, 1, 0], [1, 0, 0]]}>
#first = #ttm.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], simdgroup = [[1, 0], [0, 0]]}>
#second = #ttm.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], simdgroup = [[0, 0], [1, 0]]}>
#first1 = #ttm.linear<{register = [[0, 0, 1], [0, 0, 2]], lane = [[0, 0, 4], [0, 0, 8], [0, 0, 16], [0, 0, 32], [0, 0, 64]], simdgroup = [[0, 1, 0], [0, 0, 0]]}>
#second1 = #ttm.linear<{register = [[0, 0, 1], [0, 0, 2]], lane = [[0, 0, 4], [0, 0, 8], [0, 0, 16], [0, 0, 32], [0, 0, 64]], simdgroup = [[0, 0, 0], [1, 0, 0]]}>
#half = #ttm.linear<{register = [], lane = [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]], simdgroup = [[0, 0, 0], [1, 0, 0]]}>

#cube_w = #ttm.linear<{register = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8]], lane = [[0, 0, 16], [0, 0, 32], [0, 0, 64], [0, 0, 128], [0, 0, 256]], simdgroup = [[0, 1, 0], [1, 0, 0]]}>
#first_w = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [0, 32], [0, 64], [0, 128], [0, 256]], simdgroup = [[1, 0], [0, 0]]}>
#second_w = #ttm.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [0, 32], [0, 64], [0, 128], [0, 256]], simdgroup = [[0, 0], [1, 0]]}>
#first1_w = #ttm.linear<{register = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8]], lane = [[0, 0, 16], [0, 0, 32], [0, 0, 64], [0, 0, 128], [0, 0, 256]], simdgroup = [[0, 1, 0], [0, 0, 0]]}>
#second1_w = #ttm.linear<{register = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8]], lane = [[0, 0, 16], [0, 0, 32], [0, 0, 64], [0, 0, 128], [0, 0, 256]], simdgroup = [[0, 0, 0], [1, 0, 0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // Two steps of a sort. The second step's partner is computed from what the first step's partner and its own partner have: one
  // write, three reads of it.
  // CHECK-LABEL: @two_steps
  // CHECK-SAME: (%[[X:.*]]: tensor<2x2x128xi32, #{{.*}}>, %[[HALF:.*]]: tensor<2x1x1xi1
  // CHECK: %[[T:.*]] = ttm.alloc_tile "partial" : !ttm.tile<512xi32>
  // CHECK-NOT: ttm.alloc_tile
  // CHECK: ttm.store_tile %{{.*}}, %[[T]]
  // CHECK: ttm.load_tile %[[T]] across 256
  // CHECK: %[[P:.*]] = tt.reshape
  // CHECK: ttm.load_tile %[[T]] across 128
  // CHECK: %[[Q:.*]] = tt.reshape
  // CHECK: ttm.load_tile %[[T]] across 384
  // CHECK: %[[R:.*]] = tt.reshape
  // CHECK-NOT: ttm.store_tile
  // CHECK: %[[UPPER:.*]] = tt.broadcast %[[HALF]]
  // CHECK: %[[GREATER:.*]] = arith.cmpi ugt, %[[X]], %[[P]]
  // CHECK: %[[SWAPS:.*]] = arith.cmpi ne, %[[GREATER]], %[[UPPER]]
  // CHECK: %[[Y:.*]] = arith.select %[[SWAPS]], %[[P]], %[[X]]
  // CHECK: %[[GREATER_2:.*]] = arith.cmpi ugt, %[[Q]], %[[R]]
  // CHECK: %[[SWAPS_2:.*]] = arith.cmpi ne, %[[GREATER_2]], %[[UPPER]]
  // CHECK: %[[Z:.*]] = arith.select %[[SWAPS_2]], %[[R]], %[[Q]]
  // CHECK: tt.return %[[Y]], %[[Z]]
  tt.func private @two_steps(%x: tensor<2x2x128xi32, #cube>, %half: tensor<2x1x1xi1, #half>)
      -> (tensor<2x2x128xi32, #cube>, tensor<2x2x128xi32, #cube>) {
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x2x128xi32, #cube>) -> tensor<2x128xi32, #first>
    %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<2x128xi32, #first> -> tensor<1x2x128xi32, #first1>
    %2 = tt.broadcast %1 : tensor<1x2x128xi32, #first1> -> tensor<2x2x128xi32, #cube>
    %p = arith.xori %2, %x : tensor<2x2x128xi32, #cube>
    %upper = tt.broadcast %half : tensor<2x1x1xi1, #half> -> tensor<2x2x128xi1, #cube>
    %greater = arith.cmpi ugt, %x, %p : tensor<2x2x128xi32, #cube>
    %swaps = arith.cmpi ne, %greater, %upper : tensor<2x2x128xi1, #cube>
    %y = arith.select %swaps, %p, %x : tensor<2x2x128xi1, #cube>, tensor<2x2x128xi32, #cube>
    %3 = "tt.reduce"(%y) <{axis = 1 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x2x128xi32, #cube>) -> tensor<2x128xi32, #second>
    %4 = tt.expand_dims %3 {axis = 1 : i32} : tensor<2x128xi32, #second> -> tensor<2x1x128xi32, #second1>
    %5 = tt.broadcast %4 : tensor<2x1x128xi32, #second1> -> tensor<2x2x128xi32, #cube>
    %z = arith.xori %5, %y : tensor<2x2x128xi32, #cube>
    tt.return %y, %z : tensor<2x2x128xi32, #cube>, tensor<2x2x128xi32, #cube>
  }

  // What differs along the second axis by something else than the tile's elements goes through a tile of its own.
  // CHECK-LABEL: @another_tile
  // CHECK-COUNT-2: ttm.store_tile
  tt.func private @another_tile(%x: tensor<2x2x128xi32, #cube>, %z: tensor<2x2x128xi32, #cube>)
      -> (tensor<2x2x128xi32, #cube>, tensor<2x2x128xi32, #cube>) {
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x2x128xi32, #cube>) -> tensor<2x128xi32, #first>
    %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<2x128xi32, #first> -> tensor<1x2x128xi32, #first1>
    %2 = tt.broadcast %1 : tensor<1x2x128xi32, #first1> -> tensor<2x2x128xi32, #cube>
    %p = arith.xori %2, %x : tensor<2x2x128xi32, #cube>
    %y = arith.addi %p, %z : tensor<2x2x128xi32, #cube>
    %3 = "tt.reduce"(%y) <{axis = 1 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x2x128xi32, #cube>) -> tensor<2x128xi32, #second>
    %4 = tt.expand_dims %3 {axis = 1 : i32} : tensor<2x128xi32, #second> -> tensor<2x1x128xi32, #second1>
    %5 = tt.broadcast %4 : tensor<2x1x128xi32, #second1> -> tensor<2x2x128xi32, #cube>
    %w = arith.xori %5, %y : tensor<2x2x128xi32, #cube>
    tt.return %y, %w : tensor<2x2x128xi32, #cube>, tensor<2x2x128xi32, #cube>
  }

  // A thread that has 64 bytes of elements has no room for those of three others.
  // CHECK-LABEL: @many_elements
  // CHECK-COUNT-2: ttm.store_tile
  tt.func private @many_elements(%x: tensor<2x2x512xi32, #cube_w>, %half: tensor<2x1x1xi1, #half>)
      -> (tensor<2x2x512xi32, #cube_w>, tensor<2x2x512xi32, #cube_w>) {
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x2x512xi32, #cube_w>) -> tensor<2x512xi32, #first_w>
    %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<2x512xi32, #first_w> -> tensor<1x2x512xi32, #first1_w>
    %2 = tt.broadcast %1 : tensor<1x2x512xi32, #first1_w> -> tensor<2x2x512xi32, #cube_w>
    %p = arith.xori %2, %x : tensor<2x2x512xi32, #cube_w>
    %upper = tt.broadcast %half : tensor<2x1x1xi1, #half> -> tensor<2x2x512xi1, #cube_w>
    %greater = arith.cmpi ugt, %x, %p : tensor<2x2x512xi32, #cube_w>
    %swaps = arith.cmpi ne, %greater, %upper : tensor<2x2x512xi1, #cube_w>
    %y = arith.select %swaps, %p, %x : tensor<2x2x512xi1, #cube_w>, tensor<2x2x512xi32, #cube_w>
    %3 = "tt.reduce"(%y) <{axis = 1 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.xori %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<2x2x512xi32, #cube_w>) -> tensor<2x512xi32, #second_w>
    %4 = tt.expand_dims %3 {axis = 1 : i32} : tensor<2x512xi32, #second_w> -> tensor<2x1x512xi32, #second1_w>
    %5 = tt.broadcast %4 : tensor<2x1x512xi32, #second1_w> -> tensor<2x2x512xi32, #cube_w>
    %z = arith.xori %5, %y : tensor<2x2x512xi32, #cube_w>
    tt.return %y, %z : tensor<2x2x512xi32, #cube_w>, tensor<2x2x512xi32, #cube_w>
  }
}
