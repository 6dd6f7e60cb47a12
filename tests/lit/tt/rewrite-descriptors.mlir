// Descriptors and block pointers become addresses and masks, through the control flow that carries them.
// RUN: triton-metal-opt %s -split-input-file -tt-rewrite-descriptors -canonicalize -cse | FileCheck %s

// CHECK-LABEL: tt.func public @load(
// CHECK-SAME: %[[X:.*]]: !tt.ptr<f32>, %[[N:.*]]: i32, %[[I:.*]]: i32
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : tensor<64xf32>
// CHECK: %[[BASE:.*]] = tt.addptr %[[X]], %[[I]] : !tt.ptr<f32>, i32
// CHECK: %[[BASES:.*]] = tt.splat %[[BASE]]
// CHECK: %[[R:.*]] = tt.make_range {end = 64 : i32, start = 0 : i32}
// CHECK: %[[P:.*]] = tt.addptr %[[BASES]], %[[R]] : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
// CHECK: %[[DIFFERENCE:.*]] = arith.subi %[[N]], %[[I]] : i32
// CHECK: %[[REST:.*]] = arith.minui %[[DIFFERENCE]]
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[I]], %[[N]] : i32
// CHECK: %[[END:.*]] = arith.select %[[SOME]], %[[REST]]
// CHECK: %[[ENDS:.*]] = tt.splat %[[END]]
// CHECK: arith.cmpi slt, %[[R]], %[[ENDS]] : tensor<64xi32>
// CHECK: arith.minui
// CHECK: arith.cmpi sge, %[[R]]
// CHECK: tt.load %[[P]], %{{.*}}, %[[ZEROS]] {tt.places = array<i32: 0, 0, 0>} : tensor<64x!tt.ptr<f32>>
tt.func public @load(%x: !tt.ptr<f32>, %n: i32, %i: i32, %y: !tt.ptr<f32>) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %x, [%n], [%c1] : <f32>, <64xf32>
  %v = tt.descriptor_load %d[%i] : !tt.tensordesc<64xf32> -> tensor<64xf32>
  %s = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  tt.store %s, %v : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A kernel's descriptor is an argument for each part. Base and strides are multiples of 16 bytes, and the last stride is 1.
// CHECK-LABEL: tt.func public @argument(
// CHECK-SAME: %[[BASE:[^:]*]]: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.memory = 1 : i32}, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i64 {tt.divisibility = 8 : i32}, %[[SN:[^:]*]]: i64, %[[NAN:[^:]*]]: i1, %{{[^:]*}}: i1, %{{[^:]*}}: !tt.ptr<f16>)
// CHECK-NOT: tt.splat %[[SN]]
// CHECK: arith.select %[[NAN]]
// CHECK: tt.load
// CHECK: tt.reshape {{.*}} tensor<1x16xf16> -> tensor<16xf16>
tt.func public @argument(%d: !tt.tensordesc<tensor<1x16xf16>> {tt.memory = 1 : i32, tt.divisibility = 16 : i32}, %y: !tt.ptr<f16>) {
  %c0 = arith.constant 0 : i32
  %v = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<tensor<1x16xf16>> -> tensor<16xf16>
  %s = tt.splat %y : !tt.ptr<f16> -> tensor<16x!tt.ptr<f16>>
  tt.store %s, %v : tensor<16x!tt.ptr<f16>>
  tt.return
}

// -----

// What is passed again for the kernel's own use is the descriptor's: both places know something of it.
// CHECK-LABEL: tt.func public @shape_follows(
// CHECK-SAME: %[[M:[^:]*]]: i32, %[[N:[^:]*]]: i32 {tt.divisibility = 16 : i32}, %[[S:[^:]*]]: i64 {tt.divisibility = 8 : i32}, %{{[^:]*}}: i64, %[[I:[^:]*]]: i32, %{{[^:]*}}: !tt.ptr<f16>)
// CHECK-DAG: arith.subi %[[M]], %[[I]]
// CHECK-DAG: arith.subi %[[N]], %[[I]]
// CHECK-DAG: arith.muli %{{.*}}, %[[S]] : i64
// CHECK: tt.load
tt.func public @shape_follows(%d: !tt.tensordesc<8x16xf16> {tt.shape_follows = true, tt.divisibility = 16 : i32}, %m: i32, %n: i32 {tt.divisibility = 16 : i32}, %s: i64 {tt.divisibility = 2 : i32}, %one: i64, %i: i32, %y: !tt.ptr<f16>) {
  %v = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<8x16xf16> -> tensor<8x16xf16>
  %t = tt.splat %y : !tt.ptr<f16> -> tensor<8x16x!tt.ptr<f16>>
  tt.store %t, %v : tensor<8x16x!tt.ptr<f16>>
  tt.return
}

// -----

// A loop carries a block pointer's offsets; what does not change leaves the loop.
// CHECK-LABEL: tt.func public @loop(
// CHECK: scf.for {{.*}} iter_args(%[[OFFSET:.*]] = %{{.*}}) -> (i64)
// CHECK: tt.load {{.*}} cacheModifier = cg : tensor<8x16x!tt.ptr<f32>>
// CHECK: %[[NEXT:.*]] = arith.addi %[[OFFSET]]
// CHECK: scf.yield %[[NEXT]] : i64
tt.func public @loop(%x: !tt.ptr<f32>, %m: i64, %n: i64, %sm: i64, %i: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c1l = arith.constant 1 : i64
  %c16 = arith.constant 16 : i32
  %p = tt.make_tensor_ptr %x, [%m, %n], [%sm, %c1l], [%i, %c0] {order = array<i32: 1, 0>} : <tensor<8x16xf32>>
  %q = scf.for %k = %c0 to %i step %c1 iter_args(%b = %p) -> (!tt.ptr<tensor<8x16xf32>>) : i32 {
    %v = tt.load %b cacheModifier = cg {boundaryCheck = array<i32: 1>, padding = 2 : i32} : !tt.ptr<tensor<8x16xf32>>
    tt.store %b, %v {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<8x16xf32>>
    %next = tt.advance %b, [%c0, %c16] : <tensor<8x16xf32>>
    scf.yield %next : !tt.ptr<tensor<8x16xf32>>
  }
  tt.return
}

// -----

// CHECK-LABEL: tt.func public @control(
// CHECK-SAME: %[[X:[^:]*]]: !tt.ptr<i32>, %[[Y:[^:]*]]: !tt.ptr<i32>
// CHECK: %[[CHOSEN:.*]] = arith.select %{{.*}}, %[[X]], %[[Y]] : !tt.ptr<i32>
// CHECK: scf.while
// CHECK: tt.atomic_rmw umax, acq_rel, gpu
// CHECK-NOT: tensordesc
tt.func public @control(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %n: i32, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %a = tt.make_tensor_descriptor %x, [%n], [%c1] : <i32>, <16xui32>
  %b = tt.make_tensor_descriptor %y, [%n], [%c1] : <i32>, <16xui32>
  %d = arith.select %c, %a, %b : !tt.tensordesc<16xui32>
  %e = scf.while (%f = %d) : (!tt.tensordesc<16xui32>) -> !tt.tensordesc<16xui32> {
    %s = tt.load %x {isVolatile = true} : !tt.ptr<i32>
    %go = arith.cmpi slt, %s, %n : i32
    scf.condition(%go) %f : !tt.tensordesc<16xui32>
  } do {
  ^bb0(%f: !tt.tensordesc<16xui32>):
    %g = scf.if %c -> !tt.tensordesc<16xui32> {
      scf.yield %a : !tt.tensordesc<16xui32>
    } else {
      scf.yield %f : !tt.tensordesc<16xui32>
    }
    scf.yield %g : !tt.tensordesc<16xui32>
  }
  %v = arith.constant dense<1> : tensor<16xi32>
  tt.descriptor_reduce max, %e[%c0], %v : !tt.tensordesc<16xui32>, tensor<16xi32>
  tt.return
}

// -----

// CHECK-LABEL: tt.func public @rows(
// CHECK: tt.load
// CHECK: tt.store
tt.func public @rows(%x: !tt.ptr<f32>, %m: i32, %n: i32, %sm: i64, %r: !tt.ptr<i32>, %j: i32) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %x, [%m, %n], [%sm, %c1] {padding = 2 : i32} : <f32>, <1x16xf32>
  %rows = tt.splat %j : i32 -> tensor<8xi32>
  %v = tt.descriptor_gather %d[%rows, %j] : (!tt.tensordesc<1x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  tt.descriptor_scatter %d[%rows, %j], %v : !tt.tensordesc<1x16xf32>, tensor<8xi32>, i32, tensor<8x16xf32>
  tt.return
}
