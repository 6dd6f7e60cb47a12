// Bfloats without an arithmetic of their own: G13 has none, and converts by shifts.
#include "Gpu.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::gpu {

namespace {

bool isBfloat(const Value *value) { return value->getType()->getScalarType()->isBFloatTy(); }

Type *withScalar(Type *like, Type *scalar) {
  if (auto *vector = dyn_cast<VectorType>(like))
    return VectorType::get(scalar, vector->getElementCount());
  return scalar;
}

/// The float with the same value: the bits, sixteen places up.
Value *widen(IRBuilder<> &b, Value *x) {
  Type *words = withScalar(x->getType(), b.getInt32Ty());
  Value *bits = b.CreateBitCast(x, withScalar(x->getType(), b.getInt16Ty()));
  return b.CreateBitCast(b.CreateShl(b.CreateZExt(bits, words), 16),
                         withScalar(x->getType(), b.getFloatTy()));
}

/// The nearest bfloat, to even. A NaN stays one, by a test as in a GPU's own function.
Value *narrow(IRBuilder<> &b, Value *x) {
  Type *words = withScalar(x->getType(), b.getInt32Ty());
  Value *bits = b.CreateBitCast(x, words);
  Value *odd = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  Value *rounded = b.CreateAdd(bits, b.CreateAdd(odd, ConstantInt::get(words, 0x7fff)));
  Value *isNan = b.CreateFCmpUNO(x, x);
  rounded = b.CreateSelect(isNan, b.CreateOr(bits, 0x400000), rounded);
  Value *high = b.CreateTrunc(b.CreateLShr(rounded, 16), withScalar(x->getType(), b.getInt16Ty()));
  return b.CreateBitCast(high, withScalar(x->getType(), b.getBFloatTy()));
}

/// A function of each element that LLVM has moved before a conversion to float: fabs, fmin.
Value *expandCall(IRBuilder<> &b, IntrinsicInst &call) {
  if (!isTriviallyVectorizable(call.getIntrinsicID()) || !all_of(call.args(), isBfloat))
    return nullptr;
  if (call.getIntrinsicID() == Intrinsic::fabs) {
    Value *bits =
        b.CreateBitCast(call.getArgOperand(0), withScalar(call.getType(), b.getInt16Ty()));
    return b.CreateBitCast(b.CreateAnd(bits, 0x7fff), call.getType());
  }
  SmallVector<Value *> wide;
  for (Value *argument : call.args())
    wide.push_back(widen(b, argument));
  return narrow(b, b.CreateIntrinsic(call.getIntrinsicID(), wide.front()->getType(), wide));
}

} // namespace

void expandBfloat(Function &kernel) {
  for (Instruction &instruction : make_early_inc_range(instructions(kernel))) {
    IRBuilder<> b(&instruction);
    Value *result = nullptr;
    if (auto *cast = dyn_cast<FPExtInst>(&instruction); cast && isBfloat(cast->getOperand(0))) {
      result = b.CreateFPExt(widen(b, cast->getOperand(0)), cast->getType());
    } else if (auto *cast = dyn_cast<FPTruncInst>(&instruction); cast && isBfloat(cast)) {
      result = narrow(b, cast->getOperand(0));
    } else if (auto *cast = dyn_cast<CastInst>(&instruction);
               cast && isa<UIToFPInst, SIToFPInst>(cast) && isBfloat(cast)) {
      Type *wide = withScalar(cast->getType(), b.getFloatTy());
      result = narrow(b, b.CreateCast(cast->getOpcode(), cast->getOperand(0), wide));
    } else if (auto *cast = dyn_cast<CastInst>(&instruction);
               cast && isa<FPToUIInst, FPToSIInst>(cast) && isBfloat(cast->getOperand(0))) {
      result = b.CreateCast(cast->getOpcode(), widen(b, cast->getOperand(0)), cast->getType());
    } else if (auto *compare = dyn_cast<FCmpInst>(&instruction);
               compare && isBfloat(compare->getOperand(0))) {
      result = b.CreateFCmp(compare->getPredicate(), widen(b, compare->getOperand(0)),
                            widen(b, compare->getOperand(1)));
    } else if (auto *binary = dyn_cast<BinaryOperator>(&instruction); binary && isBfloat(binary)) {
      result = narrow(b, b.CreateBinOp(binary->getOpcode(), widen(b, binary->getOperand(0)),
                                       widen(b, binary->getOperand(1))));
    } else if (instruction.getOpcode() == Instruction::FNeg && isBfloat(&instruction)) {
      Type *bits = withScalar(instruction.getType(), b.getInt16Ty());
      result =
          b.CreateBitCast(b.CreateXor(b.CreateBitCast(instruction.getOperand(0), bits), 0x8000),
                          instruction.getType());
    } else if (auto *call = dyn_cast<IntrinsicInst>(&instruction); call && isBfloat(call)) {
      result = expandCall(b, *call);
    }
    if (!result)
      continue;
    instruction.replaceAllUsesWith(result);
    instruction.eraseFromParent();
  }
}

} // namespace triton_metal::gpu
