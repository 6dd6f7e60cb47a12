// RUN: triton-metal-opt %s --msl-form-variables | FileCheck %s

// CHECK-LABEL: msl.kernel @loops
msl.kernel @loops(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  // Both are read before either is assigned.
  // CHECK: %[[A:.*]] = msl.var = %{{.*}}(f32) : <1xf32>
  // CHECK: %[[B:.*]] = msl.var = %{{.*}}(f32) : <1xf32>
  // CHECK: %[[P:.*]] = msl.var = %{{.*}}(!msl.ptr<f32, device>) : <1x!msl.ptr<f32, device>>
  // CHECK: msl.for %{{.*}} to %{{.*}} step %{{.*}} {
  // CHECK: ^bb0(%{{.*}}: i32):
  // CHECK:   %[[OLDA:.*]] = msl.get %[[A]]
  // CHECK:   %[[OLDB:.*]] = msl.get %[[B]]
  // CHECK:   %[[OLDP:.*]] = msl.get %[[P]]
  // CHECK:   %[[NEXT:.*]] = msl.ptr_add %[[OLDP]]
  // CHECK:   msl.set %[[OLDB]], %[[A]]
  // CHECK:   msl.set %[[OLDA]], %[[B]]
  // CHECK:   msl.set %[[NEXT]], %[[P]]
  // CHECK: } : i32
  // CHECK: %[[LAST:.*]] = msl.get %[[A]]
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %b = %one, %p = %x) -> (f32, f32, !msl.ptr<f32, device>) : i32 {
    %q = msl.ptr_add %p, %c1 : !msl.ptr<f32, device>, i32
    scf.yield %b, %a, %q : f32, f32, !msl.ptr<f32, device>
  }
  // CHECK: msl.write %[[LAST]]
  msl.write %r#0, %x : f32, !msl.ptr<f32, device>
  // What the condition passes on as it is needs no variable of its own.
  // CHECK: %[[J:.*]] = msl.var = %{{.*}}(i32) : <1xi32>
  // CHECK-NOT: msl.var
  // CHECK: scf.while : () -> () {
  // CHECK:   %[[OLDJ:.*]] = msl.get %[[J]]
  // CHECK:   %[[MORE:.*]] = arith.cmpi slt, %[[OLDJ]]
  // CHECK:   scf.condition(%[[MORE]])
  // CHECK: } do {
  // CHECK:   %[[HERE:.*]] = msl.get %[[J]]
  // CHECK:   %[[NEXTJ:.*]] = arith.addi %[[HERE]]
  // CHECK:   msl.set %[[NEXTJ]], %[[J]]
  %w = scf.while (%j = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %j, %n : i32
    scf.condition(%more) %j : i32
  } do {
  ^bb0(%j: i32):
    %next = arith.addi %j, %c1 : i32
    scf.yield %next : i32
  }
  // CHECK: %[[T:.*]] = msl.var : <1xf32>
  // CHECK: scf.if %{{.*}} {
  // CHECK:   msl.set %{{.*}}, %[[T]]
  // CHECK: } else {
  // CHECK:   msl.set %{{.*}}, %[[T]]
  // CHECK: }
  // CHECK: msl.get %[[T]]
  %positive = arith.cmpi sgt, %w, %c0 : i32
  %t = scf.if %positive -> (f32) {
    scf.yield %one : f32
  } else {
    scf.yield %zero : f32
  }
  msl.write %t, %x[%c1 : i32] : f32, !msl.ptr<f32, device>
  // The assignment right behind a variable is its first value.
  // CHECK: %[[V:.*]] = msl.var = %{{.*}}(f32) : <1xf32>
  // CHECK-NEXT: msl.get %[[V]]
  %v = msl.var : !msl.array<1xf32>
  msl.set %one, %v : f32, !msl.array<1xf32>
  %u = msl.get %v : !msl.array<1xf32> -> f32
  msl.write %u, %x[%n : i32] : f32, !msl.ptr<f32, device>
  msl.return
}
