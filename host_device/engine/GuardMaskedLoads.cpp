#include "host_device/engine/GuardMaskedLoads.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine {

/// Whether something uses the result of a load after memory may have been written.
static bool isUsedAfterWrite(Instruction &load) {
  Instruction *write = load.getNextNode();
  while (write && !write->mayWriteToMemory())
    write = write->getNextNode();
  return any_of(load.users(), [&](User *user) {
    auto *inst = cast<Instruction>(user);
    return inst->getParent() != load.getParent() || (write && write->comesBefore(inst));
  });
}

PreservedAnalyses GuardMaskedLoadsPass::run(Function &function, FunctionAnalysisManager &) {
  SmallVector<Instruction *> found;
  for (Instruction &inst : instructions(function))
    if (auto *call = dyn_cast<IntrinsicInst>(&inst))
      if (is_contained(
              {Intrinsic::masked_load, Intrinsic::masked_gather, Intrinsic::masked_expandload},
              call->getIntrinsicID()) &&
          isUsedAfterWrite(*call))
        found.push_back(call);
  for (Instruction *load : found) {
    IRBuilder<> builder(load->getNextNode());
    Value *frozen = builder.CreateFreeze(load);
    load->replaceUsesWithIf(frozen, [&](Use &use) { return use.getUser() != frozen; });
  }
  return found.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

} // namespace triton_metal::engine
