// RUN: triton-metal-opt %s --ttm-lower-layout-conversions | FileCheck %s

#a = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#swapped = #ttm.linear<{register = [[2], [1]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#lanes = #ttm.linear<{register = [[1], [2]], lane = [[64], [32], [16], [8], [4]], simdgroup = [[128], [256]]}>
#groups = #ttm.linear<{register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], simdgroup = [[32], [64]]}>
#big = #ttm.linear<{register = [[1], [2], [512], [1024], [2048], [4096], [8192]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#turned = #ttm.linear<{register = [[128], [256], [512], [1024], [2048], [4096], [8192]], lane = [[1], [2], [4], [8], [16]], simdgroup = [[32], [64]]}>
#table = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = [[0], [0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // CHECK-LABEL: @kinds
  // CHECK: %[[T:.*]] = ttm.alloc_tile "exchange" : !ttm.tile<16x32xf32, row_pad = 4>
  // Registers only: a renaming stays.
  // CHECK: ttm.convert_layout %arg0
  // Lanes of one SIMD-group.
  // CHECK: ttm.shuffle %arg0
  // Through threadgroup memory, in rows of 128 bytes that are padded.
  // CHECK: %[[ROWS:.*]] = tt.reshape %arg0 : tensor<512xf32, #{{.*}}> -> tensor<16x32xf32
  // CHECK: ttm.store_tile %[[ROWS]], %[[T]]
  // CHECK: %[[READ:.*]] = ttm.load_tile %[[T]]
  // CHECK: tt.reshape %[[READ]] : tensor<16x32xf32, #{{.*}}> -> tensor<512xf32
  // A scalar is the same in any layout.
  // CHECK: tt.splat %arg1 : f32 -> tensor<512xf32
  // CHECK-NOT: ttm.convert_layout
  // CHECK: tt.return
  tt.func private @kinds(%v: tensor<512xf32, #a>, %f: f32) -> (tensor<512xf32, #swapped>, tensor<512xf32, #lanes>, tensor<512xf32, #groups>, tensor<512xf32, #groups>) {
    %0 = ttm.convert_layout %v : tensor<512xf32, #a> -> tensor<512xf32, #swapped>
    %1 = ttm.convert_layout %v : tensor<512xf32, #a> -> tensor<512xf32, #lanes>
    %2 = ttm.convert_layout %v : tensor<512xf32, #a> -> tensor<512xf32, #groups>
    %s = tt.splat %f : f32 -> tensor<512xf32, #a>
    %3 = ttm.convert_layout %s : tensor<512xf32, #a> -> tensor<512xf32, #groups>
    tt.return %0, %1, %2, %3 : tensor<512xf32, #swapped>, tensor<512xf32, #lanes>, tensor<512xf32, #groups>, tensor<512xf32, #groups>
  }

  // 64 KB take their turns in what there is.
  // CHECK-LABEL: @rounds
  // CHECK: %[[T:.*]] = ttm.alloc_tile "exchange" : !ttm.tile<128x32xf32, row_pad = 4>
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SOFAR:.*]] = %{{.*}})
  // CHECK: ttm.store_tile %{{.*}}, %[[T]] part %[[I]]
  // CHECK: %[[READ:.*]] = ttm.load_tile %[[T]] part %[[I]] other %[[SOFAR]]
  // CHECK: scf.yield %[[READ]]
  tt.func private @rounds(%v: tensor<16384xf32, #big>) -> tensor<16384xf32, #turned> {
    %0 = ttm.convert_layout %v : tensor<16384xf32, #big> -> tensor<16384xf32, #turned>
    tt.return %0 : tensor<16384xf32, #turned>
  }

  // What lies in the lanes of each SIMD-group is gathered by shuffles, anything else through a tile.
  // CHECK-LABEL: @gathers
  // CHECK-SAME: (%[[TABLE:.*]]: tensor<32xf32, #{{.*}}>, %[[V:.*]]: tensor<512xi1, #{{.*}}>, %[[I:.*]]: tensor<512xi8, #{{.*}}>)
  // CHECK: %[[T:.*]] = ttm.alloc_tile "gathered" : !ttm.tile<512xi8>
  // CHECK: %[[LANES:.*]] = arith.extui %[[I]] : tensor<512xi8, #{{.*}}> to tensor<512xi32, #{{.*}}>
  // CHECK: tt.gather %[[TABLE]][%[[LANES]]] {axis = 0 : i32} : (tensor<32xf32, #{{.*}}>, tensor<512xi32, #{{.*}}>)
  // CHECK: %[[BYTES:.*]] = arith.extui %[[V]] : tensor<512xi1, #{{.*}}> to tensor<512xi8, #{{.*}}>
  // CHECK: %[[WIDE:.*]] = arith.extui %[[I]] : tensor<512xi8, #{{.*}}> to tensor<512xi32, #{{.*}}>
  // CHECK: ttm.store_tile %[[BYTES]], %[[T]]
  // CHECK: %[[G:.*]] = ttm.gather_tile %[[T]][%[[WIDE]]] axis 0 : !ttm.tile<512xi8> -> tensor<512xi8, #{{.*}}>
  // CHECK: arith.cmpi ne, %[[G]]
  tt.func private @gathers(%table: tensor<32xf32, #table>, %v: tensor<512xi1, #a>, %i: tensor<512xi8, #groups>) -> (tensor<512xf32, #groups>, tensor<512xi1, #groups>) {
    %0 = tt.gather %table[%i] {axis = 0 : i32} : (tensor<32xf32, #table>, tensor<512xi8, #groups>) -> tensor<512xf32, #groups>
    %1 = tt.gather %v[%i] {axis = 0 : i32} : (tensor<512xi1, #a>, tensor<512xi8, #groups>) -> tensor<512xi1, #groups>
    tt.return %0, %1 : tensor<512xf32, #groups>, tensor<512xi1, #groups>
  }

  // A source that does not fit passes through the tile in parts.
  // CHECK-LABEL: @gathers_parts
  // CHECK: %[[T:.*]] = ttm.alloc_tile "gathered" : !ttm.tile<1x4096xf32>
  // CHECK: %[[ROWS:.*]] = tt.reshape %{{.*}} -> tensor<4x4096xf32
  // CHECK: scf.for %[[PART:.*]] = %{{.*}} iter_args(%[[SOFAR:.*]] =
  // CHECK:   ttm.store_tile %[[ROWS]], %[[T]] part %[[PART]]
  // CHECK:   %[[INSIDE:.*]] = arith.cmpi ult
  // CHECK:   %[[G:.*]] = ttm.gather_tile %[[T]]
  // CHECK:   arith.select %[[INSIDE]], %[[G]], %[[SOFAR]]
  tt.func private @gathers_parts(%v: tensor<16384xf32, #big>, %i: tensor<512xi32, #a>) -> tensor<512xf32, #a> {
    %0 = tt.gather %v[%i] {axis = 0 : i32} : (tensor<16384xf32, #big>, tensor<512xi32, #a>) -> tensor<512xf32, #a>
    tt.return %0 : tensor<512xf32, #a>
  }

  // Bins are counted in a tile that begins with zeros; what has no bin is not counted.
  // CHECK-LABEL: @histograms
  // CHECK-SAME: (%[[X:.*]]: tensor<512xi32, #{{.*}}>, %[[M:.*]]: tensor<512xi1, #{{.*}}>)
  // CHECK: %[[T:.*]] = ttm.alloc_tile "counts" : !ttm.tile<1x512xi32>
  // CHECK: ttm.store_tile %{{.*}}, %[[T]]
  // CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[X]]
  // CHECK: %[[PLACE:.*]] = arith.select %[[INSIDE]], %[[X]]
  // CHECK: %[[BOTH:.*]] = arith.andi %[[INSIDE]], %[[M]]
  // CHECK: ttm.count_in_tile %[[T]][%[[PLACE]]] mask %[[BOTH]]
  // CHECK: ttm.load_tile %[[T]]
  tt.func private @histograms(%x: tensor<512xi32, #a>, %m: tensor<512xi1, #a>) -> tensor<512xi32, #groups> {
    %0 = tt.histogram %x, %m : tensor<512xi32, #a> -> tensor<512xi32, #groups>
    tt.return %0 : tensor<512xi32, #groups>
  }
}
