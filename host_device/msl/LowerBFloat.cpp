#include "host_device/msl/Passes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal {

static Type *withScalar(Type *shape, Type *scalar) {
  if (auto *vector = dyn_cast<VectorType>(shape))
    return VectorType::get(scalar, vector->getElementCount());
  return scalar;
}

static bool isBFloat(const Value *value) { return value->getType()->getScalarType()->isBFloatTy(); }

/// Makes instructions that spell a conversion out. They carry a mark, for a Metal thread executes none of them.
struct ConversionBuilder : IRBuilder<ConstantFolder, IRBuilderCallbackInserter> {
  explicit ConversionBuilder(IRBuilder<> &around)
      : IRBuilder(around.getContext(), ConstantFolder(),
                  IRBuilderCallbackInserter([](Instruction *instruction) {
                    LLVMContext &context = instruction->getContext();
                    instruction->setMetadata(conversionMark, MDNode::get(context, {}));
                  })) {
    SetInsertPoint(around.GetInsertBlock(), around.GetInsertPoint());
    SetCurrentDebugLocation(around.getCurrentDebugLocation());
  }
};

/// bfloat -> float: its bits are the upper half.
static Value *widen(IRBuilder<> &around, Value *value) {
  ConversionBuilder builder(around);
  Type *type = value->getType();
  if (auto *constant = dyn_cast<ConstantFP>(value)) {
    APFloat number = constant->getValueAPF();
    bool inexact;
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &inexact);
    return ConstantFP::get(withScalar(type, builder.getFloatTy()), number);
  }
  Value *bits = builder.CreateBitCast(value, withScalar(type, builder.getInt16Ty()));
  bits = builder.CreateZExt(bits, withScalar(type, builder.getInt32Ty()));
  bits = builder.CreateShl(bits, 16);
  return builder.CreateBitCast(bits, withScalar(type, builder.getFloatTy()));
}

/// float -> bfloat, to nearest even; a NaN stays one.
static Value *narrow(IRBuilder<> &around, Value *value) {
  ConversionBuilder builder(around);
  Type *type = value->getType();
  Type *i32 = withScalar(type, builder.getInt32Ty());
  Value *bits = builder.CreateBitCast(value, i32);
  Value *odd = builder.CreateAnd(builder.CreateLShr(bits, 16), ConstantInt::get(i32, 1));
  Value *rounded = builder.CreateAdd(bits, builder.CreateAdd(odd, ConstantInt::get(i32, 0x7fff)));
  Value *quiet = builder.CreateOr(bits, ConstantInt::get(i32, 0x400000));
  Value *isNaN = builder.CreateFCmpUNO(value, value);
  Value *chosen = builder.CreateSelect(isNaN, quiet, rounded);
  Value *half = builder.CreateTrunc(builder.CreateLShr(chosen, 16),
                                    withScalar(type, builder.getInt16Ty()));
  return builder.CreateBitCast(half, withScalar(type, builder.getBFloatTy()));
}

static bool lower(Instruction *instruction) {
  bool result = isBFloat(instruction);
  bool operands = any_of(instruction->operands(), [](Value *v) { return isBFloat(v); });
  if (!result && !operands)
    return false;
  IRBuilder<> builder(instruction);
  Type *floats = withScalar(instruction->getType(), builder.getFloatTy());
  Value *replacement = nullptr;
  switch (instruction->getOpcode()) {
  case Instruction::FNeg: {
    Type *bits = withScalar(instruction->getType(), builder.getInt16Ty());
    Value *flipped = builder.CreateXor(builder.CreateBitCast(instruction->getOperand(0), bits),
                                       ConstantInt::get(bits, 0x8000));
    replacement = builder.CreateBitCast(flipped, instruction->getType());
    break;
  }
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
  case Instruction::FDiv:
  case Instruction::FRem: {
    builder.setFastMathFlags(instruction->getFastMathFlags());
    Value *wide = builder.CreateBinOp(cast<BinaryOperator>(instruction)->getOpcode(),
                                      widen(builder, instruction->getOperand(0)),
                                      widen(builder, instruction->getOperand(1)));
    replacement = narrow(builder, wide);
    break;
  }
  case Instruction::FCmp:
    replacement = builder.CreateFCmp(cast<FCmpInst>(instruction)->getPredicate(),
                                     widen(builder, instruction->getOperand(0)),
                                     widen(builder, instruction->getOperand(1)));
    break;
  case Instruction::FPExt: {
    Value *wide = widen(builder, instruction->getOperand(0));
    replacement = builder.CreateFPExt(wide, instruction->getType());
    break;
  }
  case Instruction::FPTrunc: {
    Value *value = instruction->getOperand(0);
    if (!value->getType()->getScalarType()->isFloatTy())
      value = builder.CreateFPTrunc(value, floats);
    replacement = narrow(builder, value);
    break;
  }
  case Instruction::SIToFP:
  case Instruction::UIToFP:
    replacement = narrow(builder, builder.CreateCast(cast<CastInst>(instruction)->getOpcode(),
                                                     instruction->getOperand(0), floats));
    break;
  case Instruction::FPToSI:
  case Instruction::FPToUI:
    replacement = builder.CreateCast(cast<CastInst>(instruction)->getOpcode(),
                                     widen(builder, instruction->getOperand(0)),
                                     instruction->getType());
    break;
  case Instruction::Call: {
    auto *call = dyn_cast<IntrinsicInst>(instruction);
    if (!call || call->getIntrinsicID() == Intrinsic::fake_use)
      return false;
    // Intrinsics of one type, all of whose overloaded operands are bfloat: fabs, fma, sqrt, floor and the like.
    SmallVector<Value *> arguments;
    for (Value *argument : call->args())
      arguments.push_back(isBFloat(argument) ? widen(builder, argument) : argument);
    if (!result)
      return false;
    Type *overloads[] = {floats};
    CallInst *wide = builder.CreateIntrinsic(call->getIntrinsicID(), overloads, arguments);
    wide->copyFastMathFlags(call);
    replacement = narrow(builder, wide);
    break;
  }
  default:
    return false; // it moves bits
  }
  replacement->takeName(instruction);
  instruction->replaceAllUsesWith(replacement);
  instruction->eraseFromParent();
  return true;
}

PreservedAnalyses LowerBFloatPass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function)))
    changed |= lower(&instruction);
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace triton_metal
