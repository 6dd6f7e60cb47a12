#include "host_device/msl/Passes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace triton_metal {

/// A shift counts modulo its width.
static bool defineShift(BinaryOperator *shift) {
  if (isa<Constant>(shift->getOperand(1)))
    return false;
  IRBuilder<> builder(shift);
  Type *type = shift->getType();
  shift->setOperand(1, builder.CreateAnd(shift->getOperand(1), type->getScalarSizeInBits() - 1));
  return true;
}

/// A division by zero, or of the least number by -1, must not stop the host: its divisor becomes 1.
static bool defineDivision(BinaryOperator *division) {
  bool isSigned =
      division->getOpcode() == Instruction::SDiv || division->getOpcode() == Instruction::SRem;
  Value *divisor = division->getOperand(1);
  Type *type = division->getType();
  if (auto *constant = dyn_cast<Constant>(divisor))
    if (const APInt *value; PatternMatch::match(constant, PatternMatch::m_APInt(value)) &&
                            !value->isZero() && !(isSigned && value->isAllOnes()))
      return false;
  IRBuilder<> builder(division);
  Value *bad = builder.CreateICmpEQ(divisor, ConstantInt::getNullValue(type));
  if (isSigned) {
    APInt least = APInt::getSignedMinValue(type->getScalarSizeInBits());
    Value *overflows = builder.CreateAnd(
        builder.CreateICmpEQ(division->getOperand(0), ConstantInt::get(type, least)),
        builder.CreateICmpEQ(divisor, ConstantInt::getAllOnesValue(type)));
    bad = builder.CreateOr(bad, overflows);
  }
  division->setOperand(1, builder.CreateSelect(bad, ConstantInt::get(type, 1), divisor));
  return true;
}

/// A number too large for its integer type becomes the nearest one that fits, NaN becomes 0.
static bool defineConversion(CastInst *cast) {
  IRBuilder<> builder(cast);
  Intrinsic::ID id =
      cast->getOpcode() == Instruction::FPToSI ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
  Value *source = cast->getOperand(0);
  if (source->getType()->getScalarType()->isBFloatTy()) {
    Type *floats = source->getType()->getWithNewType(builder.getFloatTy());
    source = builder.CreateFPExt(source, floats);
  }
  Value *result = builder.CreateIntrinsic(id, {cast->getType(), source->getType()}, {source});
  cast->replaceAllUsesWith(result);
  cast->eraseFromParent();
  return true;
}

PreservedAnalyses DefineArithmeticPass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    switch (instruction.getOpcode()) {
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
      changed |= defineShift(cast<BinaryOperator>(&instruction));
      break;
    case Instruction::SDiv:
    case Instruction::UDiv:
    case Instruction::SRem:
    case Instruction::URem:
      changed |= defineDivision(cast<BinaryOperator>(&instruction));
      break;
    case Instruction::FPToSI:
    case Instruction::FPToUI:
      changed |= defineConversion(cast<CastInst>(&instruction));
      break;
    default:
      break;
    }
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace triton_metal
