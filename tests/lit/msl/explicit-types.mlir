// RUN: triton-metal-opt %s --msl-explicit-types | FileCheck %s

// Sums and products that may overflow are unsigned, and signed again where a sign is asked for.
// CHECK-LABEL: msl.kernel @wrapping
msl.kernel @wrapping(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %c4 = arith.constant 4 : i32
  // CHECK: %[[LANE:.*]] = msl.lane : ui16
  %lane = msl.lane : i32
  // CHECK: %[[ID:.*]] = msl.program_id 0 : ui32
  %id = msl.program_id 0 : i32
  // CHECK: %[[PLAIN:.*]] = msl.binary mul %[[LANE]], %{{.*}} : (ui16, i32) -> i32
  %a = arith.muli %lane, %c4 overflow<nsw> : i32
  // CHECK: %[[PRODUCT:.*]] = msl.binary mul %[[ID]], %arg1 : (ui32, i32) -> ui32
  %b = arith.muli %id, %n : i32
  // CHECK: %[[SUM:.*]] = msl.binary add %[[PRODUCT]], %[[PLAIN]] : (ui32, i32) -> ui32
  %c = arith.addi %b, %a : i32
  // CHECK: %[[FOUR:.*]] = msl.constant 4 : ui32
  // CHECK: %[[WRAPS:.*]] = msl.binary sub %arg1, %[[FOUR]] : (i32, ui32) -> ui32
  // CHECK: %[[SIGNED:.*]] = msl.cast %[[WRAPS]] : ui32 -> i32
  %d = arith.subi %n, %c4 : i32
  // CHECK: msl.binary div %[[SIGNED]], %{{.*}} : (i32, i32) -> i32
  %e = arith.divsi %d, %c4 : i32
  // CHECK: %[[OFFSET:.*]] = msl.cast %[[SUM]] : ui32 -> i32
  // CHECK: msl.write %{{.*}}, %arg0[%[[OFFSET]] : i32]
  msl.write %e, %x[%c : i32] : i32, !msl.ptr<i32, device>
  msl.return
}

// Small integers are computed as ints and cut back; functions take numbers of one type.
// CHECK-LABEL: msl.kernel @small
msl.kernel @small(%x: !msl.ptr<i16, device>, %s: i16, %t: i16, %n: i32) threads 32 {
  // CHECK: %[[INT:.*]] = msl.binary add %arg1, %arg2 : (i16, i16) -> i32
  // CHECK: %[[SHORT:.*]] = msl.cast %[[INT]] : i32 -> i16
  %a = arith.addi %s, %t : i16
  // CHECK: %[[U:.*]] = msl.cast %[[SHORT]] : i16 -> ui16
  // CHECK: %[[V:.*]] = msl.cast %arg2 : i16 -> ui16
  // CHECK: msl.call "min"(%[[U]], %[[V]]) : (ui16, ui16) -> ui16
  %b = arith.minui %a, %t : i16
  msl.write %b, %x : i16, !msl.ptr<i16, device>
  // CHECK: %[[LANE:.*]] = msl.lane : ui16
  // CHECK: %[[WHOLE:.*]] = msl.cast %[[LANE]] : ui16 -> i32
  // CHECK: msl.call "max"(%[[WHOLE]], %arg3) : (i32, i32) -> i32
  %lane = msl.lane : i32
  %c = arith.maxsi %lane, %n : i32
  %d = arith.trunci %c : i32 to i16
  msl.write %d, %x : i16, !msl.ptr<i16, device>
  msl.return
}

// bfloats are computed as floats and rounded; half has functions of its own where they are exact. One number stands for a
// vector beside one.
// CHECK-LABEL: msl.kernel @floats
msl.kernel @floats(%x: !msl.ptr<bf16, device>, %y: !msl.ptr<f16, device>, %a: bf16, %b: bf16, %h: f16) threads 32 {
  // CHECK: %[[A:.*]] = msl.cast %arg2 : bf16 -> f32
  // CHECK: %[[B:.*]] = msl.cast %arg3 : bf16 -> f32
  // CHECK: %[[S:.*]] = msl.binary add %[[A]], %[[B]] : (f32, f32) -> f32
  // CHECK: msl.cast %[[S]] : f32 -> bf16
  %s = arith.addf %a, %b : bf16
  msl.write %s, %x : bf16, !msl.ptr<bf16, device>
  // CHECK: %[[F:.*]] = msl.call "floor"(%arg4) : (f16) -> f16
  // CHECK: %[[W:.*]] = msl.cast %[[F]] : f16 -> f32
  // CHECK: %[[E:.*]] = msl.call "precise::exp"(%[[W]]) : (f32) -> f32
  // CHECK: msl.cast %[[E]] : f32 -> f16
  %f = math.floor %h : f16
  %e = math.exp %f : f16
  // CHECK: %[[R:.*]] = msl.read %arg1
  // CHECK: msl.binary mul %[[R]], %{{.*}} : (vector<4xf16>, f16) -> vector<4xf16>
  %v = msl.read %y : !msl.ptr<f16, device> -> vector<4xf16>
  %es = msl.splat %e : vector<4xf16>
  %p = arith.mulf %v, %es : vector<4xf16>
  msl.write %p, %y : vector<4xf16>, !msl.ptr<f16, device>
  // An integer that a float may not hold is rounded to odd first.
  // CHECK: msl.call "round_to_odd<32>"
  %lane = msl.lane : i32
  %many = arith.muli %lane, %lane : i32
  %g = arith.uitofp %many : i32 to bf16
  msl.write %g, %x : bf16, !msl.ptr<bf16, device>
  msl.return
}

// Metal shuffles numbers of up to 32 bits.
// CHECK-LABEL: msl.kernel @lanes
msl.kernel @lanes(%x: !msl.ptr<i64, device>, %b: bf16, %y: !msl.ptr<bf16, device>) threads 32 {
  // CHECK: %[[V:.*]] = msl.read
  // CHECK: %[[W:.*]] = msl.as_type %[[V]] : i64 -> vector<2xui32>
  // CHECK: %[[S:.*]] = msl.simd_shuffle_xor %[[W]], 1 : vector<2xui32>
  // CHECK: msl.as_type %[[S]] : vector<2xui32> -> i64
  %v = msl.read %x : !msl.ptr<i64, device> -> i64
  %s = msl.simd_shuffle_xor %v, 1 : i64
  msl.write %s, %x : i64, !msl.ptr<i64, device>
  // CHECK: %[[LANE:.*]] = msl.lane : ui16
  // CHECK: %[[BITS:.*]] = msl.as_type %arg1 : bf16 -> ui16
  // CHECK: msl.simd_shuffle %[[BITS]], %[[LANE]] : ui16, ui16
  %lane = msl.lane : i32
  %t = msl.simd_shuffle %b, %lane : bf16, i32
  msl.write %t, %y : bf16, !msl.ptr<bf16, device>
  msl.return
}

// A shuffle with a lane for each register is a call for each; a 64-bit number is a pair of words.
// CHECK-LABEL: msl.kernel @lane_by_lane
msl.kernel @lane_by_lane(%x: !msl.ptr<f32, device>, %y: !msl.ptr<i64, device>, %i: !msl.ptr<i32, device>) threads 32 {
  // CHECK: %[[V:.*]] = msl.read %arg0
  // CHECK: %[[L:.*]] = msl.cast %{{.*}} : vector<2xi32> -> vector<2xui16>
  // CHECK-DAG: %[[V0:.*]] = msl.swizzle %[[V]] [0]
  // CHECK-DAG: %[[L0:.*]] = msl.swizzle %[[L]] [0]
  // CHECK: %[[S0:.*]] = msl.simd_shuffle %[[V0]], %[[L0]] : f32, ui16
  // CHECK: %[[S1:.*]] = msl.simd_shuffle %{{.*}}, %{{.*}} : f32, ui16
  // CHECK: msl.vector %[[S0]], %[[S1]] : f32, f32 -> vector<2xf32>
  %v = msl.read %x : !msl.ptr<f32, device> -> vector<2xf32>
  %l = msl.read %i : !msl.ptr<i32, device> -> vector<2xi32>
  %s = msl.simd_shuffle %v, %l : vector<2xf32>, vector<2xi32>
  msl.write %s, %x : vector<2xf32>, !msl.ptr<f32, device>
  // CHECK: msl.as_type %{{.*}} : i64 -> vector<2xui32>
  // CHECK-COUNT-2: msl.simd_shuffle %{{.*}}, %{{.*}} : vector<2xui32>, ui16
  %w = msl.read %y : !msl.ptr<i64, device> -> vector<2xi64>
  %t = msl.simd_shuffle %w, %l : vector<2xi64>, vector<2xi32>
  msl.write %t, %y : vector<2xi64>, !msl.ptr<i64, device>
  msl.return
}

// A loop that counts without a sign has a counter without one.
// CHECK-LABEL: msl.kernel @counter
msl.kernel @counter(%x: !msl.ptr<i32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  // CHECK: %[[N:.*]] = msl.cast %arg1 : i32 -> ui32
  // CHECK: msl.for %{{.*}} to %[[N]] step %{{.*}} {
  // CHECK: ^bb0(%[[K:.*]]: ui32):
  // CHECK:   msl.write %{{.*}}, %arg0[%[[K]] : ui32]
  // CHECK: } : ui32
  msl.for unsigned %c0 to %n step %c32 {
  ^bb0(%k: i32):
    msl.write %c32, %x[%k : i32] {msl.nonnegative} : i32, !msl.ptr<i32, device>
  } : i32
  msl.return
}

// A float holds every integer of 16 bits, so that only the bfloat rounds: folding may have made one conversion of the two.
// CHECK-LABEL: msl.kernel @short_to_bfloat
// CHECK-NOT: round_to_odd
// CHECK: msl.cast {{.*}} -> f32
// CHECK: msl.return
msl.kernel @short_to_bfloat(%x: !msl.ptr<i16, device>, %y: !msl.ptr<bf16, device>) threads 32 {
  %v = msl.read %x : !msl.ptr<i16, device> -> i16
  %b = arith.uitofp %v : i16 to bf16
  msl.write %b, %y : bf16, !msl.ptr<bf16, device>
  msl.return
}

// An exchange of floats is one of their bits, also of a constant.
// CHECK-LABEL: msl.kernel @exchange
msl.kernel @exchange(%x: !msl.ptr<f32, device>, %i: i32) threads 32 {
  // CHECK: %[[BITS:.*]] = msl.as_type %{{.*}} : f32 -> ui32
  // CHECK: %[[OLD:.*]] = msl.atomic_rmw exchange %arg0[%arg1], %[[BITS]] : <f32, device>, i32, ui32
  // CHECK: msl.as_type %[[OLD]] : ui32 -> f32
  %c = arith.constant 1.5 : f32
  %old = msl.atomic_rmw exchange %x[%i], %c : !msl.ptr<f32, device>, i32, f32
  msl.write %old, %x : f32, !msl.ptr<f32, device>
  msl.return
}

// The sine and the cosine of one number have forms that share what both compute; others have forms of their own.
// CHECK-LABEL: msl.kernel @sine_and_cosine
msl.kernel @sine_and_cosine(%x: !msl.ptr<f32, device>, %a: f32, %b: f32) threads 32 {
  // CHECK: msl.call "approximate_sin_beside_cos"(%arg1)
  %0 = math.sin %a fastmath<afn> : f32
  // CHECK: msl.call "approximate_cos_beside_sin"(%arg1)
  %1 = math.cos %a fastmath<afn> : f32
  // CHECK: msl.call "approximate_sin"(%arg2)
  %2 = math.sin %b fastmath<afn> : f32
  // CHECK: msl.call "precise::cos"(%arg2)
  %3 = math.cos %b : f32
  %c0 = arith.constant 0 : i32
  %4 = arith.addf %0, %1 : f32
  %5 = arith.addf %2, %3 : f32
  %6 = arith.addf %4, %5 : f32
  msl.write %6, %x[%c0 : i32] : f32, !msl.ptr<f32, device>
  msl.return
}
