// RUN: triton-metal-opt %s --tt-lift-control-flow --canonicalize | FileCheck %s

// CHECK-LABEL: @early_return
tt.func @early_return(%p: !tt.ptr<f32>, %x: f32, %out: i1) {
  // CHECK-NOT: cf.
  // CHECK: %[[IN:.*]] = arith.xori %{{.*}}, %true
  // CHECK-NEXT: scf.if %[[IN]] {
  // CHECK-NEXT:   tt.store
  // CHECK-NEXT: }
  // CHECK-NEXT: tt.return
  cf.cond_br %out, ^leave, ^go
^leave:
  tt.return
^go:
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}

// A function that returns a value from two places returns it from one.
// CHECK-LABEL: @two_values
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[C:.*]]: i1)
tt.func private @two_values(%x: f32, %y: f32, %c: i1) -> f32 {
  // CHECK-NEXT: %[[R:.*]] = arith.select %[[C]], %[[X]], %[[Y]]
  // CHECK-NEXT: tt.return %[[R]]
  cf.cond_br %c, ^a, ^b
^a:
  tt.return %x : f32
^b:
  tt.return %y : f32
}

// A return inside an inner branch leaves what comes after both.
// CHECK-LABEL: @nested
tt.func @nested(%p: !tt.ptr<i32>, %c: i1, %d: i1) {
  // CHECK-NOT: scf.index_switch
  // CHECK: %[[GO:.*]] = scf.if %{{.*}} -> (i32) {
  // CHECK:   scf.if
  // CHECK:     tt.store %{{.*}}, %c1
  // CHECK:   }
  // CHECK: %[[Z:.*]] = arith.cmpi eq, %[[GO]], %c0
  // CHECK: scf.if %[[Z]] {
  // CHECK:   tt.store %{{.*}}, %c2
  // CHECK-NEXT: }
  // CHECK-NEXT: tt.return
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  cf.cond_br %c, ^inner, ^end
^inner:
  cf.cond_br %d, ^leave, ^end
^leave:
  tt.store %p, %one : !tt.ptr<i32>
  tt.return
^end:
  tt.store %p, %two : !tt.ptr<i32>
  tt.return
}

// CHECK-LABEL: @loop
tt.func @loop(%p: !tt.ptr<i32>, %n: i32) {
  // CHECK: scf.while
  // CHECK: tt.store
  // CHECK: scf.condition
  // CHECK: tt.return
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  cf.br ^head(%zero : i32)
^head(%i: i32):
  tt.store %p, %i : !tt.ptr<i32>
  %next = arith.addi %i, %one : i32
  %more = arith.cmpi slt, %next, %n : i32
  cf.cond_br %more, ^head(%next : i32), ^end
^end:
  tt.return
}

// Blocks that nothing leads to go first, loops among them as well.
// CHECK-LABEL: @unreachable
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func @unreachable(%p: !tt.ptr<i32>, %c: i1, %x: i32) {
  tt.return
^lost:
  cf.cond_br %c, ^lost, ^end
^end:
  tt.store %p, %x : !tt.ptr<i32>
  tt.return
}
