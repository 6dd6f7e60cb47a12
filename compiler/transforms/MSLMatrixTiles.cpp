#include "transforms/MSLMatrixTiles.h"

#include "dialect/msl/Target.h"
#include "transforms/MSLTiles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace triton_metal::msl;

llvm::DenseMap<Value, MatrixType> triton_metal::msl::findMatrixTiles(KernelOp kernel) {
  llvm::DenseMap<Value, MatrixType> matrices;
  SmallVector<Value> work;
  // Without a shape, the tile is one of vectors.
  auto add = [&](Value value, std::optional<FragmentShape> shape) {
    if (!isTile(value))
      return;
    auto matrix =
        shape ? MatrixType::get(*shape, getElementTypeOrSelf(value.getType())) : MatrixType();
    if (matrices.try_emplace(value, matrix).second)
      work.push_back(value);
  };
  kernel.walk([&](MatrixMultiplyOpInterface op) {
    MatrixShape shape = op.getInstruction();
    const MatrixInstruction *instruction = MatrixInstruction::get(shape);
    bool isOfVectors = instruction && instruction->inRegisters;
    auto ifMatrix = [&](FragmentShape fragment) {
      return isOfVectors ? std::nullopt : std::optional(fragment);
    };
    std::optional<FragmentShape> acc = ifMatrix(shape.getAccumulator());
    add(op.getAcc(), acc);
    add(op.getA(), ifMatrix(shape.getOperand(0)));
    add(op.getB(), ifMatrix(shape.getOperand(1)));
    for (OpResult result : op->getResults())
      add(result, acc);
    // What the next iteration starts with is where this one leaves it.
    for (OpOperand &use : op->getUses())
      if (auto yield = dyn_cast<scf::YieldOp>(use.getOwner()))
        if (auto loop = dyn_cast<scf::ForOp>(yield->getParentOp()))
          add(loop.getRegionIterArg(use.getOperandNumber()), acc);
  });
  while (!work.empty()) {
    auto argument = dyn_cast<BlockArgument>(work.pop_back_val());
    if (!argument)
      continue;
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      continue;
    MatrixType matrix = matrices.at(argument);
    std::optional<FragmentShape> shape = matrix ? std::optional(matrix.getShape()) : std::nullopt;
    add(loop.getTiedLoopInit(argument)->get(), shape);
    add(loop.getTiedLoopYieldedValue(argument)->get(), shape);
    add(loop.getTiedLoopResult(argument), shape);
  }
  return matrices;
}
