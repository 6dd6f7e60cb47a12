// Operations on each element.

#include "runtime/mlx/graph/Box.h"
#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Producers.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace triton_metal::graph {

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
  std::vector<Value> values;
  for (size_t i = 0; i < op.operands.size(); ++i)
    values.push_back(aligned(operand(op, i), rank));
  const Type &type = resultType(op);
  if (op.name == "tt.clampf") {
    bool propagates = op.integer("propagateNan") != 0;
    return setResult(op, applied(type, values, [&](const Arrays &arrays) {
                       const mx::array &x = arrays[0], &low = arrays[1];
                       mx::array held = mx::minimum(mx::maximum(x, low), arrays[2]);
                       // Without propagation a NaN is held at the lower bound.
                       mx::array ofNan = propagates ? x : mx::minimum(low, arrays[2]);
                       return mx::where(mx::isnan(x), ofNan, held);
                     }));
  }
  // The gradient of a square is one product.
  bool isSquare = op.name == "arith.mulf" && op.operands[0] == op.operands[1];
  Value result = applied(type, values, [&](const Arrays &arrays) {
    mx::array result = isSquare ? mx::square(arrays[0]) : found->second(arrays);
    return result.dtype() == type.dtype() ? result : mx::astype(result, type.dtype());
  });
  std::optional<Value> raised;
  if (op.name == "arith.divf") {
    raised = sigmoidOf(op);
    if (!raised)
      raised = softmaxOf(op, result);
  }
  if (!raised && type.shape.size() == 2 && type.isFloat())
    raised = attentionAt(op);
  if (!raised)
    raised = normOf(op, result);
  setResult(op, raised ? *raised : result);
}

std::optional<std::pair<Affine, Affine>> Tracer::divided(const Value &value,
                                                         int64_t divisor) const {
  const Affine &affine = *value.affine();
  auto parts = divide(affine, divisor, value.extents());
  if (parts)
    return parts;
  // With the quotient and the remainder of a program's number on an axis each, both are affine.
  for (size_t dimension = 0; dimension < 3; ++dimension)
    for (const OuterAxes::Factor &factor : outer.factors(dimension)) {
      int64_t step = affine.steps[factor.axis];
      if (step <= 0 || step % divisor == 0 || divisor % step != 0)
        continue;
      Division division{dimension, divisor / step * factor.step};
      if (outer.canDivide(division))
        throw NeedsDivision{division};
    }
  return std::nullopt;
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
  if (op.name == "arith.addi" && (!a.affine() || !b.affine()))
    return runSum(op, a, b);
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
    auto parts = divided(a, divisor);
    if (parts)
      return give(isQuotient ? parts->first : parts->second);
    std::optional<mx::array> numbers =
        dividedArray(*a.affine(), divisor, isRemainder, a.extents(), type.dtype());
    if (numbers)
      setResult(op, Value::of(type, a.extents(), *numbers, true));
    return numbers.has_value();
  }
  if (op.name == "arith.andi") {
    // The lower bits of a number that is not negative are a remainder.
    const Value &mask = b.constant() ? b : a, &value = b.constant() ? a : b;
    if (!mask.constant() || *mask.constant() < 0 || (b.constant() ? rangeA : rangeB).first < 0)
      return false;
    int64_t bits = *mask.constant();
    if ((bits & (bits + 1)) != 0 || bits == std::numeric_limits<int64_t>::max())
      return false;
    auto parts = divided(value, bits + 1);
    return parts && give(parts->second);
  }
  return false;
}

/// eq, ne, lt, le, gt, ge
static mx::array comparedIntegers(int64_t predicate, const mx::array &x, const mx::array &y) {
  switch (predicate) {
  case 0:
    return mx::equal(x, y);
  case 1:
    return notEqual(x, y);
  case 2:
    return mx::less(x, y);
  case 3:
    return mx::less_equal(x, y);
  case 4:
    return mx::greater(x, y);
  default:
    return mx::greater_equal(x, y);
  }
}

/// false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true
static mx::array comparedFloats(int64_t predicate, const mx::array &x, const mx::array &y) {
  auto unordered = [&] { return mx::logical_or(mx::isnan(x), mx::isnan(y)); };
  switch (predicate) {
  case 1:
    return mx::equal(x, y);
  case 2:
    return mx::greater(x, y);
  case 3:
    return mx::greater_equal(x, y);
  case 4:
    return mx::less(x, y);
  case 5:
    return mx::less_equal(x, y);
  case 6:
    return mx::logical_and(notEqual(x, y), mx::logical_not(unordered()));
  case 7:
    return mx::logical_not(unordered());
  case 8:
    return mx::logical_or(mx::equal(x, y), unordered());
  case 9:
    return mx::logical_not(mx::less_equal(x, y));
  case 10:
    return mx::logical_not(mx::less(x, y));
  case 11:
    return mx::logical_not(mx::greater_equal(x, y));
  case 12:
    return mx::logical_not(mx::greater(x, y));
  case 13:
    return notEqual(x, y);
  default:
    return unordered();
  }
}

void Tracer::runCompare(const Operation &op) {
  size_t rank = std::max(operand(op, 0).rank(), operand(op, 1).rank());
  Value a = aligned(operand(op, 0), rank), b = aligned(operand(op, 1), rank);
  Extents extents = join(a.extents(), b.extents());
  int64_t predicate = op.integer("predicate");
  const Type &type = resultType(op);
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
    return setResult(op, applied(type, {a, b}, [&](const Arrays &arrays) {
                       return isUnsigned ? comparedIntegers(predicate - 4, asUnsigned(arrays[0]),
                                                            asUnsigned(arrays[1]))
                                         : comparedIntegers(predicate, arrays[0], arrays[1]);
                     }));
  }
  constexpr int64_t never = 0, always = 15;
  if (predicate == never || predicate == always)
    return setResult(op, constantOf(type, predicate == always));
  setResult(op, applied(type, {a, b}, [&](const Arrays &arrays) {
              return comparedFloats(predicate, arrays[0], arrays[1]);
            }));
}

void Tracer::runSelect(const Operation &op) {
  try {
    setResult(op, choose(operand(op, 0), operand(op, 1), operand(op, 2)).withType(resultType(op)));
  } catch (const Refusal &refusal) {
    refuse(op, refusal.message);
  }
}

/// The nearest integer of a type, toward zero; 0 for NaN, as on the other devices.
static mx::array toInteger(mx::array x, const Type &to, bool isUnsigned) {
  int width = to.width();
  mx::Dtype wide = x.dtype() == mx::float64 ? mx::float64 : mx::float32;
  // An integer does not change with the float: MLX would give its cotangent on, as an integer.
  x = mx::stop_gradient(mx::astype(x, wide));
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
    return mx::astype(mx::array(static_cast<int64_t>(number), mx::int64), target);
  };
  uint64_t most = isUnsigned ? (width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1)
                             : (uint64_t(1) << (width - 1)) - 1;
  uint64_t least = isUnsigned ? 0 : ~most;
  result = mx::where(isHigh, bits(most), result);
  result = mx::where(isLow, bits(least), result);
  return isUnsigned ? mx::view(result, to.dtype()) : result;
}

static mx::array converted(const Operation &op, const Type &from, const Type &to,
                           const mx::array &x) {
  if (op.name == "arith.extui" || op.name == "arith.uitofp" || op.name == "arith.index_castui" ||
      op.name == "arith.sitofp") {
    mx::array integers = op.name == "arith.sitofp" ? x : asUnsigned(x);
    return mx::astype(to.dtype() == mx::bfloat16 ? asExactFloats(integers) : integers, to.dtype());
  }
  if (op.name == "arith.extsi" && from.isBool())
    return mx::negative(mx::astype(x, to.dtype()));
  if (op.has("rounding") && op.integer("rounding") == 0 && to.width() < from.width()) {
    // Toward zero: one number back where rounding to the nearest has gone too far.
    mx::array nearest = mx::astype(x, to.dtype());
    mx::array isFar = mx::greater(mx::abs(mx::astype(nearest, x.dtype())), mx::abs(x));
    mx::Dtype bits = to.width() == 16 ? mx::int16 : mx::int32;
    mx::array before = mx::subtract(mx::view(nearest, bits), mx::array(1, bits));
    return mx::where(isFar, mx::view(before, to.dtype()), nearest);
  }
  if (op.name == "arith.trunci" && to.isBool())
    return mx::not_equal(mx::bitwise_and(x, mx::array(1, x.dtype())), mx::array(0, x.dtype()));
  if (op.name == "arith.fptosi" || op.name == "arith.fptoui")
    return toInteger(x, to, op.name == "arith.fptoui");
  if (x.dtype() == mx::float64 && to.isFloat() && to.width() == 16)
    return mx::astype(asOddFloats(x), to.dtype());
  return mx::astype(x, to.dtype());
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
  Value result = applied(to, {value},
                         [&](const Arrays &arrays) { return converted(op, from, to, arrays[0]); });
  std::optional<Value> raised = normOf(op, result);
  setResult(op, raised ? *raised : result);
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
  setResult(op, applied(to, {value},
                        [&](const Arrays &arrays) { return mx::view(arrays[0], to.dtype()); }));
}

void Tracer::runExternal(const Operation &op) {
  const std::string &name = nameOf(op);
  if (name == op.name)
    refuse(op, op.attributes.at("symbol").get<std::string>() +
                   " of libdevice cannot become a part of an MLX graph");
  Operation same = op;
  same.name = name;
  runElementwise(same);
}

} // namespace triton_metal::graph
