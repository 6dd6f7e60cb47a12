#include "host_device/msl/Passes.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal {

/// A copy of more pieces is not expanded.
static constexpr uint64_t maxPieces = 64;

static bool isThreadMemory(const Value *pointer) {
  return isa<AllocaInst>(getUnderlyingObject(pointer, /*MaxLookup=*/0));
}

static Type *pieceType(LLVMContext &context, uint64_t bytes) {
  Type *i32 = Type::getInt32Ty(context);
  switch (bytes) {
  case 16:
    return FixedVectorType::get(i32, 4);
  case 8:
    return FixedVectorType::get(i32, 2);
  default:
    return Type::getIntNTy(context, static_cast<unsigned>(bytes * 8));
  }
}

static bool expand(MemCpyInst *copy) {
  auto *length = dyn_cast<ConstantInt>(copy->getLength());
  if (!length || copy->isVolatile())
    return false;
  uint64_t bytes = length->getZExtValue();
  if (isThreadMemory(copy->getSource()) && isThreadMemory(copy->getDest()))
    return false;
  uint64_t alignment = std::min<uint64_t>(
      {copy->getDestAlign().valueOrOne().value(), copy->getSourceAlign().valueOrOne().value(), 16});
  if (bytes / alignment > maxPieces)
    return false;
  IRBuilder<> builder(copy);
  // All loads come before the stores, because source and destination may be the same.
  SmallVector<std::pair<uint64_t, Value *>> pieces;
  for (uint64_t at = 0; at < bytes;) {
    uint64_t size = alignment;
    while (size > bytes - at)
      size /= 2;
    Value *from = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), copy->getSource(), at);
    pieces.push_back({at, builder.CreateAlignedLoad(pieceType(copy->getContext(), size), from,
                                                    Align(std::min(alignment, size)))});
    at += size;
  }
  for (auto [at, value] : pieces) {
    Value *to = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), copy->getDest(), at);
    uint64_t size = value->getType()->getPrimitiveSizeInBits() / 8;
    builder.CreateAlignedStore(value, to, Align(std::min(alignment, size)));
  }
  copy->eraseFromParent();
  return true;
}

PreservedAnalyses ExpandCopiesPass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function)))
    if (auto *copy = dyn_cast<MemCpyInst>(&instruction))
      changed |= expand(copy);
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace triton_metal
