// Numbers, promotion and conversion: which type a computation has.
#include "language/Builder.h"

#include "dialect/tt/TT.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/APFloat.h"

#include <cmath>

using namespace mlir;

namespace triton_metal::language {

static std::string integerStr(__int128 value) {
  bool negative = value < 0;
  unsigned __int128 rest = negative ? -static_cast<unsigned __int128>(value) : value;
  std::string digits;
  do
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  while ((rest /= 10) != 0);
  return negative ? "-" + digits : digits;
}

std::string Constant::str() const {
  switch (kind) {
  case Kind::Bool:
    return integer ? "True" : "False";
  case Kind::Int:
    return integerStr(integer);
  default:
    return std::to_string(real);
  }
}

llvm::Expected<Type> Builder::typeOf(const Constant &value) {
  constexpr __int128 one = 1;
  switch (value.kind) {
  case Constant::Kind::Bool:
    return Type(ScalarKind::Int1);
  case Constant::Kind::Int: {
    __int128 x = value.integer;
    if (x >= -(one << 31) && x < one << 31)
      return Type(ScalarKind::Int32);
    if (x >= one << 31 && x < one << 32)
      return Type(ScalarKind::UInt32);
    if (x >= -(one << 63) && x < one << 63)
      return Type(ScalarKind::Int64);
    if (x >= one << 63 && x < one << 64)
      return Type(ScalarKind::UInt64);
    return valueError("integer " + value.str() +
                      " fits in no type: the largest are int64 and uint64");
  }
  case Constant::Kind::Float: {
    double magnitude = std::fabs(value.real);
    bool fitsFloat32 = std::isinf(magnitude) || std::isnan(magnitude) || magnitude == 0 ||
                       (magnitude >= 0x1p-126 && magnitude <= 0x1.fffffep127);
    return Type(fitsFloat32 ? ScalarKind::Float32 : ScalarKind::Float64);
  }
  }
  llvm_unreachable("a constant is bool, int or float");
}

/// C's usual arithmetic conversions, without promotion to int.
llvm::Expected<Type> Builder::promoteIntegers(Type a, Type b) {
  if (a.isSigned() == b.isSigned())
    return a.bitWidth() > b.bitWidth() ? a : b;
  if (!a.isSigned())
    return a.bitWidth() >= b.bitWidth() ? a : b;
  return b.bitWidth() >= a.bitWidth() ? b : a;
}

llvm::Expected<Type> Builder::computationType(Type a, bool aIsNumber, Type b, bool bIsNumber,
                                              bool divOrMod) {
  // A Python number takes part only when it is of a higher kind (bool < int < float).
  if (aIsNumber != bIsNumber) {
    Type number = aIsNumber ? a : b, value = aIsNumber ? b : a;
    if (number.rank() <= value.rank())
      a = b = value;
  }
  auto either = [&](ScalarKind kind) { return a.is(kind) || b.is(kind); };
  if (either(ScalarKind::Float64))
    return Type(ScalarKind::Float64);
  // Division and remainder of half types happen in float32.
  if (divOrMod && (a.isFloating() || b.isFloating()))
    return Type(ScalarKind::Float32);
  if (either(ScalarKind::Float32))
    return Type(ScalarKind::Float32);
  if (either(ScalarKind::Float16))
    return Type(ScalarKind::Float16);
  if (a.is(ScalarKind::BFloat16) && b.is(ScalarKind::BFloat16))
    return Type(ScalarKind::BFloat16);
  if (either(ScalarKind::BFloat16))
    return Type(ScalarKind::Float32);
  // Different floats of 8 bits meet in float16.
  if (a.isFloat8() && b.isFloat8())
    return a == b ? a : Type(ScalarKind::Float16);
  if (!a.isInteger() || !b.isInteger())
    return typeError("unexpected operand types " + a.str() + " and " + b.str());
  if (divOrMod && a.isSigned() != b.isSigned())
    return typeError("Cannot use /, // or % with " + a.str() + " and " + b.str() +
                     " because they have different signedness: cast one of them with .to()");
  return promoteIntegers(a, b);
}

Result Builder::toTensor(const Operand &operand) {
  if (const Value *value = std::get_if<Value>(&operand))
    return *value;
  const Constant &number = std::get<Constant>(operand);
  llvm::Expected<Type> type = typeOf(number);
  if (!type)
    return type.takeError();
  return constant(number, *type);
}

Result Builder::constant(const Constant &value, Type type, llvm::ArrayRef<int64_t> shape) {
  // A float of 8 bits is rounded by the conversion, which also bounds it.
  if (type.isFloat8()) {
    Result wide = constant(value, Type(ScalarKind::Float32), shape);
    return wide ? this->cast(*wide, type.scalar()) : std::move(wide);
  }
  mlir::Type element = mlirType(type.scalar());
  TypedAttr attribute;
  if (auto floatType = dyn_cast<FloatType>(element)) {
    // As in Triton, a number is rounded to float32 first and then to the narrower type.
    double real = value.asDouble();
    if (floatType.getWidth() < 32)
      real = static_cast<float>(real);
    attribute = FloatAttr::get(floatType, real);
  } else if (auto integerType = dyn_cast<IntegerType>(element)) {
    if (value.kind == Constant::Kind::Float && value.real != 0)
      return typeError("the number " + value.str() + " is no " + type.scalar().str());
    __int128 x = value.integer;
    unsigned width = integerType.getWidth();
    __int128 low = type.isSigned() ? -(static_cast<__int128>(1) << (width - 1)) : 0;
    __int128 high = (static_cast<__int128>(1) << (type.isSigned() ? width - 1 : width)) - 1;
    if (x < low || x > high)
      return valueError("number " + value.str() + " is out of range for " + type.scalar().str() +
                        " (" + integerStr(low) + " to " + integerStr(high) + ")");
    attribute =
        IntegerAttr::get(integerType, llvm::APInt(64, static_cast<uint64_t>(x)).sextOrTrunc(width));
  } else {
    return typeError("cannot make a " + type.scalar().str() + " of the number " + value.str());
  }
  Type result = type.withShape(shape);
  if (result.isBlock())
    attribute = DenseElementsAttr::get(cast<RankedTensorType>(mlirType(result)),
                                       static_cast<Attribute>(attribute));
  return make<arith::ConstantOp>(result, attribute);
}

Value Builder::zeroLike(Type type) {
  return make<arith::ConstantOp>(type, cast<TypedAttr>(builder.getZeroAttr(mlirType(type))));
}

Value Builder::allOnes(Type scalar) {
  auto type = cast<IntegerType>(mlirType(scalar));
  return make<arith::ConstantOp>(
      scalar,
      cast<TypedAttr>(Attribute(IntegerAttr::get(type, llvm::APInt::getAllOnes(type.getWidth())))));
}

Result Builder::castNumberOrValue(const Operand &operand, Type type,
                                  llvm::ArrayRef<int64_t> shape) {
  if (std::holds_alternative<Value>(operand))
    return this->cast(operand, type);
  const Constant &number = std::get<Constant>(operand);
  if (number.isNegative() && type.isUnsigned())
    return valueError("cannot combine an unsigned value (" + type.str() +
                      ") with the negative number " + number.str() +
                      ". Cast one of them explicitly.");
  return constant(number, type, shape);
}

static Type scalarTypeOf(const Operand &operand, llvm::Error &error) {
  if (const Value *value = std::get_if<Value>(&operand))
    return value->type.scalar();
  llvm::Expected<Type> type = Builder::typeOf(std::get<Constant>(operand));
  if (type)
    return *type;
  error = type.takeError();
  return Type();
}

static llvm::ArrayRef<int64_t> shapeOf(const Operand &operand) {
  const Value *value = std::get_if<Value>(&operand);
  return value ? value->type.getShape() : llvm::ArrayRef<int64_t>();
}

/// Whether `a` may be combined with `b`. A pointer may be combined with an integer or a pointer of
/// the same type, and only if the operation takes one.
static bool pointerFits(Type a, Type b, bool allowed) {
  if (!a.isPointer())
    return true;
  return allowed && !b.isFloating() && !(b.isPointer() && a != b);
}

llvm::Expected<Builder::Operands> Builder::binaryOperands(const Operand &lhs, const Operand &rhs,
                                                          bool allowLhsPointer,
                                                          bool allowRhsPointer, bool divOrMod) {
  llvm::Error error = llvm::Error::success();
  (void)!error;
  Type lhsType = scalarTypeOf(lhs, error);
  if (error)
    return std::move(error);
  Type rhsType = scalarTypeOf(rhs, error);
  if (error)
    return std::move(error);
  if (!pointerFits(lhsType, rhsType, allowLhsPointer) ||
      !pointerFits(rhsType, lhsType, allowRhsPointer))
    return typeError("invalid operands of type " + lhsType.str() + " and " + rhsType.str() +
                     (lhsType.isPointer() && rhsType.isPointer()
                          ? ": two pointers can only be compared"
                          : ": a pointer takes the addition and subtraction of integers only"));

  Value a, b;
  bool lhsIsNumber = std::holds_alternative<Constant>(lhs);
  bool rhsIsNumber = std::holds_alternative<Constant>(rhs);
  Type computeLhs = lhsType, computeRhs = rhsType;
  if (!lhsType.isPointer() && !rhsType.isPointer()) {
    llvm::Expected<Type> type =
        computationType(lhsType, lhsIsNumber, rhsType, rhsIsNumber, divOrMod);
    if (!type)
      return type.takeError();
    computeLhs = computeRhs = *type;
  }
  Result left = castNumberOrValue(lhs, computeLhs, shapeOf(rhs));
  if (!left)
    return left.takeError();
  Result right = castNumberOrValue(rhs, computeRhs, shapeOf(lhs));
  if (!right)
    return right.takeError();
  return broadcastPair(*left, *right);
}

Results Builder::operands(const Operand &lhs, const Operand &rhs) {
  llvm::Expected<Operands> pair = binaryOperands(lhs, rhs);
  if (!pair)
    return pair.takeError();
  return std::vector<Value>{pair->lhs, pair->rhs};
}

llvm::Expected<std::array<Value, 3>> Builder::ternaryOperands(const Operand &a, const Operand &b,
                                                              const Operand &c) {
  // Values and numbers are promoted separately first, so that a number is weighed against all
  // values.
  std::optional<Type> values, numbers;
  for (const Operand *operand : {&a, &b, &c}) {
    llvm::Error error = llvm::Error::success();
    (void)!error;
    Type type = scalarTypeOf(*operand, error);
    if (error)
      return std::move(error);
    if (type.isPointer())
      return typeError("a pointer (" + type.str() + ") is no operand here");
    bool isNumber = std::holds_alternative<Constant>(*operand);
    std::optional<Type> &soFar = isNumber ? numbers : values;
    if (!soFar) {
      soFar = type;
      continue;
    }
    llvm::Expected<Type> joined = computationType(*soFar, isNumber, type, isNumber, false);
    if (!joined)
      return joined.takeError();
    soFar = *joined;
  }
  Type type = values ? *values : *numbers;
  if (values && numbers) {
    llvm::Expected<Type> joined = computationType(*values, false, *numbers, true, false);
    if (!joined)
      return joined.takeError();
    type = *joined;
  }
  std::array<Value, 3> result;
  const Operand *operands[] = {&a, &b, &c};
  for (auto [index, operand] : llvm::enumerate(operands)) {
    Result value = castNumberOrValue(*operand, type, {});
    if (!value)
      return value.takeError();
    result[index] = *value;
  }
  for (auto [i, j] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
    llvm::Expected<Operands> pair = broadcastPair(result[i], result[j]);
    if (!pair)
      return pair.takeError();
    result[i] = pair->lhs;
    result[j] = pair->rhs;
  }
  return result;
}

llvm::Expected<Builder::Operands> Builder::bitwiseOperands(const Operand &lhs, const Operand &rhs) {
  llvm::Error error = llvm::Error::success();
  (void)!error;
  Type a = scalarTypeOf(lhs, error);
  if (error)
    return std::move(error);
  Type b = scalarTypeOf(rhs, error);
  if (error)
    return std::move(error);
  if (!a.isInteger() || !b.isInteger())
    return typeError("invalid operands of type " + a.str() + " and " + b.str() +
                     ": bitwise operations take integers");
  return binaryOperands(lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

Result Builder::bitcast(const Operand &operand, Type type) {
  Result input = toTensor(operand);
  if (!input)
    return input;
  Type target = input->type.withScalar(type.scalar());
  if (input->type == target)
    return *input;
  Type from = input->type.scalar(), to = target.scalar();
  if (from.isPointer() || to.isPointer())
    return this->cast(*input, to);
  if (from.bitWidth() != to.bitWidth())
    return valueError("cannot bitcast " + from.str() + " (" + llvm::Twine(from.bitWidth()) +
                      " bits) to " + to.str() + " (" + llvm::Twine(to.bitWidth()) + " bits)");
  if (from.isInteger() && to.isInteger())
    return Value{input->handle, target};
  return make<tt::BitcastOp>(target, mlirType(target), input->handle);
}

Result Builder::cast(const Operand &operand, Type type, llvm::StringRef rounding) {
  Result converted = toTensor(operand);
  if (!converted)
    return converted;
  Value input = *converted;
  Type from = input.type.scalar(), to = type.scalar();
  // What points to constant data does so as another type, too.
  if (from.isPointer() && to.isPointer())
    to = Type::pointerTo(to.pointee(), from.isConst());
  if (from == to)
    return input;
  Type target = input.type.withScalar(to);
  mlir::Type targetIR = mlirType(target);

  if (!rounding.empty() && rounding != "rtne" && rounding != "rtz")
    return valueError("unknown rounding mode '" + rounding + "': 'rtne' and 'rtz' are known");
  bool narrowsFloat = from.isFloating() && to.isFloating() && to.bitWidth() < from.bitWidth();
  if (!narrowsFloat && !rounding.empty())
    return valueError(
        "fp_downcast_rounding is for conversions to a narrower floating-point type, not from " +
        from.str() + " to " + to.str());

  bool between16 = (from.is(ScalarKind::BFloat16) && to.is(ScalarKind::Float16)) ||
                   (from.is(ScalarKind::Float16) && to.is(ScalarKind::BFloat16));
  bool withFloat8 = (from.isFloat8() && to.isFloating()) || (from.isFloating() && to.isFloat8());
  if (withFloat8 && to.bitWidth() > from.bitWidth())
    return make<tt::FpToFpOp>(target, targetIR, input.handle, tt::RoundingModeAttr());
  if (between16 || withFloat8 || rounding == "rtz") {
    auto mode = tt::RoundingModeAttr::get(
        builder.getContext(), rounding == "rtz" ? tt::RoundingMode::RTZ : tt::RoundingMode::RTNE);
    return make<tt::FpToFpOp>(target, targetIR, input.handle, mode);
  }
  // Half types reach every other type through float32, and so do integers and floats of 8 bits
  // each other.
  bool fromHalf = from.is(ScalarKind::Float16) || from.is(ScalarKind::BFloat16);
  bool throughFloat = (fromHalf && !to.is(ScalarKind::Float32)) ||
                      (from.isFloat8() && to.isInteger()) || (from.isInteger() && to.isFloat8());
  if (throughFloat) {
    Result wide = this->cast(input, Type(ScalarKind::Float32));
    if (!wide)
      return wide;
    return this->cast(*wide, to);
  }
  if (from.isFloating() && to.isFloating())
    return narrowsFloat ? make<arith::TruncFOp>(target, targetIR, input.handle)
                        : make<arith::ExtFOp>(target, targetIR, input.handle);

  // To bool: anything but zero.
  if ((from.isInteger() || from.isFloating()) && to.isBool())
    return compare(BinaryOp::Ne, input, zeroLike(input.type));

  if (from.isInteger() && to.isInteger()) {
    if (from.bitWidth() == to.bitWidth())
      return Value{input.handle, target};
    if (from.bitWidth() > to.bitWidth())
      return make<arith::TruncIOp>(target, targetIR, input.handle);
    return from.isSigned() ? make<arith::ExtSIOp>(target, targetIR, input.handle)
                           : make<arith::ExtUIOp>(target, targetIR, input.handle);
  }
  if (from.isFloating() && to.isInteger())
    return to.isSigned() ? make<arith::FPToSIOp>(target, targetIR, input.handle)
                         : make<arith::FPToUIOp>(target, targetIR, input.handle);
  if (from.isInteger() && to.isFloating())
    return from.isSigned() ? make<arith::SIToFPOp>(target, targetIR, input.handle)
                           : make<arith::UIToFPOp>(target, targetIR, input.handle);
  if (from.isPointer() && to.isPointer())
    return make<tt::BitcastOp>(target, targetIR, input.handle);
  if (from.isPointer() && to.isInteger() && to.bitWidth() == 64)
    return make<tt::PtrToIntOp>(target, targetIR, input.handle);
  if (from.isPointer() && to.isBool()) {
    Result address = this->cast(input, Type(ScalarKind::Int64));
    if (!address)
      return address;
    return this->cast(*address, to);
  }
  if (from.isInteger() && from.bitWidth() == 64 && to.isPointer())
    return make<tt::IntToPtrOp>(target, targetIR, input.handle);
  return typeError("cannot cast " + from.str() + " to " + to.str());
}

} // namespace triton_metal::language
