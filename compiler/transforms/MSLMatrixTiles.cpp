#include "transforms/MSLMatrixTiles.h"

#include "transforms/MSLTiles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace triton_metal::msl;

llvm::DenseSet<Value> triton_metal::msl::findMatrixTiles(KernelOp kernel) {
  llvm::DenseSet<Value> matrices;
  SmallVector<Value> work;
  auto add = [&](Value value) {
    if (isTile(value) && matrices.insert(value).second)
      work.push_back(value);
  };
  kernel.walk([&](MmaOp op) {
    llvm::for_each(op->getOperands(), add);
    add(op.getResult());
    // What the next iteration starts with is where this one leaves it.
    for (OpOperand &use : op->getUses())
      if (auto yield = dyn_cast<scf::YieldOp>(use.getOwner()))
        if (auto loop = dyn_cast<scf::ForOp>(yield->getParentOp()))
          add(loop.getRegionIterArg(use.getOperandNumber()));
  });
  while (!work.empty()) {
    auto argument = dyn_cast<BlockArgument>(work.pop_back_val());
    if (!argument)
      continue;
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      continue;
    add(loop.getTiedLoopInit(argument)->get());
    add(loop.getTiedLoopYieldedValue(argument)->get());
    add(loop.getTiedLoopResult(argument));
  }
  return matrices;
}
