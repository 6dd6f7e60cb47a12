// Reads of threadgroup memory run in the threads that alone need them.
// RUN: triton-metal-opt %s -msl-sink-into-threads | FileCheck %s

// CHECK-LABEL: msl.kernel @sum
// CHECK:       msl.barrier
// CHECK-NEXT:  msl.in_threads simdgroups 3 = 0 {
// CHECK-NEXT:    %[[X:.*]] = msl.load %{{.*}} : <f32, threadgroup>, vector<4xi32> -> vector<4xf32>
// CHECK-NEXT:    %[[SUM:.*]] = msl.reduce_registers(%[[X]]) bits 3
// CHECK:         %[[R:.*]] = arith.mulf %[[SUM]]
// CHECK-NEXT:    msl.store %[[R]]
msl.kernel @sum(%y: !msl.ptr<f32, device>, %n: i32, %g: f32) threads 128 {
  %m = msl.alloc "partial", 128 at 0 : <f32, threadgroup>
  %i = msl.splat %n : vector<4xi32>
  %j = msl.splat %n : vector<1xi32>
  %f = msl.splat %g : vector<1xf32>
  msl.barrier
  %x = msl.load %m[%i] {width = 4 : i32} : <f32, threadgroup>, vector<4xi32> -> vector<4xf32>
  %s = msl.reduce_registers(%x) bits 3 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    msl.yield %c : f32
  } : (vector<4xf32>) -> vector<1xf32>
  %r = arith.mulf %s, %f : vector<1xf32>
  msl.in_threads simdgroups 3 = 0 {
    msl.store %r, %y[%j] : vector<1xf32>, <f32, device>, vector<1xi32>
  }
  msl.return
}

// What a store to device memory stands between moves; what a second region uses stays.
// CHECK-LABEL: msl.kernel @two
// CHECK:       msl.barrier
// CHECK-NEXT:  %[[Y:.*]] = msl.load %{{.*}}[%{{.*}}] : <f32, threadgroup>
// CHECK-NEXT:  msl.in_threads simdgroups 3 = 0 {
// CHECK-NEXT:    msl.store %[[Y]]
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.in_threads lanes 31 = 0 simdgroups 3 = 1 {
// CHECK-NEXT:    %[[X:.*]] = msl.load %{{.*}} : <f32, threadgroup>
// CHECK-NEXT:    msl.store %[[X]]
// CHECK-NEXT:    msl.store %[[Y]]
msl.kernel @two(%y: !msl.ptr<f32, device>, %z: !msl.ptr<f32, device>, %i: i32, %j: i32) threads 128 {
  %m = msl.alloc "partial", 128 at 0 : <f32, threadgroup>
  msl.barrier
  %a = msl.load %m[%i] : <f32, threadgroup>, i32 -> f32
  %b = msl.load %m[%j] : <f32, threadgroup>, i32 -> f32
  msl.in_threads simdgroups 3 = 0 {
    msl.store %b, %y[%j] : f32, <f32, device>, i32
  }
  msl.in_threads lanes 31 = 0 simdgroups 3 = 1 {
    msl.store %a, %z[%j] : f32, <f32, device>, i32
    msl.store %b, %z[%i] : f32, <f32, device>, i32
  }
  msl.return
}

// Lanes meet in a sum: it stays in front of a region of one lane, and so does the read. All lanes of a SIMD-group run the other region.
// CHECK-LABEL: msl.kernel @lanes
// CHECK:       msl.barrier
// CHECK-NEXT:  msl.load
// CHECK-NEXT:  msl.simd_reduce
// CHECK-NEXT:  msl.in_threads lanes 31 = 0 {
// CHECK-NEXT:    msl.store
// CHECK:       msl.in_threads simdgroups 3 = 2 {
// CHECK-NEXT:    msl.load
// CHECK-NEXT:    msl.simd_reduce
// CHECK-NEXT:    msl.store
msl.kernel @lanes(%y: !msl.ptr<f32, device>, %i: i32, %j: i32) threads 128 {
  %m = msl.alloc "partial", 128 at 0 : <f32, threadgroup>
  msl.barrier
  %a = msl.load %m[%i] : <f32, threadgroup>, i32 -> f32
  %s = msl.simd_reduce sum %a : f32
  msl.in_threads lanes 31 = 0 {
    msl.store %s, %y[%j] : f32, <f32, device>, i32
  }
  %b = msl.load %m[%j] : <f32, threadgroup>, i32 -> f32
  %t = msl.simd_reduce sum %b : f32
  msl.in_threads simdgroups 3 = 2 {
    msl.store %t, %y[%i] : f32, <f32, device>, i32
  }
  msl.return
}

// A barrier, and a write to threadgroup memory, stay behind the read.
// CHECK-LABEL: msl.kernel @order
// CHECK:       msl.load
// CHECK-NEXT:  msl.barrier
// CHECK-NEXT:  msl.in_threads
// CHECK:       msl.load
// CHECK-NEXT:  msl.store
// CHECK-NEXT:  msl.in_threads
// CHECK:       msl.load
// CHECK-NEXT:  msl.in_threads
// CHECK-NEXT:    msl.store
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.in_threads
msl.kernel @order(%y: !msl.ptr<f32, device>, %i: i32, %j: i32) threads 128 {
  %m = msl.alloc "partial", 128 at 0 : <f32, threadgroup>
  %a = msl.load %m[%i] : <f32, threadgroup>, i32 -> f32
  msl.barrier
  msl.in_threads simdgroups 3 = 0 {
    msl.store %a, %y[%j] : f32, <f32, device>, i32
  }
  %b = msl.load %m[%i] : <f32, threadgroup>, i32 -> f32
  msl.store %a, %m[%i] : f32, <f32, threadgroup>, i32
  msl.in_threads simdgroups 3 = 0 {
    msl.store %b, %y[%j] : f32, <f32, device>, i32
  }
  %c = msl.load %m[%j] : <f32, threadgroup>, i32 -> f32
  msl.in_threads simdgroups 3 = 1 {
    msl.store %a, %m[%j] : f32, <f32, threadgroup>, i32
  }
  msl.in_threads simdgroups 3 = 1 {
    msl.store %c, %y[%j] : f32, <f32, device>, i32
  }
  msl.return
}
