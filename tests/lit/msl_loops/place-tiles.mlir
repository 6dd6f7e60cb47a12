// RUN: triton-metal-opt %s --split-input-file --msl-place-tiles | FileCheck %s

// A tile that two loops need lives in a variable, of vectors as wide as the accesses to memory are.
// CHECK-LABEL: msl.kernel @two_loops
// CHECK:       %[[V0:.*]] = msl.var : <4xvector<2xf32>>
// CHECK-NEXT:  msl.tile_loop 8 step 2 {
// CHECK-NEXT:    %[[V3:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 2 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:    msl.write_tile %[[V3]], %[[V0]] : vector<8xf32>, <4xvector<2xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V1:.*]] = msl.read_tile %[[V0]] : <4xvector<2xf32>> -> vector<8xf32>
// CHECK-NEXT:  msl.barrier
// CHECK-NEXT:  %[[V2:.*]] = msl.permute_registers %[[V1]] {bases = array<i64: 4, 2, 1>} : vector<8xf32> -> vector<8xf32>
// CHECK-NEXT:  msl.tile_loop 8 step 8 {
// CHECK-NEXT:    %[[V3]] = msl.read_tile %[[V0]] : <4xvector<2xf32>> -> vector<8xf32>
// CHECK-NEXT:    %[[V4:.*]] = msl.read_tile %[[V0]] : <4xvector<2xf32>> -> vector<8xf32>
// CHECK-NEXT:    %[[V5:.*]] = msl.permute_registers %[[V4]] {bases = array<i64: 4, 2, 1>} : vector<8xf32> -> vector<8xf32>
// CHECK-NEXT:    %[[V6:.*]] = arith.divf %[[V3]], %[[V5]] : vector<8xf32>
// CHECK-NEXT:    msl.store %[[V6]], %[[ARG0]][%{{.*}}] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:  }
msl.kernel @two_loops(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %v = msl.tile_loop 8 {
    %l = msl.load %x[%o] {width = 2 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
    msl.yield %l : vector<8xf32>
  } : vector<8xf32>
  msl.barrier
  %p = msl.permute_registers %v {bases = array<i64: 4, 2, 1>} : vector<8xf32> -> vector<8xf32>
  msl.tile_loop 8 {
    %w = arith.divf %v, %p : vector<8xf32>
    msl.store %w, %x[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  }
  msl.return
}

// -----

// One chunk needs no variable.
// CHECK-LABEL: msl.kernel @one_chunk
// CHECK:       %[[V0:.*]] = msl.tile_loop 4 step 4 {
// CHECK-NEXT:    %[[V1:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f32, device>, vector<4xi32> -> vector<4xf32>
// CHECK-NEXT:    msl.yield %[[V1]] : vector<4xf32>
// CHECK-NEXT:  } : vector<4xf32>
// CHECK-NEXT:  msl.barrier
// CHECK-NEXT:  msl.tile_loop 4 step 4 {
// CHECK-NEXT:    msl.store %[[V0]], %[[ARG0]][%{{.*}}] {width = 4 : i32} : vector<4xf32>, <f32, device>, vector<4xi32>
// CHECK-NEXT:  }
msl.kernel @one_chunk(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %v = msl.tile_loop 4 {
    %l = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
    msl.yield %l : vector<4xf32>
  } : vector<4xf32>
  msl.barrier
  msl.tile_loop 4 {
    msl.store %v, %x[%o] {width = 4 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// A tile that a loop carries stays where it is.
// CHECK-LABEL: msl.kernel @carried
// CHECK:       %[[V0:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    msl.write_tile %{{.*}}, %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.for %[[ARG2:.*]] = %c0_i32 to %[[ARG1:.*]] step %c1_i32  : i32 {
// CHECK-NEXT:    msl.tile_loop 8 step 4 {
// CHECK-NEXT:      %[[V1:.*]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:      %[[V2:.*]] = math.exp %[[V1]] : vector<8xf32>
// CHECK-NEXT:      msl.write_tile %[[V2]], %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    %[[V1]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:    msl.store %[[V1]], %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:  }
msl.kernel @carried(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %init = arith.constant dense<1.0> : vector<8xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%t = %init) -> (vector<8xf32>) : i32 {
    %w = msl.tile_loop 8 {
      %e = math.exp %t : vector<8xf32>
      msl.yield %e : vector<8xf32>
    } : vector<8xf32>
    scf.yield %w : vector<8xf32>
  }
  msl.tile_loop 8 {
    msl.store %r, %x[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  }
  msl.return
}

// -----

// Not where a later step reads registers that this one would have overwritten.
// CHECK-LABEL: msl.kernel @carried_under_another_order
// CHECK:       %[[V0:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    msl.write_tile %{{.*}}, %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.for %[[ARG2:.*]] = %c0_i32 to %[[ARG1:.*]] step %c1_i32  : i32 {
// CHECK-NEXT:    %[[V1:.*]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:    %[[V2:.*]] = msl.permute_registers %[[V1]] {bases = array<i64: 4, 2, 1>} : vector<8xf32> -> vector<8xf32>
// CHECK-NEXT:    %[[V3:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:    msl.tile_loop 8 step 8 {
// CHECK-NEXT:      %[[V4:.*]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:      %[[V5:.*]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:      %[[V6:.*]] = msl.permute_registers %[[V5]] {bases = array<i64: 4, 2, 1>} : vector<8xf32> -> vector<8xf32>
// CHECK-NEXT:      %[[V7:.*]] = arith.divf %[[V4]], %[[V6]] : vector<8xf32>
// CHECK-NEXT:      msl.write_tile %[[V7]], %[[V3]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:    msl.tile_loop 8 step 4 {
// CHECK-NEXT:      %[[V4]] = msl.read_tile %[[V3]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:      msl.write_tile %[[V4]], %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:  }
msl.kernel @carried_under_another_order(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %init = arith.constant dense<1.0> : vector<8xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%t = %init) -> (vector<8xf32>) : i32 {
    %p = msl.permute_registers %t {bases = array<i64: 4, 2, 1>} : vector<8xf32> -> vector<8xf32>
    %w = msl.tile_loop 8 {
      %q = arith.divf %t, %p : vector<8xf32>
      msl.yield %q : vector<8xf32>
    } : vector<8xf32>
    scf.yield %w : vector<8xf32>
  }
  msl.return
}

// -----

// Two tiles that a loop exchanges: one loop reads both before it writes them.
// CHECK-LABEL: msl.kernel @exchanged
// CHECK:       %[[V0:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    msl.write_tile %{{.*}}, %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V1:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    msl.write_tile %{{.*}}, %[[V1]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.for %[[ARG2:.*]] = %c0_i32 to %[[ARG1:.*]] step %c1_i32  : i32 {
// CHECK-NEXT:    msl.tile_loop 8 step 4 {
// CHECK-NEXT:      %[[V2:.*]] = msl.read_tile %[[V1]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:      %[[V3:.*]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:      msl.write_tile %[[V2]], %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:      msl.write_tile %[[V3]], %[[V1]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    %[[V2]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:    msl.store %[[V2]], %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:  }
msl.kernel @exchanged(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %f = arith.constant dense<1.0> : vector<8xf32>
  %g = arith.constant dense<2.0> : vector<8xf32>
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%s = %f, %t = %g) -> (vector<8xf32>, vector<8xf32>) : i32 {
    scf.yield %t, %s : vector<8xf32>, vector<8xf32>
  }
  msl.tile_loop 8 {
    msl.store %r#0, %x[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  }
  msl.return
}

// -----

// Each branch writes the variable of the result.
// CHECK-LABEL: msl.kernel @branches
// CHECK:       %[[V0:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:  scf.if %[[ARG2:.*]] {
// CHECK-NEXT:    msl.tile_loop 8 step 4 {
// CHECK-NEXT:      %[[V1:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:      msl.write_tile %[[V1]], %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:  } else {
// CHECK-NEXT:    msl.tile_loop 8 step 4 {
// CHECK-NEXT:      msl.write_tile %{{.*}}, %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    %[[V1]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:    msl.store %[[V1]], %[[ARG1:.*]][%{{.*}}] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:  }
msl.kernel @branches(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %c: i1) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %r = scf.if %c -> (vector<8xf32>) {
    %v = msl.tile_loop 8 {
      %l = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
      msl.yield %l : vector<8xf32>
    } : vector<8xf32>
    scf.yield %v : vector<8xf32>
  } else {
    scf.yield %zero : vector<8xf32>
  }
  msl.tile_loop 8 {
    msl.store %r, %y[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  }
  msl.return
}

// -----

// What the condition passes on unchanged stays where it is.
// CHECK-LABEL: msl.kernel @while
// CHECK:       %[[V0:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    msl.write_tile %{{.*}}, %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V1:.*]] = scf.while (%[[ARG2:.*]] = %c0_i32) : (i32) -> i32 {
// CHECK-NEXT:    %[[V2:.*]] = arith.cmpi slt, %[[ARG2]], %[[ARG1:.*]] : i32
// CHECK-NEXT:    scf.condition(%[[V2]]) %[[ARG2]] : i32
// CHECK-NEXT:  } do {
// CHECK-NEXT:  ^bb0(%[[ARG2]]: i32):
// CHECK-NEXT:    %[[V2]] = arith.addi %[[ARG2]], %c1_i32 : i32
// CHECK-NEXT:    %[[V3:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:    msl.tile_loop 8 step 4 {
// CHECK-NEXT:      %[[V4:.*]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:      %[[V5:.*]] = math.exp %[[V4]] : vector<8xf32>
// CHECK-NEXT:      msl.write_tile %[[V5]], %[[V3]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:    msl.tile_loop 8 step 4 {
// CHECK-NEXT:      %[[V4]] = msl.read_tile %[[V3]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:      msl.write_tile %[[V4]], %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.yield %[[V2]] : i32
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    %[[V2]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:    msl.store %[[V2]], %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:  }
msl.kernel @while(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %init = arith.constant dense<1.0> : vector<8xf32>
  %r:2 = scf.while (%i = %zero, %t = %init) : (i32, vector<8xf32>) -> (i32, vector<8xf32>) {
    %c = arith.cmpi slt, %i, %n : i32
    scf.condition(%c) %i, %t : i32, vector<8xf32>
  } do {
  ^bb0(%j: i32, %u: vector<8xf32>):
    %next = arith.addi %j, %one : i32
    %w = msl.tile_loop 8 {
      %e = math.exp %u : vector<8xf32>
      msl.yield %e : vector<8xf32>
    } : vector<8xf32>
    scf.yield %next, %w : i32, vector<8xf32>
  }
  msl.tile_loop 8 {
    msl.store %r#1, %x[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  }
  msl.return
}

// -----

// The accumulator of matrix products lives in matrices, and is scaled there.
// CHECK-LABEL: msl.kernel @matrices
// CHECK:       %[[V0:.*]] = msl.alloc "a", 64 at 0 : <f16, threadgroup>
// CHECK-NEXT:  %[[V1:.*]] = msl.alloc "b", 128 at 128 : <f16, threadgroup>
// CHECK:       %[[V2:.*]] = msl.splat %[[ARG1:.*]] : vector<4xf32>
// CHECK-NEXT:  %[[V3:.*]] = msl.var : <2x!msl.matrix<8x8xf32>>
// CHECK-NEXT:  msl.tile_loop 4 step 2 {
// CHECK-NEXT:    msl.write_tile %{{.*}}, %[[V3]] : vector<4xf32>, <2x!msl.matrix<8x8xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.for %[[ARG2:.*]] = %c0_i32 to %[[ARG0:.*]] step %c1_i32  : i32 {
// CHECK-NEXT:    msl.tile_loop 4 step 2 {
// CHECK-NEXT:      %[[V4:.*]] = msl.read_tile %[[V3]] : <2x!msl.matrix<8x8xf32>> -> vector<4xf32>
// CHECK-NEXT:      %[[V5:.*]] = arith.mulf %[[V4]], %[[V2]] : vector<4xf32>
// CHECK-NEXT:      msl.write_tile %[[V5]], %[[V3]] : vector<4xf32>, <2x!msl.matrix<8x8xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:    msl.matrix_product <8x8x8> %[[V3]], %[[V0]], %[[V1]] {a_stride = 8 : i32, b_stride = 16 : i32, k = 1 : i32, m = 1 : i32, n = 2 : i32} : <2x!msl.matrix<8x8xf32>>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
// CHECK-NEXT:  }
msl.kernel @matrices(%n: i32, %f: f32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = msl.alloc "a", 64 at 0 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 128 at 128 : !msl.ptr<f16, threadgroup>
  %init = arith.constant dense<0.0> : vector<4xf32>
  %fs = msl.splat %f : vector<4xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %init) -> (vector<4xf32>) : i32 {
    %scaled = msl.tile_loop 4 {
      %p = arith.mulf %acc, %fs : vector<4xf32>
      msl.yield %p : vector<4xf32>
    } : vector<4xf32>
    %next = msl.mma <8x8x8> %scaled, %a, %b {m = 1 : i32, n = 2 : i32, k = 1 : i32, a_stride = 8 : i32, b_stride = 16 : i32}
        : vector<4xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
    scf.yield %next : vector<4xf32>
  }
  msl.return
}

// -----

// Fragments of 16x16 have eight registers in each thread, which one step takes.
// CHECK-LABEL: msl.kernel @larger_matrices
// CHECK:       %[[ACC:.*]] = msl.var : <2x!msl.matrix<16x16xf32>>
// CHECK-NEXT:  msl.tile_loop 16 step 8 {
// CHECK-NEXT:    msl.write_tile %{{.*}}, %[[ACC]] : vector<16xf32>, <2x!msl.matrix<16x16xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.for
// CHECK-NEXT:    msl.tile_loop 16 step 8 {
// CHECK:           msl.write_tile %{{.*}}, %[[ACC]] : vector<16xf32>, <2x!msl.matrix<16x16xf32>>
// CHECK-NEXT:    }
// CHECK-NEXT:    msl.matrix_product <16x16x16> %[[ACC]], %{{.*}}, %{{.*}} {a_stride = 16 : i32, b_stride = 32 : i32, k = 1 : i32, m = 1 : i32, n = 2 : i32} : <2x!msl.matrix<16x16xf32>>
msl.kernel @larger_matrices(%n: i32, %f: f32) threads 32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = msl.alloc "a", 256 at 0 : !msl.ptr<f16, threadgroup>
  %b = msl.alloc "b", 512 at 512 : !msl.ptr<f16, threadgroup>
  %init = arith.constant dense<0.0> : vector<16xf32>
  %fs = msl.splat %f : vector<16xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %init) -> (vector<16xf32>) : i32 {
    %scaled = msl.tile_loop 16 {
      %p = arith.mulf %acc, %fs : vector<16xf32>
      msl.yield %p : vector<16xf32>
    } : vector<16xf32>
    %next = msl.mma <16x16x16> %scaled, %a, %b {m = 1 : i32, n = 2 : i32, k = 1 : i32, a_stride = 16 : i32, b_stride = 32 : i32}
        : vector<16xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
    scf.yield %next : vector<16xf32>
  }
  msl.return
}

// -----

// Part of a reduction is a tile; half of one chunk is a chunk.
// CHECK-LABEL: msl.kernel @reductions
// CHECK:       %[[V0:.*]] = msl.var : <2xvector<4xf32>>
// CHECK-NEXT:  msl.tile_loop 8 step 4 {
// CHECK-NEXT:    %[[V6:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:    msl.write_tile %[[V6]], %[[V0]] : vector<8xf32>, <2xvector<4xf32>>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V1:.*]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:  %[[V2:.*]] = msl.var : <2xf32>
// CHECK-NEXT:  %[[V3:.*]] = msl.reduce_registers(%[[V1]]) bits 3 {
// CHECK-NEXT:  ^bb0(%[[ARG1:.*]]: f32, %[[ARG2:.*]]: f32):
// CHECK-NEXT:    %[[V6]] = arith.addf %[[ARG1]], %[[ARG2]] : f32
// CHECK-NEXT:    msl.yield %[[V6]] : f32
// CHECK-NEXT:  } : (vector<8xf32>) -> vector<2xf32>
// CHECK-NEXT:  msl.write_tile %[[V3]], %[[V2]] : vector<2xf32>, <2xf32>
// CHECK-NEXT:  msl.tile_loop 2 step 1 {
// CHECK-NEXT:    %[[V6]] = msl.read_tile %[[V2]] : <2xf32> -> vector<2xf32>
// CHECK-NEXT:    msl.store %[[V6]], %[[ARG0]][%{{.*}}] : vector<2xf32>, <f32, device>, vector<2xi32>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[V4:.*]] = msl.read_tile %[[V0]] : <2xvector<4xf32>> -> vector<8xf32>
// CHECK-NEXT:  %[[V5:.*]] = msl.reduce_registers(%[[V4]]) bits 6 {
// CHECK-NEXT:  ^bb0(%[[ARG1]]: f32, %[[ARG2]]: f32):
// CHECK-NEXT:    %[[V6]] = arith.addf %[[ARG1]], %[[ARG2]] : f32
// CHECK-NEXT:    msl.yield %[[V6]] : f32
// CHECK-NEXT:  } : (vector<8xf32>) -> vector<2xf32>
// CHECK-NEXT:  msl.tile_loop 2 step 2 {
// CHECK-NEXT:    msl.store %[[V5]], %[[ARG0]][%{{.*}}] : vector<2xf32>, <f32, device>, vector<2xi32>
// CHECK-NEXT:  }
msl.kernel @reductions(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %p = arith.constant dense<[0, 1]> : vector<2xi32>
  %v = msl.tile_loop 8 {
    %l = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
    msl.yield %l : vector<8xf32>
  } : vector<8xf32>
  %r = msl.reduce_registers (%v) bits 3 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      msl.yield %c : f32
  } : (vector<8xf32>) -> vector<2xf32>
  msl.tile_loop 2 {
    msl.store %r, %x[%p] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  }
  %s = msl.reduce_registers (%v) bits 6 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      msl.yield %c : f32
  } : (vector<8xf32>) -> vector<2xf32>
  msl.tile_loop 2 {
    msl.store %s, %x[%p] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  }
  msl.return
}
