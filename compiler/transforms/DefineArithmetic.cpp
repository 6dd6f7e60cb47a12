// Defines arithmetic that MLIR and C++ leave undefined, before anything folds it: shift amounts
// count modulo the width, a division by zero divides by 1, and a float becomes the nearest integer
// of the type.

#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "transforms/Constants.h"
#include "transforms/IntegerRanges.h"
#include "transforms/Passes.h"
#include "transforms/TripCount.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_DEFINEARITHMETIC
#include "transforms/Passes.h.inc"

namespace {

bool isBool(Value value) { return getElementTypeOrSelf(value.getType()).isInteger(1); }

Attribute getConstant(Value value) {
  Attribute attr;
  return matchPattern(value, m_Constant(&attr)) ? attr : Attribute();
}

/// Applies `change` to every number of a constant. Null if the attribute is not a constant of
/// integers, or if nothing changes.
TypedAttr mapIntegers(Attribute attr, function_ref<APInt(const APInt &)> change) {
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attr)) {
    APInt value = change(integer.getValue());
    return value == integer.getValue() ? TypedAttr() : IntegerAttr::get(integer.getType(), value);
  }
  auto dense = dyn_cast_or_null<DenseIntElementsAttr>(attr);
  if (!dense)
    return {};
  if (dense.isSplat()) {
    APInt old = dense.getSplatValue<APInt>(), value = change(old);
    return value == old ? TypedAttr() : DenseElementsAttr::get(dense.getType(), value);
  }
  SmallVector<APInt> values;
  bool changed = false;
  for (const APInt &old : dense.getValues<APInt>()) {
    values.push_back(change(old));
    changed |= values.back() != old;
  }
  return changed ? DenseElementsAttr::get(dense.getType(), values) : TypedAttr();
}

/// The same for the integers that floats are converted to.
TypedAttr mapFloats(Attribute attr, Type type, function_ref<APInt(const APFloat &)> convert) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attr))
    return IntegerAttr::get(type, convert(number.getValue()));
  auto dense = dyn_cast_or_null<DenseFPElementsAttr>(attr);
  if (!dense)
    return {};
  auto shaped = cast<ShapedType>(type);
  if (dense.isSplat())
    return DenseElementsAttr::get(shaped, convert(dense.getSplatValue<APFloat>()));
  SmallVector<APInt> values;
  for (const APFloat &value : dense.getValues<APFloat>())
    values.push_back(convert(value));
  return DenseElementsAttr::get(shaped, values);
}

class Definer {
public:
  Definer(MLIRContext *context, DataFlowSolver &solver, bool hasRanges)
      : rewriter(context), solver(solver), changes(solver), hasRanges(hasRanges) {
    rewriter.setListener(&changes);
  }

  bool hasChanged() const { return changes.any; }

  void define(Operation *op) {
    rewriter.setInsertionPoint(op);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return countSteps(loop);
    if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op))
      return isBool(op->getResult(0)) ? rewriter.replaceOp(op, op->getOperand(0)) : shift(op);
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
      return division(op);
    if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
      return conversion(op);
    // As an i1, true is the greater unsigned number and the lesser signed one.
    if (!isa<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp>(op) ||
        !isBool(op->getResult(0)))
      return;
    Value a = op->getOperand(0), b = op->getOperand(1);
    if (isa<arith::MinUIOp, arith::MaxSIOp>(op))
      rewriter.replaceOpWithNewOp<arith::AndIOp>(op, a, b);
    else
      rewriter.replaceOpWithNewOp<arith::OrIOp>(op, a, b);
  }

private:
  Value constant(Location loc, TypedAttr attr) {
    return arith::ConstantOp::create(rewriter, loc, attr);
  }

  void setOperand(Operation *op, unsigned index, Value value) {
    rewriter.modifyOpInPlace(op, [&] { op->setOperand(index, value); });
  }

  void shift(Operation *op) {
    Value amount = op->getOperand(1);
    unsigned width = getElementTypeOrSelf(amount.getType()).getIntOrFloatBitWidth();
    APInt mask(width, width - 1);
    if (Attribute attr = getConstant(amount)) {
      if (TypedAttr masked = mapIntegers(attr, [&](const APInt &value) { return value & mask; }))
        setOperand(op, 1, constant(op->getLoc(), masked));
      return;
    }
    if (!hasRanges)
      return;
    std::optional<ConstantIntRanges> range = getRange(solver, amount);
    if (range && range->umax().ult(width))
      return;
    Value bound = constant(op->getLoc(), makeSplat(amount.getType(), mask));
    setOperand(op, 1, arith::AndIOp::create(rewriter, op->getLoc(), amount, bound));
  }

  void division(Operation *op) {
    Value dividend = op->getOperand(0), divisor = op->getOperand(1);
    Type type = dividend.getType();
    bool isSigned = isa<arith::DivSIOp, arith::RemSIOp>(op);
    bool isRemainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
    unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    auto zero = [&] { return constant(op->getLoc(), makeSplat(type, APInt::getZero(width))); };
    // The only divisor of an i1 is 1. True also is the least signed number, -1.
    if (isBool(dividend))
      return rewriter.replaceOp(op, isRemainder ? zero() : dividend);
    Attribute attr = getConstant(divisor);
    if (!attr)
      return;
    TypedAttr defined = mapIntegers(
        attr, [&](const APInt &value) { return value.isZero() ? APInt(width, 1) : value; });
    if (defined)
      setOperand(op, 1, divisor = constant(op->getLoc(), defined));
    // The least number divided by -1 wraps around.
    APInt value;
    if (!isSigned || !matchPattern(divisor, m_ConstantInt(&value)) || !value.isAllOnes())
      return;
    if (isRemainder)
      rewriter.replaceOp(op, zero());
    else
      rewriter.replaceOpWithNewOp<arith::SubIOp>(op, zero(), dividend);
  }

  void conversion(Operation *op) {
    Type type = op->getResult(0).getType();
    unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    bool isUnsigned = isa<arith::FPToUIOp>(op);
    TypedAttr value = mapFloats(getConstant(op->getOperand(0)), type, [&](const APFloat &number) {
      // The conversion saturates, and gives 0 for a NaN.
      llvm::APSInt integer(width, isUnsigned);
      bool isExact;
      number.convertToInteger(integer, APFloat::rmTowardZero, &isExact);
      return number.isNaN() ? APInt::getZero(width) : APInt(integer);
    });
    if (value)
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, value);
  }

  /// The value of a number that can have only one value.
  std::optional<APInt> getOnlyValue(Value value) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return constant;
    std::optional<ConstantIntRanges> range = hasRanges ? getRange(solver, value) : std::nullopt;
    return range ? range->getConstantValue() : std::nullopt;
  }

  /// MLIR takes a loop for empty if its bounds are further apart than the largest signed number,
  /// and leaves a step of 0 or less undefined. Such a loop counts its iterations instead.
  void countSteps(scf::ForOp loop) {
    if (hasRanges && mayStepBack(loop))
      return replaceCounter(loop,
                            createTripCount(rewriter, loop.getLoc(), loop.getLowerBound(),
                                            loop.getUpperBound(), loop.getStep(),
                                            loop.getUnsignedCmp()),
                            loop.getLowerBound(), loop.getStep());
    std::optional<APInt> lower = getOnlyValue(loop.getLowerBound()),
                         upper = getOnlyValue(loop.getUpperBound()),
                         step = getOnlyValue(loop.getStep());
    bool isFar = false;
    if (loop.getUnsignedCmp() || !lower || !upper || !step || !step->isStrictlyPositive() ||
        upper->sle(*lower))
      return;
    APInt distance = upper->ssub_ov(*lower, isFar);
    if (!isFar)
      return;
    Type type = loop.getInductionVar().getType();
    auto make = [&](const APInt &value) {
      return constant(loop.getLoc(), IntegerAttr::get(type, value));
    };
    APInt one(step->getBitWidth(), 1);
    APInt count = (distance - one).udiv(*step) + one;
    replaceCounter(loop, make(count), make(*lower), make(*step));
  }

  /// Whether the step may be 0 or, in a loop over signed numbers, negative.
  bool mayStepBack(scf::ForOp loop) {
    APInt step;
    if (matchPattern(loop.getStep(), m_ConstantInt(&step)))
      return loop.getUnsignedCmp() ? step.isZero() : !step.isStrictlyPositive();
    std::optional<ConstantIntRanges> range = getRange(solver, loop.getStep());
    if (!range)
      return true;
    return loop.getUnsignedCmp() ? range->umin().isZero() : !range->smin().isStrictlyPositive();
  }

  /// Has the loop count to `count`, and computes what it counted before.
  void replaceCounter(scf::ForOp loop, Value count, Value first, Value stride) {
    Location loc = loop.getLoc();
    Value counter = loop.getInductionVar();
    unsigned width = counter.getType().getIntOrFloatBitWidth();
    Value zero = constant(loc, IntegerAttr::get(counter.getType(), APInt::getZero(width))),
          one = constant(loc, IntegerAttr::get(counter.getType(), APInt(width, 1)));
    rewriter.setInsertionPointToStart(loop.getBody());
    Value offset = arith::MulIOp::create(rewriter, counter.getLoc(), counter, stride);
    Value number = arith::AddIOp::create(rewriter, counter.getLoc(), first, offset);
    rewriter.replaceAllUsesExcept(counter, number, offset.getDefiningOp());
    rewriter.modifyOpInPlace(loop, [&] {
      loop.setLowerBound(zero);
      loop.setUpperBound(count);
      loop.setStep(one);
      loop.setUnsignedCmp(true);
    });
  }

  IRRewriter rewriter;
  DataFlowSolver &solver;
  /// Also notes whether anything was changed.
  struct Changes : ForgetErased {
    using ForgetErased::ForgetErased;
    void notifyOperationInserted(Operation *, OpBuilder::InsertPoint) override { any = true; }
    void notifyOperationModified(Operation *) override { any = true; }
    bool any = false;
  } changes;
  bool hasRanges;
};

struct DefineArithmeticPass : impl::DefineArithmeticBase<DefineArithmeticPass> {
  using DefineArithmeticBase::DefineArithmeticBase;

  void runOnOperation() override {
    bool changes = false;
    for (Operation &function : getOperation().getOps()) {
      FailureOr<bool> defined = define(&function);
      if (failed(defined))
        return signalPassFailure();
      changes |= *defined;
    }
    if (!changes)
      markAllAnalysesPreserved();
  }

  /// Returns whether anything had to be changed.
  FailureOr<bool> define(Operation *function) {
    SmallVector<Operation *> operations;
    function->walk([&](Operation *op) {
      if (isa<arith::ArithDialect>(op->getDialect()) || isa<scf::ForOp>(op))
        operations.push_back(op);
    });
    bool hasRanges = !constantsOnly && llvm::any_of(operations, [](Operation *op) {
      // The bounds can only be that far apart if the lower one is negative.
      APInt lower, step;
      auto loop = dyn_cast<scf::ForOp>(op);
      return isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op) ||
             (loop &&
              !(matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) &&
                lower.isNonNegative() && matchPattern(loop.getStep(), m_ConstantInt(&step)) &&
                step.isStrictlyPositive()));
    });
    DataFlowSolver solver;
    if (hasRanges && failed(findRanges(solver, function)))
      return failure();
    Definer definer(&getContext(), solver, hasRanges);
    for (Operation *op : operations)
      definer.define(op);
    return definer.hasChanged();
  }
};

} // namespace
} // namespace triton_metal
