// RUN: triton-metal-opt %s --split-input-file --verify-diagnostics

tt.func @unknown(%x: f32) {
  // expected-error @+1 {{custom op 'tt.fold_space' is not an operation that triton-metal knows}}
  %0 = tt.fold_space %x : f32
  tt.return
}

// -----

tt.func @range() {
  // expected-error @+1 {{'tt.make_range' op result #0 has type 'tensor<96xi32>', but the sizes of a tile must be powers of two}}
  %0 = tt.make_range {end = 96 : i32, start = 0 : i32} : tensor<96xi32>
  tt.return
}

// -----

tt.func @range() {
  // expected-error @+1 {{'tt.make_range' op has 64 elements, but its type has 128}}
  %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<128xi32>
  tt.return
}

// -----

tt.func @range() {
  // expected-error @+1 {{'tt.make_range' op needs an end after its start, but has 4 and 4}}
  %0 = tt.make_range {end = 4 : i32, start = 4 : i32} : tensor<1xi32>
  tt.return
}

// -----

tt.func @block(%x: f32) {
  // expected-error @+1 {{'tt.splat' op result #0 has type 'tensor<48xf32>', but the sizes of a tile must be powers of two}}
  %0 = tt.splat %x : f32 -> tensor<48xf32>
  tt.return
}

// -----

tt.func @block(%x: f32) {
  // expected-error @+1 {{'tt.splat' op result #0 has type 'tensor<2097152xf32>', but a tile has at most 1048576 elements}}
  %0 = tt.splat %x : f32 -> tensor<2097152xf32>
  tt.return
}

// -----

tt.func @broadcast(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{'tt.broadcast' op repeats only dimensions of size 1, but dimension 1 goes from 4 to 8}}
  %0 = tt.broadcast %x : tensor<8x4xf32> -> tensor<8x8xf32>
  tt.return
}

// -----

tt.func @broadcast(%x: tensor<8xf32>) {
  // expected-error @+1 {{'tt.broadcast' op keeps the number of dimensions, but goes from 'tensor<8xf32>' to 'tensor<8x8xf32>'}}
  %0 = tt.broadcast %x : tensor<8xf32> -> tensor<8x8xf32>
  tt.return
}

// -----

tt.func @expand(%x: tensor<8xf32>) {
  // expected-error @+1 {{'tt.expand_dims' op has no place for a dimension 3 in 'tensor<8xf32>'}}
  %0 = tt.expand_dims %x {axis = 3 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  tt.return
}

// -----

tt.func @reshape(%x: tensor<8xf32>) {
  // expected-error @+1 {{'tt.reshape' op keeps the number of elements, but goes from 'tensor<8xf32>' to 'tensor<4xf32>'}}
  %0 = tt.reshape %x : tensor<8xf32> -> tensor<4xf32>
  tt.return
}

// -----

tt.func @trans(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{'tt.trans' op has the order [1, 1], which does not permute the dimensions of 'tensor<8x4xf32>'}}
  %0 = tt.trans %x {order = array<i32: 1, 1>} : tensor<8x4xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

tt.func @split(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'tt.split' op needs a last dimension of size 2, but splits 'tensor<2x4xf32>'}}
  %0, %1 = tt.split %x : tensor<2x4xf32> -> tensor<2xf32>
  tt.return
}

// -----

tt.func @bitcast(%x: f32) {
  // expected-error @+1 {{'tt.bitcast' op keeps the number of bits, but goes from 'f32' to 'i16'}}
  %0 = tt.bitcast %x : f32 -> i16
  tt.return
}

// -----

tt.func @convert(%x: f32) {
  // expected-error @+1 {{'tt.fp_to_fp' op narrows, and so needs a rounding}}
  %0 = tt.fp_to_fp %x : f32 -> f16
  tt.return
}

// -----

tt.func @dot(%a: tensor<16x32xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{'tt.dot' op sums over the last dimension of a and the one before last of b, but they are 32 and 16}}
  %0 = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @dot(%a: tensor<16x16xf16>, %b: tensor<16x16xbf16>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{'tt.dot' op needs operands of one type, but has 'f16' and 'bf16'}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @dot(%a: tensor<16x16xi8>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{'tt.dot' op does not mix integers and floating-point numbers: 'i8', 'i8' and 'f32'}}
  %0 = tt.dot %a, %a, %c : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @load(%p: tensor<16x!tt.ptr<f32>>, %m: tensor<8xi1>) {
  // expected-error @+1 {{'tt.load' op failed to verify that the mask has the pointers' shape}}
  %0 = "tt.load"(%p, %m) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<16xf32>
  tt.return
}

// -----

tt.func @store(%p: !tt.ptr<f32>, %x: f16) {
  // expected-error @+1 {{'tt.store' op failed to verify that the value has the type that the pointers point to}}
  "tt.store"(%p, %x) : (!tt.ptr<f32>, f16) -> ()
  tt.return
}

// -----

tt.func @atomic_of_bytes(%p: !tt.ptr<f8E5M2>, %x: f8E5M2) {
  // expected-error @+1 {{'tt.atomic_rmw' op 'max' does not work on 'f8E5M2'}}
  %0 = tt.atomic_rmw max, relaxed, gpu, %p, %x : (!tt.ptr<f8E5M2>, f8E5M2) -> f8E5M2
  tt.return
}

// -----

tt.func @atomic(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @+1 {{'tt.atomic_rmw' op 'umax' does not work on 'f32'}}
  %0 = tt.atomic_rmw umax, relaxed, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// -----

tt.func @reduce(%x: tensor<8xf32>) {
  // expected-error @+1 {{'tt.reduce' op needs a region with the arguments 'f32', 'f32', but it has 'f32', 'i32'}}
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: i32):
    tt.reduce.return %a : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

tt.func @reduce(%x: tensor<8xf32>) {
  // expected-error @+1 {{'tt.reduce' op has the axis 1, which is not one of the dimensions of 'tensor<8xf32>'}}
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %a : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

tt.func @reduce(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{'tt.reduce' op makes 'tensor<8xf32>', not 'tensor<4xf32>'}}
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %a : f32
  }) : (tensor<8x4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @call(%x: f32) {
  // expected-error @+1 {{'tt.call' op calls 'nothing', which is no function of this module}}
  tt.call @nothing(%x) : (f32) -> ()
  tt.return
}

// -----

tt.func private @callee(%x: f32) -> f32 {
  // expected-error @+1 {{'tt.return' op returns 'f32', 'f32', but 'callee' returns 'f32'}}
  tt.return %x, %x : f32, f32
}

// -----

// expected-error @+1 {{a pointer points to an integer, a floating-point number or a pointer, not to 'vector<4xf32>'}}
tt.func @pointer(%x: !tt.ptr<vector<4xf32>>) {
  tt.return
}

// -----

// expected-error @below {{address space 'elsewhere' is unknown; it is 'global', 'descriptor' or 'constant'}}
tt.func public @space(%x: !tt.ptr<f32, "elsewhere">) {
  tt.return
}

// -----

// expected-error @below {{an address space is a number or a name in quotes}}
tt.func public @space(%x: !tt.ptr<f32, %y>) {
  tt.return
}
