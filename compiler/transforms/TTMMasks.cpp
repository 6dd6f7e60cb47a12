#include "transforms/TTMMasks.h"

#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"

using namespace mlir;

namespace triton_metal {

bool onlyMoves(Operation *op) {
  return isa<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp, ttm::ConvertLayoutOp>(
      op);
}

bool varies(Value scalar) {
  Operation *op = scalar.getDefiningOp();
  if (!op)
    return !isa<tt::FuncOp>(scalar.getParentBlock()->getParentOp());
  return op->getNumRegions() || !isPure(op) || isa<tt::GetProgramIdOp>(op) ||
         llvm::any_of(op->getOperands(), varies);
}

} // namespace triton_metal
