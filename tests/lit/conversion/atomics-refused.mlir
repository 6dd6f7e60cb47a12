// RUN: triton-metal-opt %s --convert-ttm-to-msl --verify-diagnostics

#l = #ttm.linear<{register = [], lane = [[1], [2], [4], [8], [0]], simdgroup = [[0], [0]]}>

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  tt.func public @used(%x: !tt.ptr<i32>) {
    %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #l>
    // expected-error @+2 {{has its result in one of the threads that hold copies of it; ttm-broadcast-atomics brings it to the others}}
    // expected-error @+1 {{failed to legalize}}
    %old = ttm.atomic_rmw add, relaxed, gpu, %x[%r], %r : tensor<16xi32, #l>, !tt.ptr<i32>, tensor<16xi32, #l>
    ttm.store %old, %x[%r] : tensor<16xi32, #l>, tensor<16xi32, #l>, !tt.ptr<i32>
    tt.return
  }
}
