#include "host_device/engine/FloatModifiers.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace triton_metal::engine {

bool isFloatArithmetic(const User *user) {
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(user))
    return intrinsic->getIntrinsicID() == Intrinsic::fma ||
           intrinsic->getIntrinsicID() == Intrinsic::fmuladd;
  auto *inst = dyn_cast<Instruction>(user);
  if (!inst)
    return false;
  switch (inst->getOpcode()) {
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
  case Instruction::FCmp:
  case Instruction::FNeg:
    return !inst->getOperand(0)->getType()->getScalarType()->isBFloatTy();
  default:
    return false;
  }
}

bool isMatrixProduct(const User *user) {
  auto *call = dyn_cast<CallBase>(user);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->getName() == "__tm_simdgroup_mma";
}

static bool isArithmetic(const User *user, IsFunction isFunction) {
  auto *inst = dyn_cast<Instruction>(user);
  return isFloatArithmetic(user) || isMatrixProduct(user) ||
         (inst && isFunction && isFunction(*inst));
}

/// Whether all that reads a float, or the vector that it becomes a part of, is arithmetic.
static bool isOnlyComputedWith(const Value &value, IsFunction isFunction) {
  return !value.use_empty() && all_of(value.users(), [&](const User *user) {
    return isArithmetic(user, isFunction) ||
           (isa<ExtractElementInst, InsertElementInst, ShuffleVectorInst>(user) &&
            isOnlyComputedWith(*user, isFunction));
  });
}

bool isPartOfUsers(const Instruction &inst, IsFunction isFunction) {
  Type *type = inst.getType()->getScalarType();
  bool isModifier =
      isa<FPExtInst>(inst)
          ? inst.getOperand(0)->getType()->getScalarType()->isHalfTy()
          : inst.getOpcode() == Instruction::FNeg ||
                PatternMatch::match(&inst, PatternMatch::m_FAbs(PatternMatch::m_Value()));
  return isModifier && (type->isFloatTy() || type->isHalfTy()) &&
         isOnlyComputedWith(inst, isFunction);
}

/// Whether a float, or each part of a vector, is a result of arithmetic that nothing else reads.
static bool isOnlyComputed(const Value *value, IsFunction isFunction) {
  auto *inst = dyn_cast<Instruction>(value);
  if (!inst)
    return isa<UndefValue>(value);
  if (!inst->hasOneUse())
    return false;
  if (isa<InsertElementInst, ShuffleVectorInst>(inst))
    return isOnlyComputed(inst->getOperand(0), isFunction) &&
           isOnlyComputed(inst->getOperand(1), isFunction);
  return isArithmetic(inst, isFunction);
}

bool isPartOfOperand(const Instruction &inst, IsFunction isFunction) {
  return isa<FPTruncInst>(inst) && inst.getType()->getScalarType()->isHalfTy() &&
         inst.getOperand(0)->getType()->getScalarType()->isFloatTy() &&
         isOnlyComputed(inst.getOperand(0), isFunction);
}

} // namespace triton_metal::engine
