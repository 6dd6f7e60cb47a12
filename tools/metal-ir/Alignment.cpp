// Vectors in memory that are aligned to their elements alone. Apple's GPUs read and write them with
// one instruction. NVIDIA's want the alignment of the whole vector, and LLVM falls back to
// elements.
#include "Gpu.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace triton_metal::gpu {

namespace {

constexpr unsigned globalSpace = 1, wordBytes = 4, mostBytes = 16;

/// A load or a store of a vector that is aligned to its elements alone.
struct Access {
  Instruction *instruction;
  Value *pointer;
  FixedVectorType *type;
  unsigned elementBytes;

  bool isLoad() const { return isa<LoadInst>(instruction); }
  unsigned bytes() const { return elementBytes * type->getNumElements(); }
};

/// Elements that follow each other in memory and in the code. The front end reads and writes a
/// packed vector so.
struct Run {
  SmallVector<Instruction *> elements;
  Value *base = nullptr;
  int64_t next = 0;

  bool extends(Instruction &element, Value *itsBase, int64_t offset) const {
    return !elements.empty() && itsBase == base && offset == next &&
           element.getOpcode() == elements.front()->getOpcode() &&
           getLoadStoreType(&element) == getLoadStoreType(elements.front());
  }
};

/// Bytes of a number in a buffer that a vector could have as an element, or 0. A buffer that the
/// launch hands over itself is none: nothing is behind it.
unsigned elementBytes(Instruction &instruction) {
  bool isSimple = isa<LoadInst>(instruction)
                      ? cast<LoadInst>(instruction).isSimple()
                      : isa<StoreInst>(instruction) && cast<StoreInst>(instruction).isSimple();
  if (!isSimple || getLoadStoreAddressSpace(&instruction) != globalSpace)
    return 0;
  auto *argument =
      dyn_cast<Argument>(getUnderlyingObject(getLoadStorePointerOperand(&instruction), 0));
  if (argument && argument->hasByValAttr())
    return 0;
  Type *type = getLoadStoreType(&instruction);
  unsigned bits = type->isVectorTy() || type->isPointerTy() ? 0 : type->getScalarSizeInBits();
  return bits == 8 || bits == 16 || bits == 32 ? bits / 8 : 0;
}

/// One access in place of the elements'.
Access joined(ArrayRef<Instruction *> elements) {
  Type *element = getLoadStoreType(elements.front());
  auto *type = FixedVectorType::get(element, elements.size());
  unsigned bytes = element->getScalarSizeInBits() / 8;
  Value *pointer = getLoadStorePointerOperand(elements.front());
  if (isa<LoadInst>(elements.front())) {
    IRBuilder<> b(elements.front());
    LoadInst *load = b.CreateAlignedLoad(type, pointer, Align(bytes));
    for (auto [i, each] : enumerate(elements))
      each->replaceAllUsesWith(b.CreateExtractElement(load, i));
    return {load, pointer, type, bytes};
  }
  IRBuilder<> b(elements.back());
  Value *vector = PoisonValue::get(type);
  for (auto [i, each] : enumerate(elements))
    vector = b.CreateInsertElement(vector, cast<StoreInst>(each)->getValueOperand(), i);
  return {b.CreateAlignedStore(vector, pointer, Align(bytes)), pointer, type, bytes};
}

/// Joins a run, in pieces of two, four, eight elements, of a word at least.
void join(Run &run, SmallVectorImpl<Access> &accesses) {
  ArrayRef<Instruction *> left = run.elements;
  unsigned bytes = left.empty() ? 0 : elementBytes(*left.front());
  while (left.size() > 1) {
    unsigned count = std::min<unsigned>(llvm::bit_floor(left.size()), mostBytes / bytes);
    bool isAligned = getLoadStoreAlignment(left.front()).value() >= count * bytes;
    if (!isAligned && count * bytes >= wordBytes) {
      accesses.push_back(joined(left.take_front(count)));
      for (Instruction *element : left.take_front(count))
        element->eraseFromParent();
    }
    left = left.drop_front(count);
  }
  run = {};
}

/// The accesses to vectors. What stands between the elements of one touches no memory.
SmallVector<Access> findVectors(Function &kernel) {
  const DataLayout &layout = kernel.getDataLayout();
  SmallVector<Access> accesses;
  for (BasicBlock &block : kernel) {
    Run run;
    for (Instruction &instruction : make_early_inc_range(block)) {
      if (!instruction.mayReadOrWriteMemory())
        continue;
      if (!elementBytes(instruction)) {
        join(run, accesses);
        continue;
      }
      APInt moved(64, 0);
      Value *base = getLoadStorePointerOperand(&instruction)
                        ->stripAndAccumulateConstantOffsets(layout, moved, true);
      int64_t offset = moved.getSExtValue();
      if (!run.extends(instruction, base, offset))
        join(run, accesses);
      run.elements.push_back(&instruction);
      run.base = base;
      run.next = offset + elementBytes(instruction);
    }
    join(run, accesses);
  }
  return accesses;
}

/// The whole vector where it is aligned, else its elements.
void version(const Access &access) {
  IRBuilder<> b(access.instruction);
  Value *address = b.CreatePtrToInt(access.pointer, b.getInt64Ty());
  Value *isAligned = b.CreateIsNull(b.CreateAnd(address, access.bytes() - 1));
  Instruction *then = nullptr, *otherwise = nullptr;
  SplitBlockAndInsertIfThenElse(isAligned, access.instruction->getIterator(), &then, &otherwise);

  Instruction *whole = access.instruction->clone();
  whole->insertBefore(then->getIterator());
  Align alignment(access.bytes());
  access.isLoad() ? cast<LoadInst>(whole)->setAlignment(alignment)
                  : cast<StoreInst>(whole)->setAlignment(alignment);

  b.SetInsertPoint(otherwise);
  Type *element = access.type->getElementType();
  Value *read = PoisonValue::get(access.type);
  for (unsigned i = 0; i < access.type->getNumElements(); ++i) {
    Value *place = b.CreateConstInBoundsGEP1_64(element, access.pointer, i);
    Align own(access.elementBytes);
    if (access.isLoad())
      read = b.CreateInsertElement(read, b.CreateAlignedLoad(element, place, own), i);
    else
      b.CreateAlignedStore(
          b.CreateExtractElement(cast<StoreInst>(access.instruction)->getValueOperand(), i), place,
          own);
  }
  if (access.isLoad()) {
    b.SetInsertPoint(access.instruction);
    PHINode *result = b.CreatePHI(access.type, 2);
    result->addIncoming(whole, then->getParent());
    result->addIncoming(read, otherwise->getParent());
    access.instruction->replaceAllUsesWith(result);
  }
  access.instruction->eraseFromParent();
}

} // namespace

void versionUnaligned(Function &kernel) {
  for (const Access &access : findVectors(kernel))
    version(access);
}

} // namespace triton_metal::gpu
