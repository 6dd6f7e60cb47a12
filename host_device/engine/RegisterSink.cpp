// Makes numbers where they are used, as far as that keeps fewer alive. LLVM's SinkingPass moves all
// numbers, and has no way to leave some of them.
#include "host_device/engine/RegisterSink.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine::registers {

namespace {

/// Arithmetic or a comparison of several floats. Behind a branch, it would keep all of them alive
/// until there in the place of one.
bool joinsNumbers(const Instruction &inst) {
  SmallPtrSet<const Value *, 4> numbers;
  for (const Use &operand : inst.operands())
    if (isa<Instruction>(operand) && operand->getType()->isFPOrFPVectorTy())
      numbers.insert(operand.get());
  return numbers.size() > 1;
}

bool canMove(const Instruction &inst) {
  if (isa<PHINode, AllocaInst>(inst) || inst.isTerminator() || inst.isEHPad() ||
      inst.mayReadOrWriteMemory() || inst.mayHaveSideEffects() || inst.use_empty())
    return false;
  auto *call = dyn_cast<CallBase>(&inst);
  return !(call && (call->isConvergent() || !isa<IntrinsicInst>(call))) && !joinsNumbers(inst);
}

/// The block that dominates all uses.
BasicBlock *blockOfUses(const Instruction &inst, DominatorTree &dominators) {
  BasicBlock *block = nullptr;
  for (const Use &use : inst.uses()) {
    auto *user = cast<Instruction>(use.getUser());
    BasicBlock *of =
        isa<PHINode>(user) ? cast<PHINode>(user)->getIncomingBlock(use) : user->getParent();
    block = block ? dominators.findNearestCommonDominator(block, of) : of;
  }
  return block;
}

} // namespace

void sinkNumbers(Function &function) {
  DominatorTree dominators(function);
  LoopInfo loops(dominators);
  for (BasicBlock *block : post_order(&function))
    for (Instruction &inst : make_early_inc_range(reverse(*block))) {
      if (!canMove(inst))
        continue;
      BasicBlock *to = blockOfUses(inst, dominators);
      // A loop would make the number in each of its steps.
      while (to && to != block && loops.getLoopDepth(to) > loops.getLoopDepth(block))
        to = dominators.getNode(to)->getIDom()->getBlock();
      if (to && to != block && dominators.properlyDominates(block, to))
        inst.moveBefore(*to, to->getFirstInsertionPt());
    }
}

} // namespace triton_metal::engine::registers
