#include "host_device/msl/Passes.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"

using namespace llvm;

namespace triton_metal {

static bool isShortFloat(Type *type) { return type->isHalfTy() || type->isBFloatTy(); }

/// Folds bits of one float format that are read as another. LLVM leaves such a constant as an
/// expression.
static Constant *foldBits(Constant *constant) {
  auto *expr = dyn_cast<ConstantExpr>(constant);
  if (!expr || expr->getOpcode() != Instruction::BitCast || !isShortFloat(expr->getType()))
    return nullptr;
  auto *number = dyn_cast<ConstantFP>(expr->getOperand(0));
  if (!number)
    return nullptr;
  return ConstantFP::get(expr->getType(), APFloat(expr->getType()->getFltSemantics(),
                                                  number->getValueAPF().bitcastToAPInt()));
}

static bool foldBits(Function &function) {
  bool changed = false;
  for (Instruction &inst : instructions(function))
    for (Use &use : inst.operands()) {
      auto *constant = dyn_cast<Constant>(use);
      if (!constant || !isShortFloat(constant->getType()->getScalarType()))
        continue;
      Constant *folded = nullptr;
      if (auto *vector = dyn_cast<ConstantVector>(constant)) {
        SmallVector<Constant *> elements;
        bool any = false;
        for (Use &element : vector->operands()) {
          Constant *known = foldBits(cast<Constant>(element));
          any |= known != nullptr;
          elements.push_back(known ? known : cast<Constant>(element));
        }
        folded = any ? ConstantVector::get(elements) : nullptr;
      } else {
        folded = foldBits(constant);
      }
      if (folded) {
        use.set(folded);
        changed = true;
      }
    }
  return changed;
}

static bool hasBothFormats(Function &function) {
  bool halves = false, bfloats = false;
  auto note = [&](Type *type) {
    halves |= type->getScalarType()->isHalfTy();
    bfloats |= type->getScalarType()->isBFloatTy();
  };
  for (Instruction &inst : instructions(function)) {
    note(inst.getType());
    for (Value *operand : inst.operands())
      note(operand->getType());
    if (halves && bfloats)
      return true;
  }
  return false;
}

PreservedAnalyses CombineInstructionsPass::run(Function &function,
                                               FunctionAnalysisManager &analyses) {
  PreservedAnalyses changed;
  changed.preserveSet<CFGAnalyses>();
  if (foldBits(function))
    analyses.invalidate(function, changed);
  if (!hasBothFormats(function)) {
    changed.intersect(InstCombinePass().run(function, analyses));
    return changed;
  }
  // Inserts a fence after every cast of bits to a short float, so that no comparison sees a cast
  // between formats. Inserts another one after every conversion of a bfloat to float, so that float
  // arithmetic that is rounded to half is not done in half, which has more digits than a bfloat but
  // a smaller range.
  for (Instruction &inst : make_early_inc_range(instructions(function))) {
    auto *cast = dyn_cast<CastInst>(&inst);
    if (!cast || !(isa<BitCastInst>(cast)
                       ? isShortFloat(cast->getType()->getScalarType())
                       : isa<FPExtInst>(cast) && cast->getSrcTy()->getScalarType()->isBFloatTy()))
      continue;
    IRBuilder<> builder(cast->getNextNode());
    builder.SetCurrentDebugLocation(cast->getDebugLoc());
    Value *fence = builder.CreateIntrinsic(Intrinsic::arithmetic_fence, {cast->getType()}, {cast});
    cast->replaceUsesWithIf(fence, [&](Use &use) { return use.getUser() != fence; });
  }
  analyses.invalidate(function, changed);
  InstCombinePass().run(function, analyses);
  for (Instruction &inst : make_early_inc_range(instructions(function)))
    if (auto *call = dyn_cast<CallInst>(&inst);
        call && call->getIntrinsicID() == Intrinsic::arithmetic_fence) {
      call->replaceAllUsesWith(call->getArgOperand(0));
      call->eraseFromParent();
    }
  foldBits(function);
  return changed;
}

} // namespace triton_metal
