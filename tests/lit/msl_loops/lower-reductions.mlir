// RUN: triton-metal-opt %s --split-input-file --msl-lower-reductions | FileCheck %s

// A loop accumulates chunks, from the neutral element of addition, -0; then components are combined.
// CHECK-LABEL: msl.kernel @shared_loop
// CHECK:       %[[V0:.*]] = msl.var : <1xvector<4xf32>>
// CHECK:       msl.set %{{.*}}, %[[V0]] : vector<4xf32>, <1xvector<4xf32>>
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    %[[V8:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:    msl.accumulate %[[V8]], %[[V0]] {
// CHECK-NEXT:    ^bb0(%[[ARG2:.*]]: f32, %[[ARG3:.*]]: f32):
// CHECK-NEXT:      %[[V9:.*]] = arith.addf %[[ARG2]], %[[ARG3]] : f32
// CHECK-NEXT:      msl.yield %[[V9]] : f32
// CHECK-NEXT:    } : vector<8xf32>, <1xvector<4xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V1:.*]] = msl.get %[[V0]] : <1xvector<4xf32>> -> vector<4xf32>
// CHECK-NEXT:  %[[V2:.*]] = msl.swizzle %[[V1]] [0, 1] : vector<4xf32> -> vector<2xf32>
// CHECK-NEXT:  %[[V3:.*]] = msl.swizzle %[[V1]] [2, 3] : vector<4xf32> -> vector<2xf32>
// CHECK-NEXT:  %[[V4:.*]] = arith.addf %[[V2]], %[[V3]] : vector<2xf32>
// CHECK-NEXT:  %[[V5:.*]] = msl.swizzle %[[V4]] [0] : vector<2xf32> -> f32
// CHECK-NEXT:  %[[V6:.*]] = msl.swizzle %[[V4]] [1] : vector<2xf32> -> f32
// CHECK-NEXT:  %[[V7:.*]] = arith.addf %[[V5]], %[[V6]] : f32
// CHECK-NEXT:  msl.store %[[V7]], %[[ARG0]][%[[ARG1:.*]]] : f32, <f32, device>, i32
msl.kernel @shared_loop(%x: !msl.ptr<f32, device>, %z: i32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %s = msl.tile_loop 8 step 4 {
    %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
    %r = msl.reduce_registers (%v) bits 7 {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        msl.yield %c : f32
    } : (vector<8xf32>) -> f32
    msl.yield %r : f32
  } : f32
  msl.store %s, %x[%z] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// A loop of one step has nothing to accumulate.
// CHECK-LABEL: msl.kernel @one_step
// CHECK:       %[[V0:.*]] = msl.tile_loop 4 step 4 {
// CHECK-NEXT:    %[[V8:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f32, device>, vector<4xi32> -> vector<4xf32>
// CHECK-NEXT:    msl.yield %[[V8]] : vector<4xf32>
// CHECK-NEXT:  } : vector<4xf32>
// CHECK-NEXT:  %[[V1:.*]] = msl.chunk %[[V0]] : vector<4xf32> -> vector<4xf32>
// CHECK-NEXT:  %[[V2:.*]] = msl.swizzle %[[V1]] [0, 1] : vector<4xf32> -> vector<2xf32>
// CHECK-NEXT:  %[[V3:.*]] = msl.swizzle %[[V1]] [2, 3] : vector<4xf32> -> vector<2xf32>
// CHECK-NEXT:  %[[V4:.*]] = arith.maxnumf %[[V2]], %[[V3]] : vector<2xf32>
// CHECK-NEXT:  %[[V5:.*]] = msl.swizzle %[[V4]] [0] : vector<2xf32> -> f32
// CHECK-NEXT:  %[[V6:.*]] = msl.swizzle %[[V4]] [1] : vector<2xf32> -> f32
// CHECK-NEXT:  %[[V7:.*]] = arith.maxnumf %[[V5]], %[[V6]] : f32
// CHECK-NEXT:  msl.store %[[V7]], %[[ARG0]][%[[ARG1:.*]]] : f32, <f32, device>, i32
msl.kernel @one_step(%x: !msl.ptr<f32, device>, %z: i32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %s = msl.tile_loop 4 step 4 {
    %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
    %r = msl.reduce_registers (%v) bits 3 {
      ^bb0(%a: f32, %b: f32):
        %c = arith.maxnumf %a, %b : f32
        msl.yield %c : f32
    } : (vector<4xf32>) -> f32
    msl.yield %r : f32
  } : f32
  msl.store %s, %x[%z] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// The registers of each vector: one loop over what stays.
// CHECK-LABEL: msl.kernel @inside_chunks
// CHECK:       %[[V0:.*]] = msl.var : <4xvector<4xf32>>
// CHECK-NEXT:  %[[V1:.*]] = msl.var : <4xf32>
// CHECK-NEXT:  %[[V2:.*]] = msl.read_tile %[[V0]] : <4xvector<4xf32>> -> vector<16xf32>
// CHECK-NEXT:  msl.unroll %[[ARG1:.*]] = 0 to 4 {
// CHECK-NEXT:    %[[V3:.*]] = msl.chunk %[[V2]][%[[ARG1]]] strides [4] : vector<16xf32> -> vector<4xf32>
// CHECK-NEXT:    %[[V4:.*]] = msl.swizzle %[[V3]] [0, 1] : vector<4xf32> -> vector<2xf32>
// CHECK-NEXT:    %[[V5:.*]] = msl.swizzle %[[V3]] [2, 3] : vector<4xf32> -> vector<2xf32>
// CHECK-NEXT:    %[[V6:.*]] = arith.addf %[[V4]], %[[V5]] : vector<2xf32>
// CHECK-NEXT:    %[[V7:.*]] = msl.swizzle %[[V6]] [0] : vector<2xf32> -> f32
// CHECK-NEXT:    %[[V8:.*]] = msl.swizzle %[[V6]] [1] : vector<2xf32> -> f32
// CHECK-NEXT:    %[[V9:.*]] = arith.addf %[[V7]], %[[V8]] : f32
// CHECK-NEXT:    msl.set %[[V9]], %[[V1]][%[[ARG1]]] : f32, <4xf32>
// CHECK-NEXT:  }
msl.kernel @inside_chunks(%from: !msl.ptr<f32, device>) threads 32 {
  %t = msl.var : !msl.array<4xvector<4xf32>>
  %u = msl.var : !msl.array<4xf32>
  %v = msl.read_tile %t : !msl.array<4xvector<4xf32>> -> vector<16xf32>
  %r = msl.reduce_registers (%v) bits 3 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      msl.yield %c : f32
  } : (vector<16xf32>) -> vector<4xf32>
  msl.write_tile %r, %u : vector<4xf32>, !msl.array<4xf32>
  msl.return
}

// -----

// Vectors with each other, by a loop over what is reduced; the index with the largest value beside it.
// CHECK-LABEL: msl.kernel @two_values
// CHECK:       %[[V0:.*]] = msl.var : <4xvector<2xf32>>
// CHECK-NEXT:  %[[V1:.*]] = msl.var : <4xvector<2xi32>>
// CHECK-NEXT:  %[[V2:.*]] = msl.read_tile %[[V0]] : <4xvector<2xf32>> -> vector<8xf32>
// CHECK-NEXT:  %[[V3:.*]] = msl.read_tile %[[V1]] : <4xvector<2xi32>> -> vector<8xi32>
// CHECK-NEXT:  %[[V4:.*]] = msl.chunk %[[V2]] : vector<8xf32> -> vector<2xf32>
// CHECK-NEXT:  %[[V5:.*]] = msl.chunk %[[V3]] : vector<8xi32> -> vector<2xi32>
// CHECK-NEXT:  %[[V6:.*]] = msl.var : <1xvector<2xf32>>
// CHECK-NEXT:  msl.set %[[V4]], %[[V6]] : vector<2xf32>, <1xvector<2xf32>>
// CHECK-NEXT:  %[[V7:.*]] = msl.var : <1xvector<2xi32>>
// CHECK-NEXT:  msl.set %[[V5]], %[[V7]] : vector<2xi32>, <1xvector<2xi32>>
// CHECK-NEXT:  msl.unroll %[[ARG1:.*]] = 1 to 4 {
// CHECK-NEXT:    %[[V14:.*]] = msl.chunk %[[V2]][%[[ARG1]]] strides [2] : vector<8xf32> -> vector<2xf32>
// CHECK-NEXT:    %[[V15:.*]] = msl.chunk %[[V3]][%[[ARG1]]] strides [2] : vector<8xi32> -> vector<2xi32>
// CHECK-NEXT:    %[[V16:.*]] = msl.get %[[V6]] : <1xvector<2xf32>> -> vector<2xf32>
// CHECK-NEXT:    %[[V17:.*]] = msl.get %[[V7]] : <1xvector<2xi32>> -> vector<2xi32>
// CHECK-NEXT:    %[[V18:.*]] = arith.cmpf ogt, %[[V16]], %[[V14]] : vector<2xf32>
// CHECK-NEXT:    %[[V19:.*]] = arith.select %[[V18]], %[[V16]], %[[V14]] : vector<2xi1>, vector<2xf32>
// CHECK-NEXT:    %[[V20:.*]] = arith.select %[[V18]], %[[V17]], %[[V15]] : vector<2xi1>, vector<2xi32>
// CHECK-NEXT:    msl.set %[[V19]], %[[V6]] : vector<2xf32>, <1xvector<2xf32>>
// CHECK-NEXT:    msl.set %[[V20]], %[[V7]] : vector<2xi32>, <1xvector<2xi32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V8:.*]] = msl.get %[[V6]] : <1xvector<2xf32>> -> vector<2xf32>
// CHECK-NEXT:  %[[V9:.*]] = msl.get %[[V7]] : <1xvector<2xi32>> -> vector<2xi32>
// CHECK-NEXT:  %[[V10:.*]] = msl.as_tile %[[V8]] : vector<2xf32>
// CHECK-NEXT:  %[[V11:.*]] = msl.as_tile %[[V9]] : vector<2xi32>
// CHECK-NEXT:  %[[V12:.*]] = msl.var : <1xvector<2xf32>>
// CHECK-NEXT:  %[[V13:.*]] = msl.chunk %[[V10]] : vector<2xf32> -> vector<2xf32>
// CHECK-NEXT:  msl.set %[[V13]], %[[V12]] : vector<2xf32>, <1xvector<2xf32>>
msl.kernel @two_values(%from: !msl.ptr<f32, device>) threads 32 {
  %t = msl.var : !msl.array<4xvector<2xf32>>
  %k = msl.var : !msl.array<4xvector<2xi32>>
  %v = msl.read_tile %t : !msl.array<4xvector<2xf32>> -> vector<8xf32>
  %i = msl.read_tile %k : !msl.array<4xvector<2xi32>> -> vector<8xi32>
  %r:2 = msl.reduce_registers (%v, %i) bits 6 {
    ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
      %is = arith.cmpf ogt, %a, %b : f32
      %c = arith.select %is, %a, %b : f32
      %ci = arith.select %is, %ai, %bi : i32
      msl.yield %c, %ci : f32, i32
  } : (vector<8xf32>, vector<8xi32>) -> (vector<2xf32>, vector<2xi32>)
  %u = msl.var : !msl.array<1xvector<2xf32>>
  %w = msl.chunk %r#0 : vector<2xf32> -> vector<2xf32>
  msl.set %w, %u : vector<2xf32>, !msl.array<1xvector<2xf32>>
  msl.return
}
