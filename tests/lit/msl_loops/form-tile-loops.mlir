// RUN: triton-metal-opt %s --split-input-file --msl-form-tile-loops | FileCheck %s

// Neighbours share a loop. Offsets are cheap: they stay outside, to be computed where they are used.
// CHECK-LABEL: msl.kernel @shared
// CHECK:       %[[V0:.*]] = msl.splat %[[ARG2:.*]] : vector<8xi32>
// CHECK-NEXT:  %[[V1:.*]] = arith.addi %{{.*}}, %[[V0]] : vector<8xi32>
// CHECK-NEXT:  %[[V2:.*]] = arith.addi %[[ARG2]], %[[ARG2]] : i32
// CHECK-NEXT:  %[[V3:.*]] = msl.ptr_add %[[ARG1:.*]], %[[V2]] : <f32, device>, i32
// CHECK-NEXT:  msl.tile_loop 8 {
// CHECK-NEXT:    %[[V4:.*]] = msl.load %[[ARG0:.*]][%[[V1]]] {width = 4 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:    %[[V5:.*]] = math.exp %[[V4]] : vector<8xf32>
// CHECK-NEXT:    msl.store %[[V5]], %[[V3]][%[[V1]]] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:  }
msl.kernel @shared(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %ns = msl.splat %n : vector<8xi32>
  %at = arith.addi %o, %ns : vector<8xi32>
  %v = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %next = arith.addi %n, %n : i32
  %to = msl.ptr_add %y, %next : !msl.ptr<f32, device>, i32
  %w = math.exp %v : vector<8xf32>
  msl.store %w, %to[%at] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// -----

// Another order of registers ends the loop, and comes after it. So does a barrier.
// CHECK-LABEL: msl.kernel @ends
// CHECK:       %[[V0:.*]] = msl.tile_loop 8 {
// CHECK-NEXT:    %[[V3:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:    msl.yield %[[V3]] : vector<8xf32>
// CHECK-NEXT:  } : vector<8xf32>
// CHECK-NEXT:  %[[V1:.*]] = msl.permute_registers %[[V0]] {bases = array<i64: 4, 2, 1>} : vector<8xf32> -> vector<8xf32>
// CHECK-NEXT:  %[[V2:.*]] = msl.tile_loop 8 {
// CHECK-NEXT:    %[[V3]] = arith.addf %[[V0]], %[[V1]] : vector<8xf32>
// CHECK-NEXT:    msl.yield %[[V3]] : vector<8xf32>
// CHECK-NEXT:  } : vector<8xf32>
// CHECK-NEXT:  msl.barrier
// CHECK-NEXT:  msl.tile_loop 8 {
// CHECK-NEXT:    msl.store %[[V2]], %[[ARG0]][%{{.*}}] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:  }
msl.kernel @ends(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %p = msl.permute_registers %v {bases = array<i64: 4, 2, 1>} : vector<8xf32> -> vector<8xf32>
  %w = arith.addf %v, %p : vector<8xf32>
  msl.barrier
  msl.store %w, %x[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// -----

// A whole reduction joins the loop. What is computed of its number comes after it.
// CHECK-LABEL: msl.kernel @reduction
// CHECK:       %[[V0:.*]]:2 = msl.tile_loop 8 {
// CHECK-NEXT:    %[[V2:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] {width = 4 : i32} : <f32, device>, vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:    %[[V3:.*]] = msl.reduce_registers(%[[V2]]) bits 7 {
// CHECK-NEXT:    ^bb0(%[[ARG1:.*]]: f32, %[[ARG2:.*]]: f32):
// CHECK-NEXT:      %[[V4:.*]] = arith.addf %[[ARG1]], %[[ARG2]] : f32
// CHECK-NEXT:      msl.yield %[[V4]] : f32
// CHECK-NEXT:    } : (vector<8xf32>) -> f32
// CHECK-NEXT:    msl.yield %[[V2]], %[[V3]] : vector<8xf32>, f32
// CHECK-NEXT:  } : vector<8xf32>, f32
// CHECK-NEXT:  %[[V1:.*]] = msl.splat %[[V0]]#1 : vector<8xf32>
// CHECK-NEXT:  msl.tile_loop 8 {
// CHECK-NEXT:    %[[V2]] = arith.divf %[[V0]]#0, %[[V1]] : vector<8xf32>
// CHECK-NEXT:    msl.store %[[V2]], %[[ARG0]][%{{.*}}] {width = 4 : i32} : vector<8xf32>, <f32, device>, vector<8xi32>
// CHECK-NEXT:  }
msl.kernel @reduction(%x: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %s = msl.reduce_registers (%v) bits 7 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      msl.yield %c : f32
  } : (vector<8xf32>) -> f32
  %all = msl.splat %s : vector<8xf32>
  %w = arith.divf %v, %all : vector<8xf32>
  msl.store %w, %x[%o] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// -----

// What is written through other offsets cannot be read in the same loop, unless it is other memory.
// CHECK-LABEL: msl.kernel @conflicts
// CHECK:       %[[V0:.*]] = msl.tile_loop 4 {
// CHECK-NEXT:    %[[V1:.*]] = msl.load %[[ARG0:.*]][%{{.*}}] : <f32, device>, vector<4xi32> -> vector<4xf32>
// CHECK-NEXT:    msl.store %[[V1]], %[[ARG1:.*]][%{{.*}}] : vector<4xf32>, <f32, device>, vector<4xi32>
// CHECK-NEXT:    msl.yield %[[V1]] : vector<4xf32>
// CHECK-NEXT:  } : vector<4xf32>
// CHECK-NEXT:  msl.tile_loop 4 {
// CHECK-NEXT:    msl.store %[[V0]], %[[ARG0]][%{{.*}}] : vector<4xf32>, <f32, device>, vector<4xi32>
// CHECK-NEXT:  }
msl.kernel @conflicts(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %from = arith.constant dense<[0, 2, 4, 6]> : vector<4xi32>
  %to = arith.constant dense<[2, 4, 6, 8]> : vector<4xi32>
  %v = msl.load %x[%from] : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  msl.store %v, %y[%to] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.store %v, %x[%to] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}

// -----

// A loop stays open while another one begins that does not depend on it. What needs both joins the first one,
// which then comes last.
// CHECK-LABEL: msl.kernel @independent
// CHECK:       %[[X:.*]] = msl.tile_loop 2 {
// CHECK:         msl.load %{{.*}} -> vector<2xf32>
// CHECK:       }
// CHECK:       %[[P:.*]] = msl.permute_registers %[[X]]
// CHECK-NEXT:  msl.tile_loop 4 {
// CHECK-NEXT:    %[[A:.*]] = msl.load
// CHECK-NEXT:    %[[V:.*]] = arith.divf %[[A]], %[[P]]
// CHECK-NEXT:    msl.store %[[V]]
// CHECK-NEXT:  }
msl.kernel @independent(%a: !msl.ptr<f32, device>, %x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 2, 4, 6]> : vector<4xi32>
  %few = arith.constant dense<[0, 2]> : vector<2xi32>
  %v = msl.load %a[%o] : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  %w = msl.load %x[%few] : !msl.ptr<f32, device>, vector<2xi32> -> vector<2xf32>
  %p = msl.permute_registers %w {bases = array<i64: 1, 0>} : vector<2xf32> -> vector<4xf32>
  %q = arith.divf %v, %p : vector<4xf32>
  msl.store %q, %y[%o] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}

// -----

// It cannot where the other loop reads what the first one has written.
// CHECK-LABEL: msl.kernel @dependent
// CHECK:       %[[A:.*]] = msl.tile_loop 4 {
// CHECK:         msl.store
// CHECK:       msl.tile_loop 2 {
// CHECK-NEXT:    msl.load
// CHECK:       msl.tile_loop 4 {
// CHECK-NEXT:    arith.divf %[[A]]
msl.kernel @dependent(%a: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %o = arith.constant dense<[0, 2, 4, 6]> : vector<4xi32>
  %few = arith.constant dense<[0, 2]> : vector<2xi32>
  %v = msl.load %a[%o] : !msl.ptr<f32, device>, vector<4xi32> -> vector<4xf32>
  msl.store %v, %y[%o] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  %w = msl.load %y[%few] : !msl.ptr<f32, device>, vector<2xi32> -> vector<2xf32>
  %p = msl.permute_registers %w {bases = array<i64: 1, 0>} : vector<2xf32> -> vector<4xf32>
  %q = arith.divf %v, %p : vector<4xf32>
  msl.store %q, %y[%o] : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  msl.return
}

// -----

// What words hold is computed where the last choice puts it together: the loop that reads the words ends with them.
// CHECK-LABEL: msl.kernel @joined
// CHECK:       %[[WORDS:.*]] = msl.tile_loop 4 {
// CHECK-NEXT:    %[[LOADED:.*]] = msl.load
// CHECK-NEXT:    msl.yield %[[LOADED]] : vector<4xi32>
// CHECK-NEXT:  } : vector<4xi32>
// CHECK-NEXT:  %[[LOW:.*]] = arith.andi %[[WORDS]], %{{.*}} : vector<4xi32>
// CHECK-NEXT:  %[[HIGH:.*]] = arith.shrui %[[WORDS]], %{{.*}} : vector<4xi32>
// CHECK-NEXT:  %[[A:.*]] = msl.permute_registers %[[LOW]] {bases = array<i64: 0, 1, 2>}
// CHECK-NEXT:  %[[B:.*]] = msl.permute_registers %[[HIGH]] {bases = array<i64: 0, 1, 2>}
// CHECK-NEXT:  msl.tile_loop 8 {
// CHECK-NEXT:    %[[BOTH:.*]] = arith.select %{{.*}}, %[[B]], %[[A]] : vector<8xi1>, vector<8xi32>
// CHECK-NEXT:    msl.store %[[BOTH]]
msl.kernel @joined(%x: !msl.ptr<i32, device>, %y: !msl.ptr<i32, device>) threads 32 {
  %at = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %to = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %mask = arith.constant dense<65535> : vector<4xi32>
  %half = arith.constant dense<16> : vector<4xi32>
  %odd = arith.constant dense<[false, true, false, true, false, true, false, true]> : vector<8xi1>
  %words = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<i32, device>, vector<4xi32> -> vector<4xi32>
  %low = arith.andi %words, %mask : vector<4xi32>
  %high = arith.shrui %words, %half : vector<4xi32>
  %a = msl.permute_registers %low {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %b = msl.permute_registers %high {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %both = arith.select %odd, %b, %a : vector<8xi1>, vector<8xi32>
  msl.store %both, %y[%to] {width = 4 : i32} : vector<8xi32>, !msl.ptr<i32, device>, vector<8xi32>
  msl.return
}

// -----

// Two sources of as many numbers as are put together stay what they are: waiting for them would take no fewer registers.
// CHECK-LABEL: msl.kernel @joined_of_two
// CHECK:       msl.tile_loop 4 {
// CHECK:         arith.andi
// CHECK:         arith.shrui
// CHECK-NEXT:    msl.yield
// CHECK:       msl.tile_loop 8 {
// CHECK-NEXT:    arith.select
msl.kernel @joined_of_two(%x: !msl.ptr<i32, device>, %y: !msl.ptr<i32, device>) threads 32 {
  %at = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %to = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %mask = arith.constant dense<65535> : vector<4xi32>
  %half = arith.constant dense<16> : vector<4xi32>
  %odd = arith.constant dense<[false, true, false, true, false, true, false, true]> : vector<8xi1>
  %words = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<i32, device>, vector<4xi32> -> vector<4xi32>
  %others = msl.load %y[%at] {width = 4 : i32} : !msl.ptr<i32, device>, vector<4xi32> -> vector<4xi32>
  %low = arith.andi %words, %mask : vector<4xi32>
  %high = arith.shrui %others, %half : vector<4xi32>
  %a = msl.permute_registers %low {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %b = msl.permute_registers %high {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %both = arith.select %odd, %b, %a : vector<8xi1>, vector<8xi32>
  msl.store %both, %y[%to] {width = 4 : i32} : vector<8xi32>, !msl.ptr<i32, device>, vector<8xi32>
  msl.return
}

// -----

// Numbers that are taken twice, and a tile that something else reads, are computed once.
// CHECK-LABEL: msl.kernel @joined_twice
// CHECK:       msl.tile_loop 4 {
// CHECK:         arith.andi
// CHECK:         arith.shrui
// CHECK:       msl.tile_loop 8 {
// CHECK-NEXT:    arith.select
msl.kernel @joined_twice(%x: !msl.ptr<i32, device>, %y: !msl.ptr<i32, device>) threads 32 {
  %at = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %to = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
  %mask = arith.constant dense<65535> : vector<4xi32>
  %half = arith.constant dense<16> : vector<4xi32>
  %first = arith.constant dense<[false, false, true, true, false, false, true, true]> : vector<8xi1>
  %words = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<i32, device>, vector<4xi32> -> vector<4xi32>
  %low = arith.andi %words, %mask : vector<4xi32>
  %high = arith.shrui %words, %half : vector<4xi32>
  %a = msl.permute_registers %low {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %b = msl.permute_registers %high {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %both = arith.select %first, %b, %a : vector<8xi1>, vector<8xi32>
  msl.store %both, %y[%to] {width = 4 : i32} : vector<8xi32>, !msl.ptr<i32, device>, vector<8xi32>
  msl.return
}

// -----

// Quotients by a number of the launch are computed once. What is made of them for more registers is computed where it is used.
// CHECK-LABEL: msl.kernel @wrapped
// CHECK:       %[[COLUMN:.*]] = msl.splat %{{.*}} : vector<2xi32>
// CHECK:       msl.tile_loop 2 {
// CHECK:         arith.remui
// CHECK:         %[[ROW:.*]] = arith.muli
// CHECK-NEXT:    msl.yield %[[ROW]] : vector<2xi32>
// CHECK:       msl.permute_registers
// CHECK-NEXT:  arith.addi %{{.*}} : vector<8xi32>
// CHECK-NEXT:  msl.tile_loop 8 {
// CHECK-NEXT:    msl.load
msl.kernel @wrapped(%x: !msl.ptr<f32, device>, %first: i32, %m: i32, %stride: i32) threads 32 {
  %columns = arith.constant dense<[0, 1, 2, 3, 0, 1, 2, 3]> : vector<8xi32>
  %o = arith.constant dense<[0, 8]> : vector<2xi32>
  %firsts = msl.splat %first : vector<2xi32>
  %ms = msl.splat %m : vector<2xi32>
  %strides = msl.splat %stride : vector<2xi32>
  %rows = arith.addi %o, %firsts : vector<2xi32>
  %wrapped = arith.remui %rows, %ms : vector<2xi32>
  %starts = arith.muli %wrapped, %strides : vector<2xi32>
  %p = msl.permute_registers %starts {bases = array<i64: 0, 0, 1>} : vector<2xi32> -> vector<8xi32>
  %at = arith.addi %p, %columns : vector<8xi32>
  %v = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %w = math.exp %v : vector<8xf32>
  msl.store %w, %x[%at] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// -----

// Quotients by a constant are multiplications: they are computed again.
// CHECK-LABEL: msl.kernel @wrapped_by_a_constant
// CHECK-NOT:   msl.tile_loop 2
// CHECK:       msl.tile_loop 8
msl.kernel @wrapped_by_a_constant(%x: !msl.ptr<f32, device>, %first: i32) threads 32 {
  %columns = arith.constant dense<[0, 1, 2, 3, 0, 1, 2, 3]> : vector<8xi32>
  %o = arith.constant dense<[0, 8]> : vector<2xi32>
  %ms = arith.constant dense<12> : vector<2xi32>
  %firsts = msl.splat %first : vector<2xi32>
  %rows = arith.addi %o, %firsts : vector<2xi32>
  %wrapped = arith.remui %rows, %ms : vector<2xi32>
  %p = msl.permute_registers %wrapped {bases = array<i64: 0, 0, 1>} : vector<2xi32> -> vector<8xi32>
  %at = arith.addi %p, %columns : vector<8xi32>
  %v = msl.load %x[%at] {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
  %w = math.exp %v : vector<8xf32>
  msl.store %w, %x[%at] {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}
