// RUN: triton-metal-opt %s --msl-volatile-accumulation --split-input-file | FileCheck %s

module attributes {msl.target = #msl.target<metal(3, 2), threads = 1024, threadgroup_bytes = 32768, registers = 128, features = volatile_accumulation>} {
// CHECK-LABEL: msl.kernel @sums
msl.kernel @sums(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %lane = msl.lane : i32
  // Not in a loop.
  // CHECK: %[[FIRST:.*]] = msl.load %{{.*}}[%{{.*}}] : <f32, device>, i32 -> f32
  %first = msl.load %x[%lane] : !msl.ptr<f32, device>, i32 -> f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i32 {
    // CHECK: msl.load %{{.*}} {is_volatile} : <f32, device>, i32 -> f32
    %v = msl.load %x[%k] : !msl.ptr<f32, device>, i32 -> f32
    // What a store takes is not carried.
    // CHECK: msl.load %{{.*}}[%{{.*}}] : <f32, device>, i32 -> f32
    %w = msl.load %x[%k] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %w, %y[%k] : f32, !msl.ptr<f32, device>, i32
    %next = arith.addf %s, %v : f32
    scf.yield %next : f32
  }
  // In memory.
  scf.for %k = %c0 to %n step %c1 : i32 {
    // CHECK: msl.load %{{.*}} {is_volatile} : <f32, device>, i32 -> f32
    %v = msl.load %y[%c0] : !msl.ptr<f32, device>, i32 -> f32
    %next = arith.addf %v, %first : f32
    msl.store %next, %y[%c0] : f32, !msl.ptr<f32, device>, i32
  }
  msl.store %sum, %y[%lane] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
}

// -----

// Other targets do not ask for it.
// CHECK-LABEL: msl.kernel @plain
// CHECK-NOT: is_volatile
msl.kernel @plain(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i32 {
    %v = msl.load %x[%k] : !msl.ptr<f32, device>, i32 -> f32
    %next = arith.addf %s, %v : f32
    scf.yield %next : f32
  }
  msl.store %sum, %y[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.return
}
