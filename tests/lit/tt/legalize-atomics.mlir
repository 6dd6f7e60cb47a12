// RUN: triton-metal-opt %s --tt-legalize-atomics --canonicalize | FileCheck %s

// A load leaves what it finds, floats by their bits; a store asks nobody what it found.
// CHECK-LABEL: tt.func public @loads
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f16>, %[[I:.*]]: tensor<32x!tt.ptr<i64>>, %[[M:.*]]: tensor<32xi1>)
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0> : tensor<32xi64>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i16
// CHECK: %[[BITS:.*]] = tt.bitcast %[[X]] : !tt.ptr<f16> -> !tt.ptr<i16>
// CHECK: %[[OLD:.*]] = tt.atomic_rmw or, acquire, gpu, %[[BITS]], %[[ZERO]] : (!tt.ptr<i16>, i16) -> i16
// CHECK: %[[V:.*]] = tt.bitcast %[[OLD]] : i16 -> f16
// CHECK: %[[W:.*]] = tt.atomic_rmw or, relaxed, cta, %[[I]], %[[ZEROS]], %[[M]]
// CHECK: tt.atomic_rmw exch, release, gpu, %[[X]], %[[V]]
// CHECK: tt.atomic_rmw exch, relaxed, sys, %[[I]], %[[W]], %[[M]]
tt.func public @loads(%x: !tt.ptr<f16>, %i: tensor<32x!tt.ptr<i64>>, %m: tensor<32xi1>) {
  %v = tt.atomic_load acquire, gpu, %x : (!tt.ptr<f16>) -> f16
  %w = tt.atomic_load relaxed, cta, %i, %m : (tensor<32x!tt.ptr<i64>>, tensor<32xi1>) -> tensor<32xi64>
  tt.atomic_store release, gpu, %x, %v : !tt.ptr<f16>
  tt.atomic_store relaxed, sys, %i, %w, %m : tensor<32x!tt.ptr<i64>>
  tt.return
}

// There is no clock: the time of a poll is over when it has looked.
// CHECK-LABEL: tt.func public @poll
// CHECK: %[[FOUND:.*]] = tt.atomic_rmw or, acquire, gpu, %arg0, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
// CHECK: %[[THERE:.*]] = arith.cmpi eq, %[[FOUND]], %arg2
// CHECK: tt.store %arg1, %[[THERE]]
tt.func public @poll(%flag: !tt.ptr<i32>, %out: !tt.ptr<i1>, %n: i32) {
  %time = arith.constant 1000 : i64
  %there = tt.atomic_poll acquire, gpu, %flag, %n timeout %time : !tt.ptr<i32>, i32 -> i1
  tt.store %out, %there : !tt.ptr<i1>
  tt.return
}
