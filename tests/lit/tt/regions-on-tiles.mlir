// RUN: triton-metal-opt %s --tt-regions-on-tiles --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// Both sides of a branch, and a selection.
// CHECK-LABEL: @magnitude
// CHECK-SAME: (%[[X:.*]]: tensor<128xi32>
tt.func @magnitude(%x: tensor<128xi32>, %p: tensor<128x!tt.ptr<i32>>) {
  // CHECK-NOT: tt.map_elementwise
  // CHECK: %[[C:.*]] = arith.cmpi slt, %[[X]], %cst
  // CHECK: %[[N:.*]] = arith.subi %cst{{.*}}, %[[X]]
  // CHECK: %[[Y:.*]] = arith.select %[[C]], %[[N]], %[[X]] : tensor<128xi1>, tensor<128xi32>
  // CHECK: tt.store %{{.*}}, %[[Y]]
  %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: i32):
    %zero = arith.constant 0 : i32
    %c = arith.cmpi slt, %a, %zero : i32
    %r = scf.if %c -> i32 {
      %n = arith.subi %zero, %a : i32
      scf.yield %n : i32
    } else {
      scf.yield %a : i32
    }
    tt.map_elementwise.return %r : i32
  }) : (tensor<128xi32>) -> tensor<128xi32>
  tt.store %p, %y : tensor<128x!tt.ptr<i32>>
  tt.return
}

// -----

// A loop runs until no element wants another iteration; what has ended keeps its value.
// CHECK-LABEL: @halvings
tt.func @halvings(%x: tensor<64xi32>, %p: tensor<64x!tt.ptr<i32>>) {
  // CHECK: scf.while
  // CHECK: %[[MORE:.*]] = arith.cmpi sgt, %{{.*}} : tensor<64xi32>
  // CHECK: %[[ON:.*]] = arith.andi %{{.*}}, %[[MORE]] : tensor<64xi1>
  // CHECK: arith.select %{{.*}} : tensor<64xi1>, tensor<64xi32>
  // CHECK: "tt.reduce"
  // CHECK: scf.condition
  // CHECK: arith.shrsi
  %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: i32):
    %one = arith.constant 1 : i32
    %r = scf.while (%v = %a) : (i32) -> i32 {
      %c = arith.cmpi sgt, %v, %one : i32
      scf.condition(%c) %v : i32
    } do {
    ^bb1(%v: i32):
      %h = arith.shrsi %v, %one : i32
      scf.yield %h : i32
    }
    tt.map_elementwise.return %r : i32
  }) : (tensor<64xi32>) -> tensor<64xi32>
  tt.store %p, %y : tensor<64x!tt.ptr<i32>>
  tt.return
}

// -----

// Neighbours become tiles of their own.
// CHECK-LABEL: @pairs
tt.func @pairs(%x: tensor<64xi32>, %p: tensor<64x!tt.ptr<i32>>) {
  // CHECK: tt.reshape %{{.*}} -> tensor<32x1x2xi32>
  // CHECK: %[[EVEN:.*]], %[[ODD:.*]] = tt.split
  // CHECK: %[[A:.*]] = tt.reshape %[[EVEN]]
  // CHECK: %[[B:.*]] = tt.reshape %[[ODD]]
  // CHECK: arith.addi %[[A]], %[[B]] : tensor<32xi32>
  // CHECK: tt.join %{{.*}}, %[[EVEN]]
  %y = "tt.map_elementwise"(%x) <{pack = 2 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tt.map_elementwise.return %s, %a : i32, i32
  }) : (tensor<64xi32>) -> tensor<64xi32>
  tt.store %p, %y : tensor<64x!tt.ptr<i32>>
  tt.return
}

// -----

// A combine function that only branches stays one; branches become selections.
// CHECK-LABEL: @branches
tt.func @branches(%x: tensor<64xi32>, %p: !tt.ptr<i32>) {
  // CHECK: "tt.reduce"
  // CHECK-NEXT: ^bb0(%[[A:.*]]: i32, %[[B:.*]]: i32)
  // CHECK-NEXT: %[[C:.*]] = arith.cmpi slt, %[[A]], %[[B]]
  // CHECK-NEXT: %[[R:.*]] = arith.select %[[C]], %[[A]], %[[B]]
  // CHECK-NEXT: tt.reduce.return %[[R]]
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    %r = scf.if %c -> i32 {
      scf.yield %a : i32
    } else {
      scf.yield %b : i32
    }
    tt.reduce.return %r : i32
  }) : (tensor<64xi32>) -> i32
  tt.store %p, %y : !tt.ptr<i32>
  tt.return
}

// -----

// An assertion of elements that have nothing before them says nothing.
// CHECK-LABEL: @checked
tt.func @checked(%x: tensor<8xi32>, %p: tensor<8x!tt.ptr<i32>>) {
  // CHECK: %[[E:.*]] = arith.cmpi sge
  // CHECK: tt.gather
  // CHECK: %[[NONE:.*]] = arith.xori %[[E]]
  // CHECK: %[[OK:.*]] = arith.ori %{{.*}}, %[[NONE]]
  // CHECK: tt.assert %[[OK]]
  %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %zero = arith.constant 0 : i32
    %s = arith.addi %a, %b : i32
    %c = arith.cmpi sge, %s, %zero : i32
    tt.assert %c, "overflow" : i1
    tt.scan.return %s : i32
  }) : (tensor<8xi32>) -> tensor<8xi32>
  tt.store %p, %y : tensor<8x!tt.ptr<i32>>
  tt.return
}

// -----

tt.func @too_wide(%x: tensor<4xi32>) {
  // expected-error @+1 {{packs 8 elements of a tile of 4}}
  %y = "tt.map_elementwise"(%x) <{pack = 8 : i32}> ({
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32, %g: i32, %h: i32):
    tt.map_elementwise.return %a, %b, %c, %d, %e, %f, %g, %h : i32, i32, i32, i32, i32, i32, i32, i32
  }) : (tensor<4xi32>) -> tensor<4xi32>
  tt.return
}

// -----

tt.func @tile_inside(%x: tensor<4xi32>) {
  %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: i32):
    // expected-error @+1 {{works on tiles within a function that is called for each element}}
    %r = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    tt.print "r: " {hex = false, isSigned = array<i32: 1>} : %r : tensor<4xi32>
    tt.map_elementwise.return %a : i32
  }) : (tensor<4xi32>) -> tensor<4xi32>
  tt.return
}
