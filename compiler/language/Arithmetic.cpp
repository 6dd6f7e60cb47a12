// Operators, comparisons and mathematical functions.
#include "language/Builder.h"

#include "dialect/tt/TT.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace triton_metal::language {

static llvm::Error unexpected(Type type) {
  return typeError("unexpected operand type " + type.str());
}

/// The predicate of a comparison for floats, signed and unsigned integers.
static arith::CmpFPredicate floatPredicate(BinaryOp op) {
  switch (op) {
  case BinaryOp::Lt:
    return arith::CmpFPredicate::OLT;
  case BinaryOp::Le:
    return arith::CmpFPredicate::OLE;
  case BinaryOp::Gt:
    return arith::CmpFPredicate::OGT;
  case BinaryOp::Ge:
    return arith::CmpFPredicate::OGE;
  case BinaryOp::Eq:
    return arith::CmpFPredicate::OEQ;
  default:
    return arith::CmpFPredicate::UNE;
  }
}
static arith::CmpIPredicate integerPredicate(BinaryOp op, bool isSigned) {
  switch (op) {
  case BinaryOp::Lt:
    return isSigned ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult;
  case BinaryOp::Le:
    return isSigned ? arith::CmpIPredicate::sle : arith::CmpIPredicate::ule;
  case BinaryOp::Gt:
    return isSigned ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::ugt;
  case BinaryOp::Ge:
    return isSigned ? arith::CmpIPredicate::sge : arith::CmpIPredicate::uge;
  case BinaryOp::Eq:
    return arith::CmpIPredicate::eq;
  default:
    return arith::CmpIPredicate::ne;
  }
}

Result Builder::compare(BinaryOp op, const Value &lhs, const Value &rhs) {
  Type boolean = lhs.type.withScalar(Type(ScalarKind::Int1));
  if (lhs.type.scalar().isFloating())
    return make<arith::CmpFOp>(boolean, floatPredicate(op), lhs.handle, rhs.handle);
  if (lhs.type.scalar().isInteger())
    return make<arith::CmpIOp>(boolean, integerPredicate(op, lhs.type.scalar().isSigned()),
                               lhs.handle, rhs.handle);
  return unexpected(lhs.type.scalar());
}

/// addptr reads its offset as signed, so a narrow unsigned one is widened first.
Result Builder::addPointer(Value pointer, Value offset) {
  Type element = offset.type.scalar();
  if (element.isUnsigned() && element.bitWidth() < 64) {
    Type wide = offset.type.withScalar(Type(ScalarKind::Int64));
    offset = make<arith::ExtUIOp>(wide, mlirType(wide), offset.handle);
  }
  return make<tt::AddPtrOp>(pointer.type, pointer.handle.getType(), pointer.handle, offset.handle);
}

/// The comparison with its sides exchanged; nothing for any other operation.
static std::optional<BinaryOp> mirrored(BinaryOp op) {
  switch (op) {
  case BinaryOp::Lt:
    return BinaryOp::Gt;
  case BinaryOp::Le:
    return BinaryOp::Ge;
  case BinaryOp::Gt:
    return BinaryOp::Lt;
  case BinaryOp::Ge:
    return BinaryOp::Le;
  case BinaryOp::Eq:
    return BinaryOp::Eq;
  case BinaryOp::Ne:
    return BinaryOp::Ne;
  default:
    return std::nullopt;
  }
}

Result Builder::truthOf(const Operand &operand, llvm::StringRef op) {
  Result value = toTensor(operand);
  if (!value)
    return value;
  Type scalar = value->type.scalar();
  if (!scalar.isPointer() && scalar.bitWidth() != 1)
    return valueError("`" + op + "` takes a truth value (int1), not " + scalar.str() +
                      ": compare it, as in `x != 0`");
  return bitcast(*value, Type(ScalarKind::Int1));
}

Result Builder::binary(BinaryOp op, const Operand &lhs, const Operand &rhs) {
  // `2 < x` is x's method, as in Python.
  if (std::holds_alternative<Constant>(lhs) && std::holds_alternative<Value>(rhs))
    if (std::optional<BinaryOp> swapped = mirrored(op))
      return binary(*swapped, rhs, lhs);
  bool pointerLeft = op == BinaryOp::Add || op == BinaryOp::Sub;
  bool pointerRight = op == BinaryOp::Add;
  bool divOrMod = op == BinaryOp::TrueDiv || op == BinaryOp::FloorDiv || op == BinaryOp::Mod;

  if (op == BinaryOp::LogicalAnd || op == BinaryOp::LogicalOr) {
    llvm::StringRef name = op == BinaryOp::LogicalAnd ? "and" : "or";
    Result a = truthOf(lhs, name);
    if (!a)
      return a;
    Result b = truthOf(rhs, name);
    if (!b)
      return b;
    return binary(op == BinaryOp::LogicalAnd ? BinaryOp::And : BinaryOp::Or, *a, *b);
  }

  bool bitwise = op == BinaryOp::And || op == BinaryOp::Or || op == BinaryOp::Xor ||
                 op == BinaryOp::Shl || op == BinaryOp::Shr;
  // A right shift is arithmetic when the operand that carries the method is signed: the left one,
  // unless that is a number.
  bool arithmeticShift = false;
  if (op == BinaryOp::Shr) {
    const Operand &owner = std::holds_alternative<Value>(lhs) ? lhs : rhs;
    if (const Value *value = std::get_if<Value>(&owner))
      arithmeticShift = value->type.scalar().isSigned();
  }
  llvm::Expected<Operands> operands =
      bitwise ? bitwiseOperands(lhs, rhs)
              : binaryOperands(lhs, rhs, pointerLeft, pointerRight, divOrMod);
  if (!operands)
    return operands.takeError();
  Value a = operands->lhs, b = operands->rhs;
  Type scalar = a.type.scalar();
  bool isFloat = scalar.isFloating(), isInt = scalar.isInteger();

  switch (op) {
  case BinaryOp::Add:
    if (scalar.isPointer() && b.type.scalar().isPointer())
      return typeError("cannot add two pointers");
    if (scalar.isPointer())
      return addPointer(a, b);
    if (b.type.scalar().isPointer())
      return addPointer(b, a);
    return isFloat ? make<arith::AddFOp>(a.type, a.handle, b.handle)
                   : make<arith::AddIOp>(a.type, a.handle, b.handle);
  case BinaryOp::Sub:
    if (scalar.isPointer()) {
      Result offset = unary(UnaryOp::Neg, b);
      if (!offset)
        return offset;
      return addPointer(a, *offset);
    }
    return isFloat ? make<arith::SubFOp>(a.type, a.handle, b.handle)
                   : make<arith::SubIOp>(a.type, a.handle, b.handle);
  case BinaryOp::Mul:
    return isFloat ? make<arith::MulFOp>(a.type, a.handle, b.handle)
                   : make<arith::MulIOp>(a.type, a.handle, b.handle);
  case BinaryOp::TrueDiv: {
    // int / int is a float32, as in Python.
    Type type = isInt ? Type(ScalarKind::Float32) : scalar;
    Result x = cast(a, type), y = cast(b, type);
    if (!x || !y)
      return llvm::joinErrors(x.takeError(), y.takeError());
    return make<arith::DivFOp>(x->type, x->handle, y->handle);
  }
  case BinaryOp::FloorDiv:
    if (!isInt)
      return typeError("// takes integers, not " + scalar.str());
    return scalar.isSigned() ? make<arith::DivSIOp>(a.type, a.handle, b.handle)
                             : make<arith::DivUIOp>(a.type, a.handle, b.handle);
  case BinaryOp::Mod:
    if (isFloat)
      return make<arith::RemFOp>(a.type, a.handle, b.handle);
    return scalar.isSigned() ? make<arith::RemSIOp>(a.type, a.handle, b.handle)
                             : make<arith::RemUIOp>(a.type, a.handle, b.handle);
  case BinaryOp::And:
    return make<arith::AndIOp>(a.type, a.handle, b.handle);
  case BinaryOp::Or:
    return make<arith::OrIOp>(a.type, a.handle, b.handle);
  case BinaryOp::Xor:
    return make<arith::XOrIOp>(a.type, a.handle, b.handle);
  case BinaryOp::Shl:
    return make<arith::ShLIOp>(a.type, a.handle, b.handle);
  case BinaryOp::Shr:
    return arithmeticShift ? make<arith::ShRSIOp>(a.type, a.handle, b.handle)
                           : make<arith::ShRUIOp>(a.type, a.handle, b.handle);
  default:
    return compare(op, a, b);
  }
}

Result Builder::unary(UnaryOp op, const Operand &operand) {
  Result converted = toTensor(operand);
  if (!converted)
    return converted;
  Value value = *converted;
  Type scalar = value.type.scalar();
  switch (op) {
  case UnaryOp::Plus:
    return value;
  case UnaryOp::Neg:
    if (scalar.isPointer())
      return valueError("wrong type argument to unary minus (" + scalar.str() + ")");
    if (scalar.isFloating())
      return make<arith::NegFOp>(value.type, value.handle);
    return make<arith::SubIOp>(value.type, zeroLike(value.type).handle, value.handle);
  case UnaryOp::Not: {
    Result boolean = truthOf(value, "not");
    if (!boolean)
      return boolean;
    return unary(UnaryOp::Invert, *boolean);
  }
  case UnaryOp::Invert: {
    if (!scalar.isInteger())
      return valueError("wrong type argument to unary invert (" + scalar.str() + ")");
    Result ones = splat(allOnes(scalar), value.type.getShape());
    if (!ones)
      return ones;
    return make<arith::XOrIOp>(value.type, value.handle, ones->handle);
  }
  }
  llvm_unreachable("every unary operator is listed");
}

static llvm::Error notFloat(llvm::StringRef name, Type type, llvm::StringRef allowed) {
  return valueError(name + " takes " + allowed + ", not " + type.str() +
                    ". Convert with .to(tl.float32) first.");
}

Result Builder::math(MathOp op, const Operand &operand) {
  Result converted = toTensor(operand);
  if (!converted)
    return converted;
  Value x = *converted;
  static const char *const names[] = {"exp",  "exp2",    "log",   "log2", "sin",   "cos",
                                      "sqrt", "sqrt_rn", "rsqrt", "erf",  "floor", "ceil"};
  Type scalar = x.type.scalar();
  bool fits =
      scalar.is(ScalarKind::Float32) || (scalar.is(ScalarKind::Float64) && op != MathOp::SqrtRn);
  if (!fits)
    return notFloat(names[static_cast<unsigned>(op)], scalar,
                    op == MathOp::SqrtRn ? "float32" : "float32 or float64");
  switch (op) {
  case MathOp::Exp:
    return make<math::ExpOp>(x.type, x.handle);
  case MathOp::Exp2:
    return make<math::Exp2Op>(x.type, x.handle);
  case MathOp::Log:
    return make<math::LogOp>(x.type, x.handle);
  case MathOp::Log2:
    return make<math::Log2Op>(x.type, x.handle);
  case MathOp::Sin:
    return make<math::SinOp>(x.type, x.handle);
  case MathOp::Cos:
    return make<math::CosOp>(x.type, x.handle);
  case MathOp::Sqrt:
    return make<math::SqrtOp>(x.type, x.handle);
  case MathOp::Rsqrt:
    return make<math::RsqrtOp>(x.type, x.handle);
  case MathOp::Erf:
    return make<math::ErfOp>(x.type, x.handle);
  case MathOp::Floor:
    return make<math::FloorOp>(x.type, x.handle);
  case MathOp::Ceil:
    return make<math::CeilOp>(x.type, x.handle);
  case MathOp::SqrtRn:
    return make<tt::PreciseSqrtOp>(x.type, x.handle.getType(), x.handle);
  }
  llvm_unreachable("every function is listed");
}

Result Builder::abs(const Operand &operand) {
  Result x = toTensor(operand);
  if (!x)
    return x;
  Type scalar = x->type.scalar();
  if (scalar.isFloating())
    return make<math::AbsFOp>(x->type, x->handle);
  if (scalar.isSigned())
    return make<math::AbsIOp>(x->type, x->handle);
  if (scalar.isUnsigned())
    return *x;
  return unexpected(scalar);
}

Result Builder::fdiv(const Operand &lhs, const Operand &rhs, bool ieeeRounding) {
  llvm::Expected<Operands> operands = binaryOperands(lhs, rhs, false, false, /*divOrMod=*/true);
  if (!operands)
    return operands.takeError();
  Value a = operands->lhs, b = operands->rhs;
  if (!a.type.scalar().isFloating())
    return typeError("fdiv takes floating-point operands, not " + a.type.scalar().str());
  return ieeeRounding ? make<tt::PreciseDivFOp>(a.type, a.handle.getType(), a.handle, b.handle)
                      : make<arith::DivFOp>(a.type, a.handle, b.handle);
}

Result Builder::divRn(const Operand &lhs, const Operand &rhs) {
  for (const Operand *operand : {&lhs, &rhs})
    if (const Value *value = std::get_if<Value>(operand))
      if (!value->type.scalar().is(ScalarKind::Float32))
        return notFloat("div_rn", value->type.scalar(), "float32");
  llvm::Expected<Operands> operands = binaryOperands(lhs, rhs);
  if (!operands)
    return operands.takeError();
  Value a = operands->lhs, b = operands->rhs;
  return make<tt::PreciseDivFOp>(a.type, a.handle.getType(), a.handle, b.handle);
}

Result Builder::umulhi(const Operand &lhs, const Operand &rhs) {
  for (const Operand *operand : {&lhs, &rhs})
    if (const Value *value = std::get_if<Value>(operand)) {
      Type scalar = value->type.scalar();
      if (!scalar.isInteger() || scalar.bitWidth() < 32)
        return valueError("umulhi takes int32, int64, uint32 or uint64, not " + scalar.str());
    }
  llvm::Expected<Operands> operands = binaryOperands(lhs, rhs);
  if (!operands)
    return operands.takeError();
  Value a = operands->lhs, b = operands->rhs;
  if (!a.type.scalar().isInteger())
    return valueError("umulhi takes integers, not " + a.type.scalar().str());
  return make<tt::MulhiUIOp>(a.type, a.handle.getType(), a.handle, b.handle);
}

Result Builder::minimum(const Operand &lhs, const Operand &rhs, bool propagateNan) {
  llvm::Expected<Operands> operands = binaryOperands(lhs, rhs);
  if (!operands)
    return operands.takeError();
  Value a = operands->lhs, b = operands->rhs;
  Type scalar = a.type.scalar();
  if (scalar.isFloating())
    return propagateNan ? make<arith::MinimumFOp>(a.type, a.handle, b.handle)
                        : make<arith::MinNumFOp>(a.type, a.handle, b.handle);
  return scalar.isSigned() ? make<arith::MinSIOp>(a.type, a.handle, b.handle)
                           : make<arith::MinUIOp>(a.type, a.handle, b.handle);
}

Result Builder::maximum(const Operand &lhs, const Operand &rhs, bool propagateNan) {
  llvm::Expected<Operands> operands = binaryOperands(lhs, rhs);
  if (!operands)
    return operands.takeError();
  Value a = operands->lhs, b = operands->rhs;
  Type scalar = a.type.scalar();
  if (scalar.isFloating())
    return propagateNan ? make<arith::MaximumFOp>(a.type, a.handle, b.handle)
                        : make<arith::MaxNumFOp>(a.type, a.handle, b.handle);
  return scalar.isSigned() ? make<arith::MaxSIOp>(a.type, a.handle, b.handle)
                           : make<arith::MaxUIOp>(a.type, a.handle, b.handle);
}

Result Builder::clamp(const Operand &value, const Operand &low, const Operand &high,
                      bool propagateNan) {
  llvm::Expected<std::array<Value, 3>> operands = ternaryOperands(value, low, high);
  if (!operands)
    return operands.takeError();
  auto [x, lo, hi] = *operands;
  if (x.type.scalar().isFloating()) {
    auto nan = propagateNan ? tt::PropagateNan::ALL : tt::PropagateNan::NONE;
    return make<tt::ClampFOp>(x.type, x.handle.getType(), x.handle, lo.handle, hi.handle, nan);
  }
  Result atLeast = maximum(x, lo, propagateNan);
  if (!atLeast)
    return atLeast;
  return minimum(*atLeast, hi, propagateNan);
}

Result Builder::fma(const Operand &a, const Operand &b, const Operand &c) {
  llvm::Expected<std::array<Value, 3>> operands = ternaryOperands(a, b, c);
  if (!operands)
    return operands.takeError();
  auto [x, y, z] = *operands;
  if (!x.type.scalar().isFloating())
    return typeError("fma takes floating-point operands, not " + x.type.scalar().str());
  return make<math::FmaOp>(x.type, x.handle, y.handle, z.handle);
}

Result Builder::externElementwise(llvm::StringRef symbol, llvm::ArrayRef<Value> values,
                                  Type scalar) {
  Type type = values.front().type.withScalar(scalar);
  llvm::SmallVector<mlir::Value> handles;
  for (const Value &value : values)
    handles.push_back(value.handle);
  return make<tt::ExternElementwiseOp>(type, mlirType(type), handles, "", "", symbol,
                                       /*pure=*/true);
}

Result Builder::where(const Operand &conditionOperand, const Operand &x, const Operand &y) {
  Result condition = cast(conditionOperand, Type(ScalarKind::Int1));
  if (!condition)
    return condition;
  llvm::Expected<Operands> operands = binaryOperands(x, y, true, true);
  if (!operands)
    return operands.takeError();
  Value a = operands->lhs, b = operands->rhs, test = *condition;
  if (test.type.isBlock() || a.type.isBlock()) {
    llvm::Expected<Operands> first = broadcastPair(test, a);
    if (!first)
      return first.takeError();
    test = first->lhs;
    a = first->rhs;
    llvm::Expected<Operands> second = broadcastPair(a, b);
    if (!second)
      return second.takeError();
    a = second->lhs;
    b = second->rhs;
  }
  return make<arith::SelectOp>(a.type, test.handle, a.handle, b.handle);
}

} // namespace triton_metal::language
