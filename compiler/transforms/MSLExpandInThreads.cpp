#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"
#include "transforms/ThreadConditions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLEXPANDINTHREADS
#include "transforms/Passes.h.inc"

namespace {

using namespace msl;

/// The regions of one kernel, which are expanded in the order of the program.
class Expansion {
public:
  explicit Expansion(KernelOp kernel)
      : entry(&kernel.getBody().front()), numSimdgroups(kernel.getThreads() / 32),
        builder(kernel.getContext()), unnamed(builder.getUnknownLoc()) {}

  void expand(InThreadsOp op) {
    Value condition = getCondition(op);
    builder.setInsertionPoint(op);
    auto conditional = scf::IfOp::create(builder, op.getLoc(), op.getResultTypes(), condition,
                                         /*addThenBlock=*/false, /*addElseBlock=*/false);
    conditional.getThenRegion().takeBody(op.getBody());
    yield(conditional.thenBlock()->getTerminator());
    if (op.getNumResults()) {
      builder.createBlock(&conditional.getElseRegion());
      auto none = llvm::map_to_vector(op.getResultTypes(), [&](Type type) -> Value {
        return arith::ConstantOp::create(builder, op.getLoc(), builder.getZeroAttr(type));
      });
      scf::YieldOp::create(builder, op.getLoc(), none);
    }
    op->replaceAllUsesWith(conditional);
    op->erase();
  }

private:
  /// The same yield of an `scf.if`.
  void yield(Operation *old) {
    builder.setInsertionPoint(old);
    scf::YieldOp::create(builder, old->getLoc(), old->getOperands());
    old->erase();
  }

  /// The condition that its threads meet, outside of the loops right around the region.
  Value getCondition(InThreadsOp op) {
    Operation *at = op;
    while (isa<LoopLikeOpInterface>(at->getParentOp()))
      at = at->getParentOp();
    ThreadSet threads = op.getThreadSet();
    for (auto &[known, condition] : conditions)
      if (known == threads && condition.getParentBlock()->findAncestorOpInBlock(*at))
        return condition;
    builder.setInsertionPoint(at);
    Value condition = createIsOneOf(
        builder, unnamed, threads, numSimdgroups, [&] { return getPosition<LaneOp>(); },
        [&] { return getPosition<SimdgroupOp>(); });
    if (!condition)
      condition = arith::ConstantOp::create(builder, unnamed, builder.getBoolAttr(true));
    conditions.emplace_back(threads, condition);
    return condition;
  }

  /// The position is computed at the kernel's top, where `msl-expand-thread-indices` leaves it.
  template <typename Position> Value getPosition() {
    for (auto position : entry->getOps<Position>())
      return position;
    OpBuilder top = OpBuilder::atBlockBegin(entry);
    return Position::create(top, unnamed);
  }

  Block *entry;
  int32_t numSimdgroups;
  OpBuilder builder;
  /// Positions of the thread are no value of the source: they take no name from it.
  Location unnamed;
  SmallVector<std::pair<ThreadSet, Value>> conditions;
};

struct MSLExpandInThreadsPass : impl::MSLExpandInThreadsBase<MSLExpandInThreadsPass> {
  void runOnOperation() override {
    bool changes = false;
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      SmallVector<InThreadsOp> regions;
      kernel.walk<WalkOrder::PreOrder>([&](InThreadsOp op) { regions.push_back(op); });
      Expansion expansion(kernel);
      for (InThreadsOp op : regions)
        expansion.expand(op);
      changes |= !regions.empty();
    }
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
