#include "transforms/MSLBefore.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace triton_metal::msl;

bool Before::isKnown(Value value, unsigned depth) const {
  if (!isInside(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && depth < 8 && op->getNumRegions() == 0 && isPure(op) &&
         llvm::all_of(
             op->getOperands(), [&](Value operand) { return isKnown(operand, depth + 1); });
}

Value Before::compute(Value value, OpBuilder &builder) {
  if (!isInside(value))
    return value;
  if (Value copy = copies.lookupOrNull(value))
    return copy;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    copies.map(operand, compute(operand, builder));
  builder.clone(*op, copies);
  return copies.lookup(value);
}
