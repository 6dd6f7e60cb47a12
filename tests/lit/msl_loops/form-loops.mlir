// RUN: triton-metal-opt %s --split-input-file --msl-form-loops | FileCheck %s

// Loads and stores of Metal vectors, whose first offsets are asked for.
// CHECK-LABEL: msl.kernel @vectors
// CHECK:       %[[V0:.*]] = msl.splat %[[ARG2:.*]] : vector<32xi32>
// CHECK-NEXT:  msl.unroll %[[ARG3:.*]] = 0 to 8 {
// CHECK-NEXT:    %[[V1:.*]] = msl.chunk %[[V0]][%[[ARG3]]] strides [4] : vector<32xi32> -> i32
// CHECK-NEXT:    %[[V2:.*]] = msl.read %[[ARG0:.*]][%[[V1]] : i32] : <f32, device> -> vector<4xf32>
// CHECK-NEXT:    %[[V3:.*]] = arith.mulf %[[V2]], %[[V2]] : vector<4xf32>
// CHECK-NEXT:    %[[V4:.*]] = msl.chunk %[[V0]][%[[ARG3]]] strides [4] : vector<32xi32> -> i32
// CHECK-NEXT:    msl.write %[[V3]], %[[ARG1:.*]][%[[V4]] : i32] : vector<4xf32>, <f32, device>
// CHECK-NEXT:  }
msl.kernel @vectors(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %o: i32) threads 32 {
  %at = msl.splat %o : vector<32xi32>
  msl.tile_loop 32 step 4 {
    %v = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32>
    %w = arith.mulf %v, %v : vector<32xf32>
    msl.store %w, %y[%at] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  }
  msl.return
}

// -----

// A body without masks where the uniform condition holds, else one in which each register is a branch.
// CHECK-LABEL: msl.kernel @masked
// CHECK:       %[[V0:.*]] = msl.splat %[[ARG2:.*]] : vector<8xi32>
// CHECK-NEXT:  %[[V1:.*]] = arith.cmpi slt, %{{.*}}, %[[V0]] : vector<8xi32>
// CHECK-NEXT:  scf.if %[[ARG3:.*]] {
// CHECK-NEXT:    msl.unroll %[[ARG4:.*]] = 0 to 2 {
// CHECK-NEXT:      %[[V2:.*]] = msl.chunk %{{.*}}[%[[ARG4]]] strides [4] : vector<8xi32> -> i32
// CHECK-NEXT:      %[[V3:.*]] = msl.read %[[ARG0:.*]][%[[V2]] : i32] : <f32, device> -> vector<4xf32>
// CHECK-NEXT:      %[[V4:.*]] = msl.chunk %{{.*}}[%[[ARG4]]] strides [4] : vector<8xi32> -> i32
// CHECK-NEXT:      msl.write %[[V3]], %[[ARG1:.*]][%[[V4]] : i32] : vector<4xf32>, <f32, device>
// CHECK-NEXT:    }
// CHECK-NEXT:  } else {
// CHECK-NEXT:    msl.unroll %[[ARG4]] = 0 to 8 {
// CHECK-NEXT:      %[[IN:.*]] = msl.chunk %[[V1]][%[[ARG4]]] strides [1] : vector<8xi1> -> i1
// CHECK-NEXT:      scf.if %[[IN]] {
// CHECK-NEXT:        %[[FROM:.*]] = msl.chunk %{{.*}}[%[[ARG4]]] strides [1] : vector<8xi32> -> i32
// CHECK-NEXT:        %[[X:.*]] = msl.read %[[ARG0]][%[[FROM]] : i32] : <f32, device> -> f32
// CHECK-NEXT:        %[[TO:.*]] = msl.chunk %{{.*}}[%[[ARG4]]] strides [1] : vector<8xi32> -> i32
// CHECK-NEXT:        msl.write %[[X]], %[[ARG1]][%[[TO]] : i32] : f32, <f32, device>
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
msl.kernel @masked(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %all: i1) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %ns = msl.splat %n : vector<8xi32>
  %m = arith.cmpi slt, %o, %ns : vector<8xi32>
  msl.tile_loop 8 step 4 {
    %v = msl.load %x[%o] mask %m full %all {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
    msl.store %v, %y[%o] mask %m full %all {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  }
  msl.return
}

// -----

// Two masks: a load under one of them is a choice, and only the store is a branch.
// CHECK-LABEL: msl.kernel @two_masks
// CHECK:         msl.read %arg0{{.*}} if %{{.*}} else
// CHECK:         scf.if
// CHECK:           msl.write
msl.kernel @two_masks(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32, %k: i32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %ns = msl.splat %n : vector<4xi32>
  %ks = msl.splat %k : vector<4xi32>
  %m = arith.cmpi slt, %o, %ns : vector<4xi32>
  %l = arith.cmpi slt, %o, %ks : vector<4xi32>
  msl.tile_loop 4 step 1 {
    %v = msl.load %x[%o] mask %l : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
    msl.store %v, %y[%o] mask %m : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// Sixteen bytes at once of small numbers: words.
// CHECK-LABEL: msl.kernel @words
// CHECK:       %[[V0:.*]] = msl.splat %[[ARG2:.*]] : vector<16xi32>
// CHECK-NEXT:  msl.unroll %[[ARG3:.*]] = 0 to 2 {
// CHECK-NEXT:    %[[V1:.*]] = msl.chunk %[[V0]][%[[ARG3]]] strides [8] : vector<16xi32> -> i32
// CHECK-NEXT:    %[[V2:.*]] = msl.read %[[ARG0:.*]][%[[V1]] : i32] : <f16, device> -> vector<4xi32>
// CHECK-NEXT:    %[[V3:.*]] = msl.swizzle %[[V2]] [0, 1] : vector<4xi32> -> vector<2xi32>
// CHECK-NEXT:    %[[V4:.*]] = msl.as_type %[[V3]] : vector<2xi32> -> vector<4xf16>
// CHECK-NEXT:    %[[V5:.*]] = msl.swizzle %[[V2]] [2, 3] : vector<4xi32> -> vector<2xi32>
// CHECK-NEXT:    %[[V6:.*]] = msl.as_type %[[V5]] : vector<2xi32> -> vector<4xf16>
// CHECK-NEXT:    %[[V7:.*]] = msl.as_type %[[V4]] : vector<4xf16> -> vector<2xi32>
// CHECK-NEXT:    %[[V8:.*]] = msl.as_type %[[V6]] : vector<4xf16> -> vector<2xi32>
// CHECK-NEXT:    %[[V9:.*]] = msl.vector %[[V7]], %[[V8]] : vector<2xi32>, vector<2xi32> -> vector<4xi32>
// CHECK-NEXT:    %[[V10:.*]] = msl.chunk %[[V0]][%[[ARG3]]] strides [8] : vector<16xi32> -> i32
// CHECK-NEXT:    msl.write %[[V9]], %[[ARG1:.*]][%[[V10]] : i32] : vector<4xi32>, <f16, device>
// CHECK-NEXT:  }
msl.kernel @words(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f16, device>, %o: i32) threads 32 {
  %at = msl.splat %o : vector<16xi32>
  msl.tile_loop 16 step 8 {
    %v = msl.load %x[%at] {width = 8 : i32} : !msl.ptr<f16, device>, vector<16xi32> -> vector<16xf16>
    msl.store %v, %y[%at] {width = 8 : i32} : vector<16xf16>, !msl.ptr<f16, device>, vector<16xi32>
  }
  msl.return
}

// -----

// Registers that memory takes one by one go through the components of a vector.
// CHECK-LABEL: msl.kernel @components
// CHECK:       %[[V0:.*]] = msl.splat %[[ARG2:.*]] : vector<8xi32>
// CHECK-NEXT:  msl.unroll %[[ARG3:.*]] = 0 to 2 {
// CHECK-NEXT:    %[[V1:.*]] = msl.chunk %[[V0]][%[[ARG3]]] strides [4] : vector<8xi32> -> i32
// CHECK-NEXT:    %[[V2:.*]] = msl.read %[[ARG0:.*]][%[[V1]] : i32] : <f32, device> -> vector<4xf32>
// CHECK-NEXT:    msl.unroll %[[ARG4:.*]] = 0 to 4 {
// CHECK-NEXT:      %[[V3:.*]] = msl.element %[[V2]][%[[ARG4]]] : vector<4xf32> -> f32
// CHECK-NEXT:      %[[V4:.*]] = msl.chunk %[[V0]][%[[ARG3]], %[[ARG4]]] strides [4, 1] : vector<8xi32> -> i32
// CHECK-NEXT:      msl.write %[[V3]], %[[ARG1:.*]][%[[V4]] : i32] : f32, <f32, device>
// CHECK-NEXT:    }
// CHECK-NEXT:  }
msl.kernel @components(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %o: i32) threads 32 {
  %at = msl.splat %o : vector<8xi32>
  msl.tile_loop 8 step 4 {
    %v = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
    msl.store %v, %y[%at] : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  }
  msl.return
}

// -----

// Accumulators and variables, and one number in matrices.
// CHECK-LABEL: msl.kernel @variables
// CHECK:       %[[V0:.*]] = msl.var : <4xvector<4xf32>>
// CHECK-NEXT:  %[[V1:.*]] = msl.var : <8x!msl.matrix<8x8xf32>>
// CHECK-NEXT:  %[[V2:.*]] = msl.var : <1xvector<4xf32>>
// CHECK-NEXT:  %[[V3:.*]] = msl.splat %[[ARG0:.*]] : vector<16xf32>
// CHECK-NEXT:  %[[V4:.*]] = msl.read_tile %[[V0]] : <4xvector<4xf32>> -> vector<16xf32>
// CHECK-NEXT:  msl.unroll %[[ARG1:.*]] = 0 to 4 {
// CHECK-NEXT:    %[[V5:.*]] = msl.chunk %[[V4]][%[[ARG1]]] strides [4] : vector<16xf32> -> vector<4xf32>
// CHECK-NEXT:    %[[V6:.*]] = msl.chunk %[[V3]][%[[ARG1]]] strides [4] : vector<16xf32> -> vector<4xf32>
// CHECK-NEXT:    %[[V7:.*]] = arith.mulf %[[V5]], %[[V6]] : vector<4xf32>
// CHECK-NEXT:    %[[V8:.*]] = msl.get %[[V2]] : <1xvector<4xf32>> -> vector<4xf32>
// CHECK-NEXT:    %[[V9:.*]] = arith.addf %[[V8]], %[[V7]] : vector<4xf32>
// CHECK-NEXT:    msl.set %[[V9]], %[[V2]] : vector<4xf32>, <1xvector<4xf32>>
// CHECK-NEXT:    msl.set %[[V7]], %[[V0]][%[[ARG1]]] : vector<4xf32>, <4xvector<4xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.unroll %[[ARG1]] = 0 to 8 {
// CHECK-NEXT:    msl.fill %[[ARG0]], %[[V1]][%[[ARG1]]] : f32, <8x!msl.matrix<8x8xf32>>
// CHECK-NEXT:  }
msl.kernel @variables(%f: f32) threads 32 {
  %t = msl.var : !msl.array<4xvector<4xf32>>
  %u = msl.var : !msl.array<8x!msl.matrix<8x8xf32>>
  %a = msl.var : !msl.array<1xvector<4xf32>>
  %fs = msl.splat %f : vector<16xf32>
  msl.tile_loop 16 step 4 {
    %v = msl.read_tile %t : !msl.array<4xvector<4xf32>> -> vector<16xf32>
    %w = arith.mulf %v, %fs : vector<16xf32>
    msl.accumulate %w, %a {
      ^bb0(%p: f32, %q: f32):
        %c = arith.addf %p, %q : f32
        msl.yield %c : f32
    } : vector<16xf32>, !msl.array<1xvector<4xf32>>
    msl.write_tile %w, %t : vector<16xf32>, !msl.array<4xvector<4xf32>>
  }
  msl.tile_loop 16 step 2 {
    msl.write_tile %fs, %u : vector<16xf32>, !msl.array<8x!msl.matrix<8x8xf32>>
  }
  msl.return
}

// -----

// One chunk needs no loop. Numbers have none either.
// CHECK-LABEL: msl.kernel @one_chunk
// CHECK:       %[[V0:.*]] = msl.splat %[[ARG1:.*]] : vector<4xi32>
// CHECK-NEXT:  %[[V1:.*]] = msl.chunk %[[V0]] : vector<4xi32> -> i32
// CHECK-NEXT:  %[[V2:.*]] = msl.read %[[ARG0:.*]][%[[V1]] : i32] : <f32, device> -> vector<4xf32>
// CHECK-NEXT:  %[[V3:.*]] = msl.as_tile %[[V2]] : vector<4xf32>
// CHECK-NEXT:  %[[V4:.*]] = msl.read %[[ARG0]][%[[ARG1]] : i32] : <f32, device> -> f32
// CHECK-NEXT:  msl.write %[[V4]], %[[ARG0]][%[[ARG1]] : i32] : f32, <f32, device>
// CHECK-NEXT:  %[[V5:.*]] = msl.chunk %[[V3]] : vector<4xf32> -> vector<4xf32>
// CHECK-NEXT:  %[[V6:.*]] = msl.chunk %[[V0]] : vector<4xi32> -> i32
// CHECK-NEXT:  msl.write %[[V5]], %[[ARG0]][%[[V6]] : i32] : vector<4xf32>, <f32, device>
msl.kernel @one_chunk(%x: !msl.ptr<f32, device>, %o: i32) threads 32 {
  %at = msl.splat %o : vector<4xi32>
  %v = msl.tile_loop 4 step 4 {
    %l = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
    msl.yield %l : vector<4xf32>
  } : vector<4xf32>
  %s = msl.load %x[%o] : !msl.ptr<f32, device>, i32 -> f32
  msl.store %s, %x[%o] : f32, !msl.ptr<f32, device>, i32
  msl.tile_loop 4 step 4 {
    msl.store %v, %x[%at] {width = 4 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// Offsets that are no sum of what each bit of the register adds: the steps are written out.
// CHECK-LABEL: msl.kernel @written_out
// CHECK:       %[[V0:.*]] = msl.chunk %{{.*}} : vector<4xf32> -> f32
// CHECK-NEXT:  %[[V1:.*]] = msl.chunk %{{.*}} : vector<4xi32> -> i32
// CHECK-NEXT:  msl.write %[[V0]], %[[ARG0:.*]][%[[V1]] : i32] : f32, <f32, device>
// CHECK-NEXT:  %[[V2:.*]] = msl.chunk %{{.*}} offset 1 : vector<4xf32> -> f32
// CHECK-NEXT:  %[[V3:.*]] = msl.chunk %{{.*}} offset 1 : vector<4xi32> -> i32
// CHECK-NEXT:  msl.write %[[V2]], %[[ARG0]][%[[V3]] : i32] : f32, <f32, device>
// CHECK-NEXT:  %[[V4:.*]] = msl.chunk %{{.*}} offset 2 : vector<4xf32> -> f32
// CHECK-NEXT:  %[[V5:.*]] = msl.chunk %{{.*}} offset 2 : vector<4xi32> -> i32
// CHECK-NEXT:  msl.write %[[V4]], %[[ARG0]][%[[V5]] : i32] : f32, <f32, device>
// CHECK-NEXT:  %[[V6:.*]] = msl.chunk %{{.*}} offset 3 : vector<4xf32> -> f32
// CHECK-NEXT:  %[[V7:.*]] = msl.chunk %{{.*}} offset 3 : vector<4xi32> -> i32
// CHECK-NEXT:  msl.write %[[V6]], %[[ARG0]][%[[V7]] : i32] : f32, <f32, device>
msl.kernel @written_out(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 9, 2, 3]> : vector<4xi32>
  %v = arith.constant dense<1.0> : vector<4xf32>
  msl.tile_loop 4 step 1 {
    msl.store %v, %x[%o] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// Atomics go register by register.
// CHECK-LABEL: msl.kernel @atomics
// CHECK:       %[[V0:.*]] = msl.splat %[[ARG1:.*]] : vector<4xi32>
// CHECK-NEXT:  %[[V1:.*]] = msl.var : <1xvector<4xi32>>
// CHECK-NEXT:  %[[V2:.*]] = msl.read_tile %[[V1]] : <1xvector<4xi32>> -> vector<4xi32>
// CHECK-NEXT:  %[[V3:.*]] = msl.chunk %[[V2]] : vector<4xi32> -> vector<4xi32>
// CHECK-NEXT:  %[[V4:.*]] = msl.var : <1xvector<4xi32>>
// CHECK-NEXT:  msl.unroll %[[ARG2:.*]] = 0 to 4 {
// CHECK-NEXT:    %[[V8:.*]] = msl.chunk %[[V0]][%[[ARG2]]] strides [1] : vector<4xi32> -> i32
// CHECK-NEXT:    %[[V9:.*]] = msl.chunk %[[V2]][%[[ARG2]]] strides [1] : vector<4xi32> -> i32
// CHECK-NEXT:    %[[V10:.*]] = msl.atomic_rmw add %[[ARG0:.*]][%[[V8]]], %[[V9]] : <i32, device>, i32, i32
// CHECK-NEXT:    msl.set %[[V10]], %[[V4]] element %[[ARG2]] : i32, <1xvector<4xi32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V5:.*]] = msl.get %[[V4]] : <1xvector<4xi32>> -> vector<4xi32>
// CHECK-NEXT:  %[[V6:.*]] = msl.as_tile %[[V5]] : vector<4xi32>
// CHECK-NEXT:  %[[V7:.*]] = msl.chunk %[[V6]] offset 1 : vector<4xi32> -> i32
// CHECK-NEXT:  msl.write %[[V7]], %[[ARG0]][%[[ARG1]] : i32] : i32, <i32, device>
msl.kernel @atomics(%x: !msl.ptr<i32, device>, %o: i32) threads 32 {
  %at = msl.splat %o : vector<4xi32>
  %t = msl.var : !msl.array<1xvector<4xi32>>
  %r = msl.tile_loop 4 step 4 {
    %v = msl.read_tile %t : !msl.array<1xvector<4xi32>> -> vector<4xi32>
    %old = msl.atomic_rmw add %x[%at], %v : !msl.ptr<i32, device>, vector<4xi32>, vector<4xi32>
    msl.yield %old : vector<4xi32>
  } : vector<4xi32>
  %e = msl.chunk %r offset 1 : vector<4xi32> -> i32
  msl.store %e, %x[%o] : i32, !msl.ptr<i32, device>, i32
  msl.return
}

// -----

// Two tiles become one, element by element. Which tile an element comes from is the same in each step: a loop.
// CHECK-LABEL: msl.kernel @joined
// CHECK:       msl.unroll %[[I:.*]] = 0 to 4 {
// CHECK:         %[[CHOICE:.*]] = msl.chunk %{{.*}}[%[[I]]] strides [8] : vector<32xi1> -> vector<4xi1>
// CHECK:         arith.select
// CHECK:         msl.chunk %{{.*}}[%[[I]]] strides [8] offset 4 : vector<32xi1> -> vector<4xi1>
// CHECK:         arith.select
// CHECK-NOT:   arith.select
// CHECK:       }
msl.kernel @joined(%y: !msl.ptr<f32, device>, %o: i32) threads 32 {
  %a = msl.var : !msl.array<4xvector<4xf32>>
  %b = msl.var : !msl.array<4xvector<4xf32>>
  %c = msl.var : !msl.array<8xvector<4xf32>>
  %odd = arith.constant dense<[0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]> : vector<32xi1>
  msl.tile_loop 32 step 8 {
    %x = msl.read_tile %a : !msl.array<4xvector<4xf32>> -> vector<16xf32>
    %z = msl.read_tile %b : !msl.array<4xvector<4xf32>> -> vector<16xf32>
    %xs = msl.permute_registers %x {bases = array<i64: 0, 1, 2, 4, 8>} : vector<16xf32> -> vector<32xf32>
    %zs = msl.permute_registers %z {bases = array<i64: 0, 1, 2, 4, 8>} : vector<16xf32> -> vector<32xf32>
    %w = arith.select %odd, %zs, %xs : vector<32xi1>, vector<32xf32>
    msl.write_tile %w, %c : vector<32xf32>, !msl.array<8xvector<4xf32>>
  }
  msl.return
}

// -----

// The first half is one tile, the second half another: the choice is written out, and each half is a loop.
// CHECK-LABEL: msl.kernel @halves
// CHECK:       msl.unroll %[[I:.*]] = 0 to 2 {
// CHECK:         msl.chunk %{{.*}}[%[[I]]] strides [4] : vector<16xi1> -> vector<4xi1>
// CHECK:       }
// CHECK:       msl.unroll %[[J:.*]] = 0 to 2 {
// CHECK:         msl.chunk %{{.*}}[%[[J]]] strides [4] offset 8 : vector<16xi1> -> vector<4xi1>
// CHECK:       }
// CHECK-NOT:   msl.unroll
msl.kernel @halves(%o: i32) threads 32 {
  %a = msl.var : !msl.array<2xvector<4xf32>>
  %b = msl.var : !msl.array<2xvector<4xf32>>
  %c = msl.var : !msl.array<4xvector<4xf32>>
  %second = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]> : vector<16xi1>
  msl.tile_loop 16 step 4 {
    %x = msl.read_tile %a : !msl.array<2xvector<4xf32>> -> vector<8xf32>
    %z = msl.read_tile %b : !msl.array<2xvector<4xf32>> -> vector<8xf32>
    %xs = msl.permute_registers %x {bases = array<i64: 1, 2, 4, 0>} : vector<8xf32> -> vector<16xf32>
    %zs = msl.permute_registers %z {bases = array<i64: 1, 2, 4, 0>} : vector<8xf32> -> vector<16xf32>
    %w = arith.select %second, %zs, %xs : vector<16xi1>, vector<16xf32>
    msl.write_tile %w, %c : vector<16xf32>, !msl.array<4xvector<4xf32>>
  }
  msl.return
}
