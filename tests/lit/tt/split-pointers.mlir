// RUN: triton-metal-opt %s --tt-split-pointers --canonicalize | FileCheck %s

// A step that is the same everywhere moves the base, and the offsets leave the loop.
// CHECK-LABEL: @loop
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f32>, %[[N:.*]]: i32, %[[STEP:.*]]: i32)
tt.func private @loop(%x: !tt.ptr<f32>, %n: i32, %step: i32) -> tensor<64xf32> {
  // CHECK: %[[R:.*]] = tt.make_range
  // CHECK: scf.for {{.*}} iter_args(%[[B:.*]] = %[[X]], %{{.*}} = %{{.*}}) -> (!tt.ptr<f32>, tensor<64xf32>)
  // CHECK-NEXT: %[[S:.*]] = tt.splat %[[B]] : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  // CHECK-NEXT: %[[A:.*]] = tt.addptr %[[S]], %[[R]] : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  // CHECK-NEXT: tt.load %[[A]]
  // CHECK: %[[NEXT:.*]] = tt.addptr %[[B]], %[[STEP]] : !tt.ptr<f32>, i32
  // CHECK: scf.yield %[[NEXT]], %{{.*}} : !tt.ptr<f32>, tensor<64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %d = tt.splat %step : i32 -> tensor<64xi32>
  %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p, %acc = %zero) -> (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) : i32 {
    %v = tt.load %q : tensor<64x!tt.ptr<f32>>
    %sum = arith.addf %acc, %v : tensor<64xf32>
    %next = tt.addptr %q, %d : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    scf.yield %next, %sum : tensor<64x!tt.ptr<f32>>, tensor<64xf32>
  } {tt.num_stages = 2 : i32}
  // CHECK: } {tt.num_stages = 2 : i32}
  tt.return %l#1 : tensor<64xf32>
}

// Steps that differ stay in the offsets, which are summed in 64 bits.
// CHECK-LABEL: @uneven_loop
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f32>, %{{.*}}: i32)
tt.func private @uneven_loop(%x: !tt.ptr<f32>, %n: i32) {
  // CHECK: scf.for {{.*}} iter_args(%[[O:.*]] = %{{.*}}) -> (tensor<64xi64>)
  // CHECK-NEXT: %[[S:.*]] = tt.splat %[[X]]
  // CHECK-NEXT: %[[A:.*]] = tt.addptr %[[S]], %[[O]] : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
  // CHECK-NEXT: tt.load %[[A]] {isVolatile = true}
  // CHECK: %[[W:.*]] = arith.extsi %{{.*}} : tensor<64xi32> to tensor<64xi64>
  // CHECK: %[[T:.*]] = arith.addi %[[O]], %[[W]] : tensor<64xi64>
  // CHECK: scf.yield %[[T]] : tensor<64xi64>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p) -> (tensor<64x!tt.ptr<f32>>) : i32 {
    %v = tt.load %q {isVolatile = true} : tensor<64x!tt.ptr<f32>>
    %next = tt.addptr %q, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    scf.yield %next : tensor<64x!tt.ptr<f32>>
  }
  tt.return
}

// Two offsets of unknown size are summed in 64 bits, ...
// CHECK-LABEL: @wide_sum
tt.func private @wide_sum(%x: !tt.ptr<f32>, %a: tensor<64xi32>, %b: tensor<64xi32>) -> tensor<64x!tt.ptr<f32>> {
  // CHECK-DAG: %[[A:.*]] = arith.extsi %arg1
  // CHECK-DAG: %[[B:.*]] = arith.extsi %arg2
  // CHECK: %[[S:.*]] = arith.addi %[[A]], %[[B]] : tensor<64xi64>
  // CHECK: tt.addptr %{{.*}}, %[[S]]
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %s, %a : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %q = tt.addptr %p, %b : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.return %q : tensor<64x!tt.ptr<f32>>
}

// ... two of known ranges in 32, ...
// CHECK-LABEL: @narrow_sum
tt.func private @narrow_sum(%x: !tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>> {
  // CHECK: %[[R:.*]] = tt.make_range
  // CHECK: %[[S:.*]] = arith.addi %[[R]], %[[R]] : tensor<64xi32>
  // CHECK: tt.addptr %{{.*}}, %[[S]]
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.return %q : tensor<64x!tt.ptr<f32>>
}

// ... and a column that only fills the low bits of a row's start too.
// CHECK-LABEL: @row_and_column
tt.func private @row_and_column(%x: !tt.ptr<f32>, %rows: tensor<64xi32>) -> tensor<64x!tt.ptr<f32>> {
  // CHECK: %[[ROW:.*]] = arith.muli
  // CHECK: %[[S:.*]] = arith.addi %[[ROW]], %{{.*}} : tensor<64xi32>
  // CHECK: tt.addptr %{{.*}}, %[[S]]
  %width = arith.constant dense<64> : tensor<64xi32>
  %start = arith.muli %rows, %width : tensor<64xi32>
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %s, %start : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.return %q : tensor<64x!tt.ptr<f32>>
}

// A column one longer than the row's alignment does not.
// CHECK-LABEL: @row_and_long_column
tt.func private @row_and_long_column(%x: !tt.ptr<f32>, %rows: tensor<64xi32>) -> tensor<64x!tt.ptr<f32>> {
  // CHECK: arith.addi %{{.*}} : tensor<64xi64>
  %width = arith.constant dense<64> : tensor<64xi32>
  %start = arith.muli %rows, %width : tensor<64xi32>
  %r = tt.make_range {end = 65 : i32, start = 1 : i32} : tensor<64xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %s, %start : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.return %q : tensor<64x!tt.ptr<f32>>
}

// In 64 bits a part that is the same everywhere always moves the base; in 32 bits only where the sum cannot wrap.
// CHECK-LABEL: @uniform_part
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f32>, %[[A:.*]]: i64, %[[B:.*]]: i32, %[[T:.*]]: tensor<64xi64>)
tt.func private @uniform_part(%x: !tt.ptr<f32>, %a: i64, %b: i32, %t: tensor<64xi64>) -> (tensor<64x!tt.ptr<f32>>, tensor<64x!tt.ptr<f32>>) {
  // CHECK-DAG: %[[R:.*]] = tt.make_range
  // CHECK-DAG: %[[M:.*]] = tt.addptr %[[X]], %[[A]] : !tt.ptr<f32>, i64
  // CHECK-DAG: %[[MS:.*]] = tt.splat %[[M]]
  // CHECK-DAG: %[[P:.*]] = tt.addptr %[[MS]], %[[T]]
  // CHECK-DAG: %[[BS:.*]] = tt.splat %[[B]]
  // CHECK-DAG: %[[SUM:.*]] = arith.addi %[[BS]], %[[R]]
  // CHECK-DAG: %[[XS:.*]] = tt.splat %[[X]]
  // CHECK-DAG: %[[Q:.*]] = tt.addptr %[[XS]], %[[SUM]]
  // CHECK: tt.return %[[P]], %[[Q]]
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %as = tt.splat %a : i64 -> tensor<64xi64>
  %0 = arith.addi %as, %t : tensor<64xi64>
  %p = tt.addptr %s, %0 : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %bs = tt.splat %b : i32 -> tensor<64xi32>
  %1 = arith.addi %bs, %r : tensor<64xi32>
  %q = tt.addptr %s, %1 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.return %p, %q : tensor<64x!tt.ptr<f32>>, tensor<64x!tt.ptr<f32>>
}

// What changes the shape of pointers changes that of their offsets.
// CHECK-LABEL: @shapes
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f32>, %[[A:.*]]: tensor<8x1xi32>)
tt.func private @shapes(%x: !tt.ptr<f32>, %a: tensor<8x1xi32>) -> tensor<4x8x!tt.ptr<f32>> {
  // CHECK-DAG: %[[B:.*]] = tt.broadcast %[[A]] : tensor<8x1xi32> -> tensor<8x4xi32>
  // CHECK-DAG: %[[T:.*]] = tt.trans %[[B]] {order = array<i32: 1, 0>} : tensor<8x4xi32> -> tensor<4x8xi32>
  // CHECK-DAG: %[[S:.*]] = tt.splat %[[X]] : !tt.ptr<f32> -> tensor<4x8x!tt.ptr<f32>>
  // CHECK: tt.addptr %[[S]], %[[T]]
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<8x1x!tt.ptr<f32>>
  %p = tt.addptr %s, %a : tensor<8x1x!tt.ptr<f32>>, tensor<8x1xi32>
  %b = tt.broadcast %p : tensor<8x1x!tt.ptr<f32>> -> tensor<8x4x!tt.ptr<f32>>
  %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<8x4x!tt.ptr<f32>> -> tensor<4x8x!tt.ptr<f32>>
  tt.return %t : tensor<4x8x!tt.ptr<f32>>
}

// A branch and a choice by a scalar yield bases and offsets.
// CHECK-LABEL: @branches
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f32>, %[[Y:.*]]: !tt.ptr<f32>, %[[A:.*]]: tensor<8xi32>, %[[B:.*]]: tensor<8xi32>, %[[C:.*]]: i1)
tt.func private @branches(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %a: tensor<8xi32>, %b: tensor<8xi32>, %c: i1) -> (tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>) {
  // CHECK-DAG: %[[BASE:.*]] = arith.select %[[C]], %[[X]], %[[Y]] : !tt.ptr<f32>
  // CHECK-DAG: arith.select %[[C]], %[[A]], %[[B]] : tensor<8xi32>
  // CHECK-NOT: tensor<8xi1>, tensor<8x!tt.ptr<f32>>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %p = tt.addptr %xs, %a : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %q = tt.addptr %ys, %b : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %0 = scf.if %c -> tensor<8x!tt.ptr<f32>> {
    scf.yield %p : tensor<8x!tt.ptr<f32>>
  } else {
    scf.yield %q : tensor<8x!tt.ptr<f32>>
  }
  %cs = tt.splat %c : i1 -> tensor<8xi1>
  %1 = arith.select %cs, %p, %q : tensor<8xi1>, tensor<8x!tt.ptr<f32>>
  tt.return %0, %1 : tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>
}

// CHECK-LABEL: @while
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<i32>, %[[A:.*]]: tensor<8xi32>)
tt.func private @while(%x: !tt.ptr<i32>, %a: tensor<8xi32>) -> tensor<8x!tt.ptr<i32>> {
  // CHECK: scf.while (%[[B:.*]] = %[[X]]{{.*}}) : (!tt.ptr<i32>{{.*}}) -> {{.*}}!tt.ptr<i32>
  // CHECK: do {
  // CHECK: tt.addptr %{{.*}}, %c8{{.*}} : !tt.ptr<i32>, i32
  // CHECK: scf.yield
  %eight = arith.constant dense<8> : tensor<8xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
  %p = tt.addptr %xs, %a : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
  %0 = scf.while (%q = %p) : (tensor<8x!tt.ptr<i32>>) -> tensor<8x!tt.ptr<i32>> {
    %v = tt.load %q : tensor<8x!tt.ptr<i32>>
    %any = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%l: i32, %r: i32):
      %or = arith.ori %l, %r : i32
      tt.reduce.return %or : i32
    }) : (tensor<8xi32>) -> i32
    %c0 = arith.constant 0 : i32
    %more = arith.cmpi ne, %any, %c0 : i32
    scf.condition(%more) %q : tensor<8x!tt.ptr<i32>>
  } do {
  ^bb0(%q: tensor<8x!tt.ptr<i32>>):
    %next = tt.addptr %q, %eight : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    scf.yield %next : tensor<8x!tt.ptr<i32>>
  }
  tt.return %0 : tensor<8x!tt.ptr<i32>>
}

// Pointers without a common base stay pointers, in loops too.
// CHECK-LABEL: @no_base
tt.func private @no_base(%t: tensor<8xi64>, %x: !tt.ptr<f32>, %m: tensor<8xi1>, %n: i32) -> (tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>) {
  // CHECK: %[[P:.*]] = tt.int_to_ptr
  // CHECK: scf.for {{.*}} iter_args(%[[Q:.*]] = %[[P]]) -> (tensor<8x!tt.ptr<f32>>)
  // CHECK-NEXT: tt.addptr %[[Q]]
  // CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<8xi1>, tensor<8x!tt.ptr<f32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<8xi32>
  %p = tt.int_to_ptr %t : tensor<8xi64> -> tensor<8x!tt.ptr<f32>>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p) -> (tensor<8x!tt.ptr<f32>>) : i32 {
    %next = tt.addptr %q, %two : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    scf.yield %next : tensor<8x!tt.ptr<f32>>
  }
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %s = arith.select %m, %l, %xs : tensor<8xi1>, tensor<8x!tt.ptr<f32>>
  tt.return %l, %s : tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>
}

// A cast that keeps the size of an element keeps the split, another does not.
// CHECK-LABEL: @casts
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<i1>, %[[A:.*]]: tensor<8xi32>)
tt.func private @casts(%x: !tt.ptr<i1>, %a: tensor<8xi32>) -> (tensor<8x!tt.ptr<i8>>, tensor<8x!tt.ptr<i16>>) {
  // CHECK-DAG: %[[B:.*]] = tt.bitcast %[[X]] : !tt.ptr<i1> -> !tt.ptr<i8>
  // CHECK-DAG: %[[S:.*]] = tt.splat %[[B]]
  // CHECK-DAG: tt.addptr %[[S]], %[[A]] : tensor<8x!tt.ptr<i8>>, tensor<8xi32>
  // CHECK-DAG: tt.bitcast %{{.*}} : tensor<8x!tt.ptr<i1>> -> tensor<8x!tt.ptr<i16>>
  %s = tt.splat %x : !tt.ptr<i1> -> tensor<8x!tt.ptr<i1>>
  %p = tt.addptr %s, %a : tensor<8x!tt.ptr<i1>>, tensor<8xi32>
  %q = tt.bitcast %p : tensor<8x!tt.ptr<i1>> -> tensor<8x!tt.ptr<i8>>
  %r = tt.bitcast %p : tensor<8x!tt.ptr<i1>> -> tensor<8x!tt.ptr<i16>>
  tt.return %q, %r : tensor<8x!tt.ptr<i8>>, tensor<8x!tt.ptr<i16>>
}

// What is known of pointers stays said of them.
// CHECK-LABEL: @hints
tt.func private @hints(%x: !tt.ptr<f32>, %a: tensor<8xi32>) -> tensor<8x!tt.ptr<f32>> {
  // CHECK: tt.addptr %{{.*}}, %{{.*}} {tt.contiguity = dense<8> : tensor<1xi32>}
  %one = arith.constant dense<1> : tensor<8xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %p = tt.addptr %s, %a : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %q = tt.addptr %p, %one {tt.contiguity = dense<8> : tensor<1xi32>} : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.return %q : tensor<8x!tt.ptr<f32>>
}

// A row that a loop computes moves two pointers: its sum with the columns stays one tile.
// CHECK-LABEL: @rows_of_two
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f32>, %[[OUT:.*]]: !tt.ptr<f32>,
tt.func private @rows_of_two(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %length: i32) {
  // CHECK-DAG: %[[S:.*]] = tt.splat %[[X]]
  // CHECK-DAG: %[[T:.*]] = tt.splat %[[OUT]]
  // CHECK: scf.for
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}} : tensor<64xi32>
  // CHECK-NEXT: tt.addptr %[[S]], %[[AT]]
  // CHECK: tt.addptr %[[T]], %[[AT]]
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %cols = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %outs = tt.splat %out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %number = arith.muli %i, %length : i32
    %row = arith.muli %number, %c64 : i32
    %r = tt.splat %row : i32 -> tensor<64xi32>
    %at = arith.addi %r, %cols : tensor<64xi32>
    %p = tt.addptr %xs, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %v = tt.load %p : tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %outs, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %q, %v : tensor<64x!tt.ptr<f32>>
  }
  tt.return
}
