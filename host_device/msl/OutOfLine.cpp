// All functions are inlined into the kernels, because what a thread does may concern the other
// lanes of its SIMD-group. A function that only computes a number from numbers concerns none. Where
// a kernel calls such functions often, as with 64-bit floats, they stay functions, and are compiled
// once and not for each call.
#include "host_device/msl/OutOfLine.h"
#include "host_device/KernelInfo.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace triton_metal {

namespace {

/// In instructions before any optimisation. A kernel that is not larger has all inlined.
constexpr uint64_t largestKernel = 10'000, shortestFunction = 200;

/// A call costs about as much to compile as so many instructions. A function that is called has a
/// cost of its own.
constexpr uint64_t smallestRepeated = 8, fewestCopies = 8;

constexpr StringLiteral attribute = "tm-out-of-line", repeatedAttribute = "tm-repeated";

bool isNumber(Type *type) {
  return type->isFloatTy() || type->isIntegerTy(8) || type->isIntegerTy(16) ||
         type->isIntegerTy(32) || type->isIntegerTy(64);
}

/// Whether an instruction only touches variables of its function and constants.
bool isLocal(Instruction &inst) {
  if (auto *call = dyn_cast<CallBase>(&inst)) {
    Function *callee = call->getCalledFunction();
    return callee && (!callee->isDeclaration() || (callee->isIntrinsic() && !call->isConvergent()));
  }
  if (isa<IntToPtrInst, AddrSpaceCastInst, FenceInst, AtomicRMWInst, AtomicCmpXchgInst>(inst) ||
      inst.isVolatile() || inst.isAtomic())
    return false;
  Value *pointer = getLoadStorePointerOperand(&inst);
  if (!pointer)
    return true;
  auto space = static_cast<AddressSpace>(pointer->getType()->getPointerAddressSpace());
  return space == AddressSpace::Thread || (space == AddressSpace::Constant && isa<LoadInst>(inst));
}

class CallGraph {
public:
  /// The instructions of a function, with those that it calls.
  uint64_t size(Function &function) { return get(function).size; }

  bool canStay(Function &function) {
    return !function.isDeclaration() && !function.isVarArg() &&
           isNumber(function.getReturnType()) &&
           all_of(function.args(), [](Argument &arg) { return isNumber(arg.getType()); }) &&
           get(function).isLocal;
  }

private:
  struct Facts {
    uint64_t size = 0;
    bool isLocal = false;
  };

  Facts get(Function &function) {
    // A recursive call finds that the function is not local. It is refused later.
    auto [known, isNew] = facts.try_emplace(&function);
    if (!isNew)
      return known->second;
    Facts result{.size = 0, .isLocal = true};
    for (Instruction &inst : instructions(function)) {
      ++result.size;
      result.isLocal &= isLocal(inst);
      auto *call = dyn_cast<CallBase>(&inst);
      Function *callee = call ? call->getCalledFunction() : nullptr;
      if (!callee || callee->isDeclaration())
        continue;
      Facts inner = get(*callee);
      result.size += inner.size;
      result.isLocal &= inner.isLocal;
    }
    return facts[&function] = result;
  }

  DenseMap<Function *, Facts> facts;
};

} // namespace

static void keep(Function &function, StringRef mark) {
  function.addFnAttr(mark);
  function.removeFnAttr(Attribute::AlwaysInline);
  function.addFnAttr(Attribute::NoInline);
  function.setDoesNotThrow();
  // Its own variables and constants do not count as memory.
  function.setDoesNotAccessMemory();
}

bool isOutOfLine(const Function &function) {
  return function.hasFnAttribute(attribute) || function.hasFnAttribute(repeatedAttribute);
}

void inlineIfRepeated(Function &function) {
  if (!function.hasFnAttribute(repeatedAttribute))
    return;
  function.removeFnAttr(repeatedAttribute);
  function.removeFnAttr(Attribute::NoInline);
}

void inlineAfterAll(Function &function) {
  function.removeFnAttr(attribute);
  inlineIfRepeated(function);
}

void keepIfRepeated(Function &function, uint64_t copies) {
  if (copies < fewestCopies || !CallGraph().canStay(function))
    return;
  // Vectors of 64-bit numbers are twice as many registers.
  uint64_t size = 0;
  for (Instruction &instruction : instructions(function))
    if (!instruction.isTerminator())
      size += instruction.getType()->isIntegerTy(64) ? 2 : 1;
  if (size >= smallestRepeated)
    keep(function, repeatedAttribute);
}

void keepLongFunctions(Module &module, const SetVector<Function *> &kernels) {
  CallGraph graph;
  if (all_of(kernels, [&](Function *kernel) { return graph.size(*kernel) <= largestKernel; }))
    return;
  for (Function &function : module)
    if (!kernels.contains(&function) && graph.canStay(function) &&
        graph.size(function) >= shortestFunction)
      keep(function, attribute);
}

} // namespace triton_metal
