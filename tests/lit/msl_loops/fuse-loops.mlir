// RUN: triton-metal-opt %s --msl-fuse-loops --split-input-file | FileCheck %s

// A row is loaded, multiplied and added to the others in one step.
// CHECK-LABEL: msl.kernel @rows
// CHECK:       %[[ACC:.*]] = msl.var : <1xvector<2xf32>>
// CHECK-NEXT:  %[[B:.*]] = msl.read
// CHECK-NEXT:  msl.unroll %[[I:.*]] = 0 to 2 {
// CHECK:         %[[A:.*]] = msl.read
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK:         %[[SUM:.*]] = arith.addf
// CHECK-NEXT:    %[[OLD:.*]] = msl.get %[[ACC]] element %[[I]]
// CHECK-NEXT:    %[[NEW:.*]] = arith.addf %[[OLD]], %[[SUM]] : f32
// CHECK-NEXT:    msl.set %[[NEW]], %[[ACC]] element %[[I]]
// CHECK-NEXT:  }
// CHECK-NOT:   msl.unroll
msl.kernel @rows(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %lane = msl.lane : i32
  %acc = msl.var : !msl.array<1xvector<2xf32>>
  %v = msl.var : !msl.array<2xvector<2xf32>>
  msl.unroll %i = 0 to 2 {
    %row = arith.muli %i, %c8 : i32
    %a = msl.read %x[%row : i32] : !msl.ptr<f32, device> -> vector<2xf32>
    msl.set %a, %v[%i] : vector<2xf32>, !msl.array<2xvector<2xf32>>
  }
  %b = msl.read %y[%lane : i32] : !msl.ptr<f32, device> -> vector<2xf32>
  %s = msl.var : !msl.array<2xf32>
  msl.unroll %i = 0 to 2 {
    %a = msl.get %v[%i] : !msl.array<2xvector<2xf32>> -> vector<2xf32>
    %p = arith.mulf %a, %b : vector<2xf32>
    %p0 = msl.swizzle %p [0] : vector<2xf32> -> f32
    %p1 = msl.swizzle %p [1] : vector<2xf32> -> f32
    %sum = arith.addf %p0, %p1 : f32
    msl.set %sum, %s[%i] : f32, !msl.array<2xf32>
  }
  %old = msl.get %acc : !msl.array<1xvector<2xf32>> -> vector<2xf32>
  %s0 = msl.get %s[%c0] : !msl.array<2xf32> -> f32
  %s1 = msl.get %s[%c1] : !msl.array<2xf32> -> f32
  %sums = msl.vector %s0, %s1 : f32, f32 -> vector<2xf32>
  %new = arith.addf %old, %sums : vector<2xf32>
  msl.set %new, %acc : vector<2xf32>, !msl.array<1xvector<2xf32>>
  %end = msl.get %acc : !msl.array<1xvector<2xf32>> -> vector<2xf32>
  msl.write %end, %y[%c8 : i32] : vector<2xf32>, !msl.ptr<f32, device>
  msl.return
}

// -----

// A step that reads what another one writes stays behind all of them.
// CHECK-LABEL: msl.kernel @others
// CHECK:       msl.unroll
// CHECK:         msl.set
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.unroll
// CHECK:         %[[A:.*]] = msl.get
// CHECK-NEXT:    msl.write %[[A]]
msl.kernel @others(%x: !msl.ptr<f32, device>) threads 32 {
  %c1 = arith.constant 1 : i32
  %v = msl.var : !msl.array<3xf32>
  msl.unroll %i = 0 to 2 {
    %a = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%i] : f32, !msl.array<3xf32>
  }
  %w = msl.var : !msl.array<2xf32>
  msl.unroll %i = 0 to 2 {
    %next = arith.addi %i, %c1 : i32
    %a = msl.get %v[%next] : !msl.array<3xf32> -> f32
    msl.set %a, %w[%i] : f32, !msl.array<2xf32>
  }
  msl.unroll %i = 0 to 2 {
    %a = msl.get %w[%i] : !msl.array<2xf32> -> f32
    msl.write %a, %x[%i : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// So does one that writes memory which the other loop reads.
// CHECK-LABEL: msl.kernel @memory
// CHECK:       msl.unroll
// CHECK:         msl.set
// CHECK-NEXT:  }
// CHECK-NEXT:  msl.unroll
// CHECK-NEXT:    msl.get
msl.kernel @memory(%x: !msl.ptr<f32, device>) threads 32 {
  %v = msl.var : !msl.array<2xf32>
  msl.unroll %i = 0 to 2 {
    %a = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%i] : f32, !msl.array<2xf32>
  }
  msl.unroll %i = 0 to 2 {
    %a = msl.get %v[%i] : !msl.array<2xf32> -> f32
    msl.write %a, %x[%i : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// Two elements of each step, one of which is read in an inner loop of one step.
// CHECK-LABEL: msl.kernel @pairs
// CHECK:       msl.unroll
// CHECK:         %[[A:.*]] = msl.read
// CHECK-NEXT:    %[[B:.*]] = msl.read
// CHECK-NOT:     msl.get
// CHECK:         arith.addf %[[A]], %[[B]]
msl.kernel @pairs(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %v = msl.var : !msl.array<4xf32>
  msl.unroll %i = 0 to 2 {
    %even = arith.muli %i, %c2 : i32
    %odd = arith.addi %even, %c1 : i32
    %a = msl.read %x[%even : i32] : !msl.ptr<f32, device> -> f32
    %b = msl.read %x[%odd : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%even] : f32, !msl.array<4xf32>
    msl.set %b, %v[%odd] : f32, !msl.array<4xf32>
  }
  %w = msl.var : !msl.array<2xf32>
  msl.unroll %i = 0 to 2 {
    %first = arith.muli %i, %c2 : i32
    %sum = msl.var : !msl.array<1xf32>
    %a = msl.get %v[%first] : !msl.array<4xf32> -> f32
    msl.set %a, %sum : f32, !msl.array<1xf32>
    msl.unroll %j = 1 to 2 {
      %at = arith.addi %first, %j : i32
      %b = msl.get %v[%at] : !msl.array<4xf32> -> f32
      %old = msl.get %sum : !msl.array<1xf32> -> f32
      %new = arith.addf %old, %b : f32
      msl.set %new, %sum : f32, !msl.array<1xf32>
    }
    %s = msl.get %sum : !msl.array<1xf32> -> f32
    msl.set %s, %w[%i] : f32, !msl.array<2xf32>
  }
  msl.unroll %i = 0 to 2 {
    %s = msl.get %w[%i] : !msl.array<2xf32> -> f32
    msl.write %s, %y[%i : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// A vector keeps its place where something between writes what it is added to.
// CHECK-LABEL: msl.kernel @between
// CHECK:       msl.unroll
// CHECK:       }
// CHECK:       msl.set
// CHECK:       msl.vector
// CHECK:       arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
msl.kernel @between(%x: !msl.ptr<f32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %f = arith.constant 1.0 : f32
  %acc = msl.var : !msl.array<1xvector<2xf32>>
  %v = msl.var : !msl.array<2xf32>
  msl.unroll %i = 0 to 2 {
    %a = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%i] : f32, !msl.array<2xf32>
  }
  msl.set %f, %v[%c0] : f32, !msl.array<2xf32>
  %old = msl.get %acc : !msl.array<1xvector<2xf32>> -> vector<2xf32>
  %s0 = msl.get %v[%c0] : !msl.array<2xf32> -> f32
  %s1 = msl.get %v[%c1] : !msl.array<2xf32> -> f32
  %sums = msl.vector %s0, %s1 : f32, f32 -> vector<2xf32>
  %new = arith.addf %old, %sums : vector<2xf32>
  msl.set %new, %acc : vector<2xf32>, !msl.array<1xvector<2xf32>>
  %end = msl.get %acc : !msl.array<1xvector<2xf32>> -> vector<2xf32>
  msl.write %end, %x[%c0 : i32] : vector<2xf32>, !msl.ptr<f32, device>
  msl.return
}

// -----

// A number that somebody else reads, too, keeps the loop before it.
// CHECK-LABEL: msl.kernel @two_readers
// CHECK:       msl.unroll
// CHECK:       }
// CHECK-NEXT:  %[[S:.*]] = msl.get %{{.*}}[%c0_i32]
// CHECK:       arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK:       msl.write %[[S]]
msl.kernel @two_readers(%x: !msl.ptr<f32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = msl.var : !msl.array<1xvector<2xf32>>
  %v = msl.var : !msl.array<2xf32>
  msl.unroll %i = 0 to 2 {
    %a = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%i] : f32, !msl.array<2xf32>
  }
  %s0 = msl.get %v[%c0] : !msl.array<2xf32> -> f32
  %s1 = msl.get %v[%c1] : !msl.array<2xf32> -> f32
  %old = msl.get %acc : !msl.array<1xvector<2xf32>> -> vector<2xf32>
  %sums = msl.vector %s0, %s1 : f32, f32 -> vector<2xf32>
  %new = arith.addf %old, %sums : vector<2xf32>
  msl.set %new, %acc : vector<2xf32>, !msl.array<1xvector<2xf32>>
  %end = msl.get %acc : !msl.array<1xvector<2xf32>> -> vector<2xf32>
  msl.write %end, %x[%c0 : i32] : vector<2xf32>, !msl.ptr<f32, device>
  msl.write %s0, %x[%c0 : i32] : f32, !msl.ptr<f32, device>
  msl.return
}

// -----

// What other steps of the loop write is not there yet.
// CHECK-LABEL: msl.kernel @later_steps
// CHECK:       msl.unroll
// CHECK:       }
// CHECK:       msl.vector
// CHECK:       arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
msl.kernel @later_steps(%x: !msl.ptr<f32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = msl.var : !msl.array<1xvector<2xf32>>
  %v = msl.var : !msl.array<2xf32>
  %w = msl.var : !msl.array<2xvector<2xf32>>
  msl.unroll %i = 0 to 2 {
    %a = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%i] : f32, !msl.array<2xf32>
    %b = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> vector<2xf32>
    msl.set %b, %w[%i] : vector<2xf32>, !msl.array<2xvector<2xf32>>
  }
  %last = msl.get %w[%c1] : !msl.array<2xvector<2xf32>> -> vector<2xf32>
  %s0 = msl.get %v[%c0] : !msl.array<2xf32> -> f32
  %s1 = msl.get %v[%c1] : !msl.array<2xf32> -> f32
  %sums = msl.vector %s0, %s1 : f32, f32 -> vector<2xf32>
  %new = arith.addf %last, %sums : vector<2xf32>
  msl.set %new, %acc : vector<2xf32>, !msl.array<1xvector<2xf32>>
  %end = msl.get %acc : !msl.array<1xvector<2xf32>> -> vector<2xf32>
  msl.write %end, %x[%c0 : i32] : vector<2xf32>, !msl.ptr<f32, device>
  msl.return
}

// -----

// What is loaded is added to another array at once, also inside of a branch.
// CHECK-LABEL: msl.kernel @atomics
// CHECK:       msl.unroll %[[I:.*]] = 0 to 4 {
// CHECK-NEXT:    %[[A:.*]] = msl.read %{{.*}}[%[[I]] : i32]
// CHECK:         scf.if
// CHECK-NEXT:      msl.atomic_rmw fadd %{{.*}}[%[[I]]], %[[A]]
// CHECK:       }
// CHECK-NOT:   msl.unroll
msl.kernel @atomics(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %v = msl.var : !msl.array<4xf32>
  msl.unroll %i = 0 to 4 {
    %a = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%i] : f32, !msl.array<4xf32>
  }
  msl.unroll %i = 0 to 4 {
    %inside = arith.cmpi slt, %i, %n : i32
    scf.if %inside {
      %a = msl.get %v[%i] : !msl.array<4xf32> -> f32
      %old = msl.atomic_rmw fadd %y[%i], %a : !msl.ptr<f32, device>, i32, f32
    }
  }
  msl.return
}

// -----

// Arrays that share memory: a step must not read what an earlier one has changed.
// CHECK-LABEL: msl.kernel @overlapping
// CHECK:       msl.unroll
// CHECK:         msl.read
// CHECK:       msl.unroll
// CHECK:         msl.write
msl.kernel @overlapping(%x: !msl.ptr<f32, device> {msl.memory = 1 : i32}, %y: !msl.ptr<f32, device> {msl.memory = 1 : i32}) threads 32 {
  %v = msl.var : !msl.array<4xf32>
  msl.unroll %i = 0 to 4 {
    %a = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%i] : f32, !msl.array<4xf32>
  }
  msl.unroll %i = 0 to 4 {
    %a = msl.get %v[%i] : !msl.array<4xf32> -> f32
    msl.write %a, %y[%i : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// -----

// What is read stays in front of a write to the same array.
// CHECK-LABEL: msl.kernel @written_between
// CHECK:       msl.unroll
// CHECK:       msl.write
// CHECK-NEXT:  msl.unroll
msl.kernel @written_between(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %f: f32) threads 32 {
  %v = msl.var : !msl.array<4xf32>
  msl.unroll %i = 0 to 4 {
    %a = msl.read %x[%i : i32] : !msl.ptr<f32, device> -> f32
    msl.set %a, %v[%i] : f32, !msl.array<4xf32>
  }
  msl.write %f, %x : f32, !msl.ptr<f32, device>
  msl.unroll %i = 0 to 4 {
    %a = msl.get %v[%i] : !msl.array<4xf32> -> f32
    msl.write %a, %y[%i : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}
