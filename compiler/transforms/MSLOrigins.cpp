#include "transforms/MSLOrigins.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace triton_metal::msl;

Origins Origins::get(Value pointer, Block *entry) {
  Origins origins;
  llvm::SetVector<Value> worklist;
  worklist.insert(pointer);
  for (unsigned index = 0; index < worklist.size(); ++index) {
    Value value = worklist[index];
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == entry) {
        if (isa<PtrType>(argument.getType()))
          origins.arguments.insert(argument.getArgNumber());
        else if (index == 0)
          origins.all = true;
        continue;
      }
      // Carried through a loop: from before it, and from its end.
      Operation *parent = argument.getOwner()->getParentOp();
      if (auto loop = dyn_cast<scf::ForOp>(parent)) {
        if (OpOperand *init = loop.getTiedLoopInit(argument)) {
          worklist.insert(init->get());
          worklist.insert(loop.getTiedLoopYieldedValue(argument)->get());
        }
        continue;
      }
      if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
        bool isBefore = argument.getOwner() == loop.getBeforeBody();
        unsigned number = argument.getArgNumber();
        if (isBefore) {
          worklist.insert(loop.getInits()[number]);
          worklist.insert(loop.getYieldOp().getOperand(number));
        } else {
          worklist.insert(loop.getConditionOp().getArgs()[number]);
        }
        continue;
      }
      origins.all = true;
      continue;
    }
    Operation *op = value.getDefiningOp();
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      worklist.insert(loop.getInitArgs()[number]);
      worklist.insert(loop.getBody()->getTerminator()->getOperand(number));
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      worklist.insert(loop.getConditionOp().getArgs()[number]);
    } else if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
      worklist.insert(ifOp.thenBlock()->getTerminator()->getOperand(number));
      worklist.insert(ifOp.elseBlock()->getTerminator()->getOperand(number));
    } else if (isa<PtrAddOp, PtrCastOp, PtrToIntOp>(op)) {
      worklist.insert(op->getOperand(0));
    } else if (isa<LoadOp, LoadAddressOp>(op)) {
      // An address from memory may be that of any array.
      origins.all |= getElementTypeOrSelf(value.getType()).isInteger(64);
    } else if (isMemoryEffectFree(op)) {
      worklist.insert(op->operand_begin(), op->operand_end());
    }
  }
  // An address that comes from no argument may point anywhere.
  if (origins.arguments.empty())
    origins.all = true;
  return origins;
}
