// LLVM may read a word whose bits are tested as a vector of bits. This pass replaces such accesses
// by accesses to the whole word.
#include "host_device/engine/Prepare.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace triton_metal::engine {

/// Whether elements of the type do not occupy whole bytes in memory.
static bool hasPartBytes(Type *type) {
  Type *scalar = type->getScalarType();
  return scalar->isIntegerTy() && scalar->getIntegerBitWidth() % 8 != 0 &&
         !isa<ScalableVectorType>(type);
}

void accessWholeBytes(Function &function) {
  const DataLayout &layout = function.getDataLayout();
  for (Instruction &inst : make_early_inc_range(instructions(function))) {
    auto *load = dyn_cast<LoadInst>(&inst);
    auto *store = dyn_cast<StoreInst>(&inst);
    if (!load && !store)
      continue;
    Type *type = load ? load->getType() : store->getValueOperand()->getType();
    if (!hasPartBytes(type))
      continue;
    IRBuilder<> builder(&inst);
    Type *bits = builder.getIntNTy(layout.getTypeSizeInBits(type));
    Type *bytes = builder.getIntNTy(layout.getTypeStoreSize(type) * 8);
    if (load) {
      LoadInst *whole = builder.CreateAlignedLoad(bytes, load->getPointerOperand(),
                                                  load->getAlign(), load->isVolatile());
      whole->setAtomic(load->getOrdering(), load->getSyncScopeID());
      whole->setAAMetadata(load->getAAMetadata());
      Value *value = builder.CreateBitCast(builder.CreateTrunc(whole, bits), type);
      value->takeName(load);
      load->replaceAllUsesWith(value);
    } else {
      Value *value = builder.CreateBitCast(store->getValueOperand(), bits);
      StoreInst *whole =
          builder.CreateAlignedStore(builder.CreateZExt(value, bytes), store->getPointerOperand(),
                                     store->getAlign(), store->isVolatile());
      whole->setAtomic(store->getOrdering(), store->getSyncScopeID());
      whole->setAAMetadata(store->getAAMetadata());
    }
    inst.eraseFromParent();
  }
}

} // namespace triton_metal::engine
