// RUN: triton-metal-opt %s --split-input-file --tt-prepare-messages --tt-lower-messages | FileCheck %s

// A print reserves its words, and stores its header and the bits of each operand.
// CHECK: module attributes {tt.messages = [{hex = true, loc = {{.*}}, operands = [{shape = array<i64: 4, 8>, signed = false, type = f16}, {shape = array<i64>, signed = true, type = i64}], prefix = " x: "}]}
// CHECK-LABEL: @prints
// CHECK-SAME: (%[[H:.*]]: tensor<4x8xf16>, %[[N:.*]]: i64, %[[BUFFER:.*]]: !tt.ptr<i32> {tt.message_role = "prints"}, %[[ORIGIN:.*]]: i32 {tt.message_role = "origin"}, %[[SIZE:.*]]: i32 {tt.message_role = "size"})
// CHECK-NOT: tt.print
// CHECK: %[[BITS:.*]] = tt.bitcast %[[H]] : tensor<4x8xf16> -> tensor<4x8xi16>
// CHECK: %[[WORDS:.*]] = arith.extui %[[BITS]] : tensor<4x8xi16> to tensor<4x8xi32>
// CHECK: %[[LOW:.*]] = arith.trunci %[[N]] : i64 to i32
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[N]], %{{.*}} : i64
// CHECK: %[[HIGH:.*]] = arith.trunci %[[SHIFTED]] : i64 to i32
// CHECK: tt.atomic_rmw or, relaxed, gpu, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
// CHECK: arith.cmpi ult, %{{.*}}, %[[SIZE]] : i32
// CHECK: scf.if
// CHECK: %[[COUNT:.*]] = arith.constant 38 : i32
// CHECK: %[[OLD:.*]] = tt.atomic_rmw add, relaxed, gpu, %{{.*}}, %[[COUNT]]
// CHECK: arith.subi %[[OLD]], %[[ORIGIN]]
// CHECK: arith.cmpi ule, %{{.*}}, %[[SIZE]] : i32
// CHECK: tt.store %{{.*}}, %[[WORDS]] : tensor<4x8x!tt.ptr<i32>>
// CHECK: tt.store %{{.*}}, %[[LOW]] : !tt.ptr<i32>
// CHECK: tt.store %{{.*}}, %[[HIGH]] : !tt.ptr<i32>
tt.func public @prints(%h: tensor<4x8xf16>, %n: i64) {
  tt.print " x: " {hex = true, isSigned = array<i32: 0, 1>} : %h, %n : tensor<4x8xf16>, i64
  tt.return
}

// -----

// The first element that fails, of all axes.
// CHECK: module attributes {tt.messages = [{loc = {{.*}}, message = "wrong", shape = array<i64: 4, 8>}]}
// CHECK-LABEL: @asserts
// CHECK: %[[FAILED:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : tensor<4x8xi1>
// CHECK: %[[KEYS:.*]] = arith.select %[[FAILED]], %{{.*}}, %{{.*}} : tensor<4x8xi1>, tensor<4x8xi32>
// CHECK: %[[ROW:.*]] = "tt.reduce"(%[[KEYS]]) <{axis = 0 : i32}>
// CHECK: arith.minui
// CHECK: %[[FIRST:.*]] = "tt.reduce"(%[[ROW]]) <{axis = 0 : i32}>
// CHECK: %[[ANY:.*]] = arith.cmpi ult, %[[FIRST]], %{{.*}} : i32
// CHECK: scf.if %[[ANY]]
// CHECK: tt.atomic_rmw umax, relaxed, gpu
// CHECK: tt.atomic_rmw add, relaxed, gpu
// CHECK: tt.atomic_rmw exch, relaxed, gpu, %{{.*}}, %[[FIRST]] : (!tt.ptr<i32>, i32) -> i32
tt.func public @asserts(%ok: tensor<4x8xi1>) {
  tt.assert %ok, "wrong" : tensor<4x8xi1>
  tt.return
}

// -----

// A scan collects what fails inside of it.
// CHECK-LABEL: @combines
// CHECK: %[[NONE:.*]] = arith.constant dense<0> : tensor<8xi32>
// CHECK: %[[SCAN:.*]]:2 = "tt.scan"(%{{.*}}, %[[NONE]])
// CHECK: ^bb0(%{{.*}}: i32, %[[LEFT:.*]]: i32, %{{.*}}: i32, %[[RIGHT:.*]]: i32):
// CHECK: %[[BOTH:.*]] = arith.ori %[[LEFT]], %[[RIGHT]]
// CHECK: %[[BITS:.*]] = arith.ori %[[BOTH]], %{{.*}}
// CHECK: tt.scan.return %{{.*}}, %[[BITS]] : i32, i32
// CHECK: arith.andi %[[SCAN]]#1, %{{.*}} : tensor<8xi32>
// CHECK: tt.atomic_rmw umax
// CHECK-NOT: tt.assert
tt.func public @combines(%x: tensor<8xi32>, %p: tensor<8x!tt.ptr<i32>>) {
  %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %sum = arith.addi %a, %b : i32
    %ok = arith.cmpi sge, %sum, %a : i32
    tt.assert %ok, "overflow" : i1
    tt.scan.return %sum : i32
  }) : (tensor<8xi32>) -> tensor<8xi32>
  tt.store %p, %s : tensor<8x!tt.ptr<i32>>
  tt.return
}

// -----

// What always holds costs nothing.
// CHECK-LABEL: @holds
// CHECK-SAME: ()
// CHECK-NEXT: arith.constant
// CHECK-NEXT: tt.return
tt.func public @holds() {
  %true = arith.constant true
  tt.assert %true, "never" : i1
  tt.return
}

// -----

// Floats of 8 bits are printed as floats.
// CHECK: tt.messages = [{{.*}}type = f32
// CHECK-LABEL: @small
// CHECK: tt.fp_to_fp %{{.*}} : tensor<8xf8E5M2> -> tensor<8xf32>
tt.func public @small(%x: tensor<8xf8E5M2>) {
  tt.print " x: " {hex = false, isSigned = array<i32: 1>} : %x : tensor<8xf8E5M2>
  tt.return
}
