#include "host_device/msl/Marks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace triton_metal {

FunctionCallee declareMark(Module &module, StringRef name, FunctionType *type) {
  FunctionCallee callee = module.getOrInsertFunction(name, type);
  auto *function = cast<Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setConvergent();
  function->setOnlyAccessesInaccessibleMemory();
  function->addFnAttr(Attribute::NoMerge);
  return callee;
}

void eraseCalls(Module &module, StringRef name) {
  Function *function = module.getFunction(name);
  if (!function)
    return;
  for (User *user : make_early_inc_range(function->users()))
    if (auto *call = dyn_cast<CallInst>(user))
      call->eraseFromParent();
}

} // namespace triton_metal
