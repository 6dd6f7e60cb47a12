// Marks where signed arithmetic is safe. In C++ its overflow is undefined.

#include "dialect/msl/MSL.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "transforms/ConditionRanges.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLINFEROVERFLOW
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

/// Whether the text of the operation depends on the sign of its operands, although the result does
/// not if no operand is negative.
bool mayIgnoreSign(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getPredicate() >= arith::CmpIPredicate::ult;
  return isa<arith::DivUIOp, arith::ShRUIOp, arith::ShRSIOp, arith::MinUIOp, arith::MaxUIOp,
             arith::ExtUIOp, arith::UIToFPOp>(op);
}

/// The offset of an access or of pointer arithmetic; null if there is none.
Value getOffset(Operation *op) {
  if (auto add = dyn_cast<PtrAddOp>(op))
    return add.getOffset();
  if (auto read = dyn_cast<ReadOp>(op))
    return read.getOffset();
  if (auto write = dyn_cast<WriteOp>(op))
    return write.getOffset();
  if (auto atomic = dyn_cast<AtomicOpInterface>(op))
    return atomic.getElementOffsets();
  return {};
}

class OverflowInferrer {
public:
  explicit OverflowInferrer(MLIRContext *context)
      : nonNegative(StringAttr::get(context, kNonNegativeAttr)), unit(UnitAttr::get(context)) {}

  void infer(Operation *op) {
    ValueRanges &ranges = conditions.at(op);
    if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp>(op)) {
      if (!getElementTypeOrSelf(op->getResult(0)).isInteger(1))
        markNoOverflow(ranges, op, cast<arith::ArithIntegerOverflowFlagsInterface>(op));
    } else if (isa<arith::RemUIOp>(op)) {
      // What counts is the remainder, which is no greater than the dividend.
      if (isNonNegative(ranges, op->getOperand(0)) || isNonNegative(ranges, op->getResult(0)))
        op->setAttr(nonNegative, unit);
    } else if (mayIgnoreSign(op)) {
      if (llvm::all_of(op->getOperands(),
                       [&](Value value) { return isNonNegative(ranges, value); }))
        op->setAttr(nonNegative, unit);
    } else if (Value offset = getOffset(op)) {
      if (isNonNegative(ranges, offset))
        op->setAttr(nonNegative, unit);
    }
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
      roundOnce(ranges, op);
  }

  bool addsOperations = false;

private:
  static bool isNonNegative(ValueRanges &ranges, Value value) {
    return !getElementTypeOrSelf(value).isInteger(1) && ranges.isNonNegative(value);
  }

  /// A shift to the left that is a product of signed numbers gets both flags, because shifting bits
  /// into or out of the sign is undefined in C++ too.
  static void markNoOverflow(ValueRanges &ranges, Operation *op,
                             arith::ArithIntegerOverflowFlagsInterface flags) {
    bool isShift = isa<arith::ShLIOp>(op);
    if (isShift && !ranges.isNonNegative(op->getOperand(0)))
      return;
    if ((flags.hasNoSignedWrap() && !isShift) || !ranges.cannotOverflow(op))
      return;
    auto all = arith::IntegerOverflowFlags::nsw;
    if (isShift)
      all = all | arith::IntegerOverflowFlags::nuw;
    op->setAttr(flags.getIntegerOverflowAttrName(),
                arith::IntegerOverflowFlagsAttr::get(op->getContext(),
                                                     flags.getOverflowAttr().getValue() | all));
  }

  /// The conversion to bfloat goes through float. An integer that a float holds exactly is
  /// converted to float and then rounded.
  void roundOnce(ValueRanges &ranges, Operation *op) {
    Value number = op->getOperand(0), result = op->getResult(0);
    if (!getElementTypeOrSelf(result).isBF16())
      return;
    ConstantIntRanges range = ranges.get(number);
    APInt most(64, 1 << 24);
    bool isExact = range.smin().getBitWidth() < 32 ||
                   (range.smax().sext(64).sle(most) &&
                    range.smin().sext(64).sge(isa<arith::UIToFPOp>(op) ? most - most : -most));
    if (!isExact)
      return;
    addsOperations = true;
    OpBuilder builder(op);
    Operation *exact = builder.clone(*op);
    exact->getResult(0).setType(withElement(result.getType(), builder.getF32Type()));
    result.replaceAllUsesWith(
        arith::TruncFOp::create(builder, op->getLoc(), result.getType(), exact->getResult(0)));
    op->erase();
  }

  ConditionRanges conditions;
  StringAttr nonNegative;
  UnitAttr unit;
};

struct MSLInferOverflowPass : impl::MSLInferOverflowBase<MSLInferOverflowPass> {
  using Base::Base;

  void runOnOperation() override {
    bool addsOperations = false;
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      OverflowInferrer inferrer(&getContext());
      kernel.walk([&](Operation *op) { inferrer.infer(op); });
      addsOperations |= inferrer.addsOperations;
    }
    if (!addsOperations)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
