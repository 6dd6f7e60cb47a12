#include "host_device/msl/Initialisers.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace triton_metal {

static std::vector<Function *> constructors(Module &module) {
  std::vector<Function *> result;
  GlobalVariable *list = module.getNamedGlobal("llvm.global_ctors");
  if (!list || !list->hasInitializer())
    return result;
  if (auto *entries = dyn_cast<ConstantArray>(list->getInitializer()))
    for (Use &entry : entries->operands())
      if (auto *fields = dyn_cast<ConstantStruct>(entry))
        if (auto *function = dyn_cast<Function>(fields->getOperand(1)->stripPointerCasts()))
          result.push_back(function);
  return result;
}

static void setConstructors(Module &module, ArrayRef<Function *> functions) {
  if (GlobalVariable *list = module.getNamedGlobal("llvm.global_ctors"))
    list->eraseFromParent();
  for (Function *function : functions)
    appendToGlobalCtors(module, function, 65535);
}

void separateInitialisers(Module &module) {
  std::vector<Function *> all = constructors(module), separate;
  for (Function *outer : all) {
    std::vector<Function *> called;
    bool onlyCalls = outer->size() == 1;
    for (Instruction &instruction : instructions(*outer)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      if (call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration() &&
          call->arg_empty())
        called.push_back(call->getCalledFunction());
      else if (!isa<ReturnInst>(instruction))
        onlyCalls = false;
    }
    if (onlyCalls)
      separate.insert(separate.end(), called.begin(), called.end());
    else
      separate.push_back(outer);
  }
  if (separate.size() == all.size())
    return;
  setConstructors(module, separate);
  for (Function *outer : all)
    if (outer->use_empty() && !is_contained(separate, outer))
      outer->eraseFromParent();
}

/// The declared variable that a constructor reads, itself or by way of another variable. Null if
/// there is none.
static GlobalVariable *missing(Function &function, const Dependences &known) {
  for (Instruction &instruction : instructions(function))
    for (Value *operand : instruction.operands())
      if (auto *variable = dyn_cast<GlobalVariable>(operand->stripInBoundsConstantOffsets())) {
        if (auto found = known.find(variable); found != known.end())
          return found->second;
        if (variable->isDeclaration())
          return variable;
      }
  return nullptr;
}

Dependences removeWaitingInitialisers(Module &module) {
  Dependences result;
  std::vector<Function *> left;
  for (Function *function : constructors(module)) {
    GlobalVariable *source = missing(*function, result);
    if (!source) {
      left.push_back(function);
      continue;
    }
    for (Instruction &instruction : instructions(*function))
      if (auto *store = dyn_cast<StoreInst>(&instruction))
        if (auto *variable = dyn_cast<GlobalVariable>(
                store->getPointerOperand()->stripInBoundsConstantOffsets()))
          result.insert({variable, source});
    function->deleteBody();
  }
  if (result.empty())
    return result;
  setConstructors(module, left);
  for (auto [variable, source] : result) {
    variable->setInitializer(nullptr);
    variable->setLinkage(GlobalValue::ExternalLinkage);
  }
  for (Function &function : make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty() &&
        function.getName().starts_with("__cxx_global_var_init"))
      function.eraseFromParent();
  return result;
}

} // namespace triton_metal
