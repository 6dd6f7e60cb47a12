#include "host_device/msl/AnyValues.h"
#include "host_device/msl/CheckValues.h"
#include "host_device/msl/Passes.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace triton_metal {

/// In a portable module, the result is any value where `bad` holds.
static void pessimize(Instruction *inst, Value *bad, Unpromised reason, Value *salt = nullptr) {
  if (auto *constant = dyn_cast<Constant>(bad); constant && constant->isNullValue())
    return;
  IRBuilder<> builder(inst->getNextNode());
  builder.SetCurrentDebugLocation(inst->getDebugLoc());
  AnyValue what{reason};
  if (salt && !salt->getType()->isVectorTy())
    what.salt = builder.CreateZExtOrTrunc(salt, builder.getInt64Ty());
  SmallVector<Use *> uses;
  for (Use &use : inst->uses())
    uses.push_back(&use);
  Value *result = buildAnyIf(builder, bad, inst, what);
  for (Use *use : uses)
    if (use->getUser() != result)
      use->set(result);
}

/// A shift counts modulo its width.
static void defineShift(BinaryOperator *shift) {
  IRBuilder<> builder(shift);
  Type *type = shift->getType();
  unsigned width = type->getScalarSizeInBits();
  Value *amount = shift->getOperand(1);
  shift->setOperand(1, builder.CreateAnd(amount, width - 1));
  if (checksOf(*shift->getModule()).arithmetic)
    buildCheck(builder, builder.CreateICmpUGE(amount, ConstantInt::get(type, width)),
               "a shift by the width of its type or more");
  if (isPortable(*shift->getModule()) &&
      computeKnownBits(amount, shift->getDataLayout()).getMaxValue().uge(width))
    pessimize(shift, builder.CreateICmpUGE(amount, ConstantInt::get(type, width)),
              Unpromised::WideShift, shift->getOperand(0));
}

/// In C++, the sign of a remainder is the dividend's. Metal leaves it open.
static void pessimizeSigns(BinaryOperator *remainder) {
  if (remainder->getOpcode() != Instruction::SRem || !isPortable(*remainder->getModule()))
    return;
  IRBuilder<> builder(remainder);
  const DataLayout &layout = remainder->getDataLayout();
  Constant *zero = ConstantInt::getNullValue(remainder->getType());
  Value *negative = nullptr;
  for (Value *operand : remainder->operands())
    if (!computeKnownBits(operand, layout).isNonNegative()) {
      Value *test = builder.CreateICmpSLT(operand, zero);
      negative = negative ? builder.CreateOr(negative, test) : test;
    }
  if (negative)
    pessimize(remainder, negative, Unpromised::NegativeRemainder, remainder->getOperand(0));
}

/// A division by zero, or of the least number by -1, must not trap on the host. Its divisor becomes
/// 1.
static void defineDivision(BinaryOperator *division) {
  bool isSigned =
      division->getOpcode() == Instruction::SDiv || division->getOpcode() == Instruction::SRem;
  pessimizeSigns(division);
  Value *divisor = division->getOperand(1);
  Type *type = division->getType();
  if (auto *constant = dyn_cast<Constant>(divisor))
    if (const APInt *value; PatternMatch::match(constant, PatternMatch::m_APInt(value)) &&
                            !value->isZero() && !(isSigned && value->isAllOnes()))
      return;
  IRBuilder<> builder(division);
  Value *bad = builder.CreateICmpEQ(divisor, ConstantInt::getNullValue(type));
  bool isChecked = checksOf(*division->getModule()).arithmetic;
  bool isRemainder =
      division->getOpcode() == Instruction::SRem || division->getOpcode() == Instruction::URem;
  if (isChecked)
    buildCheck(builder, bad,
               isRemainder ? "an integer remainder by zero" : "an integer division by zero");
  if (isSigned) {
    APInt least = APInt::getSignedMinValue(type->getScalarSizeInBits());
    Value *overflows = builder.CreateAnd(
        builder.CreateICmpEQ(division->getOperand(0), ConstantInt::get(type, least)),
        builder.CreateICmpEQ(divisor, ConstantInt::getAllOnesValue(type)));
    if (isChecked)
      buildCheck(builder, overflows,
                 isRemainder ? "an integer remainder of the least number by -1"
                             : "an integer division of the least number by -1");
    bad = builder.CreateOr(bad, overflows);
  }
  division->setOperand(1, builder.CreateSelect(bad, ConstantInt::get(type, 1), divisor));
  if (isPortable(*division->getModule()))
    pessimize(division, bad, Unpromised::DivisionByZero, division->getOperand(0));
}

/// Checks that an integer type holds the whole part of a number.
static void checkConversion(IRBuilder<> &builder, Value *number, Type *type, bool isSigned) {
  const fltSemantics &format = number->getType()->getScalarType()->getFltSemantics();
  unsigned bits = type->getScalarSizeInBits();
  auto constant = [&](const APInt &value, bool &isExact) {
    APFloat result(format);
    isExact = result.convertFromAPInt(value, /*IsSigned=*/true, APFloat::rmNearestTiesToEven) ==
              APFloat::opOK;
    return ConstantFP::get(number->getType(), result);
  };
  APInt one(bits + 2, 1);
  bool isExact;
  Value *tooLarge = builder.CreateFCmpUGE(number, constant(one << (bits - isSigned), isExact));
  // Below the least number by less than one.
  APInt least = isSigned ? -(one << (bits - 1)) : APInt(bits + 2, 0);
  Constant *below = constant(least - 1, isExact);
  Value *tooSmall = isExact ? builder.CreateFCmpULE(number, below)
                            : builder.CreateFCmpULT(number, constant(least, isExact));
  buildCheck(builder, builder.CreateOr(tooLarge, tooSmall),
             "a conversion of a number that the integer type does not hold");
}

/// A number too large for its integer type becomes the nearest one that fits, NaN becomes 0.
static void defineConversion(CastInst *cast) {
  IRBuilder<> builder(cast);
  Intrinsic::ID id =
      cast->getOpcode() == Instruction::FPToSI ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
  Value *source = cast->getOperand(0);
  if (source->getType()->getScalarType()->isBFloatTy()) {
    Type *floats = source->getType()->getWithNewType(builder.getFloatTy());
    source = builder.CreateFPExt(source, floats);
  }
  if (checksOf(*cast->getModule()).arithmetic)
    checkConversion(builder, source, cast->getType(), cast->getOpcode() == Instruction::FPToSI);
  Value *result = builder.CreateIntrinsic(id, {cast->getType(), source->getType()}, {source});
  cast->replaceAllUsesWith(result);
  cast->eraseFromParent();
}

/// A bfloat is made from an integer, and from a half, by way of a float. (Clang takes one of the
/// two short formats for the longer.)
static void defineShortFloat(CastInst *cast) {
  Value *source = cast->getOperand(0);
  Type *from = source->getType()->getScalarType(), *to = cast->getType()->getScalarType();
  bool fromInteger = to->isBFloatTy() && !from->isFloatingPointTy();
  bool fromOther = (from->isHalfTy() && to->isBFloatTy()) || (from->isBFloatTy() && to->isHalfTy());
  if (!fromInteger && !fromOther)
    return;
  IRBuilder<> builder(cast);
  Type *floats = cast->getType()->getWithNewType(builder.getFloatTy());
  Value *number = fromInteger ? builder.CreateCast(cast->getOpcode(), source, floats)
                              : builder.CreateFPExt(source, floats);
  cast->replaceAllUsesWith(builder.CreateFPTrunc(number, cast->getType()));
  cast->eraseFromParent();
}

/// An index of a vector counts modulo the power of two that its length fits in, and ends at its
/// last element.
static void defineIndex(Instruction *inst, unsigned operand, FixedVectorType *type) {
  unsigned length = type->getNumElements();
  Value *index = inst->getOperand(operand);
  if (auto *constant = dyn_cast<ConstantInt>(index); constant && constant->getValue().ult(length))
    return;
  IRBuilder<> builder(inst);
  Value *asked = index;
  bool portable = isPortable(*inst->getModule());
  if (checksOf(*inst->getModule()).bounds && !portable)
    buildCheck(builder, builder.CreateICmpUGE(asked, ConstantInt::get(asked->getType(), length)),
               "an index outside of the vector");
  index = builder.CreateAnd(index, PowerOf2Ceil(length) - 1);
  if (!isPowerOf2_32(length))
    index = builder.CreateBinaryIntrinsic(Intrinsic::umin, index,
                                          ConstantInt::get(index->getType(), length - 1));
  inst->setOperand(operand, index);
  if (portable)
    pessimize(inst, builder.CreateICmpUGE(asked, ConstantInt::get(asked->getType(), length)),
              Unpromised::VectorIndex, asked);
}

/// What lets LLVM draw conclusions from values that never come, or from places that are never
/// reached.
static void dropPromises(Instruction *inst) {
  inst->dropPoisonGeneratingAnnotations();
  for (unsigned kind : {LLVMContext::MD_noundef, LLVMContext::MD_dereferenceable,
                        LLVMContext::MD_dereferenceable_or_null, LLVMContext::MD_invariant_load})
    inst->setMetadata(kind, nullptr);
  if (auto *call = dyn_cast<CallBase>(inst)) {
    call->dropUBImplyingAttrsAndMetadata();
    call->removeFnAttr(Attribute::NoReturn);
  }
}

static void defineIntrinsic(IntrinsicInst *call) {
  switch (call->getIntrinsicID()) {
  case Intrinsic::ctlz:
  case Intrinsic::cttz:
  case Intrinsic::abs:
    call->setArgOperand(1, ConstantInt::getFalse(call->getContext()));
    break;
  case Intrinsic::is_constant: // of a function constant without a value
    call->replaceAllUsesWith(ConstantInt::getFalse(call->getContext()));
    call->eraseFromParent();
    break;
  case Intrinsic::assume:
    call->eraseFromParent();
    break;
  default:
    break;
  }
}

/// Control that runs into `unreachable` leaves the function with zero.
static void defineUnreachable(UnreachableInst *unreachable) {
  Type *type = unreachable->getFunction()->getReturnType();
  IRBuilder<> builder(unreachable);
  Value *result = type->isVoidTy() ? nullptr : Constant::getNullValue(type);
  if (isPortable(*unreachable->getModule()) &&
      (type->isIntOrIntVectorTy() || type->isFPOrFPVectorTy()))
    result = buildAny(builder, builder.getTrue(), type,
                      {Unpromised::NoReturn, unreachable->getFunction()->getName()});
  ReturnInst::Create(unreachable->getContext(), result, unreachable->getIterator());
  unreachable->eraseFromParent();
}

static void dropPromises(Function &function) {
  AttributeMask promises = AttributeFuncs::getUBImplyingAttributes();
  for (Attribute::AttrKind kind : {Attribute::NonNull, Attribute::Range, Attribute::NoFPClass})
    promises.addAttribute(kind);
  function.removeRetAttrs(promises);
  for (Argument &argument : function.args())
    function.removeParamAttrs(argument.getArgNo(), promises);
  for (Attribute::AttrKind kind :
       {Attribute::NoReturn, Attribute::WillReturn, Attribute::MustProgress})
    function.removeFnAttr(kind);
}

PreservedAnalyses DefineArithmeticPass::run(Function &function, FunctionAnalysisManager &) {
  dropPromises(function);
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    dropPromises(&instruction);
    switch (instruction.getOpcode()) {
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
      defineShift(cast<BinaryOperator>(&instruction));
      break;
    case Instruction::SDiv:
    case Instruction::UDiv:
    case Instruction::SRem:
    case Instruction::URem:
      defineDivision(cast<BinaryOperator>(&instruction));
      break;
    case Instruction::FPToSI:
    case Instruction::FPToUI:
      defineConversion(cast<CastInst>(&instruction));
      break;
    case Instruction::SIToFP:
    case Instruction::UIToFP:
    case Instruction::FPExt:
    case Instruction::FPTrunc:
      defineShortFloat(cast<CastInst>(&instruction));
      break;
    case Instruction::ExtractElement:
      defineIndex(&instruction, 1, cast<FixedVectorType>(instruction.getOperand(0)->getType()));
      break;
    case Instruction::InsertElement:
      defineIndex(&instruction, 2, cast<FixedVectorType>(instruction.getType()));
      break;
    case Instruction::Unreachable:
      defineUnreachable(cast<UnreachableInst>(&instruction));
      break;
    case Instruction::Call:
      if (auto *call = dyn_cast<IntrinsicInst>(&instruction))
        defineIntrinsic(call);
      break;
    default:
      break;
    }
  }
  return PreservedAnalyses::none();
}

} // namespace triton_metal
