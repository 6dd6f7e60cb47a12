// RUN: triton-metal-opt %s --msl-wait-before-tests | FileCheck %s
// RUN: triton-metal-opt %s --msl-wait-before-tests --msl-explicit-types --msl-form-expressions --msl-print-metal -o /dev/null | FileCheck %s --check-prefix=METAL

// What comes before the barrier may as well come behind it. The barrier behind the loop is one too many then.
// CHECK-LABEL: msl.kernel @staged
// CHECK:       msl.for %{{.*}} to %{{.*}} step %{{.*}} waits {
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    msl.get
// CHECK-NEXT:    msl.write
// CHECK-NEXT:    msl.barrier
// CHECK-NEXT:    msl.multiply_accumulate
// CHECK-NEXT:  } : i32
// CHECK-NEXT:  msl.write
// METAL-LABEL: void staged(
// METAL:       for (int k = 0; threadgroup_barrier(mem_flags::mem_threadgroup), k < arg1; ++k) {
// METAL-NEXT:    *arg0 = {{.*}};
// METAL-NEXT:    threadgroup_barrier(mem_flags::mem_threadgroup);
// METAL-NEXT:    simdgroup_multiply_accumulate(
// METAL-NEXT:  }
// METAL-NEXT:  *arg0 = 1.0f;
msl.kernel @staged(%y: !msl.ptr<f32, device>, %n: i32) threads 64 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %x = msl.var = %one (f32) : <1xf32>
  %acc = msl.var : <1x!msl.matrix<8x8xf32>>
  %a = msl.var : <1x!msl.matrix<8x8xf16>>
  msl.for %c0 to %n step %c1 {
  ^bb0(%k: i32):
    %v = msl.get %x : <1xf32> -> f32
    msl.barrier
    msl.write %v, %y : f32, !msl.ptr<f32, device>
    msl.barrier
    msl.multiply_accumulate %acc, %a, %a : <1x!msl.matrix<8x8xf32>>, <1x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
  } : i32
  msl.barrier
  msl.write %one, %y : f32, !msl.ptr<f32, device>
  msl.return
}

// Each way of a branch begins with a barrier. That of the loop orders device memory, so that one behind the loop is none too many only if
// it does, too.
// CHECK-LABEL: msl.kernel @branch
// CHECK:       msl.for %{{.*}} to %{{.*}} step %{{.*}} waits device {
// CHECK:         scf.if
// CHECK-NEXT:      msl.write
// CHECK-NEXT:    } else {
// CHECK-NEXT:    }
// CHECK-NEXT:    msl.multiply_accumulate
// CHECK-NEXT:  } : i32
// CHECK-NEXT:  msl.return
// METAL-LABEL: void branch(
// METAL:       for (int k = 0; threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device), k < arg1; ++k) {
msl.kernel @branch(%y: !msl.ptr<f32, device>, %n: i32, %whole: i1) threads 64 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %acc = msl.var : <1x!msl.matrix<8x8xf32>>
  %a = msl.var : <1x!msl.matrix<8x8xf16>>
  msl.for %c0 to %n step %c1 {
  ^bb0(%k: i32):
    scf.if %whole {
      msl.barrier device
      msl.write %one, %y : f32, !msl.ptr<f32, device>
    } else {
      msl.barrier device
    }
    msl.multiply_accumulate %acc, %a, %a : <1x!msl.matrix<8x8xf32>>, <1x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
  } : i32
  msl.barrier
  msl.return
}

// CHECK-LABEL: msl.kernel @unchanged
// CHECK-NOT:   waits
msl.kernel @unchanged(%y: !msl.ptr<f32, device>, %n: i32, %whole: i1) threads 64 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %one = arith.constant 1.0 : f32
  %acc = msl.var : <1x!msl.matrix<8x8xf32>>
  %a = msl.var : <1x!msl.matrix<8x8xf16>>
  // Nothing is held from step to step.
  msl.for %c0 to %n step %c1 {
  ^bb0(%k: i32):
    msl.barrier
    msl.write %one, %y : f32, !msl.ptr<f32, device>
  } : i32
  // It has steps for certain.
  msl.for %c0 to %c9 step %c1 {
  ^bb0(%k: i32):
    msl.barrier
    msl.multiply_accumulate %acc, %a, %a : <1x!msl.matrix<8x8xf32>>, <1x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
  } : i32
  // What is read is on its way while threads wait.
  msl.for %c0 to %n step %c1 {
  ^bb0(%k: i32):
    %v = msl.read %y : !msl.ptr<f32, device> -> f32
    msl.barrier
    msl.write %v, %y : f32, !msl.ptr<f32, device>
    msl.multiply_accumulate %acc, %a, %a : <1x!msl.matrix<8x8xf32>>, <1x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
  } : i32
  // One way has no barrier, or another one.
  msl.for %c0 to %n step %c1 {
  ^bb0(%k: i32):
    scf.if %whole {
      msl.barrier
    }
    msl.multiply_accumulate %acc, %a, %a : <1x!msl.matrix<8x8xf32>>, <1x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
  } : i32
  msl.for %c0 to %n step %c1 {
  ^bb0(%k: i32):
    scf.if %whole {
      msl.barrier
    } else {
      msl.barrier device
    }
    msl.multiply_accumulate %acc, %a, %a : <1x!msl.matrix<8x8xf32>>, <1x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
  } : i32
  msl.return
}

// It does not order what the one behind the loop does.
// CHECK-LABEL: msl.kernel @kept
// CHECK:       waits {
// CHECK:       } : i32
// CHECK-NEXT:  msl.barrier device
msl.kernel @kept(%n: i32) threads 64 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = msl.var : <1x!msl.matrix<8x8xf32>>
  %a = msl.var : <1x!msl.matrix<8x8xf16>>
  msl.for %c0 to %n step %c1 {
  ^bb0(%k: i32):
    msl.barrier
    msl.multiply_accumulate %acc, %a, %a : <1x!msl.matrix<8x8xf32>>, <1x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
  } : i32
  msl.barrier device
  msl.return
}
