// Atomics of floats where a target has none.
#include "Gpu.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace triton_metal::gpu {

void standInForFloatAtomics(Function &kernel) {
  SmallVector<AtomicRMWInst *> atomics;
  for (Instruction &instruction : instructions(kernel))
    if (auto *atomic = dyn_cast<AtomicRMWInst>(&instruction))
      if (AtomicRMWInst::isFPOperation(atomic->getOperation()))
        atomics.push_back(atomic);
  for (AtomicRMWInst *atomic : atomics) {
    IRBuilder<> b(atomic);
    Type *type = atomic->getType();
    Type *bits = b.getIntNTy(type->getPrimitiveSizeInBits());
    Value *found =
        b.CreateAtomicRMW(AtomicRMWInst::Add, atomic->getPointerOperand(),
                          b.CreateBitCast(atomic->getValOperand(), bits), atomic->getAlign(),
                          atomic->getOrdering(), atomic->getSyncScopeID());
    atomic->replaceAllUsesWith(b.CreateBitCast(found, type));
    atomic->eraseFromParent();
  }
}

} // namespace triton_metal::gpu
