// RUN: triton-metal-opt %s --split-input-file --msl-lower-chunks | FileCheck %s

// Constants are linear in the indices; a chunk's components differ from the first by constants.
// CHECK-LABEL: msl.kernel @constants
// CHECK:       msl.unroll %[[ARG2:.*]] = 0 to 2 {
// CHECK:         %[[V0:.*]] = arith.muli %[[ARG2]], %c16_i32 overflow<nsw> : i32
// CHECK-NEXT:    %[[V1:.*]] = msl.splat %[[V0]] : vector<4xi32>
// CHECK:         %[[V2:.*]] = arith.addi %[[V1]], %{{.*}} overflow<nsw> : vector<4xi32>
// CHECK-NEXT:    %[[V3:.*]] = msl.swizzle %[[V2]] [2] : vector<4xi32> -> i32
// CHECK-NEXT:    msl.write %[[V2]], %[[ARG0:.*]][%[[V3]] : i32] : vector<4xi32>, <i32, device>
// CHECK-NEXT:  }
msl.kernel @constants(%x: !msl.ptr<i32, device>, %f: f32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 16, 17, 18, 19]> : vector<8xi32>
  msl.unroll %i = 0 to 2 {
    %c = msl.chunk %o[%i] strides [4] : vector<8xi32> -> vector<4xi32>
    %e = msl.chunk %o[%i] strides [4] offset 2 : vector<8xi32> -> i32
    msl.write %c, %x[%e : i32] : vector<4xi32>, !msl.ptr<i32, device>
  }
  msl.return
}

// -----

// What is computed on demand is computed for the chunk, once in a block; not what nobody asks for.
// CHECK-LABEL: msl.kernel @on_demand
// CHECK:       msl.unroll %[[ARG2:.*]] = 0 to 8 {
// CHECK:         %[[V0:.*]] = arith.muli %[[ARG2]], %c2_i32 overflow<nsw> : i32
// CHECK-NEXT:    %[[V1:.*]] = arith.addi %[[V0]], %[[ARG1:.*]] : i32
// CHECK-NEXT:    msl.write %[[V1]], %[[ARG0:.*]][%[[V1]] : i32] : i32, <i32, device>
// CHECK-NEXT:  }
msl.kernel @on_demand(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %o = arith.constant dense<[0, 2, 4, 6, 8, 10, 12, 14]> : vector<8xi32>
  %ns = msl.splat %n : vector<8xi32>
  %sum = arith.addi %o, %ns : vector<8xi32>
  %unused = arith.muli %sum, %ns : vector<8xi32>
  msl.unroll %i = 0 to 8 {
    %a = msl.chunk %sum[%i] strides [1] : vector<8xi32> -> i32
    %b = msl.chunk %sum[%i] strides [1] : vector<8xi32> -> i32
    msl.write %a, %x[%b : i32] : i32, !msl.ptr<i32, device>
  }
  msl.return
}

// -----

// Another order asks for other registers: all of one vector, every second one, one for all.
// CHECK-LABEL: msl.kernel @orders
// CHECK:       %[[V0:.*]] = msl.var : <4xvector<4xf32>>
// CHECK-NEXT:  msl.unroll %[[ARG1:.*]] = 0 to 2 {
// CHECK:         %[[V1:.*]] = arith.muli %[[ARG1]], %c2_i32 overflow<nsw> : i32
// CHECK-NEXT:    %[[V2:.*]] = msl.get %[[V0]][%[[V1]]] : <4xvector<4xf32>> -> vector<4xf32>
// CHECK:         %[[V3:.*]] = msl.get %[[V0]][%c0_i32] element %[[ARG1]] : <4xvector<4xf32>> -> f32
// CHECK:         %[[V4:.*]] = msl.get %[[V0]][%c1_i32] element %[[ARG1]] : <4xvector<4xf32>> -> f32
// CHECK:         %[[V5:.*]] = msl.get %[[V0]][%c2_i32{{[_0-9]*}}] element %[[ARG1]] : <4xvector<4xf32>> -> f32
// CHECK:         %[[V6:.*]] = msl.get %[[V0]][%c3_i32] element %[[ARG1]] : <4xvector<4xf32>> -> f32
// CHECK-NEXT:    %[[V7:.*]] = msl.vector %[[V3]], %[[V4]], %[[V5]], %[[V6]] : f32, f32, f32, f32 -> vector<4xf32>
// CHECK-NEXT:    %[[V8:.*]] = msl.get %[[V0]][%[[ARG1]]] : <4xvector<4xf32>> -> vector<4xf32>
// CHECK-NEXT:    %[[V9:.*]] = msl.swizzle %[[V8]] [0] : vector<4xf32> -> f32
// CHECK-NEXT:    %[[V10:.*]] = msl.splat %[[V9]] : vector<4xf32>
// CHECK-NEXT:    %[[V11:.*]] = arith.addf %[[V2]], %[[V7]] : vector<4xf32>
// CHECK-NEXT:    %[[V12:.*]] = arith.addf %[[V11]], %[[V10]] : vector<4xf32>
// CHECK-NEXT:    msl.write %[[V12]], %[[ARG0:.*]][%[[ARG1]] : i32] : vector<4xf32>, <f32, device>
// CHECK-NEXT:  }
msl.kernel @orders(%x: !msl.ptr<f32, device>) threads 32 {
  %t = msl.var : !msl.array<4xvector<4xf32>>
  %v = msl.read_tile %t : !msl.array<4xvector<4xf32>> -> vector<16xf32>
  %rows = msl.permute_registers %v {bases = array<i64: 1, 2, 8, 4>} : vector<16xf32> -> vector<16xf32>
  %columns = msl.permute_registers %v {bases = array<i64: 4, 8, 1, 2>} : vector<16xf32> -> vector<16xf32>
  %same = msl.permute_registers %v {bases = array<i64: 0, 0, 4, 8>} : vector<16xf32> -> vector<16xf32>
  msl.unroll %i = 0 to 2 {
    %a = msl.chunk %rows[%i] strides [4] : vector<16xf32> -> vector<4xf32>
    %b = msl.chunk %columns[%i] strides [4] : vector<16xf32> -> vector<4xf32>
    %c = msl.chunk %same[%i] strides [4] : vector<16xf32> -> vector<4xf32>
    %ab = arith.addf %a, %b : vector<4xf32>
    %abc = arith.addf %ab, %c : vector<4xf32>
    msl.write %abc, %x[%i : i32] : vector<4xf32>, !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// A component of a chunk that is known is taken from it, two halves make a chunk, and a Metal vector is its own.
// CHECK-LABEL: msl.kernel @known
// CHECK:       %[[V0:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:  %[[V1:.*]] = msl.read %[[ARG1:.*]] : <f32, device> -> vector<4xf32>
// CHECK-NEXT:  msl.unroll %[[ARG2:.*]] = 0 to 2 {
// CHECK-NEXT:    %[[V2:.*]] = msl.get %[[V0]][%[[ARG2]]] : <2xvector<4xf32>> -> vector<4xf32>
// CHECK-NEXT:    msl.write %[[V2]], %[[ARG0:.*]][%[[ARG2]] : i32] : vector<4xf32>, <f32, device>
// CHECK-NEXT:    msl.unroll %[[ARG3:.*]] = 0 to 4 {
// CHECK-NEXT:      %[[V3:.*]] = msl.element %[[V2]][%[[ARG3]]] : vector<4xf32> -> f32
// CHECK-NEXT:      %[[V4:.*]] = msl.element %[[V1]][%[[ARG3]]] : vector<4xf32> -> f32
// CHECK-NEXT:      %[[V5:.*]] = arith.addf %[[V3]], %[[V4]] : f32
// CHECK-NEXT:      msl.write %[[V5]], %[[ARG0]][%[[ARG3]] : i32] : f32, <f32, device>
// CHECK-NEXT:    }
// CHECK-NEXT:  }
msl.kernel @known(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %t = msl.var : !msl.array<2xvector<4xf32>>
  %v = msl.read_tile %t : !msl.array<2xvector<4xf32>> -> vector<8xf32>
  %w = msl.read %y : !msl.ptr<f32, device> -> vector<4xf32>
  %tile = msl.as_tile %w : vector<4xf32>
  msl.unroll %i = 0 to 2 {
    %a = msl.chunk %v[%i] strides [4] : vector<8xf32> -> vector<4xf32>
    msl.write %a, %x[%i : i32] : vector<4xf32>, !msl.ptr<f32, device>
    msl.unroll %j = 0 to 4 {
      %b = msl.chunk %v[%i, %j] strides [4, 1] : vector<8xf32> -> f32
      %c = msl.chunk %tile[%j] strides [1] : vector<4xf32> -> f32
      %bc = arith.addf %b, %c : f32
      msl.write %bc, %x[%j : i32] : f32, !msl.ptr<f32, device>
    }
  }
  msl.return
}

// -----

// A constant choice between two tiles takes components: of chunks, and of tiles that are computed on demand.
// CHECK-LABEL: msl.kernel @known_choice
// CHECK-SAME:    (%[[X:.*]]: !msl.ptr<f32, device>, %[[Y:.*]]: !msl.ptr<f32, device>)
// CHECK:         %[[A:.*]] = msl.read %[[X]]
// CHECK:         %[[B:.*]] = msl.read %[[Y]]
// CHECK:         %[[A0:.*]] = msl.swizzle %[[A]] [0]
// CHECK:         %[[B1:.*]] = msl.swizzle %[[B]] [1]
// CHECK:         %[[A2:.*]] = msl.swizzle %[[A]] [2]
// CHECK:         %[[B3:.*]] = msl.swizzle %[[B]] [3]
// CHECK:         %[[BOTH:.*]] = msl.vector %[[A0]], %[[B1]], %[[A2]], %[[B3]]
// CHECK-NOT:     arith.select
// CHECK:         msl.write %[[BOTH]], %[[X]]
// CHECK:         %[[V:.*]] = msl.vector %{{.*}}, %{{.*}} : f32, f32 -> vector<2xf32>
// CHECK:         msl.write %[[V]], %[[X]]
msl.kernel @known_choice(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %a = msl.read %x : !msl.ptr<f32, device> -> vector<4xf32>
  %b = msl.read %y : !msl.ptr<f32, device> -> vector<4xf32>
  %odd = arith.constant dense<[false, true, false, true]> : vector<4xi1>
  %both = arith.select %odd, %b, %a : vector<4xi1>, vector<4xf32>
  msl.write %both, %x : vector<4xf32>, !msl.ptr<f32, device>
  %ta = msl.as_tile %a : vector<4xf32>
  %tb = msl.as_tile %b : vector<4xf32>
  %pa = msl.permute_registers %ta {bases = array<i64: 0, 1, 2>} : vector<4xf32> -> vector<8xf32>
  %pb = msl.permute_registers %tb {bases = array<i64: 0, 1, 2>} : vector<4xf32> -> vector<8xf32>
  %odd8 = arith.constant dense<[false, true, false, true, false, true, false, true]> : vector<8xi1>
  %tile = arith.select %odd8, %pb, %pa : vector<8xi1>, vector<8xf32>
  %part = msl.chunk %tile offset 2 : vector<8xf32> -> vector<2xf32>
  msl.write %part, %x : vector<2xf32>, !msl.ptr<f32, device>
  msl.return
}

// -----

// A constant that is the same in each step of the loop is no arithmetic on its index, and picks components.
// CHECK-LABEL: msl.kernel @picked
// CHECK:       msl.unroll %[[I:.*]] = 0 to 2 {
// CHECK-DAG:     %[[X:.*]] = msl.get %{{.*}}[%[[I]]] : <2xvector<4xf32>> -> vector<4xf32>
// CHECK-DAG:     %[[Z:.*]] = msl.get %{{.*}}[%[[I]]] : <2xvector<4xf32>> -> vector<4xf32>
// CHECK:         %[[W:.*]] = msl.vector
// CHECK-NOT:     arith.select
// CHECK:         msl.set %[[W]]
msl.kernel @picked(%o: i32) threads 32 {
  %a = msl.var : !msl.array<2xvector<4xf32>>
  %b = msl.var : !msl.array<2xvector<4xf32>>
  %c = msl.var : !msl.array<2xvector<4xf32>>
  %odd = arith.constant dense<[0, 1, 0, 1, 0, 1, 0, 1]> : vector<8xi1>
  %x = msl.read_tile %a : !msl.array<2xvector<4xf32>> -> vector<8xf32>
  %z = msl.read_tile %b : !msl.array<2xvector<4xf32>> -> vector<8xf32>
  msl.unroll %i = 0 to 2 {
    %xs = msl.chunk %x[%i] strides [4] : vector<8xf32> -> vector<4xf32>
    %zs = msl.chunk %z[%i] strides [4] : vector<8xf32> -> vector<4xf32>
    %choice = msl.chunk %odd[%i] strides [4] : vector<8xi1> -> vector<4xi1>
    %w = arith.select %choice, %zs, %xs : vector<4xi1>, vector<4xf32>
    msl.set %w, %c[%i] : vector<4xf32>, !msl.array<2xvector<4xf32>>
  }
  msl.return
}
