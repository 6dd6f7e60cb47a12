// RUN: triton-metal-opt %s --msl-allocate-threadgroup-memory --split-input-file --verify-diagnostics | FileCheck %s

// What is small has bytes of its own; of what is large, the one after the loop takes the bytes of those in it.
// CHECK-LABEL: @lifetimes
// CHECK-DAG: msl.alloc "tile", 2048 at 0 : <f16
// CHECK-DAG: msl.alloc "other", 2048 at 4096 : <f16
// CHECK-DAG: msl.alloc "exchange", 1024 at 0 : <f32
// CHECK-DAG: msl.alloc "partial", 4 at 8192 : <f32
// CHECK-DAG: msl.alloc "partial_2", 4 at 8208 : <f32
// CHECK-NOT: "unused"
msl.kernel @lifetimes(%i: i32, %n: i32, %f: f32, %h: f16) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %unused = msl.alloc "unused", 4096 : !msl.ptr<f16, threadgroup>
  %tile = msl.alloc "tile", 2048 : !msl.ptr<f16, threadgroup>
  %other = msl.alloc "other", 2048 : !msl.ptr<f16, threadgroup>
  %p = msl.alloc "partial", 4 : !msl.ptr<f32, threadgroup>
  %p2 = msl.alloc "partial_2", 4 : !msl.ptr<f32, threadgroup>
  %e = msl.alloc "exchange", 1024 : !msl.ptr<f32, threadgroup>
  scf.for %k = %c0 to %n step %c1 : i32 {
    msl.store %h, %tile[%i] : f16, !msl.ptr<f16, threadgroup>, i32
    %x = msl.load %tile[%i] : !msl.ptr<f16, threadgroup>, i32 -> f16
    msl.store %x, %other[%i] : f16, !msl.ptr<f16, threadgroup>, i32
  }
  msl.store %f, %p[%c0] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.store %f, %p2[%c0] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.store %f, %e[%i] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.return
}

// -----

// In one loop they share where they would not fit otherwise.
// CHECK-LABEL: @tight
// CHECK-DAG: msl.alloc "a", 12288 at 0 : <f16
// CHECK-DAG: msl.alloc "b", 12288 at 0 : <f16
msl.kernel @tight(%i: i32, %n: i32, %h: f16) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 12288 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 12288 : !msl.ptr<f16, threadgroup>
  scf.for %k = %c0 to %n step %c1 : i32 {
    msl.store %h, %a[%i] : f16, !msl.ptr<f16, threadgroup>, i32
    %x = msl.load %a[%i] : !msl.ptr<f16, threadgroup>, i32 -> f16
    msl.store %x, %b[%i] : f16, !msl.ptr<f16, threadgroup>, i32
  }
  msl.return
}

// -----

// And where a core holds more threads then: 896 in place of 384.
// CHECK-LABEL: @more_threads
// CHECK-DAG: msl.alloc "a", 4096 at 0 : <f16
// CHECK-DAG: msl.alloc "b", 4096 at 0 : <f16
msl.kernel @more_threads(%i: i32, %n: i32, %h: f16) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 4096 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 4096 : !msl.ptr<f16, threadgroup>
  scf.for %k = %c0 to %n step %c1 : i32 {
    msl.store %h, %a[%i] : f16, !msl.ptr<f16, threadgroup>, i32
    %x = msl.load %a[%i] : !msl.ptr<f16, threadgroup>, i32 -> f16
    msl.store %x, %b[%i] : f16, !msl.ptr<f16, threadgroup>, i32
  }
  msl.return
}

// -----

// But not where 768 threads fit without it: sharing costs a barrier in each step.
// CHECK-LABEL: @enough_threads
// CHECK-DAG: msl.alloc "a", 2048 at 0 : <f16
// CHECK-DAG: msl.alloc "b", 2048 at 4096 : <f16
msl.kernel @enough_threads(%i: i32, %n: i32, %h: f16) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 2048 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 2048 : !msl.ptr<f16, threadgroup>
  scf.for %k = %c0 to %n step %c1 : i32 {
    msl.store %h, %a[%i] : f16, !msl.ptr<f16, threadgroup>, i32
    %x = msl.load %a[%i] : !msl.ptr<f16, threadgroup>, i32 -> f16
    msl.store %x, %b[%i] : f16, !msl.ptr<f16, threadgroup>, i32
  }
  msl.return
}

// -----

// expected-error @+1 {{needs 49152 bytes of threadgroup memory, and the target (or set_kernel_config) has 32768: use smaller blocks}}
msl.kernel @too_much(%i: i32, %n: i32, %h: f16) threads 128 {
  %c0 = arith.constant 0 : i32
  // expected-note @+1 {{'a' takes 24576 of them}}
  %a = msl.alloc "a", 12288 : !msl.ptr<f16, threadgroup>
  // expected-note @+1 {{'b' takes 24576 of them}}
  %b = msl.alloc "b", 12288 : !msl.ptr<f16, threadgroup>
  msl.store %h, %a[%i] : f16, !msl.ptr<f16, threadgroup>, i32
  msl.store %h, %b[%i] : f16, !msl.ptr<f16, threadgroup>, i32
  %x = msl.load %a[%i] : !msl.ptr<f16, threadgroup>, i32 -> f16
  msl.return
}
