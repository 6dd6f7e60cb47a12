// Estimates the registers that a thread needs.
#include "host_device/engine/Prepare.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace triton_metal::engine {

uint32_t estimateRegisters(Function &function) {
  const DataLayout &layout = function.getDataLayout();
  auto words = [&](const Value *value) -> uint32_t {
    Type *type = value->getType();
    if (type->isVoidTy() || !type->isSized() || isa<AllocaInst>(value))
      return 0;
    return (layout.getTypeStoreSize(type) + 3) / 4;
  };
  DenseMap<const BasicBlock *, DenseSet<const Value *>> liveIn;
  auto counted = [](const Value *value) {
    return isa<Instruction>(value) && !value->getType()->isVoidTy();
  };
  uint32_t most = 0;
  bool changed = true, last = false;
  while (changed || !last) {
    last = !changed;
    changed = false;
    for (BasicBlock *block : post_order(&function)) {
      DenseSet<const Value *> live;
      for (BasicBlock *successor : successors(block)) {
        live.insert(liveIn[successor].begin(), liveIn[successor].end());
        for (PHINode &phi : successor->phis()) {
          live.erase(&phi);
          if (Value *incoming = phi.getIncomingValueForBlock(block); counted(incoming))
            live.insert(incoming);
        }
      }
      uint32_t now = 0;
      for (const Value *value : live)
        now += words(value);
      most = std::max(most, now);
      for (Instruction &inst : reverse(*block)) {
        if (live.erase(&inst))
          now -= words(&inst);
        if (isa<PHINode>(inst))
          continue;
        for (Value *operand : inst.operands())
          if (counted(operand) && live.insert(operand).second)
            now += words(operand);
        most = std::max(most, now);
      }
      for (PHINode &phi : block->phis())
        live.insert(&phi);
      auto &in = liveIn[block];
      if (in.size() != live.size()) {
        in = std::move(live);
        changed = true;
      }
    }
  }
  // Private arrays that are indexed at run time are in memory and do not count as registers.
  return most;
}

} // namespace triton_metal::engine
