#include "analysis/Uniformity.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace triton_metal::msl;

Uniformity::Uniformity(KernelOp kernel) : threads(kernel.getThreads()) {
  // Values only change from uniform to divergent, so the iteration ends.
  do {
    changed = false;
    kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { visit(op); });
  } while (changed);
}

void Uniformity::mark(ValueRange values) {
  for (Value value : values)
    changed |= divergent.insert(value).second;
}

bool Uniformity::areUniform(ValueRange values) const {
  return llvm::all_of(values, [&](Value value) { return isUniform(value); });
}

void Uniformity::visit(Operation *op) {
  auto flow = [&](Value from, Value to) {
    if (!isUniform(from))
      mark(to);
  };
  if (auto spread = dyn_cast<SpreadOpInterface>(op)) {
    bool isShared = spread.getSpread() == Spread::Threadgroup ||
                    (spread.getSpread() == Spread::Simdgroup &&
                     (threads == 32 || (op->getNumOperands() && areUniform(op->getOperands()))));
    if (!isShared)
      mark(op->getResults());
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    bool parts = partsThreads(op);
    if (parts)
      mark(loop.getInductionVar());
    for (auto [init, argument, yielded, result] :
         llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(),
                         loop.getResults())) {
      flow(init, argument);
      flow(yielded, argument);
      flow(argument, result);
      if (parts)
        mark(result);
    }
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [init, yielded, argument] : llvm::zip_equal(
             loop.getInits(), loop.getYieldOp().getResults(), loop.getBeforeArguments())) {
      flow(init, argument);
      flow(yielded, argument);
    }
    for (auto [passed, argument, result] : llvm::zip_equal(
             loop.getConditionOp().getArgs(), loop.getAfterArguments(), loop.getResults())) {
      flow(passed, argument);
      flow(passed, result);
      if (partsThreads(op))
        mark(result);
    }
    return;
  }
  if (auto conditional = dyn_cast<scf::IfOp>(op)) {
    for (auto [index, result] : llvm::enumerate(conditional.getResults())) {
      flow(conditional.thenYield().getOperand(index), result);
      flow(conditional.elseYield().getOperand(index), result);
      if (partsThreads(op))
        mark(result);
    }
    return;
  }
  if (op->getNumRegions() != 0 ? !isa<ReduceRegistersOp>(op) || !areUniform(op->getOperands())
                               : !areUniform(op->getOperands()))
    mark(op->getResults());
}

bool Uniformity::partsThreads(Operation *op) const {
  if (op->getNumRegions() == 0 || isa<KernelOp>(op))
    return false;
  if (auto conditional = dyn_cast<scf::IfOp>(op))
    return !isUniform(conditional.getCondition());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return !areUniform({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return !isUniform(loop.getConditionOp().getCondition());
  return !isa<UnrollOp>(op);
}

Operation *Uniformity::getParting(Operation *op) const {
  Operation *outermost = nullptr;
  for (Operation *parent = op->getParentOp(); parent && !isa<KernelOp>(parent);
       parent = parent->getParentOp())
    if (partsThreads(parent))
      outermost = parent;
  return outermost;
}
