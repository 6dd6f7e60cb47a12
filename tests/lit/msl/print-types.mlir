// RUN: triton-metal-opt %s --msl-loops-pipeline --define-arithmetic="constants-only" --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// A lane is a ushort in Metal and an int here: functions and as_type would go by the former. The product of two ushorts
// is an int that may overflow.
// CHECK-LABEL: void types(
// CHECK:      *arg0 = max(int(lane), 19);
// CHECK-NEXT:   arg0[1] = mulhi(uint(lane), uint(n));
// CHECK-NEXT:   arg0[2] = abs(int(lane));
// CHECK-NEXT:   arg1[3] = as_type<float>(int(lane));
// CHECK-NEXT:   int sum = simd_sum(int(lane));
// CHECK-NEXT:   arg0[4] = sum;
// CHECK-NEXT:   atomic_fetch_add_explicit((device atomic_int *)(arg0 + 5), int(lane), memory_order_relaxed);
// CHECK-NEXT:   arg0[6] = max(int(n > 3 ? lane : simdgroup), n);
// CHECK-NEXT:   arg0[7] = lane * 4 + n;
// CHECK-NEXT:   ushort min_1 = min(ushort(s), ushort(t));
// CHECK-NEXT:   *arg2 = short(short(min_1) * short(min_1));
// CHECK-NEXT:   arg0[8] = uint(n) << 1;
// CHECK-NEXT:   arg0[9] = n / 1;
msl.kernel @types(%x: !msl.ptr<i32, device>, %f: !msl.ptr<f32, device>, %h: !msl.ptr<i16, device>, %n: i32 {msl.name = "n"}, %s: i16 {msl.name = "s"}, %t: i16 {msl.name = "t"}) threads 64 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c5 = arith.constant 5 : i32
  %c6 = arith.constant 6 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %c9 = arith.constant 9 : i32
  %c19 = arith.constant 19 : i32
  %c33 = arith.constant 33 : i32
  %lane = msl.lane : i32
  %group = msl.simdgroup : i32
  %max = arith.maxsi %lane, %c19 : i32
  msl.store %max, %x[%c0] : i32, !msl.ptr<i32, device>, i32
  %high = msl.mulhi unsigned %lane, %n : i32
  msl.store %high, %x[%c1] : i32, !msl.ptr<i32, device>, i32
  %abs = math.absi %lane : i32
  msl.store %abs, %x[%c2] : i32, !msl.ptr<i32, device>, i32
  %bits = arith.bitcast %lane : i32 to f32
  msl.store %bits, %f[%c3] : f32, !msl.ptr<f32, device>, i32
  %sum = msl.simd_reduce sum %lane : i32
  msl.store %sum, %x[%c4] : i32, !msl.ptr<i32, device>, i32
  %old = msl.atomic_rmw add %x[%c5], %lane : !msl.ptr<i32, device>, i32, i32
  %more = arith.cmpi sgt, %n, %c3 : i32
  %either = arith.select %more, %lane, %group : i32
  %larger = arith.maxsi %either, %n : i32
  msl.store %larger, %x[%c6] : i32, !msl.ptr<i32, device>, i32
  %times = arith.muli %lane, %c4 : i32
  %plus = arith.addi %times, %n overflow<nsw> : i32
  msl.store %plus, %x[%c7] : i32, !msl.ptr<i32, device>, i32
  %min = arith.minui %s, %t : i16
  %square = arith.muli %min, %min : i16
  msl.store %square, %h[%c0] : i16, !msl.ptr<i16, device>, i32
  %shifted = arith.shli %n, %c33 : i32
  msl.store %shifted, %x[%c8] : i32, !msl.ptr<i32, device>, i32
  %quotient = arith.divsi %n, %c0 : i32
  msl.store %quotient, %x[%c9] : i32, !msl.ptr<i32, device>, i32
  msl.return
}
