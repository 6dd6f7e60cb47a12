#include "host_device/engine/HighProducts.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::engine {

/// The factor as a vector of half the width, if its upper halves are 0; otherwise null.
static Value *getNarrow(IRBuilder<> &builder, Value *factor, Type *narrow) {
  Value *source;
  if (match(factor, m_ZExt(m_Value(source))) &&
      source->getType()->getScalarSizeInBits() <= narrow->getScalarSizeInBits())
    return builder.CreateZExt(source, narrow);
  auto *constant = dyn_cast<Constant>(factor);
  if (!constant)
    return nullptr;
  // All bits of a number that the narrow type cannot hold are not 0 there.
  Value *low = builder.CreateTrunc(constant, narrow);
  return builder.CreateZExt(low, factor->getType()) == constant ? low : nullptr;
}

void splitHighProducts(Function &function) {
  SmallVector<Instruction *> shifts;
  for (Instruction &inst : instructions(function)) {
    auto *type = dyn_cast<FixedVectorType>(inst.getType());
    const APInt *amount;
    if (type && type->getScalarSizeInBits() <= 64 && type->getNumElements() % 2 == 0 &&
        match(&inst, m_LShr(m_Mul(m_Value(), m_Value()), m_APInt(amount))) &&
        *amount == type->getScalarSizeInBits() / 2)
      shifts.push_back(&inst);
  }
  for (Instruction *shift : shifts) {
    auto *type = cast<FixedVectorType>(shift->getType());
    unsigned half = type->getScalarSizeInBits() / 2;
    auto *product = cast<Instruction>(shift->getOperand(0));
    auto *narrow =
        FixedVectorType::get(IntegerType::get(shift->getContext(), half), type->getNumElements());
    auto *pairs = FixedVectorType::get(type->getElementType(), type->getNumElements() / 2);
    IRBuilder<> builder(shift);
    Value *lhs = getNarrow(builder, product->getOperand(0), narrow);
    Value *rhs = lhs ? getNarrow(builder, product->getOperand(1), narrow) : nullptr;
    if (!rhs)
      continue;
    lhs = builder.CreateBitCast(lhs, pairs);
    rhs = builder.CreateBitCast(rhs, pairs);
    Constant *low = ConstantInt::get(pairs, APInt::getLowBitsSet(2 * half, half));
    Constant *high = ConstantInt::get(pairs, APInt::getHighBitsSet(2 * half, half));
    Value *even = builder.CreateMul(builder.CreateAnd(lhs, low), builder.CreateAnd(rhs, low));
    Value *odd = builder.CreateMul(builder.CreateLShr(lhs, half), builder.CreateLShr(rhs, half));
    Value *both = builder.CreateOr(builder.CreateLShr(even, half), builder.CreateAnd(odd, high));
    shift->replaceAllUsesWith(builder.CreateZExt(builder.CreateBitCast(both, narrow), type));
    shift->eraseFromParent();
    if (product->use_empty())
      product->eraseFromParent();
  }
}

} // namespace triton_metal::engine
