// Finds reads of threadgroup memory that no thread of the threadgroup has written. For each byte,
// another one behind the memory (Abi.h) tells whether it has been.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/GroupRecord.h"
#include "host_device/engine/Prepare.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine {

namespace {

/// The elements of a loaded vector that something uses, as a mask.
Constant *usedElements(LoadInst *load, FixedVectorType *type) {
  APInt used(type->getNumElements(), 0);
  for (User *user : load->users()) {
    if (auto *extract = dyn_cast<ExtractElementInst>(user);
        extract && isa<ConstantInt>(extract->getIndexOperand())) {
      uint64_t index = cast<ConstantInt>(extract->getIndexOperand())->getZExtValue();
      if (index < type->getNumElements())
        used.setBit(index);
    } else if (auto *shuffle = dyn_cast<ShuffleVectorInst>(user);
               shuffle && shuffle->getOperand(0) == load && shuffle->getOperand(1) != load) {
      for (int element : shuffle->getShuffleMask())
        if (element >= 0 && unsigned(element) < type->getNumElements())
          used.setBit(element);
    } else {
      used.setAllBits();
    }
  }
  SmallVector<Constant *> elements;
  for (unsigned i = 0; i != type->getNumElements(); ++i)
    elements.push_back(ConstantInt::getBool(type->getContext(), used[i]));
  return ConstantVector::get(elements);
}

void check(Instruction *inst, Value *pointer, Type *type, Align align, CodeFacts &facts) {
  Type *integers = integersLike(type);
  if (!integers || (isa<LoadInst>(inst) && inst->use_empty()))
    return;
  IRBuilder<> builder(inst);
  Module &module = *inst->getModule();
  Value *record = builder.CreateAlignedLoad(integers, writersOf(builder, pointer), align);
  Value *bad = builder.CreateICmpNE(record, Constant::getAllOnesValue(integers));
  if (auto *vector = dyn_cast<FixedVectorType>(integers)) {
    if (auto *load = dyn_cast<LoadInst>(inst))
      bad = builder.CreateAnd(bad, usedElements(load, vector));
    bad = builder.CreateOrReduce(bad);
  }
  Site site;
  fillLocation(site, *inst);
  fillObject(site, *memoryAccess(*inst));
  auto callee = declareBuiltin(module, failName, builder.getVoidTy(),
                               {builder.getInt1Ty(), builder.getInt32Ty(), pointer->getType()},
                               pointer->getType()->getPointerAddressSpace());
  builder.CreateCall(callee, {bad, builder.getInt32(facts.sites.size()), pointer});
  facts.sites.push_back(site);
}

void record(Instruction *inst, Value *pointer, Type *type, Align align) {
  IRBuilder<> builder(inst);
  if (Type *integers = integersLike(type))
    builder.CreateAlignedStore(Constant::getAllOnesValue(integers), writersOf(builder, pointer),
                               align);
}

} // namespace

void checkThreadgroupMemory(Function &function, CodeFacts &facts) {
  SmallVector<std::pair<Instruction *, MemoryAccess>> accesses;
  for (Instruction &inst : instructions(function))
    if (auto access = memoryAccess(inst); access && access->space == AddressSpace::Threadgroup)
      accesses.push_back({&inst, *access});
  for (auto &[inst, access] : accesses) {
    Align align(access.alignment);
    if (auto *load = dyn_cast<LoadInst>(inst)) {
      check(load, access.pointer, load->getType(), align, facts);
    } else if (auto *store = dyn_cast<StoreInst>(inst)) {
      record(store, access.pointer, store->getValueOperand()->getType(), align);
    } else {
      auto *exchange = dyn_cast<AtomicCmpXchgInst>(inst);
      Type *type = exchange ? exchange->getCompareOperand()->getType() : inst->getType();
      auto *rmw = dyn_cast<AtomicRMWInst>(inst);
      if (!rmw || rmw->getOperation() != AtomicRMWInst::Xchg)
        check(inst, access.pointer, type, align, facts);
      record(inst, access.pointer, type, align);
    }
  }
}

} // namespace triton_metal::engine
