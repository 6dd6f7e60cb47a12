// Writes integer divisions in forms that Metal defines and that Apple's compiler is known to
// compile correctly.

#include "dialect/msl/MSL.h"
#include "dialect/ttm/LocationNames.h"
#include "transforms/Constants.h"
#include "transforms/IntegerRanges.h"
#include "transforms/MSLBefore.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLLEGALIZEDIVISIONS
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

bool isSigned(Operation *op) { return isa<arith::DivSIOp, arith::RemSIOp>(op); }
bool isRemainder(Operation *op) { return isa<arith::RemSIOp, arith::RemUIOp>(op); }

Value createDivision(OpBuilder &builder, Location loc, Value a, Value b, bool isSigned,
                     bool isRemainder) {
  if (isRemainder)
    return isSigned ? Value(arith::RemSIOp::create(builder, loc, a, b))
                    : Value(arith::RemUIOp::create(builder, loc, a, b));
  return isSigned ? Value(arith::DivSIOp::create(builder, loc, a, b))
                  : Value(arith::DivUIOp::create(builder, loc, a, b));
}

/// What an unsigned number is divided by: the constant of a division, or the power of two of a
/// shift to the right.
std::optional<APInt> getConstantDivisor(Operation *op) {
  APInt constant;
  if (isa_and_nonnull<arith::DivUIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&constant)) && !constant.isZero())
    return constant;
  if (isa_and_nonnull<arith::ShRUIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
      constant.ult(constant.getBitWidth()))
    return APInt::getOneBitSet(constant.getBitWidth(), unsigned(constant.getZExtValue()));
  return std::nullopt;
}

class DivisionLegalizer {
public:
  /// Returns whether the operation was replaced.
  bool legalize(Operation *op) {
    OpBuilder builder(op);
    Value result = create(builder, op);
    if (!result)
      return false;
    op->getResult(0).replaceAllUsesWith(result);
    return true;
  }

private:
  Value create(OpBuilder &builder, Operation *op) {
    Value a = op->getOperand(0), b = op->getOperand(1);
    if (getWidth(a) == 1) // Truth values are divided by logic operations.
      return {};
    isComparedWithZero = isRemainder(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
                           auto compare = dyn_cast<arith::CmpIOp>(user);
                           return compare && compare.getLhs() == op->getResult(0) &&
                                  matchPattern(compare.getRhs(), m_Zero()) &&
                                  (compare.getPredicate() == arith::CmpIPredicate::eq ||
                                   compare.getPredicate() == arith::CmpIPredicate::ne);
                         });
    return rewrite(builder, op->getLoc(), a, b, isSigned(op), isRemainder(op));
  }

  static unsigned getWidth(Value value) {
    return getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  }

  Value divide(OpBuilder &builder, Location loc, Value a, Value b, bool isSigned,
               bool isRemainder) {
    Value result = rewrite(builder, loc, a, b, isSigned, isRemainder);
    return result ? result : createDivision(builder, loc, a, b, isSigned, isRemainder);
  }

  /// Null if the operation is to stay as it is.
  Value rewrite(OpBuilder &builder, Location loc, Value a, Value b, bool isSigned,
                bool isRemainder) {
    if (isSigned && ranges.isNonNegative(a) && ranges.isNonNegative(b))
      return divide(builder, loc, a, b, /*isSigned=*/false, isRemainder);
    if (APInt divisor; isRemainder && !isSigned && matchPattern(b, m_ConstantInt(&divisor)) &&
                       divisor.isPowerOf2())
      return takeLowBits(builder, loc, a, divisor);
    if (Value narrow = divideNarrow(builder, loc, a, b, isSigned, isRemainder))
      return narrow;
    if (!isRemainder) {
      // One division gives both the remainder and the quotient.
      Value quotient = isSigned ? quotients.lookup({a, b}) : Value();
      return quotient && isComputedBefore(quotient, &*builder.getInsertionPoint()) ? quotient
                                                                                   : Value();
    }
    return isSigned ? takeSignedRemainder(builder, loc, a, b)
                    : takeRemainderFirst(builder, loc, a, b);
  }

  /// The remainder of a number that is not negative and a power of two.
  static Value takeLowBits(OpBuilder &builder, Location loc, Value a, const APInt &divisor) {
    return arith::AndIOp::create(builder, loc, a,
                                 makeConstantLike(builder, loc, a.getType(), divisor - 1));
  }

  /// A division of 64-bit numbers that fit into 32 bits takes 32 bits.
  Value divideNarrow(OpBuilder &builder, Location loc, Value a, Value b, bool isSigned,
                     bool isRemainder) {
    if (getWidth(a) != 64)
      return {};
    ConstantIntRanges x = ranges.get(a), y = ranges.get(b);
    APInt most = APInt::getMaxValue(32).zext(64), minusOne = APInt::getAllOnes(64);
    auto isInt = [](const ConstantIntRanges &range) {
      return range.smin().isSignedIntN(32) && range.smax().isSignedIntN(32);
    };
    if (isSigned ? !isInt(x) || !isInt(y) : x.umax().ugt(most) || y.umax().ugt(most))
      return {};
    // The least number divided by -1 leaves 32 bits.
    bool leaves = isSigned && x.smin().sle(APInt::getSignedMinValue(32).sext(64)) &&
                  y.smin().sle(minusOne) && y.smax().sge(minusOne);
    Type wide = a.getType(), narrow = withElement(wide, builder.getI32Type());
    a = truncate(builder, loc, narrow, a);
    b = truncate(builder, loc, narrow, b);
    if (leaves)
      return divideMagnitudes(builder, loc, a, b, wide, isRemainder);
    Value result = divide(builder, loc, a, b, isSigned, isRemainder);
    return isSigned ? Value(arith::ExtSIOp::create(builder, loc, wide, result))
                    : Value(arith::ExtUIOp::create(builder, loc, wide, result));
  }

  /// The quotient or remainder of any two signed numbers of 32 bits, in 64 bits. Their magnitudes
  /// are unsigned numbers of 32 bits, and so is the quotient of these: no division overflows. The
  /// remainder fits into 32 bits, so it is exact modulo 2^32.
  Value divideMagnitudes(OpBuilder &builder, Location loc, Value a, Value b, Type wide,
                         bool isRemainder) {
    // Only the result has the name of the source.
    Location part = unnamed(loc);
    auto constant = [&](Type type, int64_t number) {
      return makeConstantLike(builder, part, type,
                              APInt(getElementTypeOrSelf(type).getIntOrFloatBitWidth(), number));
    };
    auto negate = [&](Location where, Value condition, Value value) -> Value {
      Value negative = arith::SubIOp::create(builder, where, constant(value.getType(), 0), value);
      return arith::SelectOp::create(builder, where, condition, negative, value);
    };
    auto isNegative = [&](Value value) -> Value {
      return arith::CmpIOp::create(builder, part, arith::CmpIPredicate::slt, value,
                                   constant(value.getType(), 0));
    };
    // A remainder of a division by zero is 0.
    if (isRemainder)
      b = arith::MaxUIOp::create(builder, part, b, constant(b.getType(), 1));
    Value quotient = createDivision(builder, part, negate(part, isNegative(a), a),
                                    negate(part, isNegative(b), b), /*isSigned=*/false,
                                    /*isRemainder=*/false);
    Value differ = isNegative(arith::XOrIOp::create(builder, part, a, b));
    if (!isRemainder)
      return negate(loc, differ, arith::ExtUIOp::create(builder, part, wide, quotient));
    Value product = arith::MulIOp::create(builder, part, negate(part, differ, quotient), b);
    Value rest = arith::SubIOp::create(builder, part, a, product);
    return arith::ExtSIOp::create(builder, loc, wide, rest);
  }

  /// The low bits of a number, without the extension that made it.
  static Value truncate(OpBuilder &builder, Location loc, Type type, Value value) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<arith::ExtUIOp, arith::ExtSIOp>(op) && op->getOperand(0).getType() == type)
      return op->getOperand(0);
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return makeConstantLike(builder, loc, type, constant.trunc(32));
    return arith::TruncIOp::create(builder, loc, type, value);
  }

  /// x / c % d is x % (c * d) / c.
  Value takeRemainderFirst(OpBuilder &builder, Location loc, Value a, Value b) {
    APInt divisor;
    if (!matchPattern(b, m_ConstantInt(&divisor)) || divisor.isZero() || divisor.isPowerOf2())
      return {};
    Operation *quotient = a.getDefiningOp();
    std::optional<APInt> first = getConstantDivisor(quotient);
    if (!first || first->isOne())
      return {};
    bool overflows = false;
    APInt product = first->umul_ov(divisor, overflows);
    // The quotient of the greatest number is below the divisor.
    if (overflows)
      return a;
    Value x = quotient->getOperand(0);
    Value both = makeConstantLike(builder, loc, x.getType(), product);
    Value rest = takeRemainderFirst(builder, loc, x, both);
    if (!rest)
      rest = createDivision(builder, loc, x, both, /*isSigned=*/false, /*isRemainder=*/true);
    return createDivision(builder, loc, rest, makeConstantLike(builder, loc, x.getType(), *first),
                          /*isSigned=*/false, /*isRemainder=*/false);
  }

  /// The division of two numbers that is computed before an operation; null if there is none.
  static arith::DivSIOp findDivision(Value a, Value b, Operation *op) {
    for (Operation *user : a.getUsers())
      // One that has been replaced has no uses.
      if (auto division = dyn_cast<arith::DivSIOp>(user);
          division && division.getLhs() == a && division.getRhs() == b && !division->use_empty() &&
          isComputedBefore(division, op))
        return division;
    return {};
  }

  /// x - x / y * y, where a y of 0 counts as 1. The division of both numbers that there is gives
  /// the quotient: by 0, that is any number.
  Value takeSignedRemainder(OpBuilder &builder, Location loc, Value a, Value b) {
    APInt divisor;
    bool isConstant = matchPattern(b, m_ConstantInt(&divisor));
    // Whether a power of two divides a number does not depend on its sign.
    if (isComparedWithZero && isConstant && divisor.abs().isPowerOf2())
      return takeLowBits(builder, loc, a, divisor.abs());
    // Only the quotient of the least number and -1 overflows.
    bool fits = isConstant ? !divisor.isAllOnes()
                           : !ranges.get(a).smin().isMinSignedValue() ||
                                 ranges.get(b).smin().sgt(APInt::getAllOnes(getWidth(b)));
    auto flags = fits ? arith::IntegerOverflowFlags::nsw : arith::IntegerOverflowFlags::none;
    // Only the result has the name of the source.
    Location part = unnamed(loc);
    // A remainder of a division by zero is 0, as it is for unsigned numbers on the host device.
    ConstantIntRanges range = ranges.get(b);
    Value divided = b;
    arith::DivSIOp before = findDivision(a, b, &*builder.getInsertionPoint());
    OpBuilder::InsertPoint here = builder.saveInsertionPoint();
    if (before)
      builder.setInsertionPoint(before);
    if (isConstant && divisor.isZero())
      return makeConstantLike(builder, part, b.getType(), APInt::getZero(getWidth(b)));
    // As an unsigned number, only 0 is below 1.
    if (!isConstant && !range.smin().isStrictlyPositive() && !range.smax().isNegative())
      b = arith::MaxUIOp::create(
          builder, part, b, makeConstantLike(builder, part, b.getType(), APInt(getWidth(b), 1)));
    builder.restoreInsertionPoint(here);
    Value quotient;
    if (before) {
      before.getRhsMutable().assign(b);
      quotient = before;
    } else {
      quotient = createDivision(builder, part, a, b, /*isSigned=*/true, /*isRemainder=*/false);
      quotients[{a, divided}] = quotient;
    }
    Value product = arith::MulIOp::create(builder, part, quotient, b, flags);
    return arith::SubIOp::create(builder, loc, a, product, flags);
  }

  ValueRanges ranges;
  bool isComparedWithZero = false;
  /// The quotients that remainders have, by the numbers that are divided.
  DenseMap<std::pair<Value, Value>, Value> quotients;
};

struct MSLLegalizeDivisionsPass : impl::MSLLegalizeDivisionsBase<MSLLegalizeDivisionsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> divisions;
    getOperation().walk([&](Operation *op) {
      if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
        divisions.push_back(op);
    });
    DivisionLegalizer legalizer;
    SmallVector<Operation *> replaced;
    for (Operation *op : divisions)
      if (legalizer.legalize(op))
        replaced.push_back(op);
    // Not before: the ranges are known by value, and a new value may be where an erased one was.
    for (Operation *op : replaced)
      op->erase();
    if (replaced.empty())
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
