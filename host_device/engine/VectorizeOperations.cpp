// Builds one operation of a thread as an operation on a vector of lanes, or on the scalar of one
// lane.
#include "host_device/engine/Vectorize.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine {

/// `type`, or a vector of it with the length of `like`.
static Type *typeLike(Type *type, Value *like) {
  if (auto *vector = dyn_cast<FixedVectorType>(like->getType()))
    return FixedVectorType::get(type->getScalarType(), vector->getNumElements());
  return type->getScalarType();
}

llvm::Value *SimdEmitter::toFloat(Value *bits) {
  Value *wide = b.CreateShl(b.CreateZExt(bits, typeLike(b.getInt32Ty(), bits)), 16);
  return b.CreateBitCast(wide, typeLike(b.getFloatTy(), bits));
}

llvm::Value *SimdEmitter::fromFloat(Value *number) {
  // Rounds to nearest, ties to even. NaN stays NaN.
  Type *i32 = typeLike(b.getInt32Ty(), number), *i16 = typeLike(b.getInt16Ty(), number);
  Value *bits = b.CreateBitCast(number, i32);
  Value *odd = b.CreateAnd(b.CreateLShr(bits, 16), ConstantInt::get(i32, 1));
  Value *rounded = b.CreateAdd(bits, b.CreateAdd(odd, ConstantInt::get(i32, 0x7fff)));
  Value *quiet = b.CreateOr(bits, ConstantInt::get(i32, 0x00400000));
  Value *isNan = b.CreateFCmpUNO(number, Constant::getNullValue(number->getType()));
  return b.CreateTrunc(b.CreateLShr(b.CreateSelect(isNan, quiet, rounded), 16), i16);
}

llvm::Value *SimdEmitter::buildDivision(unsigned opcode, Value *left, Value *right) {
  Type *type = left->getType();
  bool isSigned = opcode == Instruction::SDiv || opcode == Instruction::SRem;
  bool remainder = opcode == Instruction::URem || opcode == Instruction::SRem;
  // Divisions that Metal leaves undefined (by zero, and the signed overflow) must not trap. They
  // become divisions by one.
  bool safe = false;
  if (auto *constant = dyn_cast<Constant>(right)) {
    auto *number =
        dyn_cast_or_null<ConstantInt>(type->isVectorTy() ? constant->getSplatValue() : constant);
    safe = number && !number->isZero() && !number->isMinusOne();
  }
  if (safe)
    return b.CreateBinOp(Instruction::BinaryOps(opcode), left, right);
  // Lanes that take no part may have undefined numbers, of which LLVM could assume that they are
  // none of these. Frozen, they are some number, which is tested.
  right = b.CreateFreeze(right);
  if (isSigned)
    left = b.CreateFreeze(left);
  Value *bad = b.CreateICmpEQ(right, Constant::getNullValue(type));
  if (isSigned) {
    Value *overflow = b.CreateAnd(
        b.CreateICmpEQ(right, Constant::getAllOnesValue(type)),
        b.CreateICmpEQ(
            left, ConstantInt::get(type, APInt::getSignedMinValue(type->getScalarSizeInBits()))));
    bad = b.CreateOr(bad, overflow);
  }
  right = b.CreateSelect(bad, ConstantInt::get(type, 1), right);
  unsigned width = type->getScalarSizeInBits();
  if (!type->isVectorTy() || width > 32)
    return b.CreateBinOp(Instruction::BinaryOps(opcode), left, right);
  // Quotients of 32-bit integers are exact in double precision, and hosts have no integer division
  // of vectors.
  Type *real = typeLike(width > 16 ? b.getDoubleTy() : b.getFloatTy(), left);
  Value *x = isSigned ? b.CreateSIToFP(left, real) : b.CreateUIToFP(left, real);
  Value *y = isSigned ? b.CreateSIToFP(right, real) : b.CreateUIToFP(right, real);
  Value *quotient = b.CreateFDiv(x, y);
  quotient = isSigned ? b.CreateFPToSI(quotient, type) : b.CreateFPToUI(quotient, type);
  return remainder ? b.CreateSub(left, b.CreateMul(quotient, right)) : quotient;
}

llvm::Value *SimdEmitter::buildBinary(unsigned opcode, Type *type, Value *left, Value *right,
                                      Instruction &inst) {
  if (Instruction::isIntDivRem(opcode))
    return buildDivision(opcode, left, right);
  bool narrow = type->getScalarType()->isBFloatTy();
  if (narrow) {
    left = toFloat(left);
    right = toFloat(right);
  }
  IRBuilderBase::FastMathFlagGuard guard(b);
  if (isa<FPMathOperator>(inst))
    b.setFastMathFlags(inst.getFastMathFlags());
  Value *value = b.CreateBinOp(Instruction::BinaryOps(opcode), left, right);
  return narrow ? fromFloat(value) : value;
}

llvm::Value *SimdEmitter::buildRebundle(Type *from, Type *to, unsigned component, bool asVector,
                                        function_ref<Value *(unsigned)> part) {
  Type *target = componentType(to, component);
  uint64_t targetBits = layout.getTypeSizeInBits(target);
  Type *sourceType = componentType(from, 0);
  uint64_t sourceBits = layout.getTypeSizeInBits(sourceType);
  auto shaped = [&](Type *type) -> Type * { return asVector ? lanesOf(type) : type; };
  auto bits = [&](Value *value) {
    if (value->getType()->isPtrOrPtrVectorTy())
      return b.CreatePtrToInt(value, shaped(b.getInt64Ty()));
    return b.CreateBitCast(value, shaped(b.getIntNTy(sourceBits)));
  };
  auto finish = [&](Value *value) {
    return target->isPointerTy() ? b.CreateIntToPtr(value, shaped(target))
                                 : b.CreateBitCast(value, shaped(target));
  };
  if (sourceBits == targetBits) {
    Value *value = part(component);
    return value->getType() == shaped(target) ? value : finish(bits(value));
  }
  if (sourceBits > targetBits) {
    uint64_t ratio = sourceBits / targetBits;
    Value *value = bits(part(component / ratio));
    value = b.CreateLShr(value, (component % ratio) * targetBits);
    return finish(b.CreateTrunc(value, shaped(b.getIntNTy(targetBits))));
  }
  uint64_t ratio = targetBits / sourceBits;
  Type *whole = shaped(b.getIntNTy(targetBits));
  Value *value = nullptr;
  for (uint64_t i = 0; i != ratio; ++i) {
    Value *piece =
        b.CreateShl(b.CreateZExt(bits(part(component * ratio + i)), whole), i * sourceBits);
    value = value ? b.CreateOr(value, piece) : piece;
  }
  return finish(value);
}

llvm::Value *SimdEmitter::buildCast(CastInst &cast, unsigned component, bool asVector,
                                    Operand operand) {
  Type *from = cast.getSrcTy(), *to = cast.getDestTy();
  Type *target = componentType(to, component);
  Type *shaped = asVector ? static_cast<Type *>(lanesOf(target)) : target;
  bool fromBf = from->getScalarType()->isBFloatTy(), toBf = to->getScalarType()->isBFloatTy();
  if (cast.getOpcode() == Instruction::BitCast)
    return buildRebundle(from, to, component, asVector,
                         [&](unsigned c) { return operand(cast.getOperand(0), c); });
  Value *value = operand(cast.getOperand(0), component);
  Type *real = asVector ? static_cast<Type *>(lanesOf(b.getFloatTy())) : b.getFloatTy();
  switch (cast.getOpcode()) {
  case Instruction::FPExt:
  case Instruction::FPTrunc:
    if (fromBf)
      value = toFloat(value);
    if (toBf) {
      if (value->getType()->getScalarType()->isHalfTy())
        value = b.CreateFPExt(value, real);
      else if (value->getType()->getScalarType()->isDoubleTy())
        value = b.CreateFPTrunc(value, real);
      return fromFloat(value);
    }
    return b.CreateFPCast(value, shaped);
  case Instruction::SIToFP:
  case Instruction::UIToFP:
    if (toBf)
      return fromFloat(cast.getOpcode() == Instruction::SIToFP ? b.CreateSIToFP(value, real)
                                                               : b.CreateUIToFP(value, real));
    return b.CreateCast(cast.getOpcode(), value, shaped);
  case Instruction::FPToSI:
  case Instruction::FPToUI:
    // Numbers that do not fit saturate, as on the GPU. LLVM's own instruction leaves this
    // undefined.
    if (fromBf)
      value = toFloat(value);
    return b.CreateIntrinsic(cast.getOpcode() == Instruction::FPToSI ? Intrinsic::fptosi_sat
                                                                     : Intrinsic::fptoui_sat,
                             {shaped, value->getType()}, {value});
  case Instruction::PtrToInt:
    if (value->getType()->isPtrOrPtrVectorTy())
      return b.CreatePtrToInt(value, shaped);
    return b.CreateZExtOrTrunc(value, shaped);
  case Instruction::IntToPtr:
    if (shaped->isPtrOrPtrVectorTy())
      return b.CreateIntToPtr(value, shaped);
    return b.CreateZExtOrTrunc(value, shaped);
  case Instruction::AddrSpaceCast:
    if (value->getType() != shaped)
      fail(&cast, "pointers cannot be cast between the thread address space and another");
    return value;
  default:
    return b.CreateCast(cast.getOpcode(), value, shaped);
  }
}

llvm::Value *SimdEmitter::buildAddress(GetElementPtrInst &gep, bool asVector, Operand operand) {
  // The uniform part is added to the pointer. The part that differs between lanes becomes one
  // vector of offsets.
  llvm::Value *pointer = gep.getPointerOperand();
  bool isPrivate = gep.getPointerAddressSpace() == 0;
  bool uniformBase = asVector && isUniform(pointer);
  Value *base = uniformBase ? scalar(pointer, 0, 0) : operand(pointer, 0);
  Value *fixed = nullptr, *offsets = nullptr;
  uint64_t constant = 0;
  auto add = [&](Value *&sum, Value *term) { sum = sum ? b.CreateAdd(sum, term) : term; };
  for (auto it = gep_type_begin(gep), end = gep_type_end(gep); it != end; ++it) {
    if (it.isStruct()) {
      constant += layout.getStructLayout(it.getStructType())
                      ->getElementOffset(cast<ConstantInt>(it.getOperand())->getZExtValue());
      continue;
    }
    uint64_t stride = it.getSequentialElementStride(layout);
    llvm::Value *index = it.getOperand();
    if (auto *number = dyn_cast<ConstantInt>(index)) {
      constant += uint64_t(number->getSExtValue()) * stride;
      continue;
    }
    bool one = !asVector || isUniform(index);
    Value *value = one && asVector ? scalar(index, 0, 0) : operand(index, 0);
    Type *wide = typeLike(b.getInt64Ty(), value);
    value = b.CreateSExtOrTrunc(value, wide);
    if (stride != 1)
      value = b.CreateMul(value, ConstantInt::get(wide, stride));
    add(one ? fixed : offsets, value);
  }
  if (constant)
    add(fixed, b.getInt64(constant));
  if (isPrivate) {
    if (fixed)
      base = b.CreateAdd(base, base->getType()->isVectorTy() ? splat(fixed) : fixed);
    if (offsets)
      base = b.CreateAdd(base->getType()->isVectorTy() ? base : splat(base), offsets);
    else if (asVector && !base->getType()->isVectorTy())
      base = splat(base);
    return base;
  }
  if (fixed)
    base = b.CreateGEP(b.getInt8Ty(), base, fixed);
  if (offsets)
    base = b.CreateGEP(b.getInt8Ty(), base, offsets);
  else if (asVector && !base->getType()->isVectorTy())
    base = splat(base);
  return base;
}

llvm::Value *SimdEmitter::buildIntrinsic(CallInst &call, unsigned component, bool asVector,
                                         Operand operand) {
  auto &intrinsic = cast<IntrinsicInst>(call);
  Intrinsic::ID id = intrinsic.getIntrinsicID();
  IRBuilderBase::FastMathFlagGuard guard(b);
  if (isa<FPMathOperator>(call))
    b.setFastMathFlags(call.getFastMathFlags());
  bool narrow = call.getType()->getScalarType()->isBFloatTy();
  auto argument = [&](unsigned index) {
    Value *value = operand(call.getArgOperand(index), component);
    return call.getArgOperand(index)->getType()->getScalarType()->isBFloatTy() ? toFloat(value)
                                                                               : value;
  };
  auto shaped = [&](Type *type) -> Type * { return asVector ? lanesOf(type) : type; };
  Value *value = nullptr;
  switch (id) {
  case Intrinsic::fabs:
    if (narrow)
      return b.CreateAnd(operand(call.getArgOperand(0), component),
                         ConstantInt::get(shaped(b.getInt16Ty()), 0x7fff));
    [[fallthrough]];
  case Intrinsic::floor:
  case Intrinsic::ceil:
  case Intrinsic::trunc:
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
  case Intrinsic::round:
  case Intrinsic::roundeven:
  case Intrinsic::sqrt:
  case Intrinsic::canonicalize:
  case Intrinsic::exp:
  case Intrinsic::exp2:
  case Intrinsic::log:
  case Intrinsic::log2:
  case Intrinsic::log10:
  case Intrinsic::sin:
  case Intrinsic::cos:
  case Intrinsic::ctpop:
  case Intrinsic::bitreverse:
  case Intrinsic::bswap:
    value = b.CreateUnaryIntrinsic(id, argument(0));
    break;
  case Intrinsic::abs:
  case Intrinsic::ctlz:
  case Intrinsic::cttz:
    value = b.CreateIntrinsic(id, {shaped(componentType(call.getType(), component))},
                              {argument(0), b.getFalse()});
    break;
  case Intrinsic::minnum:
  case Intrinsic::maxnum:
  case Intrinsic::minimum:
  case Intrinsic::maximum:
  case Intrinsic::minimumnum:
  case Intrinsic::maximumnum:
  case Intrinsic::copysign:
  case Intrinsic::pow:
  case Intrinsic::umin:
  case Intrinsic::umax:
  case Intrinsic::smin:
  case Intrinsic::smax:
  case Intrinsic::uadd_sat:
  case Intrinsic::usub_sat:
  case Intrinsic::sadd_sat:
  case Intrinsic::ssub_sat:
    value = b.CreateBinaryIntrinsic(id, argument(0), argument(1));
    break;
  case Intrinsic::fma:
  case Intrinsic::fshl:
  case Intrinsic::fshr: {
    Value *x = argument(0);
    value = b.CreateIntrinsic(id, {x->getType()}, {x, argument(1), argument(2)});
    break;
  }
  case Intrinsic::fmuladd:
    value = b.CreateFAdd(b.CreateFMul(argument(0), argument(1)), argument(2));
    break;
  case Intrinsic::ldexp: {
    Value *x = argument(0), *exponent = operand(call.getArgOperand(1), component);
    value = b.CreateIntrinsic(id, {x->getType(), exponent->getType()}, {x, exponent});
    break;
  }
  case Intrinsic::fptosi_sat:
  case Intrinsic::fptoui_sat: {
    Value *x = argument(0);
    value = b.CreateIntrinsic(id, {shaped(componentType(call.getType(), component)), x->getType()},
                              {x});
    break;
  }
  case Intrinsic::is_fpclass:
    value = b.CreateIntrinsic(id, {argument(0)->getType()}, {argument(0), call.getArgOperand(1)});
    break;
  case Intrinsic::ucmp:
  case Intrinsic::scmp: {
    Value *x = argument(0);
    value = b.CreateIntrinsic(id, {shaped(componentType(call.getType(), component)), x->getType()},
                              {x, argument(1)});
    break;
  }
  case Intrinsic::uadd_with_overflow:
  case Intrinsic::usub_with_overflow:
  case Intrinsic::umul_with_overflow:
  case Intrinsic::sadd_with_overflow:
  case Intrinsic::ssub_with_overflow:
  case Intrinsic::smul_with_overflow: {
    Value *x = operand(call.getArgOperand(0), 0), *y = operand(call.getArgOperand(1), 0);
    return b.CreateExtractValue(b.CreateBinaryIntrinsic(id, x, y), component);
  }
  default:
    fail(&call, Twine("the device has no '") + call.getCalledFunction()->getName() + "'");
    return PoisonValue::get(shaped(componentType(call.getType(), component)));
  }
  return narrow ? fromFloat(value) : value;
}

llvm::Value *SimdEmitter::buildOperation(Instruction &inst, unsigned component, bool asVector,
                                         Operand operand) {
  // A condition or index with one component applies to all components.
  auto conditionOf = [&](llvm::Value *value) -> Value * {
    unsigned c = value->getType()->isVectorTy() ? component : 0;
    return asVector && isUniform(value) ? scalar(value, c, 0) : operand(value, c);
  };
  if (auto *binary = dyn_cast<BinaryOperator>(&inst)) {
    Value *left = operand(inst.getOperand(0), component);
    return buildBinary(binary->getOpcode(), inst.getType(), left,
                       operand(inst.getOperand(1), component), inst);
  }
  if (auto *cast = dyn_cast<CastInst>(&inst))
    return buildCast(*cast, component, asVector, operand);
  if (auto *gep = dyn_cast<GetElementPtrInst>(&inst))
    return buildAddress(*gep, asVector, operand);
  if (auto *call = dyn_cast<CallInst>(&inst))
    return buildIntrinsic(*call, component, asVector, operand);
  switch (inst.getOpcode()) {
  case Instruction::FNeg: {
    Value *value = operand(inst.getOperand(0), component);
    if (inst.getType()->getScalarType()->isBFloatTy())
      return b.CreateXor(value, ConstantInt::get(value->getType(), 0x8000));
    return b.CreateFNeg(value);
  }
  case Instruction::ICmp:
  case Instruction::FCmp: {
    Value *left = operand(inst.getOperand(0), component),
          *right = operand(inst.getOperand(1), component);
    if (inst.getOperand(0)->getType()->getScalarType()->isBFloatTy()) {
      left = toFloat(left);
      right = toFloat(right);
    }
    return b.CreateCmp(cast<CmpInst>(inst).getPredicate(), left, right);
  }
  case Instruction::Select: {
    Value *condition = conditionOf(inst.getOperand(0));
    return b.CreateSelect(condition, operand(inst.getOperand(1), component),
                          operand(inst.getOperand(2), component));
  }
  case Instruction::Freeze:
    return b.CreateFreeze(operand(inst.getOperand(0), component));
  case Instruction::ExtractElement: {
    unsigned count = componentCount(inst.getOperand(0)->getType());
    if (auto *index = dyn_cast<ConstantInt>(inst.getOperand(1)))
      return operand(inst.getOperand(0), std::min<uint64_t>(index->getZExtValue(), count - 1));
    Value *index = operand(inst.getOperand(1), 0);
    Value *value = operand(inst.getOperand(0), 0);
    for (unsigned i = 1; i != count; ++i)
      value = b.CreateSelect(b.CreateICmpEQ(index, ConstantInt::get(index->getType(), i)),
                             operand(inst.getOperand(0), i), value);
    return value;
  }
  case Instruction::InsertElement: {
    if (auto *index = dyn_cast<ConstantInt>(inst.getOperand(2)))
      return index->getZExtValue() == component ? operand(inst.getOperand(1), 0)
                                                : operand(inst.getOperand(0), component);
    Value *index = operand(inst.getOperand(2), 0);
    return b.CreateSelect(b.CreateICmpEQ(index, ConstantInt::get(index->getType(), component)),
                          operand(inst.getOperand(1), 0), operand(inst.getOperand(0), component));
  }
  case Instruction::ShuffleVector: {
    int from = cast<ShuffleVectorInst>(inst).getMaskValue(component);
    int count = componentCount(inst.getOperand(0)->getType());
    if (from < 0) {
      Type *type = componentType(inst.getType(), component);
      return PoisonValue::get(asVector ? static_cast<Type *>(lanesOf(type)) : type);
    }
    return from < count ? operand(inst.getOperand(0), from)
                        : operand(inst.getOperand(1), from - count);
  }
  case Instruction::ExtractValue:
  case Instruction::InsertValue: {
    // The flat number of the first component that the indices select.
    auto indices = isa<ExtractValueInst>(inst) ? cast<ExtractValueInst>(inst).getIndices()
                                               : cast<InsertValueInst>(inst).getIndices();
    Type *type = inst.getOperand(0)->getType();
    unsigned first = 0;
    for (unsigned index : indices) {
      for (unsigned i = 0; i != index; ++i)
        first += componentCount(type->isArrayTy() ? type->getArrayElementType()
                                                  : type->getStructElementType(i));
      type = type->isArrayTy() ? type->getArrayElementType() : type->getStructElementType(index);
    }
    if (isa<ExtractValueInst>(inst))
      return operand(inst.getOperand(0), first + component);
    unsigned count = componentCount(inst.getOperand(1)->getType());
    if (component >= first && component < first + count)
      return operand(inst.getOperand(1), component - first);
    return operand(inst.getOperand(0), component);
  }
  default:
    fail(&inst, Twine("the device cannot execute '") + inst.getOpcodeName() + "'");
    return PoisonValue::get(
        asVector ? static_cast<Type *>(lanesOf(componentType(inst.getType(), component)))
                 : componentType(inst.getType(), component));
  }
}

} // namespace triton_metal::engine
