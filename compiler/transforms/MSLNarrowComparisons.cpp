// Compares in 32 bits what was compared in 64 so that a sum does not overflow: see Passes.td.

#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLNARROWCOMPARISONS
#include "transforms/Passes.h.inc"

namespace {

/// Whether an operation, or a condition that is made of its result, is in a loop.
bool isNeededInLoop(Operation *op) {
  if (op->getParentOfType<LoopLikeOpInterface>())
    return true;
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    return user->getParentOfType<LoopLikeOpInterface>() ||
           (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(user) && isNeededInLoop(user));
  });
}

/// The number of 32 bits that a value of 64 is.
Value getNarrow(Value wide) {
  auto extension = wide.getDefiningOp<arith::ExtSIOp>();
  return extension && extension.getIn().getType().isInteger(32) ? extension.getIn() : Value();
}

/// The last numbers that may be compared with, by the extended bound and the addend.
using Bounds = DenseMap<std::pair<Value, int64_t>, Value>;

/// x + c < y, as x < max(y, least + c) - c: where y is less than the least sum, no sum is below it.
bool narrow(arith::CmpIOp op, Bounds &bounds) {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  Value sum = op.getLhs(), bound = op.getRhs();
  if (predicate == P::sgt || predicate == P::sle) {
    std::swap(sum, bound);
    predicate = predicate == P::sgt ? P::slt : P::sge;
  }
  auto add = sum.getDefiningOp<arith::AddIOp>();
  APInt addend;
  if ((predicate != P::slt && predicate != P::sge) || !op.getLhs().getType().isInteger(64) ||
      !add || !matchPattern(add.getRhs(), m_ConstantInt(&addend)) || addend.isNegative() ||
      addend.getSignificantBits() > 32)
    return false;
  Value x = getNarrow(add.getLhs()), y = getNarrow(bound);
  if (!x || !y || !isNeededInLoop(op))
    return false;
  OpBuilder builder(op);
  int64_t number = addend.getSExtValue();
  Value &last = bounds[{bound, number}];
  if (!last) {
    // It is computed where its number is, which may be before the loop.
    builder.setInsertionPointAfter(bound.getDefiningOp());
    Location unnamed = builder.getUnknownLoc();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(builder, unnamed, builder.getI32IntegerAttr(int32_t(value)));
    };
    Value most = arith::MaxSIOp::create(builder, unnamed, y, constant(INT32_MIN + number));
    last = arith::SubIOp::create(builder, bound.getLoc(), most, constant(number),
                                 arith::IntegerOverflowFlags::nsw);
  }
  builder.setInsertionPoint(op);
  Value result = arith::CmpIOp::create(builder, op.getLoc(), predicate, x, last);
  op.getResult().replaceAllUsesWith(result);
  return true;
}

struct MSLNarrowComparisonsPass : impl::MSLNarrowComparisonsBase<MSLNarrowComparisonsPass> {
  void runOnOperation() override {
    SmallVector<arith::CmpIOp> comparisons;
    getOperation().walk([&](arith::CmpIOp op) { comparisons.push_back(op); });
    Bounds bounds;
    SmallVector<Operation *> unread;
    for (arith::CmpIOp op : comparisons)
      if (narrow(op, bounds))
        unread.push_back(op);
    if (unread.empty())
      return markAllAnalysesPreserved();
    // Not before: the bounds are known by value.
    while (!unread.empty()) {
      Operation *op = unread.pop_back_val();
      for (Value operand : op->getOperands())
        if (Operation *definition = operand.getDefiningOp();
            isa_and_present<arith::AddIOp, arith::ExtSIOp>(definition) && operand.hasOneUse())
          unread.push_back(definition);
      op->erase();
    }
  }
};

} // namespace
} // namespace triton_metal
