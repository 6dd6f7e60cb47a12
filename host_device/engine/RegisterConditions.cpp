// Computes both sides of conditions that only do arithmetic, and selects, as compilers for GPUs do
// where a branch costs more.
#include "host_device/engine/RegisterCode.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace triton_metal::engine::registers {

namespace {

/// The most instructions of a side that is computed without need (Mesa's limit for G13).
constexpr unsigned mostInstructions = 64;

/// Whether the block, which comes only after `before`, does nothing but arithmetic.
bool isArithmetic(const BasicBlock &block, const BasicBlock &before) {
  if (block.getSinglePredecessor() != &before || !block.getSingleSuccessor() ||
      block.hasAddressTaken())
    return false;
  unsigned count = 0;
  for (const Instruction &inst : block) {
    if (inst.isTerminator() || inst.isDebugOrPseudoInst())
      continue;
    auto *call = dyn_cast<CallBase>(&inst);
    if (isa<PHINode>(inst) || inst.mayReadOrWriteMemory() || (call && call->isConvergent()) ||
        !isSafeToSpeculativelyExecute(&inst) || ++count > mostInstructions)
      return false;
  }
  return true;
}

/// Flattens the condition at the end of a block, if that is possible.
bool flatten(BasicBlock &block) {
  auto *branch = dyn_cast<BranchInst>(block.getTerminator());
  if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1))
    return false;
  BasicBlock *yes = branch->getSuccessor(0), *no = branch->getSuccessor(1), *end = nullptr;
  if (isArithmetic(*yes, block) && yes->getSingleSuccessor() == no)
    end = no, no = nullptr;
  else if (isArithmetic(*no, block) && no->getSingleSuccessor() == yes)
    end = yes, yes = nullptr;
  else if (isArithmetic(*yes, block) && isArithmetic(*no, block) &&
           yes->getSingleSuccessor() == no->getSingleSuccessor())
    end = yes->getSingleSuccessor();
  if (!end || end == &block || end == yes || end == no)
    return false;
  Value *condition = branch->getCondition();
  for (BasicBlock *side : {yes, no})
    if (side)
      block.splice(branch->getIterator(), side, side->begin(),
                   side->getTerminator()->getIterator());
  BasicBlock *fromYes = yes ? yes : &block, *fromNo = no ? no : &block;
  IRBuilder<> b(branch);
  for (PHINode &phi : end->phis()) {
    Value *x = phi.getIncomingValueForBlock(fromYes), *y = phi.getIncomingValueForBlock(fromNo);
    Value *chosen = x == y ? x : b.CreateSelect(condition, x, y);
    phi.addIncoming(chosen, &block);
    for (BasicBlock *from : {fromYes, fromNo})
      if (int place = phi.getBasicBlockIndex(from); place >= 0)
        phi.removeIncomingValue(place, /*DeletePHIIfEmpty=*/false);
  }
  b.CreateBr(end);
  branch->eraseFromParent();
  for (BasicBlock *side : {yes, no})
    if (side)
      side->eraseFromParent();
  MergeBlockIntoPredecessor(end);
  return true;
}

} // namespace

void flattenConditions(Function &function) {
  for (bool changed = true; changed;) {
    changed = false;
    // Blocks are erased.
    for (BasicBlock &block : function)
      if (flatten(block)) {
        changed = true;
        break;
      }
  }
}

} // namespace triton_metal::engine::registers
