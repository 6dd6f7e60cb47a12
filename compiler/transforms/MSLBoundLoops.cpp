// Keeps loop counters from passing the largest number of their type.

#include "dialect/msl/MSL.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "transforms/Erase.h"
#include "transforms/IntegerRanges.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLBOUNDLOOPS
#include "transforms/Passes.h.inc"

namespace {

/// What is known of the bounds of a loop.
struct Bounds {
  ConstantIntRanges lower, upper, step;
  bool isUnsigned;

  unsigned getWidth() const { return lower.smin().getBitWidth(); }
  APInt getLargest() const {
    return isUnsigned ? APInt::getMaxValue(getWidth()) : APInt::getSignedMaxValue(getWidth());
  }

  /// Whether the counter plus the step fits into the type whenever the counter is below the upper
  /// bound.
  bool cannotWrap() const {
    APInt most = isUnsigned ? step.umax() : step.smax();
    if (isUnsigned)
      return upper.umax().isZero() || most.ule(getLargest() - (upper.umax() - 1));
    return upper.smax().slt(1) || most.sle(getLargest() - (upper.smax() - 1));
  }
  /// Whether the counter runs from 0 or above. It may then be unsigned, and any step fits, because
  /// no signed bound exceeds half of the unsigned range.
  bool countsFromZeroUp() const { return !isUnsigned && lower.smin().isNonNegative(); }
};

Value constant(OpBuilder &builder, Location loc, Type type, const APInt &value) {
  return arith::ConstantOp::create(builder, loc, IntegerAttr::get(type, value));
}

void countWithoutSign(scf::ForOp loop, const Bounds &bounds) {
  OpBuilder builder(loop);
  Value upper = loop.getUpperBound();
  if (bounds.upper.smin().isNegative()) {
    Value zero =
        constant(builder, loop.getLoc(), upper.getType(), APInt::getZero(bounds.getWidth()));
    upper = arith::MaxSIOp::create(builder, loop.getLoc(), upper, zero);
  }
  loop.getUpperBoundMutable().assign(upper);
  loop.setUnsignedCmp(true);
}

/// Replaces the loop by one whose counter stops at the largest number. No upper bound is above it.
LogicalResult stopAtLargest(scf::ForOp loop, const Bounds &bounds) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Type type = loop.getInductionVar().getType();
  Value most = arith::SubIOp::create(
      builder, loc, constant(builder, loc, type, bounds.getLargest()), loop.getStep());
  SmallVector<Value> inits{loop.getLowerBound()};
  llvm::append_range(inits, loop.getInitArgs());
  SmallVector<Type> types = llvm::map_to_vector(inits, [](Value init) { return init.getType(); });
  SmallVector<Location> locations = llvm::map_to_vector(
      loop.getBody()->getArguments(), [](BlockArgument argument) { return argument.getLoc(); });
  auto whileOp = scf::WhileOp::create(builder, loc, types, inits);
  for (auto [result, old] : llvm::zip(whileOp.getResults().drop_front(), loop.getResults()))
    old.replaceAllUsesWith(result);

  Block *before = builder.createBlock(&whileOp.getBefore(), {}, types, locations);
  auto predicate = bounds.isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value more =
      arith::CmpIOp::create(builder, loc, predicate, before->getArgument(0), loop.getUpperBound());
  scf::ConditionOp::create(builder, loc, more, before->getArguments());

  Block *after = builder.createBlock(&whileOp.getAfter(), {}, types, locations);
  Operation *yield = loop.getBody()->getTerminator();
  SmallVector<Value> yielded(yield->getOperands());
  yield->erase();
  for (auto [old, argument] :
       llvm::zip_equal(loop.getBody()->getArguments(), after->getArguments())) {
    old.replaceAllUsesWith(argument);
    for (Value &value : yielded)
      if (value == old)
        value = argument;
  }
  after->getOperations().splice(after->end(), loop.getBody()->getOperations());
  builder.setInsertionPointToEnd(after);
  Value counter = after->getArgument(0);
  Value last = bounds.isUnsigned ? Value(arith::MinUIOp::create(builder, loc, counter, most))
                                 : Value(arith::MinSIOp::create(builder, loc, counter, most));
  yielded.insert(yielded.begin(), arith::AddIOp::create(builder, loc, last, loop.getStep()));
  scf::YieldOp::create(builder, loc, yielded);
  return eraseUnread(loop);
}

struct MSLBoundLoopsPass : impl::MSLBoundLoopsBase<MSLBoundLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    bool changes = false;
    for (msl::KernelOp kernel : getOperation().getOps<msl::KernelOp>()) {
      FailureOr<bool> bounded = bound(kernel);
      if (failed(bounded))
        return signalPassFailure();
      changes |= *bounded;
    }
    if (!changes)
      markAllAnalysesPreserved();
  }

  /// Returns whether a loop had to be changed.
  static FailureOr<bool> bound(msl::KernelOp kernel) {
    ValueRanges ranges;
    // The ranges of all loops are needed before the first loop changes.
    SmallVector<std::pair<scf::ForOp, Bounds>> loops;
    auto find = [&](scf::ForOp loop) {
      APInt step;
      if (matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isOne())
        return;
      Bounds bounds{ranges.get(loop.getLowerBound()), ranges.get(loop.getUpperBound()),
                    ranges.get(loop.getStep()), loop.getUnsignedCmp()};
      if (!bounds.cannotWrap())
        loops.push_back({loop, bounds});
    };
    kernel.walk<WalkOrder::PostOrder>(find);
    for (auto &[loop, bounds] : loops)
      if (bounds.countsFromZeroUp())
        countWithoutSign(loop, bounds);
      else if (failed(stopAtLargest(loop, bounds)))
        return failure();
    return !loops.empty();
  }
};

} // namespace
} // namespace triton_metal
