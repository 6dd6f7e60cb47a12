#include "transforms/TTMMasks.h"

#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

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

int64_t getDivisor(Value value, unsigned depth) {
  constexpr int64_t kMostDivisor = int64_t(1) << 31;
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.isZero() ? kMostDivisor : int64_t(1) << std::min(number.countr_zero(), 31u);
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto func = dyn_cast<tt::FuncOp>(argument.getOwner()->getParentOp()))
      if (auto known =
              func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tt::divisibilityAttrName);
          known && known.getInt() > 0)
        return std::min(known.getInt() & -known.getInt(), kMostDivisor);
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8)
    return 1;
  auto operand = [&](unsigned index) { return getDivisor(op->getOperand(index), depth + 1); };
  if (isa<arith::MulIOp>(op))
    return std::min(operand(0) * operand(1), kMostDivisor);
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::min(operand(0), operand(1));
  return 1;
}

} // namespace triton_metal
