// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#a = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>
#swapped = #ttm.linear<{register = [[2], [1]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>
#lanes = #ttm.linear<{register = [[1], [2]], lane = [[64], [32], [16], [8], [4]], simdgroup = []}>
#copies = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], simdgroup = []}>
#spread = #ttm.linear<{register = [[2]], lane = [[1], [4], [8], [16], [32]], simdgroup = []}>
#up = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#down = #ttm.linear<{register = [], lane = [[16], [8], [4], [2], [1]], simdgroup = []}>
#xored = #ttm.linear<{register = [], lane = [[1], [3], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @moves
  // CHECK: %[[V:.*]] = msl.load
  // A conversion within a thread renames registers.
  // CHECK: %[[R:.*]] = msl.permute_registers %[[V]] {bases = array<i64: 2, 1>}
  // CHECK: msl.store %[[R]]
  // A shuffle within a SIMD-group reads the registers of another lane.
  // CHECK: %[[LANE:.*]] = msl.thread_index lanes [16, 8, 4, 2, 1] simdgroups [] : i32
  // CHECK: %[[S:.*]] = msl.simd_shuffle %[[V]], %[[LANE]] : vector<4xf32>, i32
  // CHECK: msl.store %[[S]]
  tt.func public @moves(%x: !tt.ptr<f32>) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #a>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #swapped>
    %k = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #lanes>
    %v = ttm.load %x[%i] : tensor<128xi32, #a>, !tt.ptr<f32> -> tensor<128xf32, #a>
    %r = ttm.convert_layout %v : tensor<128xf32, #a> -> tensor<128xf32, #swapped>
    ttm.store %r, %x[%j] : tensor<128xf32, #swapped>, tensor<128xi32, #swapped>, !tt.ptr<f32>
    %s = ttm.shuffle %v : tensor<128xf32, #a> -> tensor<128xf32, #lanes>
    ttm.store %s, %x[%k] : tensor<128xf32, #lanes>, tensor<128xi32, #lanes>, !tt.ptr<f32>
    tt.return
  }

  // Odd lanes need register 1 where even lanes need register 0: both are shuffled, and the lane selects one. Numbers of
  // 64 bits are shuffled like others.
  // CHECK-LABEL: msl.kernel @choice
  // CHECK: %[[V:.*]] = msl.load %{{.*}} -> vector<4xi64>
  // CHECK: %[[BOTH:.*]] = msl.permute_registers %[[V]] {bases = array<i64: 2, 1>} : vector<4xi64> -> vector<4xi64>
  // CHECK: %[[WHOLE:.*]] = msl.simd_shuffle %[[BOTH]], %{{.*}} : vector<4xi64>, i32
  // CHECK: %[[BIT:.*]] = arith.andi %{{.*}}, %c1_i32
  // CHECK: %[[EVEN:.*]] = arith.cmpi eq, %[[BIT]], %c0_i32
  // CHECK: %[[FIRST:.*]] = msl.permute_registers %[[WHOLE]] {bases = array<i64: 1>} : vector<4xi64> -> vector<2xi64>
  // CHECK: %[[SECOND:.*]] = msl.permute_registers %[[WHOLE]] {bases = array<i64: 1>, offset = 2 : i64} : vector<4xi64> -> vector<2xi64>
  // CHECK: arith.select %[[EVEN]], %[[FIRST]], %[[SECOND]]
  tt.func public @choice(%x: !tt.ptr<i64>) {
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #copies>
    %j = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #spread>
    %v = ttm.load %x[%i] : tensor<64xi32, #copies>, !tt.ptr<i64> -> tensor<64xi64, #copies>
    %s = ttm.shuffle %v : tensor<64xi64, #copies> -> tensor<64xi64, #spread>
    ttm.store %s, %x[%j] : tensor<64xi64, #spread>, tensor<64xi32, #spread>, !tt.ptr<i64>
    tt.return
  }

  // CHECK-LABEL: msl.kernel @ranges
  // A range with one register in each thread is a splat of the thread's position; it is shuffled all the same.
  // CHECK: %[[DOWN:.*]] = msl.thread_index lanes [16, 8, 4, 2, 1] simdgroups [] : i32
  // CHECK: %[[D:.*]] = msl.splat %[[DOWN]] : vector<1xi32>
  // CHECK: msl.simd_shuffle %[[D]], %[[DOWN]] : vector<1xi32>, i32
  // Several bits of the lane change one bit of the other lane: their parts are combined by an exclusive or.
  // CHECK: %[[A:.*]] = msl.thread_index lanes [1, 0, 0, 0, 0] simdgroups [] : i32
  // CHECK: %[[B:.*]] = msl.thread_index lanes [0, 3, 0, 0, 0] simdgroups [] : i32
  // CHECK: %[[AB:.*]] = arith.xori %[[A]], %[[B]]
  tt.func public @ranges(%x: !tt.ptr<i32>) {
    %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #up>
    %d = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #down>
    %u = ttm.shuffle %d : tensor<32xi32, #down> -> tensor<32xi32, #up>
    ttm.store %u, %x[%i] : tensor<32xi32, #up>, tensor<32xi32, #up>, !tt.ptr<i32>
    %s = ttm.shuffle %i : tensor<32xi32, #up> -> tensor<32xi32, #xored>
    ttm.store %s, %x[%s] : tensor<32xi32, #xored>, tensor<32xi32, #xored>, !tt.ptr<i32>
    tt.return
  }
}
