#include "transforms/MSLMatrixTiles.h"

#include "transforms/MSLTiles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace triton_metal::msl;

llvm::DenseMap<Value, MatrixType> triton_metal::msl::findMatrixTiles(KernelOp kernel) {
  llvm::DenseMap<Value, MatrixType> matrices;
  SmallVector<Value> work;
  auto add = [&](Value value, FragmentShape shape) {
    if (!isTile(value))
      return;
    auto matrix = MatrixType::get(shape, getElementTypeOrSelf(value.getType()));
    if (matrices.try_emplace(value, matrix).second)
      work.push_back(value);
  };
  kernel.walk([&](MatrixMultiplyOpInterface op) {
    MatrixShape shape = op.getInstruction();
    add(op.getAcc(), shape.getAccumulator());
    add(op.getA(), shape.getOperand(0));
    add(op.getB(), shape.getOperand(1));
    for (OpResult result : op->getResults())
      add(result, shape.getAccumulator());
    // What the next iteration starts with is where this one leaves it.
    for (OpOperand &use : op->getUses())
      if (auto yield = dyn_cast<scf::YieldOp>(use.getOwner()))
        if (auto loop = dyn_cast<scf::ForOp>(yield->getParentOp()))
          add(loop.getRegionIterArg(use.getOperandNumber()), shape.getAccumulator());
  });
  while (!work.empty()) {
    auto argument = dyn_cast<BlockArgument>(work.pop_back_val());
    if (!argument)
      continue;
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      continue;
    FragmentShape shape = matrices.at(argument).getShape();
    add(loop.getTiedLoopInit(argument)->get(), shape);
    add(loop.getTiedLoopYieldedValue(argument)->get(), shape);
    add(loop.getTiedLoopResult(argument), shape);
  }
  return matrices;
}
