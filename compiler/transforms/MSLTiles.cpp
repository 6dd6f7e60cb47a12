#include "transforms/MSLTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace triton_metal::msl;

bool triton_metal::msl::isElementwise(Operation *op) {
  if (isa<MulhiOp, PreciseDivOp, PreciseSqrtOp, Float64Op, LibraryOp>(op))
    return true;
  if (isa<arith::ConstantOp>(op) || op->getNumResults() != 1 || op->getNumRegions() != 0)
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
}

bool triton_metal::msl::crossesLanes(Operation *op) {
  auto call = dyn_cast<MetalCallOpInterface>(op);
  return call && call.crossesLanes();
}

bool triton_metal::msl::isElementwiseOrShuffle(Operation *op) {
  return crossesLanes(op) || isElementwise(op);
}

bool triton_metal::msl::isOnDemand(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isTile(value))
    return false;
  if (isa<PermuteRegistersOp, SplatOp, arith::ConstantOp, ub::PoisonOp>(op))
    return true;
  return isElementwise(op) && !isa<TileLoopOp>(op->getParentOp());
}

Location triton_metal::msl::getTileLoc(Value tile) {
  if (auto loop = tile.getDefiningOp<TileLoopOp>())
    return loop.getBody()
        .front()
        .getTerminator()
        ->getOperand(cast<OpResult>(tile).getResultNumber())
        .getLoc();
  return tile.getLoc();
}

Value triton_metal::msl::getNumber(OpBuilder &builder, Location loc, Value tile) {
  if (auto splat = tile.getDefiningOp<SplatOp>())
    return splat.getValue();
  DenseElementsAttr dense;
  if (!matchPattern(tile, m_Constant(&dense)) || !dense.isSplat())
    return {};
  return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(dense.getSplatValue<Attribute>()));
}

SmallVector<Operation *> triton_metal::msl::getReaders(Value tile) {
  llvm::SetVector<Operation *> readers;
  SmallVector<Value> work{tile};
  // What is computed on demand may be read on many ways.
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (user->getNumResults() != 1 || !isOnDemand(user->getResult(0)))
        readers.insert(user);
      else if (seen.insert(user->getResult(0)).second)
        work.push_back(user->getResult(0));
    }
  return readers.takeVector();
}

bool triton_metal::msl::isDeadAfter(Value tile, Operation *last) {
  Block *block = last->getBlock();
  if (tile.getParentBlock() != block)
    return false;
  return llvm::all_of(getReaders(tile), [&](Operation *reader) {
    Operation *ancestor = block->findAncestorOpInBlock(*reader);
    return ancestor && ancestor != block->getTerminator() &&
           (ancestor == last || ancestor->isBeforeInBlock(last));
  });
}
