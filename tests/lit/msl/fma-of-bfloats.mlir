// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// The exact product is added in float, to odd: the rounding to bfloat then rounds once. A vector's numbers are added one by one.
// CHECK:      inline float fma_to_odd(float a, float b, float c) {
// CHECK-NEXT:   bool is_large = isinf(a * b) && !isinf(a) && !isinf(b);
// CHECK-NEXT:   if (is_large)
// CHECK-NEXT:     a *= 5.42101086e-20f, b *= 5.42101086e-20f, c = c * 5.42101086e-20f * 5.42101086e-20f;
// CHECK-NEXT:   float product = a * b, sum = product + c, part = sum - product;
// CHECK-NEXT:   float rest = (product - (sum - part)) + (c - part);
// CHECK-NEXT:   uint bits = as_type<uint>(sum);
// CHECK-NEXT:   if ((rest < 0.0f || rest > 0.0f) && (bits & 1u) == 0u)
// CHECK-NEXT:     bits += (rest > 0.0f) == (sum > 0.0f) ? 1u : 0xffffffffu;
// CHECK-NEXT:   float result = as_type<float>(bits);
// CHECK-NEXT:   return is_large ? result * 1.84467441e19f * 1.84467441e19f : result;
// CHECK-NEXT: }

// CHECK: void fused(
// CHECK: bfloat a = x[lane];
// CHECK-NEXT: y[lane] = bfloat(fma_to_odd(float(a), float(a), float(bfloat(0.5f))));
// CHECK: *(device bfloat2 *)(y + offset) = bfloat2(float2(fma_to_odd(b_1.x, number.x, b_2.x), fma_to_odd(b_1.y, number.y, b_2.y)));
msl.kernel @fused(%x: !msl.ptr<bf16, device> {msl.readonly, msl.name="x"}, %y: !msl.ptr<bf16, device> {msl.name="y"}) threads 32 {
  %lane = msl.lane : i32
  %a = msl.load %x[%lane] : !msl.ptr<bf16, device>, i32 -> bf16 loc("a")
  %half = arith.constant 0.5 : bf16
  %f = math.fma %a, %a, %half : bf16
  msl.store %f, %y[%lane] : bf16, !msl.ptr<bf16, device>, i32
  %c2 = arith.constant 2 : i32
  %l2 = arith.muli %lane, %c2 : i32
  %ls = msl.splat %l2 : vector<2xi32>
  %r = arith.constant dense<[64, 65]> : vector<2xi32>
  %o = arith.addi %ls, %r : vector<2xi32>
  %b = msl.load %x[%o] {width = 2 : i32} : !msl.ptr<bf16, device>, vector<2xi32> -> vector<2xbf16> loc("b")
  %three = arith.constant dense<3.0> : vector<2xbf16>
  %g = math.fma %b, %three, %b : vector<2xbf16>
  msl.store %g, %y[%o] {width = 2 : i32} : vector<2xbf16>, !msl.ptr<bf16, device>, vector<2xi32>
  msl.return
}
