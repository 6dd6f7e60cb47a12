// Integers get C++'s types. Arithmetic that may wrap around is unsigned, and small integers are
// truncated after arithmetic.

#include "transforms/MSLExplicitTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

static unsigned getWidth(Type type) { return getElementTypeOrSelf(type).getIntOrFloatBitWidth(); }

/// Whether `is` holds for any of the numbers of a constant; false for other values.
static bool anyConstant(Value value, function_ref<bool(const APInt &)> is) {
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return false;
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return is(integer.getValue());
  auto dense = dyn_cast<DenseIntElementsAttr>(attr);
  return dense && llvm::any_of(dense.getValues<APInt>(), is);
}

static bool isNegative(const APInt &value) { return value.isNegative(); }

static bool isConstant(Value value) { return matchPattern(value, m_Constant()); }

/// Whether the text has a variable for the value. A conversion of a variable reads better than a
/// conversion of an expression.
static bool isVariable(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || !value.hasOneUse() || isa<GetOp, LaneOp, SimdgroupOp, ProgramIdOp>(op);
}

/// Addition, subtraction and multiplication wrap in MLIR. Without overflow they are plain
/// arithmetic; otherwise they become unsigned arithmetic, which wraps in C++ too.
LogicalResult TypeExplicator::convertWrapping(Operation *op, BinaryKind kind) {
  Type type = op->getResult(0).getType();
  bool isVector = isa<VectorType>(type);
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (getWidth(type) == 1) {
    // In arithmetic modulo 2, addition is exclusive or, and multiplication is and.
    BinaryKind logical = kind != BinaryKind::Mul ? BinaryKind::NotEqual
                         : isVector              ? BinaryKind::And
                                                 : BinaryKind::LogicalAnd;
    return replace(op, binary(logical, getWhole(left), getWhole(right)));
  }
  // If both operands are splats, the result is computed once, as a number.
  bool areSplats = isSplat(left) && isSplat(right);
  bool isSmall = getWidth(type) < 32 && (!isVector || areSplats);
  // The product of two ushorts is an int in C++, and may overflow it.
  Value a = isSmall ? getSigned(left) : getNumber(left),
        b = isSmall ? getSigned(right) : getNumber(right);
  auto flags = cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  bool isPlain = isSmall || flags.hasNoSignedWrap();
  bool anyUnsigned = isUnsignedNumber(a) || isUnsignedNumber(b);
  if (isVector && (anyUnsigned || !isPlain)) {
    a = getUnsigned(left);
    b = getUnsigned(right);
  } else if (!isPlain && !anyUnsigned) {
    if (isConstant(b) || isConstant(a) || (isVariable(b) && !isVariable(a)))
      b = getUnsigned(right);
    else
      a = getUnsigned(left);
  }
  // x + -1 is x - 1.
  IntegerAttr constant;
  if (kind == BinaryKind::Add && matchPattern(right, m_Constant(&constant)) &&
      constant.getValue().isNegative() && !constant.getValue().isMinSignedValue()) {
    kind = BinaryKind::Sub;
    bool isUnsignedConstant = isUnsignedNumber(b);
    b = makeConstant(constant.getType(), -constant.getValue().getSExtValue());
    if (isUnsignedConstant)
      b = getUnsigned(b);
  }
  Value result = binary(kind, a, b);
  if (isSmall)
    result = toType(getElementTypeOrSelf(type), result);
  return replace(op, areSplats ? splat(result, type) : result);
}

LogicalResult TypeExplicator::convertDivision(Operation *op, BinaryKind kind, bool isUnsigned) {
  Type type = op->getResult(0).getType();
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (anyConstant(right, [](const APInt &value) { return value.isZero(); }))
    return refuse(op, "divides by the constant 0, which C++ leaves undefined");
  bool ignoresSign = isUnsigned && op->hasAttr(kNonNegativeAttr) && !isa<VectorType>(type);
  bool becomesSigned = false;
  if (ignoresSign && kind == BinaryKind::Div) {
    // The same result with and without a sign, because no operand is negative.
    isUnsigned = isUnsignedNumber(left) || isUnsignedNumber(right);
  } else if (ignoresSign) {
    // Metal leaves the remainder of a negative number undefined, so that the text shows that none
    // is. The result is a signed number again, whose sums do not wrap.
    auto isPlain = [&](Value value) {
      return !isUnsignedNumber(value) &&
             (isShort(value) || (isConstant(value) && !anyConstant(value, isNegative)));
    };
    if (isPlain(left) && isPlain(right))
      isUnsigned = false;
    else
      becomesSigned = !isUnsignedNumber(left) && getWidth(type) >= 32;
  }
  Value a = withSignOf(left, isUnsigned), b = withSignOf(right, isUnsigned);
  if (isSplat(left) && isSplat(right))
    a = getWhole(left, isUnsigned);
  Value result = binary(kind, a, b);
  bool isWhole = isa<VectorType>(type) || getWidth(type) >= 32;
  return replace(op, isWhole && !becomesSigned ? result : toType(type, result));
}

LogicalResult TypeExplicator::convertBits(Operation *op, BinaryKind kind) {
  Type type = op->getResult(0).getType();
  Value left = op->getOperand(0), right = op->getOperand(1);
  bool isVector = isa<VectorType>(type);
  if (getWidth(type) == 1) {
    // x ^ true is !x.
    if (kind == BinaryKind::Xor && matchPattern(right, m_One()))
      return replace(op, unary(UnaryKind::Not, getWhole(left)));
    BinaryKind logical = kind == BinaryKind::Xor   ? BinaryKind::NotEqual
                         : isVector                ? kind
                         : kind == BinaryKind::And ? BinaryKind::LogicalAnd
                                                   : BinaryKind::LogicalOr;
    return replace(op, binary(logical, getWhole(left), getWhole(right)));
  }
  Value a = getNumber(left), b = getNumber(right);
  if (isVector && (isUnsignedNumber(a) || isUnsignedNumber(b))) {
    a = getUnsigned(left);
    b = getUnsigned(right);
  }
  bool areSplats = isSplat(left) && isSplat(right);
  Value result = binary(kind, a, b);
  if ((!isVector || areSplats) && getWidth(type) < 32)
    result = toType(getElementTypeOrSelf(type), result);
  return replace(op, areSplats ? splat(result, type) : result);
}

LogicalResult TypeExplicator::convertShift(Operation *op, BinaryKind kind, bool isUnsigned) {
  // Amounts that are only known at run time have been masked by `define-arithmetic`.
  Type type = op->getResult(0).getType();
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (anyConstant(right, [](const APInt &value) { return value.uge(value.getBitWidth()); }))
    return refuse(op, "shifts by the width or more, which C++ leaves undefined");
  bool isVector = isa<VectorType>(type);
  auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  bool isPlain =
      flags ? flags.hasNoSignedWrap() && flags.hasNoUnsignedWrap() : op->hasAttr(kNonNegativeAttr);
  if (!isVector && isPlain && !isUnsignedNumber(left))
    isUnsigned = false;
  Value a = withSignOf(left, isUnsigned);
  if (isSplat(left))
    a = getWhole(left, isUnsigned);
  Value b = isVector ? withSignOf(right, isUnsigned) : getNumber(right);
  Value result = binary(kind, a, b);
  return replace(op, isVector || getWidth(type) >= 32 ? result : toType(type, result));
}

static std::pair<BinaryKind, bool> getComparison(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  bool isUnsigned = predicate >= P::ult;
  switch (predicate) {
  case P::eq:
    return {BinaryKind::Equal, isUnsigned};
  case P::ne:
    return {BinaryKind::NotEqual, isUnsigned};
  case P::slt:
  case P::ult:
    return {BinaryKind::Less, isUnsigned};
  case P::sle:
  case P::ule:
    return {BinaryKind::LessEqual, isUnsigned};
  case P::sgt:
  case P::ugt:
    return {BinaryKind::Greater, isUnsigned};
  case P::sge:
  case P::uge:
    return {BinaryKind::GreaterEqual, isUnsigned};
  }
  llvm_unreachable("a comparison of integers");
}

LogicalResult TypeExplicator::convertCompare(Operation *op) {
  auto compare = cast<arith::CmpIOp>(op);
  Value left = compare.getLhs(), right = compare.getRhs();
  auto [kind, isUnsigned] = getComparison(compare.getPredicate());
  bool isEquality = kind == BinaryKind::Equal || kind == BinaryKind::NotEqual;
  Type type = getOriginal(left);
  if (getWidth(type) == 1) {
    Value a = getWhole(left), b = getWhole(right);
    if (!isEquality) {
      // A true i1 is -1 as a signed number.
      Type wide = withElement(type, builder.getI32Type());
      a = toType(wide, a);
      b = toType(wide, b);
      if (!isUnsigned)
        std::swap(a, b);
    }
    return replace(op, binary(kind, a, b));
  }
  bool anyUnsigned = isUnsignedNumber(left) || isUnsignedNumber(right);
  if (isEquality)
    isUnsigned = anyUnsigned;
  else if (isUnsigned && op->hasAttr(kNonNegativeAttr) && !isa<VectorType>(type))
    isUnsigned = anyUnsigned;
  Value a = withSignOf(left, isUnsigned), b = withSignOf(right, isUnsigned);
  if (isSplat(left) && isSplat(right))
    a = getWhole(left, isUnsigned);
  return replace(op, binary(kind, a, b));
}

/// Calls a function of integers whose arguments have one type.
LogicalResult TypeExplicator::convertFunction(Operation *op, StringRef function, bool isUnsigned) {
  if (isUnsigned && op->hasAttr(kNonNegativeAttr))
    isUnsigned =
        llvm::any_of(op->getOperands(), [&](Value operand) { return isUnsignedNumber(operand); });
  SmallVector<Value> arguments;
  for (Value operand : op->getOperands())
    arguments.push_back(getWhole(operand, isUnsigned));
  return replace(op, call(function, arguments.front().getType(), arguments));
}

LogicalResult TypeExplicator::convertSelect(Operation *op) {
  auto select = cast<arith::SelectOp>(op);
  Type type = select.getType();
  Value condition = select.getCondition(), yes = select.getTrueValue(), no = select.getFalseValue();
  bool isInteger = isa<IntegerType>(getElementTypeOrSelf(type));
  if (isa<VectorType>(condition.getType()) && !isSplat(condition)) {
    if (isa<IntegerType>(getElementTypeOrSelf(type))) {
      yes = getWhole(yes, false);
      no = getWhole(no, false);
    }
    return replace(op, call("select", type, {getWhole(no), getWhole(yes), condition}));
  }
  condition = getNumber(condition);
  if (isShort(yes) && isShort(no)) {
    // Both are ushorts, and so is the result.
  } else if (isInteger) {
    bool isUnsigned = !isa<VectorType>(type) && getWidth(type) >= 32 && isUnsignedNumber(yes) &&
                      isUnsignedNumber(no);
    yes = getWhole(yes, isUnsigned);
    no = getWhole(no, isUnsigned);
  } else if (isa<VectorType>(type)) {
    yes = getWhole(yes);
    no = getWhole(no);
  }
  // The operands of `?:` must have one type. In memory, a vector or a bfloat may be of another
  // class than in registers, so the value that is read is converted.
  if (isa<VectorType>(type) || type.isBF16())
    for (Value *side : {&yes, &no})
      if (side->getDefiningOp<ReadOp>())
        *side = CastOp::create(builder, loc, side->getType(), *side);
  return replace(op, arith::SelectOp::create(builder, loc, condition, yes, no));
}

LogicalResult TypeExplicator::convertConversion(Operation *op) {
  Value operand = op->getOperand(0);
  Type from = getOriginal(operand), to = op->getResult(0).getType();
  bool fromBool = getWidth(from) == 1, isVector = isa<VectorType>(to);
  Type element = getElementTypeOrSelf(to);
  if (isa<arith::ExtUIOp>(op)) {
    if (fromBool)
      return replace(op, toType(to, getNumber(operand)));
    bool isUnsigned = !op->hasAttr(kNonNegativeAttr);
    return replace(op, toType(withSign(to, isUnsigned), withSignOf(operand, isUnsigned)));
  }
  if (isa<arith::ExtSIOp>(op)) {
    if (!fromBool)
      return replace(op, toType(to, getSigned(operand)));
    // C++ promotes an operand that is smaller than an int to int before it negates it.
    Type computed = isVector ? to : getPromotedType(to);
    return replace(op, toType(to, negate(toType(computed, getWhole(operand)))));
  }
  if (isa<arith::TruncIOp>(op)) {
    Value number = getNumber(operand);
    if (element.isInteger(1)) {
      Value whole = getWhole(operand);
      Value bit = binary(BinaryKind::And, whole,
                         isUnsigned(whole.getType())
                             ? getUnsigned(makeConstant(getElementTypeOrSelf(from), 1))
                             : makeConstant(getElementTypeOrSelf(from), 1));
      return replace(op, isVector ? toType(to, bit)
                                  : binary(BinaryKind::NotEqual, bit,
                                           makeConstant(getElementTypeOrSelf(from), 0)));
    }
    return replace(op,
                   toType(withSign(to, getWidth(to) >= 32 && isUnsignedNumber(number)), number));
  }
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    bool isUnsigned = isa<arith::UIToFPOp>(op);
    Value number;
    if (fromBool)
      number = isUnsigned
                   ? getNumber(operand)
                   : negate(toType(withElement(to, builder.getI32Type()), getWhole(operand)));
    else if (isUnsigned)
      number = op->hasAttr(kNonNegativeAttr) ? getNumber(operand) : getUnsigned(operand);
    else
      number = getSigned(operand);
    if (!element.isBF16())
      return replace(op, toType(to, number));
    // The conversion goes through float and must round only once. Floats hold integers of up to 24
    // bits exactly.
    if (getWidth(from) > 24) {
      Value whole = getWhole(operand, isUnsigned);
      number = call("round_to_odd<" + std::to_string(getWidth(from)) + ">", whole.getType(), whole);
    }
    return replace(op, toType(to, toType(withElement(to, builder.getF32Type()), number)));
  }
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
    if (element.isInteger(1))
      return refuse(op, "makes a truth value from a float: compare it with 0");
    bool isUnsigned = isa<arith::FPToUIOp>(op);
    Value number = getElementTypeOrSelf(from).isBF16() ? getFloat(operand) : getNumber(operand);
    return replace(op, toType(withSign(to, isUnsigned), number));
  }
  // Bitcasts.
  Type a = getElementTypeOrSelf(from);
  if (a == element)
    return replace(op, operand);
  if (getWidth(from) == 1 || getWidth(to) == 1)
    return refuse(op, "reads a truth value's bits");
  return replace(op, asType(to, getWhole(operand)));
}
