// RUN: triton-metal-opt %s --msl-form-tile-loops --msl-place-tiles --msl-lower-reductions | FileCheck %s

// Pairs are added as a chunk, which stays a value until the loop ends its step: the old numbers are read behind the sum.
// CHECK-LABEL: msl.kernel @carried
// CHECK:       %[[OLD:.*]] = msl.var
// CHECK:       scf.for
// CHECK:         %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK-NOT:     %[[OLD]]
// CHECK:         msl.read_tile %[[OLD]]
// CHECK:         msl.store
// CHECK:         msl.write_tile %{{.*}}, %[[OLD]]
msl.kernel @carried(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %p = arith.constant dense<[0, 1]> : vector<2xi32>
  %first = msl.load %x[%p] {width = 2 : i32} : !msl.ptr<f32, device>, vector<2xi32> -> vector<2xf32>
  %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%old = %first) -> (vector<2xf32>) : i32 {
    %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
    %sum = msl.reduce_registers(%v) bits 1 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      msl.yield %c : f32
    } : (vector<4xf32>) -> vector<2xf32>
    msl.store %old, %y[%p] {width = 2 : i32} : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
    scf.yield %sum : vector<2xf32>
  }
  msl.store %last, %x[%p] {width = 2 : i32} : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}
