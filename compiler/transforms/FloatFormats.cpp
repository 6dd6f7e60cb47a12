#include "transforms/FloatFormats.h"

#include "transforms/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace triton_metal {

const SmallFloat *SmallFloat::get(Type element) {
  static const SmallFloat e5m2{2, 15, 0x7b, 0x7f, 0x7c};
  static const SmallFloat e4m3fn{3, 7, 0x7e, 0x7f, std::nullopt};
  static const SmallFloat e4m3fnuz{3, 8, 0x7f, 0x80, std::nullopt};
  static const SmallFloat e5m2fnuz{2, 16, 0x7f, 0x80, std::nullopt};
  // Triton's fp8e4b15. MLIR has no type for it; this one has carried it in Triton's own IR.
  static const SmallFloat e4m3b15{3, 15, 0x7e, std::nullopt, std::nullopt};
  return llvm::TypeSwitch<Type, const SmallFloat *>(element)
      .Case([](Float8E5M2Type) { return &e5m2; })
      .Case([](Float8E4M3FNType) { return &e4m3fn; })
      .Case([](Float8E4M3FNUZType) { return &e4m3fnuz; })
      .Case([](Float8E5M2FNUZType) { return &e5m2fnuz; })
      .Case([](Float8E4M3B11FNUZType) { return &e4m3b15; })
      .Default([](Type) { return nullptr; });
}

uint8_t SmallFloat::encode(const APFloat &number) const {
  uint8_t sign = number.isNegative() ? 0x80 : 0;
  if (number.isNaN())
    return nan ? *nan | (hasNegativeZero() ? sign : 0) : sign | largest;
  // The codes of positive numbers are in the order of the numbers.
  APFloat wide = abs(number);
  bool exact;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &exact);
  double value = wide.convertToDouble();
  auto decode = [this](unsigned code) {
    int exponent = code >> mantissaBits;
    double mantissa = code & ((1u << mantissaBits) - 1);
    if (exponent)
      mantissa += 1u << mantissaBits;
    return std::ldexp(mantissa, std::max(exponent, 1) - bias - int(mantissaBits));
  };
  unsigned code = 0;
  while (code < largest) {
    double middle = (decode(code) + decode(code + 1)) / 2;
    if (value < middle || (value == middle && code % 2 == 0))
      break;
    ++code;
  }
  return code || hasNegativeZero() ? sign | code : 0;
}

bool hasSmallFloats(Type type) { return SmallFloat::get(getElementTypeOrSelf(type)); }

Type withElementType(Type type, Type element) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Type(shaped.clone(element)) : element;
}

namespace {

/// Arithmetic on the bits of one value.
class Arithmetic {
public:
  Arithmetic(OpBuilder &builder, Location loc, Type like)
      : builder(builder), loc(loc), like(like) {}

  Type integers(unsigned width) { return withElementType(like, builder.getIntegerType(width)); }
  Type halves() { return withElementType(like, builder.getF16Type()); }
  Type floats() { return withElementType(like, builder.getF32Type()); }

  Value integer(Value beside, int64_t value) {
    return makeConstantLike(builder, loc, beside.getType(), value);
  }
  Value number(Type type, double value) {
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    TypedAttr attr = builder.getFloatAttr(element, value);
    if (auto shaped = dyn_cast<ShapedType>(type))
      attr = DenseElementsAttr::get(shaped, Attribute(attr));
    return arith::ConstantOp::create(builder, loc, attr);
  }
  Value bitcast(Type type, Value x) { return arith::BitcastOp::create(builder, loc, type, x); }
  Value extend(Type type, Value x) {
    return x.getType() == type ? x : arith::ExtFOp::create(builder, loc, type, x);
  }
  Value zeroExtend(Type type, Value x) { return arith::ExtUIOp::create(builder, loc, type, x); }
  Value signExtend(Type type, Value x) { return arith::ExtSIOp::create(builder, loc, type, x); }
  Value truncate(Type type, Value x) { return arith::TruncIOp::create(builder, loc, type, x); }
  Value add(Value x, Value y) { return arith::AddIOp::create(builder, loc, x, y); }
  Value add(Value x, int64_t y) { return add(x, integer(x, y)); }
  Value subtract(Value x, int64_t y) {
    return arith::SubIOp::create(builder, loc, x, integer(x, y));
  }
  Value both(Value x, int64_t y) { return arith::AndIOp::create(builder, loc, x, integer(x, y)); }
  Value either(Value x, Value y) { return arith::OrIOp::create(builder, loc, x, y); }
  Value either(Value x, int64_t y) { return either(x, integer(x, y)); }
  Value left(Value x, int64_t n) { return arith::ShLIOp::create(builder, loc, x, integer(x, n)); }
  Value right(Value x, int64_t n) { return arith::ShRUIOp::create(builder, loc, x, integer(x, n)); }
  Value least(Value x, int64_t y) { return arith::MinUIOp::create(builder, loc, x, integer(x, y)); }
  Value compare(arith::CmpIPredicate predicate, Value x, int64_t y) {
    return arith::CmpIOp::create(builder, loc, predicate, x, integer(x, y));
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(builder, loc, predicate, x, y);
  }
  Value choose(Value condition, Value x, Value y) {
    return arith::SelectOp::create(builder, loc, condition, x, y);
  }
  Value choose(Value condition, int64_t x, Value y) { return choose(condition, integer(y, x), y); }

  /// Exact: each number of 8 bits is a half.
  Value widen(Value code, const SmallFloat &format);
  /// A float to the code of a number of 8 bits.
  Value narrow(Value x, const SmallFloat &format, tt::RoundingMode rounding);
  /// A half to the code of an e5m2, which is the upper byte of a half.
  Value narrowHalf(Value x, const SmallFloat &format, tt::RoundingMode rounding);
  /// The float between a double's two neighbours that has an odd code: rounded again to fewer
  /// digits, it is what the double is.
  Value roundToOdd(Value x);
  /// A wider float to a narrower one, toward zero.
  Value cut(Value x, Type to);

private:
  /// The bits of the value next to x in the type of `rounded` that is not further from zero, where
  /// `rounded` is x rounded to nearest and `back` the same number in the type of x.
  Value bitsTowardZero(Value x, Value rounded, Value back);

  OpBuilder &builder;
  Location loc;
  Type like;
};

Value Arithmetic::widen(Value code, const SmallFloat &format) {
  using enum arith::CmpIPredicate;
  Value result;
  if (format.mantissaBits == 2) {
    Value bits = left(zeroExtend(integers(16), code), 8);
    if (format.bias == 15)
      return bitcast(halves(), bits);
    // Half of the number that the half with these bits would be. The largest exponent, which is
    // infinity in a half, becomes one less.
    Value magnitude = both(bits, 0x7fff);
    Value smaller =
        choose(compare(uge, magnitude, 0x800), subtract(magnitude, 0x400), right(magnitude, 1));
    result = bitcast(halves(), either(smaller, both(bits, -0x8000)));
  } else {
    // The sign lands in bit 15, and a copy of it in bit 14.
    Value bits = both(left(signExtend(integers(16), code), 7), -0x4001);
    result = bitcast(halves(), bits);
    if (format.bias != 15)
      result = arith::MulFOp::create(builder, loc, result,
                                     number(halves(), std::ldexp(1.0, 15 - format.bias)));
  }
  if (!format.nan)
    return result;
  Value isNaN = format.hasNegativeZero() ? compare(eq, both(code, 0x7f), *format.nan)
                                         : compare(eq, code, int8_t(*format.nan));
  return choose(isNaN, number(halves(), std::nan("")), result);
}

Value Arithmetic::narrow(Value x, const SmallFloat &format, tt::RoundingMode rounding) {
  using enum arith::CmpIPredicate;
  int mantissaBits = format.mantissaBits, cut = 23 - mantissaBits;
  int64_t rebias = int64_t(127 - format.bias) << 23;
  int64_t largest = (int64_t(format.largest) << cut) + rebias;
  int64_t leastNormal = (int64_t(1) << 23) + rebias;

  Value bits = bitcast(integers(32), x);
  Value magnitude = both(bits, 0x7fffffff);
  // Everything above the largest number, infinities and NaNs too.
  Value bounded = least(magnitude, largest);
  Value boundedFloat = bitcast(floats(), bounded);
  Value normal, subnormal;
  if (rounding == tt::RoundingMode::RTNE) {
    Value isOdd = both(right(bounded, cut), 1);
    normal = right(add(bounded, add(isOdd, (int64_t(1) << (cut - 1)) - 1 - rebias)), cut);
    // In the sum, the last digit of a float is that of the subnormals: the addition rounds.
    int64_t magic = int64_t(127 + 24 - format.bias - mantissaBits) << 23;
    Value base = bitcast(floats(), integer(bits, magic));
    Value sum = arith::AddFOp::create(builder, loc, boundedFloat, base);
    subnormal = subtract(bitcast(integers(32), sum), magic);
  } else {
    normal = right(subtract(bounded, rebias), cut);
    Value units =
        arith::MulFOp::create(builder, loc, boundedFloat,
                              number(floats(), std::ldexp(1.0, format.bias - 1 + mantissaBits)));
    subnormal = arith::FPToUIOp::create(builder, loc, integers(32), units);
  }
  Value code = choose(compare(ult, bounded, leastNormal), subnormal, normal);
  if (rounding == tt::RoundingMode::RTZ && format.infinity)
    code = choose(compare(eq, magnitude, 0x7f800000), *format.infinity, code);
  Value sign = both(right(bits, 24), 0x80);
  auto isNaN = [&] { return compare(ugt, magnitude, 0x7f800000); };
  if (format.hasNegativeZero()) {
    if (format.nan)
      code = choose(isNaN(), *format.nan, code);
    code = either(code, sign);
  } else {
    code = choose(compare(eq, code, 0), code, either(code, sign));
    code = choose(isNaN(), *format.nan, code);
  }
  return truncate(integers(8), code);
}

Value Arithmetic::narrowHalf(Value x, const SmallFloat &format, tt::RoundingMode rounding) {
  using enum arith::CmpIPredicate;
  Value bits = bitcast(integers(16), x);
  Value magnitude = both(bits, 0x7fff);
  Value code = least(magnitude, int64_t(format.largest) << 8);
  if (rounding == tt::RoundingMode::RTNE)
    code = add(code, add(both(right(code, 8), 1), 0x7f));
  code = right(code, 8);
  if (rounding == tt::RoundingMode::RTZ)
    code = choose(compare(eq, magnitude, 0x7c00), *format.infinity, code);
  code = choose(compare(ugt, magnitude, 0x7c00), *format.nan, code);
  return truncate(integers(8), either(code, both(right(bits, 8), 0x80)));
}

Value Arithmetic::bitsTowardZero(Value x, Value rounded, Value back) {
  unsigned width = getElementTypeOrSelf(rounded.getType()).getIntOrFloatBitWidth();
  Value isFurther = compare(arith::CmpFPredicate::OGT, math::AbsFOp::create(builder, loc, back),
                            math::AbsFOp::create(builder, loc, x));
  Value bits = bitcast(integers(width), rounded);
  return choose(isFurther, subtract(bits, 1), bits);
}

Value Arithmetic::roundToOdd(Value x) {
  Value rounded = arith::TruncFOp::create(builder, loc, floats(), x);
  Value back = extend(x.getType(), rounded);
  Value bits = bitsTowardZero(x, rounded, back);
  Value isExact = compare(arith::CmpFPredicate::OEQ, back, x);
  return bitcast(floats(), choose(isExact, bits, either(bits, 1)));
}

Value Arithmetic::cut(Value x, Type to) {
  Value rounded = arith::TruncFOp::create(builder, loc, to, x);
  return bitcast(to, bitsTowardZero(x, rounded, extend(x.getType(), rounded)));
}

} // namespace

Value convertFloat(OpBuilder &builder, Location loc, Value value, Type to,
                   tt::RoundingMode rounding) {
  Arithmetic arithmetic(builder, loc, value.getType());
  Type result = withElementType(value.getType(), to);
  Type from = getElementTypeOrSelf(value.getType());
  if (from == to)
    return value;
  if (const SmallFloat *format = SmallFloat::get(from)) {
    value = tt::BitcastOp::create(builder, loc, arithmetic.integers(8), value);
    value = arithmetic.widen(value, *format);
    // Every step that follows is exact, or rounds from the exact value.
    from = builder.getF16Type();
    if (from == to)
      return value;
  }
  bool towardZero = rounding == tt::RoundingMode::RTZ;
  if (const SmallFloat *format = SmallFloat::get(to)) {
    Value code;
    if (from.isF16() && format->infinity) {
      code = arithmetic.narrowHalf(value, *format, rounding);
    } else {
      if (from.isF64())
        value = arithmetic.roundToOdd(value);
      code = arithmetic.narrow(arithmetic.extend(arithmetic.floats(), value), *format, rounding);
    }
    return tt::BitcastOp::create(builder, loc, result, code);
  }
  // Between types of 16 bits through float.
  if (from.getIntOrFloatBitWidth() == 16 && to.getIntOrFloatBitWidth() == 16) {
    value = arithmetic.extend(arithmetic.floats(), value);
    from = builder.getF32Type();
  }
  if (to.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth())
    return arithmetic.extend(result, value);
  if (!towardZero)
    return arith::TruncFOp::create(builder, loc, result, value);
  if (from.isF64() && !to.isF32())
    value = arithmetic.cut(value, arithmetic.floats());
  return arithmetic.cut(value, result);
}

} // namespace triton_metal
