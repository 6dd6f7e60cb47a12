// Both halves of a product in one multiplication, where a GPU has one of twice the width.
#include "Gpu.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::gpu {

namespace {

/// Two numbers of 32 bits, or one and a constant's low 32 bits, in an order of their own.
using Factors = std::pair<Value *, Value *>;

Factors ordered(Value *x, Value *y) {
  return std::less<Value *>()(x, y) ? Factors(x, y) : Factors(y, x);
}

/// What a product of 64 bits multiplies, if both factors are numbers of 32 bits.
std::optional<Factors> wideFactors(Instruction &instruction) {
  Value *x, *y;
  const APInt *constant;
  Type *i32 = Type::getInt32Ty(instruction.getContext());
  if (!instruction.getType()->isIntegerTy(64) ||
      !match(&instruction, m_Mul(m_ZExtOrSExt(m_Value(x)), m_Value(y))) || x->getType() != i32)
    return std::nullopt;
  if (match(y, m_APInt(constant)))
    return ordered(x, ConstantInt::get(i32, constant->trunc(32)));
  if (match(y, m_ZExtOrSExt(m_Value(y))) && y->getType() == i32)
    return ordered(x, y);
  return std::nullopt;
}

/// Whether there was something to share. What is replaced may be a factor of other products, which
/// the next time finds.
bool shareOnce(Function &kernel) {
  MapVector<Factors, SmallVector<Instruction *, 1>> products;
  for (Instruction &instruction : instructions(kernel))
    if (std::optional<Factors> factors = wideFactors(instruction))
      products[*factors].push_back(&instruction);
  DominatorTree dominators(kernel);
  // They are erased at the end, as the factors above may be among them.
  SmallVector<Instruction *> replaced;
  for (Instruction &low : make_early_inc_range(instructions(kernel))) {
    if (low.getOpcode() != Instruction::Mul || !low.getType()->isIntegerTy(32))
      continue;
    auto *found = products.find(ordered(low.getOperand(0), low.getOperand(1)));
    if (found == products.end())
      continue;
    for (Instruction *&product : found->second) {
      if (!dominators.dominates(product, &low)) {
        if (!dominators.dominates(&low, product))
          continue;
        // The factors are there where the narrow product is, but not yet in 64 bits.
        for (Use &factor : product->operands())
          if (auto *extension = dyn_cast<Instruction>(factor)) {
            factor = extension->clone();
            cast<Instruction>(factor)->insertBefore(low.getIterator());
          }
        product->moveBefore(low.getIterator());
      }
      IRBuilder<> b(&low);
      low.replaceAllUsesWith(b.CreateTrunc(product, low.getType()));
      replaced.push_back(&low);
      break;
    }
  }
  for (Instruction *low : replaced)
    low->eraseFromParent();
  return !replaced.empty();
}

} // namespace

void shareProducts(Function &kernel) {
  while (shareOnce(kernel)) {
  }
}

} // namespace triton_metal::gpu
