// RUN: triton-metal-opt %s --split-input-file --msl-keep-halves | FileCheck %s

// Halves wait at the barrier. Both loops widen them.
// CHECK-LABEL: msl.kernel @waits
// CHECK:       %[[V0:.*]] = msl.tile_loop 32 {
// CHECK-NEXT:    %[[V1:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f16, device>, vector<32xi32> -> vector<32xf16>
// CHECK-NEXT:    %[[V2:.*]] = arith.extf %[[V1]] : vector<32xf16> to vector<32xf32>
// CHECK-NEXT:    msl.store %[[V2]], %[[ARG1:.*]][%{{.*}}]
// CHECK-NEXT:    msl.yield %[[V1]] : vector<32xf16>
// CHECK-NEXT:  } : vector<32xf16>
// CHECK-NEXT:  msl.barrier
// CHECK-NEXT:  msl.tile_loop 32 {
// CHECK-NEXT:    %[[V3:.*]] = arith.extf %[[V0]] : vector<32xf16> to vector<32xf32>
// CHECK-NEXT:    %[[V4:.*]] = arith.mulf %[[V3]], %[[V3]] : vector<32xf32>
// CHECK-NEXT:    msl.store %[[V4]], %[[ARG1]][%{{.*}}]
msl.kernel @waits(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<0> : vector<32xi32>
  %v = msl.tile_loop 32 {
    %l = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f16, device>, vector<32xi32> -> vector<32xf16>
    %w = arith.extf %l : vector<32xf16> to vector<32xf32>
    msl.store %w, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
    msl.yield %w : vector<32xf32>
  } : vector<32xf32>
  msl.barrier
  msl.tile_loop 32 {
    %p = arith.mulf %v, %v : vector<32xf32>
    msl.store %p, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  }
  msl.return
}

// -----

// A bfloat is not an operand that GPUs widen for nothing.
// CHECK-LABEL: msl.kernel @bfloats
// CHECK:         msl.yield %{{.*}} : vector<32xf32>
msl.kernel @bfloats(%x: !msl.ptr<bf16, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<0> : vector<32xi32>
  %v = msl.tile_loop 32 {
    %l = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<bf16, device>, vector<32xi32> -> vector<32xbf16>
    %w = arith.extf %l : vector<32xbf16> to vector<32xf32>
    msl.yield %w : vector<32xf32>
  } : vector<32xf32>
  msl.barrier
  msl.tile_loop 32 {
    msl.store %v, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  }
  msl.return
}

// -----

// What the second loop leaves takes the place of what it reads: halves would take no fewer registers.
// CHECK-LABEL: msl.kernel @leaves
// CHECK:         msl.yield %{{.*}} : vector<32xf32>
// CHECK:         msl.yield %{{.*}} : vector<32xf32>
msl.kernel @leaves(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<0> : vector<32xi32>
  %v = msl.tile_loop 32 {
    %l = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f16, device>, vector<32xi32> -> vector<32xf16>
    %w = arith.extf %l : vector<32xf16> to vector<32xf32>
    msl.yield %w : vector<32xf32>
  } : vector<32xf32>
  msl.barrier
  %e = msl.tile_loop 32 {
    %a = math.exp %v : vector<32xf32>
    msl.yield %a : vector<32xf32>
  } : vector<32xf32>
  msl.barrier
  msl.tile_loop 32 {
    msl.store %e, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  }
  msl.return
}

// -----

// A loop of the program would widen in each step what is widened once. What is in a branch runs no more often.
// CHECK-LABEL: msl.kernel @often
// CHECK:         msl.yield %{{.*}}, %[[L:.*]] : vector<32xf32>, vector<32xf16>
// CHECK-NEXT:  } : vector<32xf32>, vector<32xf16>
// CHECK:       scf.for
// CHECK-NEXT:    msl.tile_loop 32 {
// CHECK-NEXT:      msl.store
// CHECK:       scf.if
// CHECK-NEXT:    msl.tile_loop 32 {
// CHECK-NEXT:      arith.extf
msl.kernel @often(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f32, device>, %n: i32, %c: i1) threads 32 {
  %o = arith.constant dense<0> : vector<32xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v, %u = msl.tile_loop 32 {
    %l = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f16, device>, vector<32xi32> -> vector<32xf16>
    %w = arith.extf %l : vector<32xf16> to vector<32xf32>
    %k = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f16, device>, vector<32xi32> -> vector<32xf16>
    %m = arith.extf %k : vector<32xf16> to vector<32xf32>
    msl.yield %w, %m : vector<32xf32>, vector<32xf32>
  } : vector<32xf32>, vector<32xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    msl.tile_loop 32 {
      msl.store %v, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
    }
  }
  scf.if %c {
    msl.tile_loop 32 {
      msl.store %u, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
    }
  }
  msl.return
}

// -----

// Four registers are widened once: the text is shorter.
// CHECK-LABEL: msl.kernel @few
// CHECK:         msl.yield %{{.*}} : vector<4xf32>
msl.kernel @few(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<0> : vector<4xi32>
  %v = msl.tile_loop 4 {
    %l = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f16, device>, vector<4xi32> -> vector<4xf16>
    %w = arith.extf %l : vector<4xf16> to vector<4xf32>
    msl.yield %w : vector<4xf32>
  } : vector<4xf32>
  msl.barrier
  msl.tile_loop 4 {
    msl.store %v, %y[%o] {width = 4 : i32} : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// A row that the registers of a tile read in another order waits as halves, and so does that order.
// CHECK-LABEL: msl.kernel @row_of_a_tile
// CHECK:         msl.yield %{{.*}} : vector<8xf16>
// CHECK:       %[[ROW:.*]] = msl.permute_registers %{{.*}} : vector<8xf16> -> vector<32xf16>
// CHECK:       msl.tile_loop 32 {
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[ROW]] : vector<32xf16> to vector<32xf32>
// CHECK-NEXT:    arith.addf %[[WIDE]], %[[WIDE]]
msl.kernel @row_of_a_tile(%x: !msl.ptr<f16, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<0> : vector<8xi32>
  %t = arith.constant dense<0> : vector<32xi32>
  %w = msl.tile_loop 8 {
    %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f16, device>, vector<8xi32> -> vector<8xf16>
    %e = arith.extf %v : vector<8xf16> to vector<8xf32>
    msl.yield %e : vector<8xf32>
  } : vector<8xf32>
  %row = msl.permute_registers %w {bases = array<i64: 1, 2, 4, 0, 0>} : vector<8xf32> -> vector<32xf32>
  msl.tile_loop 32 {
    %s = arith.addf %row, %row : vector<32xf32>
    msl.store %s, %y[%t] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
  }
  msl.return
}
