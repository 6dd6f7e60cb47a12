// What a block pointer or a tensor descriptor cannot be, and what cannot take one.
// RUN: triton-metal-opt %s -split-input-file -verify-diagnostics -tt-rewrite-descriptors

tt.func public @stride(%x: !tt.ptr<f32>, %n: i32) {
  %c8 = arith.constant 8 : i64
  // expected-error @+1 {{has stride 8 in its last dimension, which must be contiguous: its stride is 1}}
  %d = tt.make_tensor_descriptor %x, [%n, %n], [%c8, %c8] : <f32>, <8x16xf32>
  tt.return
}

// -----

tt.func public @rank(%x: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @+1 {{has 1 sizes, but its block has 2 dimensions}}
  %d = tt.make_tensor_descriptor %x, [%n], [%s, %s] : <f32>, <8x16xf32>
  tt.return
}

// -----

tt.func public @padding(%x: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @+1 {{has padding 3; it can be 1 (zeros) or 2 (NaN)}}
  %d = tt.make_tensor_descriptor %x, [%n], [%s] {padding = 3 : i32} : <f32>, <8xf32>
  tt.return
}

// -----

tt.func public @integer_nan(%x: !tt.ptr<i32>, %n: i32, %s: i64) {
  // expected-error @+1 {{pads 'i32' with NaN, which only floats have}}
  %d = tt.make_tensor_descriptor %x, [%n], [%s] {padding = 2 : i32} : <i32>, <8xsi32>
  tt.return
}

// -----

tt.func public @element(%x: !tt.ptr<i32>, %n: i32, %s: i64) {
  // expected-error @+1 {{has a base of 'i32', but blocks of 'f32'}}
  %d = tt.make_tensor_descriptor %x, [%n], [%s] : <i32>, <8xf32>
  tt.return
}

// -----

tt.func public @tile(%d: !tt.tensordesc<8x16xf32>, %i: i32) {
  // expected-error @+1 {{moves a tile of type 'tensor<16x8xf32>', but the descriptor's block is 'tensor<8x16xf32>'}}
  %v = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<8x16xf32> -> tensor<16x8xf32>
  tt.return
}

// -----

tt.func public @offsets(%d: !tt.tensordesc<8x16xf32>, %i: i32) {
  // expected-error @+1 {{has 1 offsets, but its block has 2 dimensions}}
  %v = tt.descriptor_load %d[%i] : !tt.tensordesc<8x16xf32> -> tensor<8x16xf32>
  tt.return
}

// -----

tt.func public @rows(%d: !tt.tensordesc<8x16xf32>, %r: tensor<8xi32>, %i: i32) {
  // expected-error @+1 {{takes a descriptor whose block is one row}}
  %v = tt.descriptor_gather %d[%r, %i] : (!tt.tensordesc<8x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  tt.return
}

// -----

tt.func public @bits(%d: !tt.tensordesc<16xf32>, %v: tensor<16xf32>, %i: i32) {
  // expected-error @+1 {{'xor' does not work on 'f32'}}
  tt.descriptor_reduce xor, %d[%i], %v : !tt.tensordesc<16xf32>, tensor<16xf32>
  tt.return
}

// -----

tt.func public @mask(%x: !tt.ptr<f32>, %n: i64, %i: i32, %m: i1) {
  %p = tt.make_tensor_ptr %x, [%n], [%n], [%i] {order = array<i32: 0>} : <tensor<8xf32>>
  // expected-error @+1 {{has a mask; an access through a block pointer checks bounds instead}}
  %v = tt.load %p, %m : !tt.ptr<tensor<8xf32>>
  tt.return
}

// -----

tt.func public @check(%x: !tt.ptr<f32>, %n: i64, %i: i32) {
  %p = tt.make_tensor_ptr %x, [%n], [%n], [%i] {order = array<i32: 0>} : <tensor<8xf32>>
  // expected-error @+1 {{checks the bound of dimension 1}}
  %v = tt.load %p {boundaryCheck = array<i32: 1>} : !tt.ptr<tensor<8xf32>>
  tt.return
}

// -----

tt.func public @no_block(%x: !tt.ptr<f32>) {
  // expected-error @+1 {{checks bounds, which only a block pointer has}}
  %v = tt.load %x {boundaryCheck = array<i32: 0>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func public @order(%x: !tt.ptr<f32>, %n: i64, %i: i32) {
  // expected-error @+1 {{has an 'order' that does not list each dimension once}}
  %p = tt.make_tensor_ptr %x, [%n], [%n], [%i] {order = array<i32: 1>} : <tensor<8xf32>>
  tt.return
}

// -----

// expected-error @+1 {{a block pointer is made in the kernel}}
tt.func public @argument(%p: !tt.ptr<tensor<8xf32>>) {
  tt.return
}

// -----

tt.func public @other(%x: !tt.ptr<f32>, %n: i64, %i: i32) {
  %p = tt.make_tensor_ptr %x, [%n], [%n], [%i] {order = array<i32: 0>} : <tensor<8xf32>>
  // expected-error @+1 {{takes or makes a block pointer or a tensor descriptor}}
  %a = tt.ptr_to_int %p : !tt.ptr<tensor<8xf32>> -> i64
  tt.return
}

// -----

// expected-error @+1 {{argument 0 has tt.shape_follows, so 2 sizes (i32) and 2 strides (i64) must follow it}}
tt.func public @shape(%d: !tt.tensordesc<8x16xf32> {tt.shape_follows = true}, %m: i32, %n: i32, %s: i64) {
  tt.return
}

// -----

// expected-error @+1 {{argument 0 has tt.shape_follows and is no tensor descriptor}}
tt.func public @no_descriptor(%m: i32 {tt.shape_follows = true}, %d: !tt.tensordesc<8x16xf32>) {
  tt.return
}
