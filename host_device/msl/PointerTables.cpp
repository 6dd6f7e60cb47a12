#include "host_device/msl/PointerTables.h"

#include "host_device/KernelInfo.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ReplaceConstant.h"

using namespace llvm;

namespace triton_metal {

namespace {

constexpr unsigned threadgroupSpace = unsigned(AddressSpace::Threadgroup);

/// Whether a constant is made of the address of a threadgroup variable.
bool holdsThreadgroupPointer(const Constant *constant, SmallPtrSetImpl<const Constant *> &seen) {
  if (!seen.insert(constant).second)
    return false;
  if (auto *variable = dyn_cast<GlobalVariable>(constant))
    return variable->getAddressSpace() == threadgroupSpace;
  return any_of(constant->operands(), [&](const Use &operand) {
    auto *part = dyn_cast<Constant>(operand.get());
    return part && holdsThreadgroupPointer(part, seen);
  });
}

/// Stores a constant number by number.
void storeParts(IRBuilder<> &builder, Constant *constant, Value *place) {
  Type *type = constant->getType();
  const DataLayout &layout = builder.GetInsertBlock()->getDataLayout();
  auto store = [&](unsigned index, uint64_t offset) {
    storeParts(builder, constant->getAggregateElement(index),
               builder.CreatePtrAdd(place, builder.getInt64(offset)));
  };
  if (auto *structure = dyn_cast<StructType>(type)) {
    const StructLayout *places = layout.getStructLayout(structure);
    for (unsigned i = 0; i != structure->getNumElements(); ++i)
      store(i, places->getElementOffset(i));
  } else if (auto *array = dyn_cast<ArrayType>(type)) {
    uint64_t size = layout.getTypeAllocSize(array->getElementType());
    for (uint64_t i = 0; i != array->getNumElements(); ++i)
      store(unsigned(i), i * size);
  } else {
    builder.CreateStore(constant, place);
  }
}

/// Has a use of a table, in its address space, read a variable of the thread instead. Returns
/// whether that is known of this use.
bool replaceUse(Use &use, Value *variable) {
  auto *user = cast<Instruction>(use.getUser());
  IRBuilder<> builder(user);
  if (isa<LoadInst>(user)) {
    use.set(variable);
    return true;
  }
  if (auto *copy = dyn_cast<MemTransferInst>(user); copy && &use == &copy->getRawSourceUse()) {
    builder.CreateMemTransferInst(copy->getIntrinsicID(), copy->getRawDest(), copy->getDestAlign(),
                                  variable, copy->getSourceAlign(), copy->getLength(),
                                  copy->isVolatile());
    copy->eraseFromParent();
    return true;
  }
  // What points into it.
  Value *moved = nullptr;
  if (auto *element = dyn_cast<GetElementPtrInst>(user)) {
    moved =
        builder.CreateGEP(element->getSourceElementType(), variable,
                          SmallVector<Value *>(element->indices()), "", element->getNoWrapFlags());
  } else if (isa<AddrSpaceCastInst>(user) && user->getType() == variable->getType()) {
    user->replaceAllUsesWith(variable);
    user->eraseFromParent();
    return true;
  }
  if (!moved)
    return false;
  while (!user->use_empty())
    if (!replaceUse(*user->use_begin(), moved))
      return false;
  user->eraseFromParent();
  return true;
}

} // namespace

Error expandPointerTables(Module &module) {
  SmallVector<GlobalVariable *> tables;
  for (GlobalVariable &table : module.globals()) {
    SmallPtrSet<const Constant *, 16> seen;
    if (table.hasInitializer() && table.isConstant() &&
        holdsThreadgroupPointer(table.getInitializer(), seen))
      tables.push_back(&table);
  }
  convertUsersOfConstantsToInstructions(SmallVector<Constant *>(tables.begin(), tables.end()));
  for (GlobalVariable *table : tables) {
    MapVector<Function *, SmallVector<Use *>> uses;
    for (Use &use : table->uses())
      if (auto *user = dyn_cast<Instruction>(use.getUser()))
        uses[user->getFunction()].push_back(&use);
    for (auto &[function, some] : uses) {
      IRBuilder<> builder(&*function->getEntryBlock().getFirstInsertionPt());
      AllocaInst *variable = builder.CreateAlloca(table->getValueType(), nullptr, table->getName());
      if (MaybeAlign align = table->getAlign())
        variable->setAlignment(*align);
      storeParts(builder, table->getInitializer(), variable);
      for (Use *use : some) {
        if (table->getAddressSpace() == 0)
          use->set(variable);
        else if (!replaceUse(*use, variable))
          return createStringError("constant '%s' holds pointers to threadgroup variables, and "
                                   "must be read where it is named",
                                   table->getName().str().c_str());
      }
    }
    if (table->use_empty())
      table->eraseFromParent();
  }
  return Error::success();
}

} // namespace triton_metal
