// Operations on each element.

#include "runtime/mlx/graph/Tracer.h"

#include "mlx/device.h"
#include "mlx/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <unordered_map>

namespace triton_metal::graph {

namespace {

using Arrays = std::vector<mx::array>;
using Function = std::function<mx::array(const Arrays &)>;

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

mx::array asUnsigned(const mx::array &x) {
  return x.dtype() == mx::bool_ ? mx::astype(x, mx::uint8) : mx::view(x, unsignedOf(x.dtype()));
}

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
  mx::array isNegative =
      mx::not_equal(mx::less(x, integer(0, x)), mx::less(safe, integer(0, safe)));
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

/// x * y + z, rounded once. Products of floats are exact as doubles, which MLX has on the CPU. On a
/// GPU, the error of the product, by halves of its factors, is added again.
mx::array fused(const mx::array &x, const mx::array &y, const mx::array &z) {
  mx::Dtype dtype = x.dtype();
  if (dtype == mx::float64)
    return mx::add(mx::multiply(x, y), z);
  if (dtype != mx::float32 || mx::default_device() == mx::Device::cpu) {
    mx::Dtype wide = dtype == mx::float32 ? mx::float64 : mx::float32;
    return mx::astype(
        mx::add(mx::multiply(mx::astype(x, wide), mx::astype(y, wide)), mx::astype(z, wide)),
        dtype);
  }
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
      {"arith.addi", onTruths(mx::not_equal, mx::add)},
      {"arith.subi", onTruths(mx::not_equal, mx::subtract)},
      {"arith.muli", onTruths(mx::logical_and, mx::multiply)},
      {"arith.divsi", [](const Arrays &x) { return quotient(x[0], x[1]); }},
      {"arith.remsi", [](const Arrays &x) { return remainderOf(x[0], x[1]); }},
      {"arith.divui", onUnsigned([](const Arrays &x) { return quotient(x[0], x[1]); })},
      {"arith.remui", onUnsigned([](const Arrays &x) { return remainderOf(x[0], x[1]); })},
      {"arith.andi", onTruths(mx::logical_and, mx::bitwise_and)},
      {"arith.ori", onTruths(mx::logical_or, mx::bitwise_or)},
      {"arith.xori", onTruths(mx::not_equal, mx::bitwise_xor)},
      {"arith.shli", binary(mx::left_shift)},
      {"arith.shrsi", binary(mx::right_shift)},
      {"arith.shrui", onUnsigned([](const Arrays &x) { return mx::right_shift(x[0], x[1]); })},
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

} // namespace

void Tracer::runElementwise(const Operation &op) {
  auto found = functions().find(op.name);
  if (found == functions().end())
    refuse(op, op.name + " cannot become a part of an MLX graph");
  if (op.results.size() != 1)
    refuse(op, op.name + " has more than one result");
  if (runAffine(op))
    return;
  size_t rank = 0;
  for (size_t i = 0; i < op.operands.size(); ++i)
    rank = std::max(rank, operand(op, i).rank());
  Arrays arrays;
  Extents extents(rank, 1);
  bool isKnown = true;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    Value value = aligned(operand(op, i), rank);
    extents = join(extents, value.extents());
    isKnown &= value.isKnown();
    arrays.push_back(value.array());
  }
  if (op.name == "tt.clampf") {
    bool propagates = op.integer("propagateNan") != 0;
    mx::array x = arrays[0];
    mx::array held = mx::minimum(mx::maximum(x, arrays[1]), arrays[2]);
    // Without propagation a NaN is held at the lower bound.
    held = mx::where(mx::isnan(x), propagates ? x : mx::minimum(arrays[1], arrays[2]), held);
    return setResult(op, Value::of(resultType(op), extents, held, isKnown));
  }
  mx::array result = found->second(arrays);
  const Type &type = resultType(op);
  if (result.dtype() != type.dtype())
    result = mx::astype(result, type.dtype());
  setResult(op, Value::of(type, extents, result, isKnown));
}

/// The operations of addresses and bounds, while they stay affine.
bool Tracer::runAffine(const Operation &op) {
  const Type &type = resultType(op);
  if (type.isFloat() || op.operands.size() != 2)
    return false;
  size_t rank = std::max(operand(op, 0).rank(), operand(op, 1).rank());
  Value a = aligned(operand(op, 0), rank), b = aligned(operand(op, 1), rank);
  Extents extents = join(a.extents(), b.extents());
  if (type.isBool()) {
    auto isTrue = [](const Value &value) { return value.constant() == 1; };
    auto isFalse = [](const Value &value) { return value.constant() == 0; };
    if (op.name == "arith.andi") {
      if (!(a.conditions() && b.conditions()) && !a.constant() && !b.constant())
        return false;
      setResult(op, conjunction(a, b).withType(type));
      return true;
    }
    if (op.name == "arith.ori" && (a.constant() || b.constant())) {
      setResult(op, (isTrue(a) || isFalse(b) ? a : b).withType(type));
      return true;
    }
    if (op.name == "arith.xori" && (a.constant() || b.constant())) {
      const Value &constant = b.constant() ? b : a, &other = b.constant() ? a : b;
      setResult(op, (isTrue(constant) ? negation(other) : other).withType(type));
      return true;
    }
    return false;
  }
  if (!a.affine() || !b.affine())
    return false;
  int width = type.width();
  auto give = [&](const std::optional<Affine> &result) {
    // What would wrap around is no longer affine.
    if (!result || !fits(result->range(extents), width))
      return false;
    setResult(op, Value::of(type, extents, *result));
    return true;
  };
  auto rangeA = a.affine()->range(a.extents()), rangeB = b.affine()->range(b.extents());
  if (op.name == "arith.addi")
    return give(add(*a.affine(), *b.affine()));
  if (op.name == "arith.subi") {
    std::optional<Affine> negative = multiply(*b.affine(), -1);
    return negative && give(add(*a.affine(), *negative));
  }
  if (op.name == "arith.muli") {
    if (b.constant())
      return give(multiply(*a.affine(), *b.constant()));
    return a.constant() && give(multiply(*b.affine(), *a.constant()));
  }
  if (op.name == "arith.shli") {
    if (!b.constant() || *b.constant() < 0 || *b.constant() > 62)
      return false;
    return give(multiply(*a.affine(), int64_t(1) << *b.constant()));
  }
  bool isUnsigned = op.name.ends_with("ui");
  bool isMax = op.name.starts_with("arith.max"), isMin = op.name.starts_with("arith.min");
  if (isMax || isMin) {
    if (isUnsigned && (rangeA.first < 0 || rangeB.first < 0))
      return false;
    if (rangeA.first >= rangeB.second)
      return give(isMax ? *a.affine() : *b.affine());
    if (rangeB.first >= rangeA.second)
      return give(isMax ? *b.affine() : *a.affine());
    return false;
  }
  bool isQuotient =
      op.name.starts_with("arith.div") || op.name == "arith.shrsi" || op.name == "arith.shrui";
  bool isRemainder = op.name.starts_with("arith.rem");
  if ((isQuotient || isRemainder) && b.constant() && rangeA.first >= 0) {
    int64_t divisor = *b.constant();
    if (op.name.starts_with("arith.sh")) {
      if (divisor < 0 || divisor > 62)
        return false;
      divisor = int64_t(1) << divisor;
    }
    if (divisor <= 0)
      return false;
    auto parts = divide(*a.affine(), divisor, a.extents());
    return parts && give(isQuotient ? parts->first : parts->second);
  }
  if (op.name == "arith.andi") {
    // The lower bits of a number that is not negative are a remainder.
    const Value &mask = b.constant() ? b : a, &value = b.constant() ? a : b;
    if (!mask.constant() || *mask.constant() < 0 || (b.constant() ? rangeA : rangeB).first < 0)
      return false;
    int64_t bits = *mask.constant();
    if ((bits & (bits + 1)) != 0 || bits == std::numeric_limits<int64_t>::max())
      return false;
    auto parts = divide(*value.affine(), bits + 1, value.extents());
    return parts && give(parts->second);
  }
  return false;
}

void Tracer::runCompare(const Operation &op) {
  size_t rank = std::max(operand(op, 0).rank(), operand(op, 1).rank());
  Value a = aligned(operand(op, 0), rank), b = aligned(operand(op, 1), rank);
  Extents extents = join(a.extents(), b.extents());
  bool isKnown = a.isKnown() && b.isKnown();
  int64_t predicate = op.integer("predicate");
  const Type &type = resultType(op);
  auto give = [&](const mx::array &truth) {
    setResult(op, Value::of(type, extents, truth, isKnown));
  };
  if (op.name == "arith.cmpi") {
    // eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge
    bool isUnsigned = predicate >= 6;
    if (a.affine() && b.affine() && a.buffer() == b.buffer()) {
      auto rangeA = a.affine()->range(a.extents()), rangeB = b.affine()->range(b.extents());
      bool isPlain = !isUnsigned || (rangeA.first >= 0 && rangeB.first >= 0);
      std::optional<Affine> minusB = multiply(*b.affine(), -1);
      std::optional<Affine> difference = minusB ? add(*a.affine(), *minusB) : std::nullopt;
      std::optional<Affine> opposite = difference ? multiply(*difference, -1) : std::nullopt;
      if (isPlain && opposite) {
        int64_t kind = isUnsigned ? predicate - 4 : predicate;
        Affine minusOne = Affine::of(-1, rank);
        auto set = [&](std::vector<std::optional<Affine>> conditions) {
          std::vector<Affine> all;
          for (std::optional<Affine> &condition : conditions) {
            if (!condition)
              return false;
            all.push_back(*condition);
          }
          setResult(op, Value::of(type, extents, std::move(all)));
          return true;
        };
        bool isSet = false;
        switch (kind) {
        case 0:
          isSet = set({difference, opposite});
          break;
        case 1: {
          auto [low, high] = difference->range(extents);
          if (low > 0 || high < 0)
            isSet = set({});
          else if (low == 0 && high == 0)
            isSet = set({minusOne});
          else if (low == 0)
            isSet = set({add(*difference, minusOne)});
          else if (high == 0)
            isSet = set({add(*opposite, minusOne)});
          break;
        }
        case 2:
          isSet = set({add(*opposite, minusOne)});
          break;
        case 3:
          isSet = set({opposite});
          break;
        case 4:
          isSet = set({add(*difference, minusOne)});
          break;
        case 5:
          isSet = set({difference});
          break;
        }
        if (isSet)
          return;
      }
    }
    if (a.buffer() != b.buffer())
      refuse(op, "pointers into two arrays are compared");
    mx::array x = a.array(), y = b.array();
    if (isUnsigned)
      x = asUnsigned(x), y = asUnsigned(y);
    switch (predicate) {
    case 0:
      return give(mx::equal(x, y));
    case 1:
      return give(mx::not_equal(x, y));
    case 2:
    case 6:
      return give(mx::less(x, y));
    case 3:
    case 7:
      return give(mx::less_equal(x, y));
    case 4:
    case 8:
      return give(mx::greater(x, y));
    default:
      return give(mx::greater_equal(x, y));
    }
  }
  // false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true
  const mx::array &x = a.array(), &y = b.array();
  mx::array unordered = mx::logical_or(mx::isnan(x), mx::isnan(y));
  mx::array ordered = mx::logical_not(unordered);
  switch (predicate) {
  case 0:
    return setResult(op, constantOf(type, 0));
  case 1:
    return give(mx::equal(x, y));
  case 2:
    return give(mx::greater(x, y));
  case 3:
    return give(mx::greater_equal(x, y));
  case 4:
    return give(mx::less(x, y));
  case 5:
    return give(mx::less_equal(x, y));
  case 6:
    return give(mx::logical_and(mx::not_equal(x, y), ordered));
  case 7:
    return give(ordered);
  case 8:
    return give(mx::logical_or(mx::equal(x, y), unordered));
  case 9:
    return give(mx::logical_not(mx::less_equal(x, y)));
  case 10:
    return give(mx::logical_not(mx::less(x, y)));
  case 11:
    return give(mx::logical_not(mx::greater_equal(x, y)));
  case 12:
    return give(mx::logical_not(mx::greater(x, y)));
  case 13:
    return give(mx::not_equal(x, y));
  case 14:
    return give(unordered);
  default:
    return setResult(op, constantOf(type, 1));
  }
}

void Tracer::runSelect(const Operation &op) {
  try {
    setResult(op, choose(operand(op, 0), operand(op, 1), operand(op, 2)).withType(resultType(op)));
  } catch (const Refusal &refusal) {
    refuse(op, refusal.message);
  }
}

void Tracer::runCast(const Operation &op) {
  const Value &value = operand(op, 0);
  const Type &to = resultType(op), &from = value.type();
  if (const Affine *affine = value.affine(); affine && !to.isFloat() && !to.isBool()) {
    auto range = affine->range(value.extents());
    bool isSame = op.name == "arith.extui" || op.name == "arith.index_castui"
                      ? range.first >= 0
                      : fits(range, to.width());
    if (isSame)
      return setResult(op, Value::of(to, value.extents(), *affine));
  }
  if (from.isBool() && value.constant() && !to.isFloat()) {
    int64_t truth = *value.constant();
    return setResult(
        op, Value::of(to, value.extents(),
                      Affine::of(op.name == "arith.extsi" ? -truth : truth, value.rank())));
  }
  mx::array x = value.array();
  auto give = [&](const mx::array &result) {
    setResult(op, Value::of(to, value.extents(), mx::astype(result, to.dtype()), value.isKnown()));
  };
  if (op.name == "arith.extui" || op.name == "arith.uitofp" || op.name == "arith.index_castui")
    return give(asUnsigned(x));
  if (op.name == "arith.extsi" && from.isBool())
    return give(mx::negative(mx::astype(x, to.dtype())));
  if (op.has("rounding") && op.integer("rounding") == 0 && to.width() < from.width()) {
    // Toward zero: one number back where rounding to the nearest has gone too far.
    mx::array nearest = mx::astype(x, to.dtype());
    mx::array isFar = mx::greater(mx::abs(mx::astype(nearest, x.dtype())), mx::abs(x));
    mx::Dtype bits = to.width() == 16 ? mx::int16 : mx::int32;
    mx::array before = mx::subtract(mx::view(nearest, bits), mx::array(1, bits));
    return give(mx::where(isFar, mx::view(before, to.dtype()), nearest));
  }
  if (op.name == "arith.trunci" && to.isBool())
    return give(
        mx::not_equal(mx::bitwise_and(x, mx::array(1, x.dtype())), mx::array(0, x.dtype())));
  if (op.name == "arith.fptosi" || op.name == "arith.fptoui") {
    // The nearest number of the type, 0 for NaN, as on the other devices.
    bool isUnsigned = op.name == "arith.fptoui";
    int width = to.width();
    mx::Dtype wide = x.dtype() == mx::float64 ? mx::float64 : mx::float32;
    x = mx::astype(x, wide);
    double high = std::ldexp(1.0, isUnsigned ? width : width - 1);
    double low = isUnsigned ? 0.0 : -high;
    mx::array isNan = mx::isnan(x);
    mx::array isHigh = mx::greater_equal(x, mx::array(high, wide));
    mx::array isLow = mx::less_equal(x, mx::array(low, wide));
    mx::array zero = mx::array(0.0, wide);
    mx::array safe = mx::where(mx::logical_or(isNan, mx::logical_or(isHigh, isLow)), zero, x);
    mx::Dtype target = isUnsigned ? unsignedOf(to.dtype()) : to.dtype();
    mx::array result = mx::astype(safe, target);
    auto bits = [&](uint64_t number) {
      return mx::view(mx::array(static_cast<int64_t>(number), mx::int64), mx::int64);
    };
    uint64_t most = isUnsigned ? (width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1)
                               : (uint64_t(1) << (width - 1)) - 1;
    uint64_t least = isUnsigned ? 0 : ~most;
    result = mx::where(isHigh, mx::astype(bits(most), target), result);
    result = mx::where(isLow, mx::astype(bits(least), target), result);
    if (isUnsigned)
      result = mx::view(result, to.dtype());
    return setResult(op, Value::of(to, value.extents(), result, value.isKnown()));
  }
  give(x);
}

void Tracer::runBitcast(const Operation &op) {
  const Value &value = operand(op, 0);
  const Type &to = resultType(op), &from = value.type();
  if (to.isPointer() && from.isPointer())
    return setResult(op, value.withType(to));
  if (to.isPointer() || from.isPointer())
    refuse(op, "an address has no number in a graph");
  if (value.affine() && !to.isFloat() && !to.isBool())
    return setResult(op, value.withType(to));
  if (to.isBool() || from.isBool()) {
    if (to.isBool() && from.isBool())
      return setResult(op, value.withType(to));
    refuse(op, "truth values are read as other numbers");
  }
  setResult(op,
            Value::of(to, value.extents(), mx::view(value.array(), to.dtype()), value.isKnown()));
}

void Tracer::runExternal(const Operation &op) {
  static const std::unordered_map<std::string, std::string> names = {
      {"acos", "math.acos"},
      {"acosh", "math.acosh"},
      {"asin", "math.asin"},
      {"asinh", "math.asinh"},
      {"atan", "math.atan"},
      {"atan2", "math.atan2"},
      {"atanh", "math.atanh"},
      {"ceil", "math.ceil"},
      {"copysign", "math.copysign"},
      {"cos", "math.cos"},
      {"cosh", "math.cosh"},
      {"erf", "math.erf"},
      {"exp", "math.exp"},
      {"exp2", "math.exp2"},
      {"expm1", "math.expm1"},
      {"fabs", "math.absf"},
      {"floor", "math.floor"},
      {"fma", "math.fma"},
      {"log", "math.log"},
      {"log10", "math.log10"},
      {"log1p", "math.log1p"},
      {"log2", "math.log2"},
      {"pow", "math.powf"},
      {"rint", "math.roundeven"},
      {"nearbyint", "math.roundeven"},
      {"round", "math.round"},
      {"rsqrt", "math.rsqrt"},
      {"sin", "math.sin"},
      {"sinh", "math.sinh"},
      {"sqrt", "math.sqrt"},
      {"tan", "math.tan"},
      {"tanh", "math.tanh"},
      {"trunc", "math.trunc"},
      {"fmod", "arith.remf"},
      {"fmax", "arith.maxnumf"},
      {"fmin", "arith.minnumf"},
      {"abs", "math.absi"},
      {"fdiv_rn", "arith.divf"},
      {"ddiv_rn", "arith.divf"},
      {"fsqrt_rn", "math.sqrt"},
      {"dsqrt_rn", "math.sqrt"},
      {"fadd_rn", "arith.addf"},
      {"dadd_rn", "arith.addf"},
      {"fmul_rn", "arith.mulf"},
      {"dmul_rn", "arith.mulf"},
      {"clz", "math.ctlz"},
      {"popc", "math.ctpop"},
      {"fast_expf", "math.exp"},
      {"fast_logf", "math.log"},
      {"fast_sinf", "math.sin"},
      {"fast_cosf", "math.cos"},
      {"fast_log2f", "math.log2"},
      {"fast_powf", "math.powf"},
      {"umulhi", "tt.mulhiui"},
  };
  std::string symbol = op.attributes.at("symbol").get<std::string>();
  std::string name = symbol;
  if (name.starts_with("__nv_"))
    name = name.substr(5);
  auto found = names.find(name);
  if (found == names.end() && name.ends_with("f"))
    found = names.find(name.substr(0, name.size() - 1));
  if (found == names.end())
    refuse(op, symbol + " of libdevice cannot become a part of an MLX graph");
  Operation same = op;
  same.name = found->second;
  runElementwise(same);
}

} // namespace triton_metal::graph
