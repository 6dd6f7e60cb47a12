// RUN: triton-metal-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{not a layout: the nonzero bases must be independent}}
#l = #ttm.linear<{register = [[1]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

// -----

// expected-error @+1 {{not a layout: a SIMD-group has 32 lanes, so there must be 5 lane bases, but there are 4}}
#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8]], simdgroup = []}>

// -----

// expected-error @+1 {{not a layout: a register basis must not be zero}}
#l = #ttm.linear<{register = [[0]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

// -----

// expected-error @+1 {{not a layout: the bases must reach every element of the tile}}
#l = #ttm.linear<{register = [], lane = [[2], [4], [8], [16], [0]], simdgroup = []}>

// -----

// expected-error @+1 {{all bases must have the same number of coordinates}}
#l = #ttm.linear<{register = [[0, 1]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

// -----

#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
// expected-error @+1 {{the layout is one of shape [32], but the tensor has shape [64]}}
tt.func @shape(%x: tensor<64xf32, #l>) {
  tt.return
}

// -----

// expected-error @+1 {{attribute 'ttm.num_simdgroups' must be a power of two from 1 to 32}}
module attributes {ttm.num_simdgroups = 3 : i32} {}

// -----

#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#m = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = [[0]]}>
tt.func @groups(%x: tensor<32xf32, #l>) {
  // expected-error @+1 {{the layouts must be of the same number of SIMD-groups}}
  %0 = ttm.convert_layout %x : tensor<32xf32, #l> -> tensor<32xf32, #m>
  tt.return
}

// -----

tt.func @no_layout(%x: tensor<32xf32>) {
  // expected-error @+1 {{operand and result must have a layout}}
  %0 = ttm.convert_layout %x : tensor<32xf32> -> tensor<32xf32>
  tt.return
}

// -----

#l = #ttm.linear<{register = [[0, 2], [0, 4]], lane = [[0, 1], [1, 0], [2, 0], [4, 0], [8, 0]], simdgroup = []}>
tt.func @no_slot(%x: tensor<16x8xf16, #l>) {
  %t = ttm.alloc_tile : !ttm.tile<16x8xf16, slots = 2>
  // expected-error @+1 {{needs a slot of the tile, which has 2}}
  ttm.store_tile %x, %t : tensor<16x8xf16, #l>, !ttm.tile<16x8xf16, slots = 2>
  tt.return
}

// -----

#l = #ttm.linear<{register = [[0, 2], [0, 4]], lane = [[0, 1], [1, 0], [2, 0], [4, 0], [8, 0]], simdgroup = []}>
tt.func @part(%x: tensor<16x8xf16, #l>) {
  %t = ttm.alloc_tile : !ttm.tile<8x8xf16>
  // expected-error @+1 {{the tile must be an aligned part of the tensor in dimension 0}}
  ttm.store_tile %x, %t : tensor<16x8xf16, #l>, !ttm.tile<8x8xf16>
  tt.return
}

// -----

#l = #ttm.linear<{register = [[0, 2], [0, 4]], lane = [[0, 1], [1, 0], [2, 0], [4, 0], [8, 0]], simdgroup = []}>
tt.func @cannot_hold(%x: tensor<16x8xi32, #l>) {
  %t = ttm.alloc_tile : !ttm.tile<16x8xf16>
  // A half has 11 bits for an integer.
  // expected-error @+1 {{a tile of 'f16' does not hold 'i32'}}
  ttm.store_tile %x, %t : tensor<16x8xi32, #l>, !ttm.tile<16x8xf16>
  tt.return
}

// -----

#l = #ttm.linear<{register = [[0, 2], [0, 4]], lane = [[0, 1], [1, 0], [2, 0], [4, 0], [8, 0]], simdgroup = []}>
tt.func @blocked_accumulator(%acc: tensor<16x8xf32, #l>) {
  %a = ttm.alloc_tile : !ttm.tile<16x8xf16>
  %b = ttm.alloc_tile : !ttm.tile<8x8xf16>
  // expected-error @+1 {{the accumulator must have a simdgroup-matrix layout}}
  %0 = ttm.mma <8x8x8> %a, %b, %acc : !ttm.tile<16x8xf16>, !ttm.tile<8x8xf16>, tensor<16x8xf32, #l>
  tt.return
}

// -----

#mma = #ttm.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
tt.func @misfit(%acc: tensor<16x8xf32, #mma>) {
  %a = ttm.alloc_tile : !ttm.tile<8x16xf16>
  %b = ttm.alloc_tile : !ttm.tile<8x8xf16>
  // expected-error @+1 {{a does not fit the accumulator}}
  %0 = ttm.mma <8x8x8> %a, %b, %acc : !ttm.tile<8x16xf16>, !ttm.tile<8x8xf16>, tensor<16x8xf32, #mma>
  tt.return
}

// -----

// The accumulator is laid out for another instruction.
#mma = #ttm.linear<{register = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
tt.func @other_instruction(%acc: tensor<16x16xf32, #mma>) {
  %a = ttm.alloc_tile : !ttm.tile<16x16xf16>
  // expected-error @+1 {{the accumulator must have a simdgroup-matrix layout}}
  %0 = ttm.mma <16x16x16> %a, %a, %acc : !ttm.tile<16x16xf16>, !ttm.tile<16x16xf16>, tensor<16x16xf32, #mma>
  tt.return
}

// -----

#mma = #ttm.linear<{register = [[0, 1], [0, 2], [8, 0]], lane = [[0, 4], [1, 0], [2, 0], [0, 8], [4, 0]], simdgroup = []}>
tt.func @too_few_terms(%acc: tensor<16x16xf32, #mma>) {
  %a = ttm.alloc_tile : !ttm.tile<16x8xf16>
  %b = ttm.alloc_tile : !ttm.tile<8x16xf16>
  // expected-error @+1 {{k must be a multiple of 16}}
  %0 = ttm.mma <16x16x16> %a, %b, %acc : !ttm.tile<16x8xf16>, !ttm.tile<8x16xf16>, tensor<16x16xf32, #mma>
  tt.return
}

// -----

#mma = #ttm.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0], [2, 0], [0, 4], [4, 0]], simdgroup = []}>
tt.func @integers(%acc: tensor<8x8xf32, #mma>) {
  %a = ttm.alloc_tile : !ttm.tile<8x8xi32>
  // expected-error @+1 {{Metal has no simdgroup matrix of 'i32'}}
  %0 = ttm.mma <8x8x8> %a, %a, %acc : !ttm.tile<8x8xi32>, !ttm.tile<8x8xi32>, tensor<8x8xf32, #mma>
  tt.return
}

// -----

// expected-error @+1 {{slots must be at least 1}}
tt.func @slots(%t: !ttm.tile<8x8xf16, slots = 0>) {
  tt.return
}

// -----

#some = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [0]], simdgroup = [[0]]}>
#all = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = [[0]]}>
tt.func @other_copies(%x: tensor<16xf32, #some>) {
  // expected-error @+1 {{result 0 has copies in other threads than}}
  %0 = ttm.in_first_copies #all -> (tensor<16xf32, #some>) {
    ttm.yield %x : tensor<16xf32, #some>
  }
  tt.return
}

// -----

#some = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [0]], simdgroup = [[0]]}>
tt.func @scalar_copies(%x: f32) {
  // expected-error @+1 {{result 0 has copies in other threads than}}
  %0 = ttm.in_first_copies #some -> (f32) {
    ttm.yield %x : f32
  }
  tt.return
}

// -----

#one = #ttm.linear<{register = [], lane = [[0], [0], [0], [0], [0]], simdgroup = [[0]]}>
tt.func @yield_of_first_copies(%x: f32) {
  // expected-error @+1 {{must yield its results}}
  %0 = ttm.in_first_copies #one -> (i32) {
    ttm.yield %x : f32
  }
  tt.return
}

// -----

#own = #ttm.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], simdgroup = []}>
tt.func @across_registers(%t: !ttm.tile<64xi32>) {
  // expected-error @+1 {{what lies across is another thread's, in a whole tile without padding}}
  %0 = ttm.load_tile %t across 1 : !ttm.tile<64xi32> -> tensor<64xi32, #own>
  tt.return
}

// -----

#own = #ttm.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], simdgroup = []}>
tt.func @across_registers_and_lanes(%t: !ttm.tile<64xi32>) {
  // expected-error @+1 {{what lies across is another thread's, in a whole tile without padding}}
  %0 = ttm.load_tile %t across 3 : !ttm.tile<64xi32> -> tensor<64xi32, #own>
  tt.return
}
