// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#wide = #ttm.linear<{register = [[1], [2], [512]], lane = [[4], [8], [16], [32], [64]], simdgroup = [[128], [256]]}>
#few = #ttm.linear<{register = [], lane = [[1], [2], [4], [0], [0]], simdgroup = [[0], [8]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // An access to a tile becomes one access to the thread's registers; masks, conditions and widths stay as they are.
  // CHECK-LABEL: msl.kernel @accesses
  // CHECK-SAME: (%[[X:.*]]: !msl.ptr<f32, device>, %[[N:.*]]: i32, %[[FULL:.*]]: i1)
  // CHECK: %[[OTHER:.*]] = arith.constant dense<1.000000e+00> : vector<8xf32>
  // CHECK: %[[MASK:.*]] = arith.cmpi slt, %[[I:.*]], %{{.*}} : vector<8xi32>
  // CHECK: %[[V:.*]] = msl.load %[[X]][%[[I]]] mask %[[MASK]] other %[[OTHER]] full %[[FULL]] {mask_width = 2 : i32, width = 4 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
  // CHECK: msl.store %[[V]], %[[X]][%[[I]]] mask %[[MASK]] full %[[FULL]] {mask_width = 2 : i32, width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
  // CHECK: msl.load %[[X]][%[[I]]] {is_volatile}
  tt.func public @accesses(%x: !tt.ptr<f32>, %n: i32, %full: i1) {
    %other = arith.constant dense<1.0> : tensor<1024xf32, #wide>
    %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #wide>
    %bound = tt.splat %n : i32 -> tensor<1024xi32, #wide>
    %mask = arith.cmpi slt, %i, %bound : tensor<1024xi32, #wide>
    %v = ttm.load %x[%i] mask %mask other %other full %full {width = 4 : i32, mask_width = 2 : i32} : tensor<1024xi32, #wide>, !tt.ptr<f32> -> tensor<1024xf32, #wide>
    ttm.store %v, %x[%i] mask %mask full %full {width = 4 : i32, mask_width = 2 : i32} : tensor<1024xf32, #wide>, tensor<1024xi32, #wide>, !tt.ptr<f32>
    %w = ttm.load %x[%i] {is_volatile} : tensor<1024xi32, #wide>, !tt.ptr<f32> -> tensor<1024xf32, #wide>
    tt.return
  }

  // Registers of one address are read once.
  // CHECK-LABEL: msl.kernel @groups
  // CHECK: %[[O:.*]] = msl.permute_registers %[[I:.*]] {bases = array<i64: 4>} : vector<8xi32> -> vector<2xi32>
  // CHECK: %[[M:.*]] = msl.permute_registers %{{.*}} {bases = array<i64: 4>} : vector<8xi1> -> vector<2xi1>
  // CHECK: %[[V:.*]] = msl.load %{{.*}}[%[[O]]] mask %[[M]] : <f32, device>, vector<2xi32> -> vector<2xf32>
  // CHECK: msl.permute_registers %[[V]] {bases = array<i64: 0, 0, 1>} : vector<2xf32> -> vector<8xf32>
  // CHECK: %[[A:.*]] = msl.permute_registers %{{.*}} {bases = array<i64>} : vector<8xi64> -> vector<1xi64>
  // CHECK: msl.load_address %[[A]] : vector<1xi64> -> vector<1xf32>
  tt.func public @groups(%x: !tt.ptr<f32>, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #wide>
    %bound = tt.splat %n : i32 -> tensor<1024xi32, #wide>
    %mask = arith.cmpi slt, %i, %bound : tensor<1024xi32, #wide>
    %v = ttm.load %x[%i] mask %mask {repeat = 4 : i32} : tensor<1024xi32, #wide>, !tt.ptr<f32> -> tensor<1024xf32, #wide>
    %a = arith.extsi %i : tensor<1024xi32, #wide> to tensor<1024xi64, #wide>
    %w = ttm.load[%a] {repeat = 8 : i32} : tensor<1024xi64, #wide> -> tensor<1024xf32, #wide>
    ttm.store %v, %x[%i] : tensor<1024xf32, #wide>, tensor<1024xi32, #wide>, !tt.ptr<f32>
    ttm.store %w, %x[%i] : tensor<1024xf32, #wide>, tensor<1024xi32, #wide>, !tt.ptr<f32>
    tt.return
  }

  // An access without a base takes addresses.
  // CHECK-LABEL: msl.kernel @addresses
  // CHECK: %[[V:.*]] = msl.load_address %[[A:.*]] : vector<8xi64> -> vector<8xf32>
  // CHECK: msl.store_address %[[V]], %[[A]] : vector<8xf32>, vector<8xi64>
  tt.func public @addresses(%base: i64) {
    %a = tt.splat %base : i64 -> tensor<1024xi64, #wide>
    %v = ttm.load[%a] : tensor<1024xi64, #wide> -> tensor<1024xf32, #wide>
    ttm.store %v, [%a] : tensor<1024xf32, #wide>, tensor<1024xi64, #wide>
    tt.return
  }

  // Lanes 8 to 31 and odd SIMD-groups hold copies, and a scalar has a copy in each thread: one thread stores each element.
  // CHECK-LABEL: msl.kernel @copies
  // CHECK-SAME: (%[[X:.*]]: !msl.ptr<f32, device>, %[[F:.*]]: f32)
  // CHECK: msl.in_threads lanes 24 = 0 simdgroups 1 = 0 {
  // CHECK-NEXT: msl.store %{{.*}}, %[[X]][%{{.*}}] : vector<1xf32>
  // CHECK-NEXT: }
  // CHECK: msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
  // CHECK-NEXT: msl.store %[[F]], %[[X]][%c0_i32] : f32
  tt.func public @copies(%x: !tt.ptr<f32>, %f: f32) {
    %c0 = arith.constant 0 : i32
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #few>
    %v = tt.splat %f : f32 -> tensor<16xf32, #few>
    ttm.store %v, %x[%i] : tensor<16xf32, #few>, tensor<16xi32, #few>, !tt.ptr<f32>
    ttm.store %f, %x[%c0] : f32, i32, !tt.ptr<f32>
    tt.return
  }
}
