#include "analysis/AddressArguments.h"

#include "dialect/tt/TT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace triton_metal {
namespace {

/// Whether an operand is only written to memory.
bool isOnlyStored(OpOperand &use) {
  if (auto store = dyn_cast<tt::StoreOp>(use.getOwner()))
    return use.get() == store.getValue();
  if (auto atomic = dyn_cast<tt::AtomicRMWOp>(use.getOwner()))
    return use.get() == atomic.getVal();
  if (auto atomic = dyn_cast<tt::AtomicCASOp>(use.getOwner()))
    return use.get() == atomic.getCmp() || use.get() == atomic.getVal();
  return false;
}

/// Whether the operation accesses memory at an address, or under a mask, that the operand is part
/// of. What other operations do with it is not known, so those with effects count, too.
bool accesses(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<tt::AddPtrOp>(op))
    return use.getOperandNumber() == 1;
  if (isa<arith::CmpIOp>(op))
    return isa<ShapedType>(op->getResult(0).getType());
  if (op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>() || isa<tt::CallOp>(op))
    return false;
  // Tensor descriptors and pointers to blocks have no effects, and hold sizes and strides.
  bool isPointerMade = llvm::any_of(op->getResultTypes(), [](Type type) {
    return isa<tt::PtrType, tt::TensorDescType>(getElementTypeOrSelf(type));
  });
  return isPointerMade || (!isMemoryEffectFree(op) && !isOnlyStored(use));
}

} // namespace

bool reachesAddressOrMask(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && tt::isPartOfDescriptor(argument))
    return true;
  SmallVector<Value> open{value};
  llvm::SmallDenseSet<Value> seen{value};
  auto follow = [&](ValueRange values) {
    for (Value next : values)
      if (seen.insert(next).second)
        open.push_back(next);
  };
  auto followRegions = [&](Operation *op) {
    follow(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        follow(block.getArguments());
  };
  while (!open.empty())
    for (OpOperand &use : open.pop_back_val().getUses()) {
      if (accesses(use))
        return true;
      // Any operand of a loop or a branch may be any of the values that it carries, and any operand
      // of a call what it returns.
      Operation *op = use.getOwner();
      followRegions(op);
      if (auto call = dyn_cast<tt::CallOp>(op))
        if (auto callee =
                SymbolTable::lookupNearestSymbolFrom<tt::FuncOp>(op, call.getCalleeAttr()))
          follow(callee.getArgument(use.getOperandNumber()));
      for (Block *successor : op->getSuccessors())
        follow(successor->getArguments());
      if (op->hasTrait<OpTrait::IsTerminator>() && !isa<tt::FuncOp>(op->getParentOp()))
        followRegions(op->getParentOp());
    }
  return false;
}

} // namespace triton_metal
