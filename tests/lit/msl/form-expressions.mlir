// RUN: triton-metal-opt %s --msl-form-expressions | FileCheck %s

// CHECK-LABEL: msl.kernel @nesting
msl.kernel @nesting(%x: !msl.ptr<f32, device> {msl.name = "x_ptr"}, %s: f32, %t: f32) threads 32 {
  // Used once, and where it is used.
  // CHECK: %[[A:.*]] = msl.binary add
  // CHECK-NEXT: msl.write %[[A]]
  %a = msl.binary add %s, %t : (f32, f32) -> f32
  msl.write %a, %x : f32, !msl.ptr<f32, device>
  // Used twice. Without a name, it is what it is.
  // CHECK: %[[B:.*]] = msl.binary mul
  // CHECK-NEXT: %[[PRODUCT:.*]] = msl.let "product" %[[B]] : f32
  // CHECK-NEXT: msl.binary add %[[PRODUCT]], %[[PRODUCT]]
  %b = msl.binary mul %s, %t : (f32, f32) -> f32
  %c = msl.binary add %b, %b : (f32, f32) -> f32
  msl.write %c, %x : f32, !msl.ptr<f32, device>
  // A write lies between the read and its use.
  // CHECK: %[[OLD:.*]] = msl.read
  // CHECK-NEXT: msl.let "x_value" %[[OLD]] : f32
  %old = msl.read %x : !msl.ptr<f32, device> -> f32
  msl.write %s, %x : f32, !msl.ptr<f32, device>
  msl.write %old, %x : f32, !msl.ptr<f32, device>
  // Lanes meet in a statement of its own; Python's name stays.
  // CHECK: %[[R:.*]] = msl.simd_reduce max
  // CHECK-NEXT: msl.let "highest" %[[R]] : f32
  // CHECK: %[[O:.*]] = msl.simd_shuffle_xor
  // CHECK-NEXT: msl.let "other_highest" %[[O]] : f32
  %r = msl.simd_reduce max %s : f32 loc("highest")
  %o = msl.simd_shuffle_xor %r, 1 : f32
  msl.write %o, %x : f32, !msl.ptr<f32, device>
  // Not into a loop, where it would be computed again and again.
  // CHECK: %[[E:.*]] = msl.call "precise::exp"
  // CHECK-NEXT: %[[EXP:.*]] = msl.let "exp_arg1" %[[E]] : f32
  // CHECK-NEXT: msl.unroll
  %e = msl.call "precise::exp"(%s) : (f32) -> f32
  msl.unroll %i = 0 to 8 : ui16 {
    // CHECK: msl.write %[[EXP]]
    msl.write %e, %x[%i : ui16] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// A variable is named where it is used, but not beyond an assignment to it.
// CHECK-LABEL: msl.kernel @variables
msl.kernel @variables(%x: !msl.ptr<f32, device>, %n: i32, %s: f32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: %[[A:.*]] = msl.var "a" =
  // CHECK: %[[B:.*]] = msl.var "a" =
  %a = msl.var = %s (f32) : !msl.array<1xf32> loc("a")
  %b = msl.var = %s (f32) : !msl.array<1xf32>
  // CHECK: %[[OLD:.*]] = msl.get %[[A]]
  // CHECK-NEXT: %[[SAVED:.*]] = msl.let "a" %[[OLD]] : f32
  // CHECK-NEXT: %[[OTHER:.*]] = msl.get %[[B]]
  // CHECK-NEXT: msl.set %[[OTHER]], %[[A]]
  // CHECK-NEXT: msl.set %[[SAVED]], %[[B]]
  msl.for %c0 to %n step %c1 {
  ^bb0(%k: i32):
    %old = msl.get %a : !msl.array<1xf32> -> f32
    %other = msl.get %b : !msl.array<1xf32> -> f32
    msl.set %other, %a : f32, !msl.array<1xf32>
    msl.set %old, %b : f32, !msl.array<1xf32>
  } : i32
  msl.return
}

// CHECK-LABEL: msl.kernel @names
msl.kernel @names(%x: !msl.ptr<f32, device> {msl.name = "x_ptr"}, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %lane = msl.lane : ui16
  %id = msl.program_id 0 : ui32
  // CHECK: msl.let "row"
  %row = msl.cast %id : ui32 -> i32 loc("row")
  %offset = msl.binary mul %row, %n : (i32, i32) -> i32
  // CHECK: msl.let "x_row"
  %p = msl.ptr_add %x, %offset : !msl.ptr<f32, device>, i32
  // CHECK: msl.let "is_first_lane"
  %first = msl.binary equal %lane, %c0 : (ui16, i32) -> i1
  // CHECK: msl.let "offset"
  %sum = msl.binary add %lane, %row : (ui16, i32) -> i32
  scf.if %first {
    // CHECK: msl.let "x_row_value"
    %v = msl.read %p[%sum : i32] : !msl.ptr<f32, device> -> f32
    // CHECK: msl.let "max"
    %m = msl.call "fmax"(%v, %v) : (f32, f32) -> f32
    msl.write %m, %p[%sum : i32] : f32, !msl.ptr<f32, device>
    msl.write %m, %x : f32, !msl.ptr<f32, device>
  }
  scf.if %first {
    msl.barrier
  }
  msl.return
}
