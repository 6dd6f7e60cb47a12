// RUN: triton-metal-opt %s --ttm-legalization-pipeline --convert-ttm-to-msl --msl-expand-thread-indices --canonicalize --cse --msl-allocate-threadgroup-memory --msl-insert-barriers | FileCheck %s

#a = #ttm.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#swapped = #ttm.linear<{register = [[2], [1]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#lanes = #ttm.linear<{register = [[1], [2]], lane = [[64], [32], [16], [8], [4]], simdgroup = [[128], [256]]}>
#groups = #ttm.linear<{register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], simdgroup = [[32], [64]]}>
#up = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [16]], simdgroup = [[0], [0]]}>
#down = #ttm.linear<{register = [], lane = [[16], [8], [4], [2], [1]], simdgroup = [[0], [0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // Registers only: a renaming.
  // CHECK-LABEL: msl.kernel @registers
  // CHECK: %[[V:.*]] = msl.load
  // CHECK: %[[P:.*]] = msl.permute_registers %[[V]] {bases = array<i64: 2, 1>}
  // CHECK: msl.store %[[P]]
  // CHECK-NOT: msl.alloc
  tt.func public @registers(%x: !tt.ptr<f32>) {
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #a>
    %q = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #swapped>
    %v = tt.load %p : tensor<512x!tt.ptr<f32>, #a>
    %w = ttm.convert_layout %v : tensor<512xf32, #a> -> tensor<512xf32, #swapped>
    tt.store %q, %w : tensor<512x!tt.ptr<f32>, #swapped>
    tt.return
  }

  // Lanes of one SIMD-group: a shuffle. 64-bit numbers travel in halves.
  // CHECK-LABEL: msl.kernel @lanes
  // CHECK-NOT: msl.alloc
  // CHECK: %[[V:.*]] = msl.load
  // CHECK: %[[LOW:.*]] = arith.trunci %[[V]] : vector<4xi64> to vector<4xi32>
  // CHECK: msl.simd_shuffle %[[LOW]]
  // CHECK: arith.shrui %[[V]]
  // CHECK: msl.simd_shuffle
  // CHECK-NOT: msl.barrier
  // CHECK: msl.return
  tt.func public @lanes(%x: !tt.ptr<i64>) {
    %p = tt.splat %x : !tt.ptr<i64> -> tensor<512x!tt.ptr<i64>, #a>
    %q = tt.splat %x : !tt.ptr<i64> -> tensor<512x!tt.ptr<i64>, #lanes>
    %v = tt.load %p : tensor<512x!tt.ptr<i64>, #a>
    %w = ttm.convert_layout %v : tensor<512xi64, #a> -> tensor<512xi64, #lanes>
    tt.store %q, %w : tensor<512x!tt.ptr<i64>, #lanes>
    tt.return
  }

  // SIMD-groups: through threadgroup memory with one barrier, vectors where registers are neighbours, padded rows.
  // CHECK-LABEL: msl.kernel @groups
  // CHECK: %[[M:.*]] = msl.alloc "exchange", 572 at 0 : <f32, threadgroup>
  // CHECK: msl.store %{{.*}}, %[[M]][%{{.*}}] {width = 4 : i32}
  // CHECK: msl.barrier
  // CHECK-NEXT: msl.load %[[M]][%{{.*}}] : <f32, threadgroup>
  // CHECK-NOT: msl.barrier
  // CHECK: msl.return
  tt.func public @groups(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #a>
    %q = tt.splat %y : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #groups>
    %v = tt.load %p : tensor<512x!tt.ptr<f32>, #a>
    %w = ttm.convert_layout %v : tensor<512xf32, #a> -> tensor<512xf32, #groups>
    tt.store %q, %w : tensor<512x!tt.ptr<f32>, #groups>
    tt.return
  }

  // A range with one register in each thread is no uniform value, though its one register is a splat of the thread's
  // position.
  // CHECK-LABEL: msl.kernel @thread_positions
  // CHECK: msl.simd_shuffle
  // CHECK: msl.return
  tt.func public @thread_positions(%x: !tt.ptr<i32>) {
    %q = tt.splat %x : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #up>
    %v = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #down>
    %w = ttm.convert_layout %v : tensor<32xi32, #down> -> tensor<32xi32, #up>
    tt.store %q, %w : tensor<32x!tt.ptr<i32>, #up>
    tt.return
  }
}
