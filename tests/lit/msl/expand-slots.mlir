// RUN: triton-metal-opt %s --msl-expand-slots | FileCheck %s

// CHECK-LABEL: @double
// CHECK: %[[M:.*]] = msl.alloc "a_tile", 5120 at 0
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}})
// CHECK: %[[OFFSET:.*]] = arith.muli %[[S]], %c2560
// CHECK: %[[P:.*]] = msl.ptr_add %[[M]], %[[OFFSET]]
// CHECK: msl.load %[[P]]
// CHECK: %[[NEXT:.*]] = arith.xori %[[S]], %c1
// CHECK: scf.yield %[[NEXT]]
msl.kernel @double(%n: i32, %i: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %tiles = msl.alloc "a_tile", 2560 slots 2 at 0 : !msl.ptr<f16, threadgroup>
  %end = scf.for %k = %c0 to %n step %step iter_args(%s = %c0) -> (i32) : i32 {
    %p = msl.slot %tiles[%s] : !msl.ptr<f16, threadgroup>
    %v = msl.load %p[%i] : !msl.ptr<f16, threadgroup>, i32 -> f16
    %next = msl.next_slot %s of 2 : i32
    scf.yield %next : i32
  }
  msl.return
}

// CHECK-LABEL: @three
// CHECK: %[[NEXT:.*]] = arith.addi %arg0
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[NEXT]], %c3
// CHECK: arith.select %[[LAST]], %c0{{.*}}, %[[NEXT]]
msl.kernel @three(%s: i32, %x: !msl.ptr<i32, device>) threads 32 {
  %next = msl.next_slot %s of 3 : i32
  msl.store %next, %x[%s] : i32, !msl.ptr<i32, device>, i32
  msl.return
}
