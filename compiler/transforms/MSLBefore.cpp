#include "transforms/MSLBefore.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace triton_metal::msl;

bool triton_metal::msl::isComputedBefore(Value value, Operation *op) {
  Operation *definition = value.getDefiningOp();
  if (!definition)
    return true;
  Operation *ancestor = definition->getBlock()->findAncestorOpInBlock(*op);
  return ancestor && definition->isBeforeInBlock(ancestor);
}

bool triton_metal::msl::areComputedAlike(Value a, Value b, unsigned depth) {
  if (a == b)
    return true;
  Operation *one = a.getDefiningOp(), *other = b.getDefiningOp();
  if (!one || !other || depth > 8 || !isPure(one) || one->getNumRegions())
    return false;
  return OperationEquivalence::isEquivalentTo(
      one, other, [&](Value x, Value y) { return success(areComputedAlike(x, y, depth + 1)); },
      /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

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
