// Metal's operators and constructors are small functions that clang writes with all values in
// memory. A kernel calls thousands of them. Each is simplified once, before it is inlined, and not
// in every place that calls it.
#include "host_device/msl/OutOfLine.h"
#include "host_device/msl/PassRunner.h"
#include "host_device/msl/Passes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace triton_metal {

/// The functions in an order in which those that a function calls come before it. Recursive ones
/// are left out.
static SmallVector<Function *> calledFirst(Module &module) {
  CallGraph graph(module);
  SmallVector<Function *> order;
  for (auto component = scc_begin(&graph); !component.isAtEnd(); ++component)
    if (Function *function = component->front()->getFunction();
        function && !function->isDeclaration() && !component.hasCycle())
      order.push_back(function);
  return order;
}

static void inlineCalls(Function &function) {
  SmallVector<CallBase *> calls;
  for (Instruction &instruction : instructions(function))
    if (auto *call = dyn_cast<CallBase>(&instruction))
      if (Function *callee = call->getCalledFunction();
          callee && !callee->isDeclaration() && callee != &function &&
          callee->hasFnAttribute(Attribute::AlwaysInline))
        calls.push_back(call);
  for (CallBase *call : calls) {
    InlineFunctionInfo info;
    (void)InlineFunction(*call, info, /*MergeAttributes=*/true, /*CalleeAAR=*/nullptr,
                         /*InsertLifetime=*/false); // what stays is tried again, and then refused
  }
}

/// How often each function would be inlined.
static DenseMap<Function *, uint64_t> countCopies(ArrayRef<Function *> calledFirst) {
  DenseMap<Function *, uint64_t> copies;
  for (Function *function : reverse(calledFirst)) {
    uint64_t here = function->hasFnAttribute(Attribute::AlwaysInline) ? copies[function] : 1;
    for (Instruction &instruction : instructions(*function))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        if (Function *callee = call->getCalledFunction(); callee && !callee->isDeclaration())
          copies[callee] = SaturatingAdd(copies[callee], here);
  }
  return copies;
}

void inlineSimplified(Module &module) {
  SmallVector<Function *> order = calledFirst(module);
  DenseMap<Function *, uint64_t> copies = countCopies(order);
  PassRunner runner;
  for (Function *function : order) {
    inlineCalls(*function);
    if (!function->hasFnAttribute(Attribute::AlwaysInline) || copies[function] < 2)
      continue; // simplified where it will be
    FunctionPassManager passes;
    passes.addPass(ExpandCopiesPass());
    addVariablesToRegisters(passes);
    passes.addPass(EarlyCSEPass());
    passes.addPass(SimplifyCFGPass());
    runner.run(*function, std::move(passes));
    keepIfRepeated(*function, copies[function]);
  }
}

} // namespace triton_metal
