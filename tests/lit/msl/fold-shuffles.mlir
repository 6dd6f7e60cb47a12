// RUN: triton-metal-opt %s --msl-fold-shuffles | FileCheck %s

// Every lane of a row of eight has copied the first row's: the last of its row is lane 7.
// CHECK-LABEL: msl.kernel @last_of_copies
// CHECK: %[[SEVEN:c7_i32_[0-9]+]] = arith.constant 7 : i32
// CHECK: msl.simd_shuffle %arg1, %[[SEVEN]] : f32, i32
// CHECK-NOT: msl.simd_shuffle
msl.kernel @last_of_copies(%p: !msl.ptr<f32, device>, %x: f32) threads 64 {
  %c7 = arith.constant 7 : i32
  %c0 = arith.constant 0 : i32
  %a = msl.thread_index lanes [1, 2, 4, 0, 0] simdgroups [0] : i32
  %b = msl.thread_index lanes [0, 0, 0, 8, 16] simdgroups [0] : i32
  %last = arith.addi %b, %c7 : i32
  %0 = msl.simd_shuffle %x, %a : f32, i32
  %1 = msl.simd_shuffle %0, %last : f32, i32
  msl.store %1, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// The SIMD-group's bits are the same for both: the outer one's are sent through the inner one.
// CHECK-LABEL: msl.kernel @simdgroups
// CHECK: %[[BOTH:.*]] = msl.thread_index lanes [16, 0, 0, 0, 0] simdgroups [4, 8] : i32
// CHECK: %[[LANE:.*]] = arith.addi %[[BOTH]], %c1_i32
// CHECK: msl.simd_shuffle %arg1, %[[LANE]] : f32, i32
// CHECK-NOT: msl.simd_shuffle
msl.kernel @simdgroups(%p: !msl.ptr<f32, device>, %x: f32) threads 128 {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %a = msl.thread_index lanes [4, 16, 0, 0, 0] simdgroups [0, 8] : i32
  %inner = arith.addi %a, %c1 : i32
  %outer = msl.thread_index lanes [2, 0, 0, 0, 0] simdgroups [1, 0] : i32
  %0 = msl.simd_shuffle %x, %inner : f32, i32
  %1 = msl.simd_shuffle %0, %outer : f32, i32
  msl.store %1, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// Numbers of the position that are added where a bit is in two of them, and lanes that are known only as the kernel runs.
// CHECK-LABEL: msl.kernel @others
// CHECK-COUNT-6: msl.simd_shuffle
msl.kernel @others(%p: !msl.ptr<f32, device>, %x: f32, %n: i32) threads 64 {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %a = msl.thread_index lanes [1, 2, 4, 8, 16] simdgroups [0] : i32
  %next = arith.addi %a, %c1 : i32
  %b = msl.thread_index lanes [0, 0, 4, 8, 16] simdgroups [0] : i32
  %0 = msl.simd_shuffle %x, %next : f32, i32
  %1 = msl.simd_shuffle %0, %b : f32, i32
  %2 = msl.simd_shuffle %x, %n : f32, i32
  %3 = msl.simd_shuffle %2, %b : f32, i32
  // Two lanes' bits go to one lane: their exclusive or is no sum.
  %d = msl.thread_index lanes [1, 0, 0, 0, 0] simdgroups [2] : i32
  %e = msl.thread_index lanes [4, 4, 0, 0, 0] simdgroups [0] : i32
  %4 = msl.simd_shuffle %x, %d : f32, i32
  %5 = msl.simd_shuffle %4, %e : f32, i32
  msl.store %1, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.store %3, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.store %5, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// The branch is taken by some lanes: others cannot be asked there for what they had before it.
// CHECK-LABEL: msl.kernel @in_a_branch
// CHECK: %[[FIRST:.*]] = msl.simd_shuffle
// CHECK: scf.if
// CHECK: msl.simd_shuffle %[[FIRST]]
msl.kernel @in_a_branch(%p: !msl.ptr<f32, device>, %x: f32, %n: i1) threads 64 {
  %c7 = arith.constant 7 : i32
  %c0 = arith.constant 0 : i32
  %a = msl.thread_index lanes [1, 2, 4, 0, 0] simdgroups [0] : i32
  %0 = msl.simd_shuffle %x, %a : f32, i32
  scf.if %n {
    %1 = msl.simd_shuffle %0, %c7 : f32, i32
    msl.store %1, %p[%c0] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}
