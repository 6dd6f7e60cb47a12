// RUN: triton-metal-opt %s --msl-broadcast-conditions | FileCheck %s

// All lanes have %a, by choices that depend on the lane, and the branch has an exchange.
// CHECK-LABEL: msl.kernel @exchange
// CHECK: %[[A:.*]] = arith.select
// CHECK: %[[B:.*]] = msl.simd_broadcast_first %[[A]] : i32
// CHECK: msl.uniform %[[B]]
msl.kernel @exchange(%p: !msl.ptr<i32, device> ) threads 32 {
  %c1 = arith.constant 1 : i32
  %lane = msl.lane : i32
  %x = msl.load %p[%lane] : <i32, device>, i32 -> i32
  %y = msl.simd_shuffle_xor %x, 1 : i32
  %bit = arith.andi %lane, %c1 : i32
  %first = arith.cmpi eq, %bit, %c1 : i32
  %a = arith.select %first, %x, %y : i32
  %u = msl.uniform %a : i32
  %test = arith.cmpi sgt, %u, %c1 : i32
  scf.if %test {
    %sum = msl.simd_reduce sum %x : i32
    msl.store %sum, %p[%c1] : i32, <i32, device>, i32
  }
  msl.return
}

// Nothing meets in this branch.
// CHECK-LABEL: msl.kernel @store
// CHECK-NOT: msl.simd_broadcast_first
msl.kernel @store(%p: !msl.ptr<i32, device> ) threads 32 {
  %c1 = arith.constant 1 : i32
  %lane = msl.lane : i32
  %x = msl.load %p[%lane] : <i32, device>, i32 -> i32
  %y = msl.simd_shuffle_xor %x, 1 : i32
  %first = arith.cmpi eq, %lane, %c1 : i32
  %a = arith.select %first, %x, %y : i32
  %u = msl.uniform %a : i32
  %test = arith.cmpi sgt, %u, %c1 : i32
  scf.if %test {
    msl.store %x, %p[%c1] : i32, <i32, device>, i32
  }
  msl.return
}
