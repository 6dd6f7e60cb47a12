#include "runtime/mlx/graph/Functions.h"

#include "mlx/device.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace triton_metal::graph {

mx::Dtype unsignedOf(mx::Dtype dtype) {
  switch (dtype.size()) {
  case 1:
    return mx::uint8;
  case 2:
    return mx::uint16;
  case 4:
    return mx::uint32;
  default:
    return mx::uint64;
  }
}

/// An operand with the sizes of both, mapped where either is.
static mx::array mapped(const mx::array &x, const mx::array &other) {
  return x.is_tracer() || other.is_tracer() ? mx::where(mx::array(true), x, other) : x;
}

mx::array notEqual(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream) {
  return mx::logical_not(mx::equal(x, y, stream), stream);
}

mx::array bitwiseAnd(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream) {
  return mx::bitwise_and(mapped(x, y), mapped(y, x), stream);
}

mx::array bitwiseOr(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream) {
  return mx::bitwise_or(mapped(x, y), mapped(y, x), stream);
}

mx::array bitwiseXor(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream) {
  return mx::bitwise_xor(mapped(x, y), mapped(y, x), stream);
}

mx::array leftShift(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream) {
  return mx::left_shift(mapped(x, y), mapped(y, x), stream);
}

mx::array rightShift(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream) {
  return mx::right_shift(mapped(x, y), mapped(y, x), stream);
}

mx::array wide(const mx::array &x) {
  return x.dtype() == mx::float16 || x.dtype() == mx::bfloat16 ? mx::astype(x, mx::float32) : x;
}

mx::array part(const mx::array &array, size_t axis, int from, int to, int step) {
  // vmap of MLX 0.32 takes two elements where a step leaves one.
  if (to - from <= step)
    to = std::min(to, from + 1), step = 1;
  mx::Shape start(array.ndim(), 0), stop = array.shape(), steps(array.ndim(), 1);
  start[axis] = from, stop[axis] = to, steps[axis] = step;
  return mx::slice(array, start, stop, steps);
}

mx::array asUnsigned(const mx::array &x) {
  return x.dtype() == mx::bool_ ? mx::astype(x, mx::uint8) : mx::view(x, unsignedOf(x.dtype()));
}

mx::array asExactFloats(const mx::array &integers) {
  mx::Dtype dtype = integers.dtype();
  mx::array result = integers;
  // Numbers of 17 + k to 24 + k digits: the last one of 24 says whether any of the others is not 0.
  for (int k = 8; 16 + k < static_cast<int>(8 * dtype.size()); k += 8) {
    mx::array end(int64_t(1) << k, dtype), least(int64_t(1) << (16 + k), dtype);
    mx::array rest = mx::bitwise_and(integers, mx::array((int64_t(1) << k) - 1, dtype));
    mx::array isInexact = mx::not_equal(rest, mx::array(0, dtype));
    mx::array kept = mx::bitwise_or(mx::subtract(integers, rest),
                                    mx::multiply(mx::astype(isInexact, dtype), end));
    mx::array isLarge = mx::greater_equal(integers, least);
    if (mx::issubdtype(dtype, mx::signedinteger))
      isLarge = mx::logical_or(isLarge, mx::less_equal(integers, mx::negative(least)));
    result = mx::where(isLarge, kept, result);
  }
  return result;
}

mx::array asOddFloats(const mx::array &doubles) {
  mx::array nearest = mx::astype(doubles, mx::float32), back = mx::astype(nearest, mx::float64);
  mx::array bits = mx::view(nearest, mx::int32), one(1, mx::int32);
  mx::array isEven = mx::equal(mx::bitwise_and(bits, one), mx::array(0, mx::int32));
  mx::array isRounded = mx::logical_and(mx::not_equal(back, doubles), mx::isfinite(nearest));
  mx::array isBelow = mx::less(mx::abs(back), mx::abs(doubles));
  mx::array odd = mx::where(isBelow, mx::add(bits, one), mx::subtract(bits, one));
  return mx::view(mx::where(mx::logical_and(isRounded, isEven), odd, bits), mx::float32);
}

namespace {

mx::array number(double value, const mx::array &like) {
  return mx::astype(mx::array(value, mx::float32), like.dtype());
}

mx::array integer(int64_t value, const mx::array &like) { return mx::array(value, like.dtype()); }

/// Quotient toward zero. MLX divides integers as C++ does, for which neither 0 nor the least number
/// by -1 has a result; these are x and the least number, as on the other devices.
mx::array quotient(const mx::array &x, const mx::array &y) {
  bool isSigned = mx::issubdtype(x.dtype(), mx::signedinteger);
  mx::array one = integer(1, y);
  mx::array divisor = mx::where(mx::equal(y, integer(0, y)), one, y);
  if (!isSigned)
    return mx::floor_divide(x, divisor);
  mx::array minusOne = mx::equal(y, integer(-1, y));
  mx::array safe = mx::where(minusOne, one, divisor);
  // Rounded toward zero, however floor_divide rounds: the quotient of magnitudes.
  mx::array ux = asUnsigned(mx::abs(x)), uy = asUnsigned(mx::abs(safe));
  mx::array magnitude = mx::view(mx::floor_divide(ux, uy), x.dtype());
  mx::array isNegative = notEqual(mx::less(x, integer(0, x)), mx::less(safe, integer(0, safe)));
  mx::array result = mx::where(isNegative, mx::subtract(integer(0, x), magnitude), magnitude);
  return mx::where(minusOne, mx::subtract(integer(0, x), x), result);
}

mx::array remainderOf(const mx::array &x, const mx::array &y) {
  return mx::subtract(
      x, mx::multiply(quotient(x, y), mx::where(mx::equal(y, integer(0, y)), integer(1, y), y)));
}

Function onUnsigned(Function function) {
  return [function](const Arrays &x) {
    Arrays bits;
    for (const mx::array &operand : x)
      bits.push_back(asUnsigned(operand));
    return mx::view(function(bits), x[0].dtype());
  };
}

/// Maximum or minimum for which NaN counts as missing.
Function withoutNan(mx::array (*function)(const mx::array &, const mx::array &,
                                          mx::StreamOrDevice)) {
  return [function](const Arrays &x) {
    mx::array a = mx::where(mx::isnan(x[0]), x[1], x[0]);
    mx::array b = mx::where(mx::isnan(x[1]), x[0], x[1]);
    return function(a, b, {});
  };
}

Function unary(mx::array (*function)(const mx::array &, mx::StreamOrDevice)) {
  return [function](const Arrays &x) { return function(x[0], {}); };
}

Function binary(mx::array (*function)(const mx::array &, const mx::array &, mx::StreamOrDevice)) {
  return [function](const Arrays &x) { return function(x[0], x[1], {}); };
}

using Binary = mx::array (*)(const mx::array &, const mx::array &, mx::StreamOrDevice);

/// Another function for truth values: bitwise_xor of MLX 0.32 gives its first operand on the CPU.
Function onTruths(Binary truths, Binary numbers) {
  return [=](const Arrays &x) {
    return (x[0].dtype() == mx::bool_ ? truths : numbers)(x[0], x[1], {});
  };
}

/// On numbers of 32 bits, rounded once.
Function inFloat(Function function) {
  return [function](const Arrays &x) {
    if (x[0].dtype() != mx::float16 && x[0].dtype() != mx::bfloat16)
      return function(x);
    Arrays wide;
    for (const mx::array &operand : x)
      wide.push_back(mx::astype(operand, mx::float32));
    return mx::astype(function(wide), x[0].dtype());
  };
}

mx::array truncated(const mx::array &x) {
  return mx::where(mx::less(x, number(0, x)), mx::ceil(x), mx::floor(x));
}

mx::array signBit(const mx::array &x) {
  mx::Dtype bits = x.dtype().size() == 2   ? mx::int16
                   : x.dtype().size() == 4 ? mx::int32
                                           : mx::int64;
  return mx::less(mx::view(x, bits), mx::array(0, bits));
}

mx::array copySign(const mx::array &x, const mx::array &sign) {
  mx::array magnitude = mx::abs(x);
  return mx::where(signBit(sign), mx::negative(magnitude), magnitude);
}

/// Half of the double-width product.
mx::array highProduct(const mx::array &x, const mx::array &y) {
  if (x.dtype().size() < 8) {
    int64_t width = 8 * static_cast<int64_t>(x.dtype().size());
    mx::array product = mx::multiply(mx::astype(x, mx::uint64), mx::astype(y, mx::uint64));
    return mx::astype(mx::right_shift(product, mx::array(width, mx::uint64)), x.dtype());
  }
  mx::array half = mx::array(32, mx::uint64), mask = mx::array(int64_t(0xffffffff), mx::uint64);
  mx::array xl = mx::bitwise_and(x, mask), xh = mx::right_shift(x, half);
  mx::array yl = mx::bitwise_and(y, mask), yh = mx::right_shift(y, half);
  mx::array low = mx::right_shift(mx::multiply(xl, yl), half);
  mx::array middle = mx::add(mx::multiply(xh, yl), low);
  mx::array other = mx::add(mx::multiply(xl, yh), mx::bitwise_and(middle, mask));
  return mx::add(mx::multiply(xh, yh),
                 mx::add(mx::right_shift(middle, half), mx::right_shift(other, half)));
}

/// x * y + z of numbers of 16 bits, rounded once. Their products are exact as floats, but for those
/// that are too large, which are made 2^128 times smaller. The sum is rounded to odd, so that a
/// second rounding sees what is cut off.
mx::array fusedShort(const mx::array &x, const mx::array &y, const mx::array &z) {
  mx::array a = mx::astype(x, mx::float32), b = mx::astype(y, mx::float32),
            c = mx::astype(z, mx::float32);
  mx::array isInfinite = mx::logical_or(mx::isinf(a), mx::isinf(b));
  mx::array isLarge = mx::logical_and(mx::isinf(mx::multiply(a, b)), mx::logical_not(isInfinite));
  mx::array scale = mx::where(isLarge, mx::array(0x1p-64f), mx::array(1.0f));
  c = mx::multiply(mx::multiply(c, scale), scale);
  mx::array product = mx::multiply(mx::multiply(a, scale), mx::multiply(b, scale)),
            sum = mx::add(product, c), part = mx::subtract(sum, product);
  mx::array rest = mx::add(mx::subtract(product, mx::subtract(sum, part)), mx::subtract(c, part));
  mx::array bits = mx::view(sum, mx::int32), isUp = mx::greater(rest, mx::array(0.0f));
  mx::array isEven = mx::equal(mx::bitwise_and(bits, mx::array(1)), mx::array(0));
  mx::array isCut = mx::logical_and(isEven, mx::logical_or(isUp, mx::less(rest, mx::array(0.0f))));
  mx::array away = mx::equal(isUp, mx::greater(sum, mx::array(0.0f)));
  mx::array odd =
      mx::add(bits, mx::where(isCut, mx::where(away, mx::array(1), mx::array(-1)), mx::array(0)));
  mx::array whole = mx::divide(mx::divide(mx::view(odd, mx::float32), scale), scale);
  return mx::astype(whole, x.dtype());
}

/// x * y + z, rounded once. Products of floats are exact as doubles, which MLX has on the CPU. On a
/// GPU, the error of the product, by halves of its factors, is added again.
mx::array fused(const mx::array &x, const mx::array &y, const mx::array &z) {
  mx::Dtype dtype = x.dtype();
  if (dtype == mx::float64)
    return mx::add(mx::multiply(x, y), z);
  if (dtype != mx::float32)
    return fusedShort(x, y, z);
  if (mx::default_device() == mx::Device::cpu)
    return mx::astype(mx::add(mx::multiply(mx::astype(x, mx::float64), mx::astype(y, mx::float64)),
                              mx::astype(z, mx::float64)),
                      dtype);
  auto halves = [](const mx::array &number) {
    // The upper 12 bits, and the rest.
    mx::array upper = mx::view(
        mx::bitwise_and(mx::view(number, mx::int32), mx::array(-4096, mx::int32)), mx::float32);
    return std::pair(upper, mx::subtract(number, upper));
  };
  auto [xu, xl] = halves(x);
  auto [yu, yl] = halves(y);
  mx::array product = mx::multiply(x, y);
  mx::array error =
      mx::add(mx::add(mx::add(mx::subtract(mx::multiply(xu, yu), product), mx::multiply(xu, yl)),
                      mx::multiply(xl, yu)),
              mx::multiply(xl, yl));
  mx::array sum = mx::add(product, z);
  mx::array corrected = mx::add(sum, mx::where(mx::isfinite(sum), error, mx::array(0.0f)));
  return mx::where(mx::isnan(corrected), sum, corrected);
}

mx::array countOnes(mx::array x) {
  mx::array count = mx::array(0, x.dtype());
  for (size_t bit = 0; bit < 8 * x.dtype().size(); ++bit)
    count = mx::add(count, mx::bitwise_and(mx::right_shift(x, mx::array(int64_t(bit), x.dtype())),
                                           mx::array(1, x.dtype())));
  return count;
}

/// Every bit below the highest one.
mx::array smear(mx::array x) {
  for (size_t shift = 1; shift < 8 * x.dtype().size(); shift *= 2)
    x = mx::bitwise_or(x, mx::right_shift(x, mx::array(int64_t(shift), x.dtype())));
  return x;
}

} // namespace

const std::unordered_map<std::string, Function> &functions() {
  static const std::unordered_map<std::string, Function> table = {
      {"arith.addf", binary(mx::add)},
      {"arith.subf", binary(mx::subtract)},
      {"arith.mulf", binary(mx::multiply)},
      {"arith.divf", binary(mx::divide)},
      {"tt.precise_divf", binary(mx::divide)},
      {"tt.approx_divf", binary(mx::divide)},
      {"arith.remf", inFloat([](const Arrays &x) {
         return copySign(mx::remainder(mx::abs(x[0]), mx::abs(x[1])), x[0]);
       })},
      {"arith.negf", unary(mx::negative)},
      {"arith.maximumf", binary(mx::maximum)},
      {"arith.minimumf", binary(mx::minimum)},
      {"arith.maxnumf", withoutNan(mx::maximum)},
      {"arith.minnumf", withoutNan(mx::minimum)},
      {"arith.addi", onTruths(notEqual, mx::add)},
      {"arith.subi", onTruths(notEqual, mx::subtract)},
      {"arith.muli", onTruths(mx::logical_and, mx::multiply)},
      {"arith.divsi", [](const Arrays &x) { return quotient(x[0], x[1]); }},
      {"arith.remsi", [](const Arrays &x) { return remainderOf(x[0], x[1]); }},
      {"arith.divui", onUnsigned([](const Arrays &x) { return quotient(x[0], x[1]); })},
      {"arith.remui", onUnsigned([](const Arrays &x) { return remainderOf(x[0], x[1]); })},
      {"arith.andi", onTruths(mx::logical_and, bitwiseAnd)},
      {"arith.ori", onTruths(mx::logical_or, bitwiseOr)},
      {"arith.xori", onTruths(notEqual, bitwiseXor)},
      {"arith.shli", binary(leftShift)},
      {"arith.shrsi", binary(rightShift)},
      {"arith.shrui", onUnsigned([](const Arrays &x) { return rightShift(x[0], x[1]); })},
      {"arith.maxsi", binary(mx::maximum)},
      {"arith.minsi", binary(mx::minimum)},
      {"arith.maxui", onUnsigned([](const Arrays &x) { return mx::maximum(x[0], x[1]); })},
      {"arith.minui", onUnsigned([](const Arrays &x) { return mx::minimum(x[0], x[1]); })},
      {"tt.mulhiui", onUnsigned([](const Arrays &x) { return highProduct(x[0], x[1]); })},
      {"tt.clampf", {}},
      {"math.absf", unary(mx::abs)},
      {"math.absi", unary(mx::abs)},
      {"math.exp", inFloat(unary(mx::exp))},
      {"math.expm1", inFloat(unary(mx::expm1))},
      {"math.exp2", inFloat([](const Arrays &x) { return mx::power(number(2, x[0]), x[0]); })},
      {"math.log", inFloat(unary(mx::log))},
      {"math.log2", inFloat(unary(mx::log2))},
      {"math.log10", inFloat(unary(mx::log10))},
      {"math.log1p", inFloat(unary(mx::log1p))},
      {"math.sin", inFloat(unary(mx::sin))},
      {"math.cos", inFloat(unary(mx::cos))},
      {"math.tan", inFloat(unary(mx::tan))},
      {"math.asin", inFloat(unary(mx::arcsin))},
      {"math.acos", inFloat(unary(mx::arccos))},
      {"math.atan", inFloat(unary(mx::arctan))},
      {"math.atan2", inFloat(binary(mx::arctan2))},
      {"math.sinh", inFloat(unary(mx::sinh))},
      {"math.cosh", inFloat(unary(mx::cosh))},
      {"math.tanh", inFloat(unary(mx::tanh))},
      {"math.asinh", inFloat(unary(mx::arcsinh))},
      {"math.acosh", inFloat(unary(mx::arccosh))},
      {"math.atanh", inFloat(unary(mx::arctanh))},
      {"math.erf", inFloat(unary(mx::erf))},
      {"math.sqrt", inFloat(unary(mx::sqrt))},
      {"tt.precise_sqrt", inFloat(unary(mx::sqrt))},
      {"math.rsqrt",
       inFloat([](const Arrays &x) { return mx::divide(number(1, x[0]), mx::sqrt(x[0])); })},
      {"math.powf", inFloat(binary(mx::power))},
      {"math.floor", unary(mx::floor)},
      {"math.ceil", unary(mx::ceil)},
      {"math.trunc", [](const Arrays &x) { return truncated(x[0]); }},
      {"math.roundeven", [](const Arrays &x) { return mx::round(x[0], 0); }},
      {"math.round",
       [](const Arrays &x) {
         mx::array whole = truncated(x[0]);
         mx::array rest = mx::abs(mx::subtract(x[0], whole));
         return mx::where(mx::greater_equal(rest, number(0.5, rest)),
                          mx::add(whole, copySign(number(1, rest), x[0])), whole);
       }},
      {"math.copysign", [](const Arrays &x) { return copySign(x[0], x[1]); }},
      {"math.fma", [](const Arrays &x) { return fused(x[0], x[1], x[2]); }},
      {"math.isnan", unary(mx::isnan)},
      {"math.isinf", unary(mx::isinf)},
      {"math.isfinite", unary(mx::isfinite)},
      {"math.ctpop", onUnsigned([](const Arrays &x) { return countOnes(x[0]); })},
      {"math.ctlz", onUnsigned([](const Arrays &x) {
         return mx::subtract(mx::array(int64_t(8 * x[0].dtype().size()), x[0].dtype()),
                             countOnes(smear(x[0])));
       })},
      {"math.cttz", onUnsigned([](const Arrays &x) {
         // The ones below the lowest one.
         mx::array below = mx::bitwise_and(mx::subtract(x[0], mx::array(1, x[0].dtype())),
                                           mx::bitwise_invert(x[0]));
         return countOnes(below);
       })},
  };
  return table;
}

} // namespace triton_metal::graph
