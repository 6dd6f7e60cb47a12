// Expressions of integers, bits, memory and vectors. Calls.cpp has floats and functions.

#include "target/msl/KernelPrinter.h"
#include "target/msl/Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace triton_metal::msl;

static unsigned getWidth(Type type) { return getElementTypeOrSelf(type).getIntOrFloatBitWidth(); }

static void addChanging(Expr &expr, const Expr &part) {
  for (Value value : part.changing)
    if (!llvm::is_contained(expr.changing, value))
      expr.changing.push_back(value);
}

//===----------------------------------------------------------------------===//
// Composing text
//===----------------------------------------------------------------------===//

Expr KernelPrinter::fail(Operation *op, const Twine &why) {
  (void)refuse(op, why);
  return {"0"};
}

std::string KernelPrinter::inParens(const Expr &expr, int atLeast) {
  return expr.precedence >= atLeast ? expr.text : "(" + expr.text + ")";
}

Expr KernelPrinter::binary(const Expr &a, StringRef symbol, const Expr &b, int precedence) {
  Expr result;
  result.precedence = precedence;
  // What is mixed with bit operators, shifts or && in || is put in parentheses, as compilers
  // advise.
  auto side = [&](const Expr &part, bool isRight) {
    int atLeast = precedence + (isRight ? 1 : 0);
    if (precedence == BitOr || precedence == BitXor || precedence == BitAnd || precedence == Shift)
      atLeast = part.precedence == precedence && !isRight ? precedence : int(Unary);
    if (precedence == LogicalOr && part.precedence == LogicalAnd)
      atLeast = Primary;
    // && and || may be grouped either way.
    if ((precedence == LogicalAnd || precedence == LogicalOr) && part.precedence == precedence)
      atLeast = precedence;
    return inParens(part, atLeast);
  };
  result.left = side(a, false);
  result.op = symbol.str();
  result.right = side(b, true);
  result.text = result.left + " " + result.op + " " + result.right;
  addChanging(result, a);
  addChanging(result, b);
  return result;
}

Expr KernelPrinter::call(StringRef function, ArrayRef<Expr> arguments) {
  Expr result;
  result.text = function.str() + "(";
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    result.text += (index ? ", " : "") + argument.text;
    addChanging(result, argument);
  }
  result.text += ")";
  return result;
}

Expr KernelPrinter::cast(const std::string &type, const Expr &value) { return call(type, {value}); }

Expr KernelPrinter::castTo(Type type, bool isUnsigned, const Expr &value) {
  Expr result = cast(getTypeName(type, isUnsigned), value);
  result.isUnsigned = isUnsigned;
  return result;
}

/// Arithmetic on 8 and 16 bits is done on int, so a scalar result is cut back to its type.
Expr KernelPrinter::narrow(Operation *op, Expr expr) {
  Type type = op->getResult(0).getType();
  if (isa<VectorType>(type) || getWidth(type) >= 32)
    return expr;
  return castTo(type, false, expr);
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Expr KernelPrinter::get(Value value) {
  if (auto it = exprs.find(value); it != exprs.end())
    return it->second;
  Attribute attr;
  if (Operation *op = value.getDefiningOp(); op && matchPattern(op, m_Constant(&attr)))
    return buildConstant(op, attr);
  if (Operation *op = value.getDefiningOp())
    return fail(op, "has no text here");
  failed = true;
  return {"0"};
}

Expr KernelPrinter::getSigned(Value value) {
  Expr expr = get(value);
  if (!expr.isUnsigned || expr.literal)
    return expr;
  Type type = expr.isSplat ? getElementTypeOrSelf(value.getType()) : value.getType();
  Expr result = castTo(type, false, expr);
  result.isSplat = expr.isSplat;
  return result;
}

Expr KernelPrinter::getUnsigned(Value value) {
  Expr expr = get(value);
  if (expr.isUnsigned)
    return expr;
  Type element = getElementTypeOrSelf(value.getType());
  if (expr.literal) {
    Expr result;
    result.text = getLiteral(IntegerAttr::get(element, *expr.literal), true);
    result.isUnsigned = true;
    result.isSplat = expr.isSplat;
    return result;
  }
  Type type = expr.isSplat ? element : value.getType();
  Expr result = castTo(type, true, expr);
  result.isSplat = expr.isSplat;
  return result;
}

/// As a vector where the value is one, and of the value's type: functions do not widen a number.
Expr KernelPrinter::makeWhole(const Expr &expr, Type type) {
  return expr.isSplat || expr.isShort ? castTo(type, expr.isUnsigned, expr) : expr;
}

Expr KernelPrinter::getWhole(Value value) { return makeWhole(get(value), value.getType()); }

static Expr splatLiteral(Attribute attr) {
  Expr expr;
  expr.text = getLiteral(attr);
  if (auto integer = dyn_cast<IntegerAttr>(attr);
      integer && !integer.getType().isInteger(1) && integer.getValue().getBitWidth() >= 32)
    expr.literal = integer.getValue();
  if (StringRef(expr.text).starts_with("-"))
    expr.precedence = Unary;
  return expr;
}

Expr KernelPrinter::buildConstant(Operation *op, Attribute attr) {
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense) {
    if (!isa<IntegerAttr, FloatAttr>(attr))
      return fail(op, "is a constant that Metal does not have");
    return splatLiteral(attr);
  }
  std::string type = getTypeName(dense.getType());
  if (dense.isSplat()) {
    Expr expr = splatLiteral(*dense.getValues<Attribute>().begin());
    expr.isSplat = true;
    return expr;
  }
  if (type.empty())
    return fail(op, "is a vector that Metal does not have");
  Expr expr;
  expr.text = type + "(";
  for (auto [index, value] : llvm::enumerate(dense.getValues<Attribute>()))
    expr.text += (index ? ", " : "") + getLiteral(value);
  expr.text += ")";
  return expr;
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Addition, subtraction and multiplication wrap in MLIR. Where overflow is excluded the text is
/// plain; else it is unsigned arithmetic, which wraps in C++ too.
Expr KernelPrinter::buildWrapping(Operation *op, StringRef symbol, int precedence) {
  Type type = op->getResult(0).getType();
  bool isVector = isa<VectorType>(type);
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (getWidth(type) == 1) {
    // Modulo 2: addition is exclusive or, multiplication is and.
    Expr a = getWhole(left), b = getWhole(right);
    Expr result = symbol == "*"
                      ? binary(a, isVector ? "&" : "&&", b, isVector ? BitAnd : LogicalAnd)
                      : binary(a, "!=", b, Equality);
    return result;
  }
  // Of two numbers that stand for vectors the result is computed once, as a number.
  bool areSplats = get(left).isSplat && get(right).isSplat;
  bool small = getWidth(type) < 32 && (!isVector || areSplats);
  // The product of two ushorts is an int, which it may not fit.
  Expr a = small ? getSigned(left) : get(left), b = small ? getSigned(right) : get(right);
  bool plain = small || ranges.cannotOverflow(op);
  bool anyUnsigned = a.isUnsigned || b.isUnsigned;
  if (isVector ? (anyUnsigned || !plain) : (!plain && !anyUnsigned)) {
    if (isVector) {
      a = getUnsigned(left);
      b = getUnsigned(right);
    } else if (a.literal || (!b.literal && a.text.size() > b.text.size())) {
      b = getUnsigned(right);
    } else if (b.literal) {
      b = getUnsigned(right);
    } else {
      a = getUnsigned(left);
    }
    anyUnsigned = true;
  }
  if (areSplats) {
    Expr result = binary(a, symbol, b, precedence);
    result.isUnsigned = anyUnsigned;
    if (small)
      result = castTo(getElementTypeOrSelf(type), false, result);
    result.isSplat = true;
    return result;
  }
  // x + -1 is x - 1.
  Expr result;
  std::optional<llvm::APInt> literal = get(right).literal;
  if (symbol == "+" && literal && literal->isNegative() && !literal->isMinSignedValue()) {
    Expr negated;
    negated.text =
        getLiteral(IntegerAttr::get(getElementTypeOrSelf(type), -*literal), b.isUnsigned);
    result = binary(a, "-", negated, precedence);
  } else {
    result = binary(a, symbol, b, precedence);
  }
  result.isUnsigned = anyUnsigned;
  if (small) {
    result.isUnsigned = false;
    return narrow(op, result);
  }
  return result;
}

/// Whether one of a constant's numbers is such; false for what is no constant.
static bool anyConstant(Value value, function_ref<bool(const APInt &)> is) {
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return false;
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return is(integer.getValue());
  auto dense = dyn_cast<DenseIntElementsAttr>(attr);
  return dense && llvm::any_of(dense.getValues<APInt>(), is);
}

Expr KernelPrinter::buildDivision(Operation *op, StringRef symbol, bool isUnsigned) {
  Type type = op->getResult(0).getType();
  Value left = op->getOperand(0), right = op->getOperand(1);
  // What cannot be negative divides the same either way.
  bool either = isUnsigned && !isa<VectorType>(type) && ranges.get(left).isNonNegative() &&
                ranges.get(right).isNonNegative() && !get(left).isUnsigned &&
                !get(right).isUnsigned;
  if (anyConstant(right, [](const APInt &value) { return value.isZero(); }))
    return fail(op, "divides by the constant 0, which C++ leaves undefined");
  Expr a = either ? get(left) : isUnsigned ? getUnsigned(left) : getSigned(left);
  Expr b = either ? get(right) : isUnsigned ? getUnsigned(right) : getSigned(right);
  if (a.isSplat && b.isSplat)
    a = cast(getTypeName(type, isUnsigned), a);
  Expr result = binary(a, symbol, b, Product);
  result.isUnsigned = isUnsigned && !either;
  if (!isa<VectorType>(type) && getWidth(type) < 32) {
    result = narrow(op, result);
    result.isUnsigned = false;
  }
  return result;
}

Expr KernelPrinter::buildBits(Operation *op, StringRef symbol, StringRef logical, int precedence,
                              int logicalPrecedence) {
  Type type = op->getResult(0).getType();
  Value left = op->getOperand(0), right = op->getOperand(1);
  bool isVector = isa<VectorType>(type);
  if (getWidth(type) == 1) {
    // x ^ true is !x.
    if (symbol == "^" && matchPattern(right, m_One())) {
      Expr a = getWhole(left);
      Expr result{"!" + inParens(a, Unary), Unary};
      addChanging(result, a);
      return result;
    }
    Expr a = getWhole(left), b = getWhole(right);
    if (symbol == "^")
      return binary(a, "!=", b, Equality);
    return isVector ? binary(a, symbol, b, precedence) : binary(a, logical, b, logicalPrecedence);
  }
  Expr a = get(left), b = get(right);
  bool anyUnsigned = a.isUnsigned || b.isUnsigned;
  if (isVector && anyUnsigned) {
    a = getUnsigned(left);
    b = getUnsigned(right);
  }
  bool splat = a.isSplat && b.isSplat;
  Expr result = binary(a, symbol, b, precedence);
  result.isUnsigned = anyUnsigned;
  if ((!isVector || splat) && getWidth(type) < 32)
    result = castTo(getElementTypeOrSelf(type), false, result);
  result.isSplat = splat;
  return result;
}

Expr KernelPrinter::buildShift(Operation *op, StringRef symbol, bool isUnsigned) {
  // What is known at run time alone is cut to the width by the operation's operand.
  Type type = op->getResult(0).getType();
  if (anyConstant(op->getOperand(1),
                  [](const APInt &value) { return value.uge(value.getBitWidth()); }))
    return fail(op, "shifts by the width or more, which C++ leaves undefined");
  bool isVector = isa<VectorType>(type), small = getWidth(type) < 32 && !isVector;
  Value left = op->getOperand(0);
  bool plain = !isVector && !get(left).isUnsigned && ranges.get(left).isNonNegative() &&
               (symbol == ">>" || ranges.cannotOverflow(op));
  Expr a = plain ? get(left) : isUnsigned ? getUnsigned(left) : getSigned(left);
  Expr b = isVector ? (isUnsigned ? getUnsigned(op->getOperand(1)) : getSigned(op->getOperand(1)))
                    : get(op->getOperand(1));
  if (a.isSplat)
    a = cast(getTypeName(type, isUnsigned), a);
  Expr result = binary(a, symbol, b, Shift);
  result.isUnsigned = isUnsigned && !plain;
  if (small) {
    result = narrow(op, result);
    result.isUnsigned = false;
  }
  return result;
}

Expr KernelPrinter::buildCompare(Operation *op) {
  auto compare = cast<arith::CmpIOp>(op);
  Value left = compare.getLhs(), right = compare.getRhs();
  static const std::map<arith::CmpIPredicate, std::pair<StringRef, int>> symbols = {
      {arith::CmpIPredicate::eq, {"==", Equality}},  {arith::CmpIPredicate::ne, {"!=", Equality}},
      {arith::CmpIPredicate::slt, {"<", Relation}},  {arith::CmpIPredicate::ult, {"<", Relation}},
      {arith::CmpIPredicate::sle, {"<=", Relation}}, {arith::CmpIPredicate::ule, {"<=", Relation}},
      {arith::CmpIPredicate::sgt, {">", Relation}},  {arith::CmpIPredicate::ugt, {">", Relation}},
      {arith::CmpIPredicate::sge, {">=", Relation}}, {arith::CmpIPredicate::uge, {">=", Relation}}};
  auto [symbol, precedence] = symbols.at(compare.getPredicate());
  bool isUnsigned = compare.getPredicate() >= arith::CmpIPredicate::ult;
  bool isEquality = precedence == Equality;
  Type type = left.getType();
  if (getWidth(type) == 1 && !isEquality) {
    // A true i1 is -1 as a signed number.
    auto widen = [&](Value value) {
      Expr expr =
          cast(getTypeName(isa<VectorType>(type)
                               ? Type(VectorType::get(getNumRegisters(type),
                                                      IntegerType::get(type.getContext(), 32)))
                               : Type(IntegerType::get(type.getContext(), 32))),
               getWhole(value));
      return expr;
    };
    Expr a = widen(left), b = widen(right);
    return isUnsigned ? binary(a, symbol, b, precedence) : binary(b, symbol, a, precedence);
  }
  Expr a, b;
  if (isEquality && getWidth(type) > 1) {
    a = get(left);
    b = get(right);
    // Equal signs on both sides are enough.
    if (a.isUnsigned != b.isUnsigned && !a.literal && !b.literal) {
      a = getUnsigned(left);
      b = getUnsigned(right);
    } else if (a.isUnsigned != b.isUnsigned) {
      a = a.isUnsigned ? a : getUnsigned(left);
      b = b.isUnsigned ? b : getUnsigned(right);
    }
  } else if (getWidth(type) == 1) {
    a = getWhole(left);
    b = getWhole(right);
  } else if (isUnsigned && !isa<VectorType>(type) && ranges.get(left).isNonNegative() &&
             ranges.get(right).isNonNegative() && !get(left).isUnsigned && !get(right).isUnsigned) {
    a = get(left);
    b = get(right);
  } else {
    a = isUnsigned ? getUnsigned(left) : getSigned(left);
    b = isUnsigned ? getUnsigned(right) : getSigned(right);
  }
  if (a.isSplat && b.isSplat)
    a = cast(getTypeName(type, a.isUnsigned), a);
  return binary(a, symbol, b, precedence);
}

Expr KernelPrinter::buildMinMax(Operation *op, StringRef function, bool isUnsigned) {
  Value left = op->getOperand(0), right = op->getOperand(1);
  Type type = op->getResult(0).getType();
  bool either = isUnsigned && ranges.get(left).isNonNegative() &&
                ranges.get(right).isNonNegative() && !get(left).isUnsigned &&
                !get(right).isUnsigned;
  bool asUnsigned = isUnsigned && !either;
  // A function's arguments have one type.
  auto operand = [&](Value value) {
    return makeWhole(asUnsigned ? getUnsigned(value) : getSigned(value), type);
  };
  Expr result = call(function, {operand(left), operand(right)});
  result.isUnsigned = asUnsigned;
  return result;
}

Expr KernelPrinter::buildConversion(Operation *op) {
  Value operand = op->getOperand(0);
  Type from = operand.getType(), to = op->getResult(0).getType();
  bool fromBool = getWidth(from) == 1, isVector = isa<VectorType>(to);
  auto typed = [&](Expr value, bool isUnsigned) {
    Expr result = castTo(to, isUnsigned, value);
    return result;
  };
  auto negate = [&](Expr value) {
    Expr result{"-" + inParens(value, Unary), Unary};
    addChanging(result, value);
    return result;
  };
  if (isa<arith::ExtUIOp>(op)) {
    if (fromBool || ranges.get(operand).isNonNegative())
      return typed(fromBool ? get(operand) : getSigned(operand), false);
    return typed(getUnsigned(operand), true);
  }
  if (isa<arith::ExtSIOp>(op))
    return fromBool ? narrow(op, negate(typed(getWhole(operand), false)))
                    : typed(getSigned(operand), false);
  if (isa<arith::TruncIOp>(op)) {
    if (getWidth(to) != 1)
      return typed(get(operand), getWidth(to) >= 32 && get(operand).isUnsigned);
    Expr one = splatLiteral(IntegerAttr::get(getElementTypeOrSelf(from), 1));
    Expr bit = binary(getWhole(operand), "&", one, BitAnd);
    Expr zero = splatLiteral(IntegerAttr::get(getElementTypeOrSelf(from), 0));
    Expr whole = bit;
    if (isVector)
      return typed(whole, false);
    return binary(whole, "!=", zero, Equality);
  }
  // To bfloat the way is through float, and must round once.
  auto fromInteger = [&](Expr value) {
    if (!getElementTypeOrSelf(to).isBF16())
      return typed(value, false);
    unsigned width = getWidth(from);
    Ranges::Interval range = ranges.get(operand);
    bool isExact = width < 32 || (range.low >= -(1 << 24) && range.high <= 1 << 24);
    if (!isExact) {
      prelude.roundToOdd = true;
      value = call("round_to_odd<" + std::to_string(width) + ">",
                   {value.isSplat ? castTo(from, isa<arith::UIToFPOp>(op), value) : value});
    }
    Type single = Float32Type::get(to.getContext());
    return typed(
        cast(getTypeName(isVector ? Type(VectorType::get(getNumRegisters(to), single)) : single),
             value),
        false);
  };
  if (isa<arith::SIToFPOp>(op)) {
    Expr value =
        fromBool ? negate(cast(getTypeName(isVector ? Type(VectorType::get(
                                                          getNumRegisters(to),
                                                          IntegerType::get(to.getContext(), 32)))
                                                    : Type(IntegerType::get(to.getContext(), 32))),
                               getWhole(operand)))
                 : getSigned(operand);
    return fromInteger(value);
  }
  if (isa<arith::UIToFPOp>(op)) {
    Expr value =
        fromBool || ranges.get(operand).isNonNegative() ? get(operand) : getUnsigned(operand);
    return fromInteger(value);
  }
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
    bool isUnsigned = isa<arith::FPToUIOp>(op);
    if (getWidth(to) == 1)
      return fail(op, "makes a truth value from a float: compare it with 0");
    Expr value = getElementTypeOrSelf(from).isBF16() ? getFloat(operand) : get(operand);
    if (getWidth(to) < 32 || !isUnsigned)
      return typed(isUnsigned ? castTo(to, true, value) : value, false);
    return typed(value, true);
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    // Between half and bfloat there is only the way through float.
    Type a = getElementTypeOrSelf(from), b = getElementTypeOrSelf(to);
    Expr value =
        (a.isF16() && b.isBF16()) || (a.isBF16() && b.isF16()) ? getFloat(operand) : get(operand);
    return typed(value, false);
  }
  // The same bits.
  Type a = getElementTypeOrSelf(from), b = getElementTypeOrSelf(to);
  if (a == b)
    return get(operand);
  if (getWidth(from) == 1 || getWidth(to) == 1)
    return fail(op, "reads a truth value's bits");
  return call("as_type<" + getTypeName(to) + ">", {getWhole(operand)});
}

Expr KernelPrinter::buildSelect(Operation *op) {
  auto select = cast<arith::SelectOp>(op);
  Type type = select.getType();
  Expr condition = get(select.getCondition());
  if (isa<VectorType>(select.getCondition().getType()) && !condition.isSplat) {
    Expr a = getSigned(select.getTrueValue()), b = getSigned(select.getFalseValue());
    return call("select", {makeWhole(b, type), makeWhole(a, type), condition});
  }
  Expr a, b;
  bool isUnsigned = false;
  if (isa<PtrType>(type)) {
    a = get(select.getTrueValue());
    b = get(select.getFalseValue());
  } else {
    isUnsigned = !isa<VectorType>(type) && isa<IntegerType>(type) && getWidth(type) >= 32 &&
                 (get(select.getTrueValue()).isUnsigned && get(select.getFalseValue()).isUnsigned);
    auto side = [&](Value value) {
      Expr expr = isUnsigned ? get(value) : getSigned(value);
      if (expr.isSplat)
        return cast(getTypeName(type), expr);
      // A choice is between values: what is read in place becomes one, see buildRead.
      bool isInPlace = value.getDefiningOp<ReadOp>() &&
                       StringRef(expr.text).find_first_of("[*") != StringRef::npos &&
                       expr.precedence != Conditional;
      return isInPlace && (isa<VectorType>(type) || type.isBF16()) ? cast(getTypeName(type), expr)
                                                                   : expr;
    };
    a = side(select.getTrueValue());
    b = side(select.getFalseValue());
  }
  Expr result;
  result.text = inParens(condition, LogicalOr) + " ? " + inParens(a, LogicalOr) + " : " +
                inParens(b, Conditional);
  result.precedence = Conditional;
  result.isUnsigned = isUnsigned;
  result.isShort = a.isShort && b.isShort;
  addChanging(result, condition);
  addChanging(result, a);
  addChanging(result, b);
  return result;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Qualifiers KernelPrinter::getQualifiers(Value pointer) {
  Qualifiers qualifiers;
  if (!isa<PtrType>(pointer.getType()))
    return qualifiers;
  // What comes from an argument that is only read is `const` everywhere: a choice between it and
  // another pointer, too. So it is with memory in which threadgroups meet.
  llvm::SetVector<Value> reached;
  reached.insert(pointer);
  for (unsigned index = 0; index < reached.size(); ++index) {
    Value value = reached[index];
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      unsigned number = argument.getArgNumber();
      Operation *parent = argument.getOwner()->getParentOp();
      if (parent == kernel) {
        qualifiers.isConst |= bool(kernel.getArgAttr(number, kReadOnlyAttr));
        qualifiers.isCoherent |= bool(kernel.getArgAttr(number, kCoherentAttr));
      } else if (auto loop = dyn_cast<scf::ForOp>(parent)) {
        reached.insert(loop.getInitArgs()[number - 1]);
        reached.insert(loop.getYieldedValues()[number - 1]);
      } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
        if (argument.getOwner() == loop.getBeforeBody()) {
          reached.insert(loop.getInits()[number]);
          reached.insert(loop.getYieldOp().getOperand(number));
        } else {
          reached.insert(loop.getConditionOp().getArgs()[number]);
        }
      }
      continue;
    }
    Operation *op = value.getDefiningOp();
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (isa<PtrAddOp, PtrCastOp>(op)) {
      reached.insert(op->getOperand(0));
    } else if (isa<IntToPtrOp>(op)) {
      qualifiers.isCoherent |= kernel->hasAttr(kCoherentAttr);
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      reached.insert(select.getTrueValue());
      reached.insert(select.getFalseValue());
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      reached.insert(loop.getRegionIterArg(number));
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      reached.insert(loop.getConditionOp().getArgs()[number]);
    } else if (auto conditional = dyn_cast<scf::IfOp>(op)) {
      reached.insert(conditional.thenYield().getOperand(number));
      reached.insert(conditional.elseYield().getOperand(number));
    }
  }
  return qualifiers;
}

Expr KernelPrinter::getOffset(Value offset) {
  // Offsets are signed, and pointers have 64 bits.
  Expr expr = get(offset);
  if (expr.isUnsigned && !ranges.get(offset).isNonNegative())
    return getSigned(offset);
  return expr;
}

Expr KernelPrinter::getAddress(Value base, Value offset) {
  Expr pointer = get(base);
  if (!offset || matchPattern(offset, m_Zero()))
    return pointer;
  Expr expr = getOffset(offset);
  if (expr.literal && expr.literal->isNegative()) {
    Expr negated = splatLiteral(IntegerAttr::get(offset.getType(), -*expr.literal));
    return binary(pointer, "-", negated, Sum);
  }
  // A signed sum does not overflow, so its parts may be added to the pointer one by one.
  if (expr.precedence == Sum && !expr.isUnsigned) {
    Expr result;
    result.text = inParens(pointer, Sum) + " + " + expr.text;
    result.precedence = Sum;
    addChanging(result, pointer);
    addChanging(result, expr);
    return result;
  }
  return binary(pointer, "+", expr, Sum);
}

std::string KernelPrinter::getAccess(Value base, Value offset, Type type, bool isConst) {
  auto pointer = cast<PtrType>(base.getType());
  Expr address = get(base);
  if (type == pointer.getElementType()) {
    if (!offset || matchPattern(offset, m_Zero()))
      return "*" + inParens(address, Unary);
    if (address.precedence == Primary)
      return address.text + "[" + getOffset(offset).text + "]";
    return "*(" + getAddress(base, offset).text + ")";
  }
  address = getAddress(base, offset);
  return "*(" + getPointeePrefix(pointer.getSpace(), {isConst, getQualifiers(base).isCoherent}) +
         getTypeName(type, isa<IntegerType>(getElementTypeOrSelf(type)) &&
                               type != getElementTypeOrSelf(type) &&
                               !isa<IntegerType>(pointer.getElementType())) +
         " *)" + inParens(address, Unary);
}

/// One element, read each time. bfloat has no copies of volatile ones everywhere: its bits have.
Expr KernelPrinter::buildVolatileRead(ReadOp op) {
  PtrType pointer = op.getBase().getType();
  Type type = op.getType();
  bool asBits = type.isBF16();
  Expr access;
  access.text =
      "*(volatile " +
      getPointeePrefix(pointer.getSpace(), {true, getQualifiers(op.getBase()).isCoherent}) +
      (asBits ? "ushort" : getTypeName(type)) + " *)" +
      inParens(getAddress(op.getBase(), op.getOffset()), Unary);
  access.precedence = Unary;
  return asBits ? call("as_type<bfloat>", {access}) : access;
}

Expr KernelPrinter::buildRead(ReadOp op) {
  Expr access;
  if (op.getIsVolatile()) {
    access = buildVolatileRead(op);
  } else {
    access.text = getAccess(op.getBase(), op.getOffset(), op.getType(), true);
    access.precedence = StringRef(access.text).starts_with("*") ? Unary : Primary;
  }
  // The bits of other numbers travel in unsigned words.
  bool carrier = isa<VectorType>(op.getType()) &&
                 isa<IntegerType>(getElementTypeOrSelf(op.getType())) &&
                 !isa<IntegerType>(op.getBase().getType().getElementType());
  access.isUnsigned = carrier;
  addChanging(access, get(op.getBase()));
  if (op.getOffset())
    addChanging(access, get(op.getOffset()));
  if (!op.getCondition())
    return access;
  Expr condition = get(op.getCondition());
  Expr other = carrier ? getUnsigned(op.getOther()) : getSigned(op.getOther());
  if (other.isSplat)
    other = cast(getTypeName(op.getType(), carrier), other);
  // A choice is between values: of a vector or a bfloat in memory and one in registers, each may be
  // a class of its own.
  if (isa<VectorType>(op.getType()) || op.getType().isBF16())
    access.text = getTypeName(op.getType(), carrier) + "(" + access.text + ")";
  Expr result;
  result.text =
      inParens(condition, LogicalOr) + " ? " + access.text + " : " + inParens(other, Conditional);
  result.precedence = Conditional;
  result.isUnsigned = carrier;
  addChanging(result, condition);
  addChanging(result, access);
  addChanging(result, other);
  return result;
}

std::string KernelPrinter::getElement(Value array, Value index) {
  std::string name = get(array).text;
  if (cast<ArrayType>(array.getType()).getCount() == 1)
    return name;
  return name + "[" + get(index).text + "]";
}

//===----------------------------------------------------------------------===//
// All operations with a value
//===----------------------------------------------------------------------===//

static const char components[] = "xyzw";

Expr KernelPrinter::build(Operation *op) {
  Attribute attr;
  if (matchPattern(op, m_Constant(&attr)))
    return buildConstant(op, attr);
  return llvm::TypeSwitch<Operation *, Expr>(op)
      .Case<LaneOp, SimdgroupOp>([&](auto) {
        Expr expr{isa<LaneOp>(op) ? lane : simdgroup};
        expr.isShort = true;
        return expr;
      })
      .Case<ProgramIdOp>([&](ProgramIdOp id) {
        Expr expr{programId + "." + components[id.getAxis()]};
        expr.isUnsigned = true;
        return expr;
      })
      .Case<NumProgramsOp>([&](NumProgramsOp count) {
        Expr expr{numPrograms + "." + components[count.getAxis()]};
        expr.isUnsigned = true;
        return expr;
      })
      .Case<SplatOp>([&](SplatOp splat) {
        Expr expr = get(splat.getValue());
        expr.isSplat = true;
        return expr;
      })
      .Case<VectorOp>([&](VectorOp vector) {
        SmallVector<Expr> parts;
        bool isUnsigned =
            llvm::any_of(vector.getParts(), [&](Value part) { return get(part).isUnsigned; });
        for (Value part : vector.getParts()) {
          Expr expr = isUnsigned ? getUnsigned(part) : get(part);
          if (expr.isSplat)
            expr = cast(getTypeName(part.getType(), isUnsigned), expr);
          parts.push_back(expr);
        }
        Expr result = call(getTypeName(vector.getType(), isUnsigned), parts);
        result.isUnsigned = isUnsigned;
        return result;
      })
      .Case<SwizzleOp>([&](SwizzleOp swizzle) {
        Expr value = getWhole(swizzle.getValue());
        Expr result{inParens(value, Primary) + "."};
        for (int64_t position : swizzle.getPositions())
          result.text += components[position];
        result.isUnsigned = value.isUnsigned;
        addChanging(result, value);
        return result;
      })
      .Case<ElementOp>([&](ElementOp element) {
        Expr value = getWhole(element.getValue()), index = get(element.getIndex());
        Expr result{inParens(value, Primary) + "[" + index.text + "]"};
        result.isUnsigned = value.isUnsigned;
        addChanging(result, value);
        addChanging(result, index);
        return result;
      })
      .Case<AsTypeOp>([&](AsTypeOp asType) {
        Type to = asType.getType(), from = asType.getValue().getType();
        // Words of other numbers' bits are unsigned.
        bool isUnsigned = isa<IntegerType>(getElementTypeOrSelf(to)) &&
                          !isa<IntegerType>(getElementTypeOrSelf(from));
        Expr result =
            call("as_type<" + getTypeName(to, isUnsigned) + ">", {getWhole(asType.getValue())});
        result.isUnsigned = isUnsigned;
        return result;
      })
      .Case<GetOp>([&](GetOp read) {
        ArrayType array = read.getArray().getType();
        Expr result{getElement(read.getArray(), read.getIndex())};
        if (array.isMatrix()) {
          prelude.elements = true;
          result.text = "elements(" + result.text + ")";
        }
        if (Value element = read.getElement()) {
          Attribute position;
          if (matchPattern(element, m_Constant(&position)))
            result.text += std::string(".") + components[cast<IntegerAttr>(position).getInt()];
          else
            result.text += "[" + get(element).text + "]";
        }
        return result;
      })
      .Case<ReadOp>([&](ReadOp read) { return buildRead(read); })
      .Case<PtrAddOp>([&](PtrAddOp add) { return getAddress(add.getBase(), add.getOffset()); })
      .Case<PtrCastOp>([&](PtrCastOp castOp) {
        Expr base = get(castOp.getBase());
        std::string type = getPointerName(castOp.getType(), getQualifiers(castOp.getBase()));
        Expr result{"(" + type + ")" + inParens(base, Unary), Unary};
        addChanging(result, base);
        return result;
      })
      .Case<PtrToIntOp>([&](PtrToIntOp toInt) {
        Expr result = call("reinterpret_cast<ulong>", {get(toInt.getBase())});
        result.isUnsigned = true;
        return result;
      })
      .Case<IntToPtrOp>([&](IntToPtrOp toPointer) {
        return call("reinterpret_cast<" +
                        getPointerName(toPointer.getType(), getQualifiers(toPointer)) + ">",
                    {getUnsigned(toPointer.getAddress())});
      })
      .Case<MulhiOp>([&](MulhiOp mulhi) { return buildMinMax(op, "mulhi", mulhi.getIsUnsigned()); })
      .Case<PreciseDivOp, PreciseSqrtOp>([&](auto) { return buildMath(op); })
      .Case<SimdReduceOp, SimdShuffleOp, SimdShuffleXorOp>([&](auto) { return buildSimd(op); })
      .Case<AtomicRMWOp, AtomicCASOp>([&](auto) { return buildAtomic(op); })
      .Default([&](Operation *) -> Expr {
        if (isa<arith::ArithDialect>(op->getDialect()))
          return buildArith(op);
        if (isa<math::MathDialect>(op->getDialect()))
          return buildMath(op);
        return fail(op, "has no form in Metal");
      });
}

Expr KernelPrinter::buildArith(Operation *op) {
  return llvm::TypeSwitch<Operation *, Expr>(op)
      .Case<arith::AddIOp>([&](auto) { return buildWrapping(op, "+", Sum); })
      .Case<arith::SubIOp>([&](auto) { return buildWrapping(op, "-", Sum); })
      .Case<arith::MulIOp>([&](auto) { return buildWrapping(op, "*", Product); })
      .Case<arith::DivSIOp>([&](auto) { return buildDivision(op, "/", false); })
      .Case<arith::DivUIOp>([&](auto) { return buildDivision(op, "/", true); })
      .Case<arith::RemSIOp>([&](auto) { return buildDivision(op, "%", false); })
      .Case<arith::RemUIOp>([&](auto) { return buildDivision(op, "%", true); })
      .Case<arith::AndIOp>([&](auto) { return buildBits(op, "&", "&&", BitAnd, LogicalAnd); })
      .Case<arith::OrIOp>([&](auto) { return buildBits(op, "|", "||", BitOr, LogicalOr); })
      .Case<arith::XOrIOp>([&](auto) { return buildBits(op, "^", "!=", BitXor, Equality); })
      .Case<arith::ShLIOp>([&](auto) { return buildShift(op, "<<", true); })
      .Case<arith::ShRUIOp>([&](auto) { return buildShift(op, ">>", true); })
      .Case<arith::ShRSIOp>([&](auto) { return buildShift(op, ">>", false); })
      .Case<arith::MinSIOp>([&](auto) { return buildMinMax(op, "min", false); })
      .Case<arith::MaxSIOp>([&](auto) { return buildMinMax(op, "max", false); })
      .Case<arith::MinUIOp>([&](auto) { return buildMinMax(op, "min", true); })
      .Case<arith::MaxUIOp>([&](auto) { return buildMinMax(op, "max", true); })
      .Case<arith::CmpIOp>([&](auto) { return buildCompare(op); })
      .Case<arith::CmpFOp>([&](auto) { return buildFloatCompare(op); })
      .Case<arith::SelectOp>([&](auto) { return buildSelect(op); })
      .Case<arith::AddFOp>([&](auto) { return buildFloat(op, "+", Sum); })
      .Case<arith::SubFOp>([&](auto) { return buildFloat(op, "-", Sum); })
      .Case<arith::MulFOp>([&](auto) { return buildFloat(op, "*", Product); })
      .Case<arith::DivFOp>([&](auto) { return buildFloat(op, "/", Product); })
      .Case<arith::NegFOp, arith::RemFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
            arith::MinNumFOp>([&](auto) { return buildMath(op); })
      .Case<arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp,
            arith::FPToSIOp, arith::FPToUIOp, arith::ExtFOp, arith::TruncFOp, arith::BitcastOp>(
          [&](auto) { return buildConversion(op); })
      .Default([&](Operation *) { return fail(op, "has no form in Metal"); });
}
