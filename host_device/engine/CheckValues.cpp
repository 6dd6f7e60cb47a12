// The sites of checks that the front end has inserted, and of operations of a whole SIMD-group.
#include "host_device/msl/CheckValues.h"
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace triton_metal::engine {

void insertValueChecks(Function &function, CodeFacts &facts) {
  Module &module = *function.getParent();
  NamedMDNode *notes = module.getNamedMetadata(checkNotesName);
  IRBuilder<> b(module.getContext());
  for (Instruction &inst : make_early_inc_range(instructions(function))) {
    if (!isCallOf(&inst, checkValueName))
      continue;
    auto *call = cast<CallInst>(&inst);
    if (auto *bad = dyn_cast<ConstantInt>(call->getArgOperand(0)); bad && bad->isZero()) {
      call->eraseFromParent();
      continue;
    }
    Site site;
    fillLocation(site, inst);
    site.kind = AccessKind::Value;
    site.space = AddressSpace::Thread;
    auto *note = dyn_cast<ConstantInt>(call->getArgOperand(1));
    if (note && notes && note->getZExtValue() < notes->getNumOperands())
      site.note =
          cast<MDString>(notes->getOperand(note->getZExtValue())->getOperand(0))->getString().str();
    call->setArgOperand(1, b.getInt32(facts.sites.size()));
    facts.sites.push_back(site);
  }
  dropChecks(module); // later passes cannot make sites
}

} // namespace triton_metal::engine
