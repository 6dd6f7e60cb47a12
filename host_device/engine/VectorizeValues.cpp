// Computes the values of a thread as values of a SIMD-group, on demand: as one vector of lanes, or
// as the scalar of one lane.
#include "host_device/engine/Vectorize.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Type *SimdEmitter::mapScalar(Type *type) {
  // bfloats are represented by their bits, because native support differs between hosts.
  if (type->isBFloatTy())
    return b.getInt16Ty();
  if (type->isPointerTy())
    return type->getPointerAddressSpace() == 0 ? static_cast<Type *>(b.getInt64Ty()) : b.getPtrTy();
  return type;
}

void SimdEmitter::componentTypes(Type *type, SmallVectorImpl<Type *> &out) {
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    out.append(vector->getNumElements(), mapScalar(vector->getElementType()));
  } else if (auto *array = dyn_cast<ArrayType>(type)) {
    for (uint64_t i = 0; i != array->getNumElements(); ++i)
      componentTypes(array->getElementType(), out);
  } else if (auto *structure = dyn_cast<StructType>(type)) {
    for (Type *element : structure->elements())
      componentTypes(element, out);
  } else {
    out.push_back(mapScalar(type));
  }
}

void SimdEmitter::componentOffsets(Type *type, uint64_t base, SmallVectorImpl<uint64_t> &out) {
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    uint64_t size = layout.getTypeStoreSize(vector->getElementType());
    for (unsigned i = 0; i != vector->getNumElements(); ++i)
      out.push_back(base + i * size);
  } else if (auto *array = dyn_cast<ArrayType>(type)) {
    uint64_t size = layout.getTypeAllocSize(array->getElementType());
    for (uint64_t i = 0; i != array->getNumElements(); ++i)
      componentOffsets(array->getElementType(), base + i * size, out);
  } else if (auto *structure = dyn_cast<StructType>(type)) {
    const StructLayout *fields = layout.getStructLayout(structure);
    for (auto [i, element] : enumerate(structure->elements()))
      componentOffsets(element, base + fields->getElementOffset(i), out);
  } else {
    out.push_back(base);
  }
}

unsigned SimdEmitter::componentCount(Type *type) {
  SmallVector<Type *> types;
  componentTypes(type, types);
  return types.size();
}

Type *SimdEmitter::componentType(Type *type, unsigned component) {
  SmallVector<Type *> types;
  componentTypes(type, types);
  return types[component];
}

Constant *SimdEmitter::mapConstant(Constant *constant, unsigned component) {
  Type *type = constant->getType();
  // LLVM leaves the bits of a half that is read as a bfloat, or vice versa, as an expression.
  if (auto *expr = dyn_cast<ConstantExpr>(constant);
      expr && expr->getOpcode() == Instruction::BitCast &&
      componentCount(expr->getOperand(0)->getType()) == componentCount(type))
    if (Constant *bits = mapConstant(expr->getOperand(0), component);
        bits->getType()->isHalfTy() || bits->getType()->isIntegerTy(16)) {
      Type *target = componentType(type, component);
      if (auto *number = dyn_cast<ConstantFP>(bits))
        bits = ConstantInt::get(b.getInt16Ty(), number->getValueAPF().bitcastToAPInt());
      if (auto *number = dyn_cast<ConstantInt>(bits); number && target->isHalfTy())
        return ConstantFP::get(target, APFloat(APFloat::IEEEhalf(), number->getValue()));
      if (target->isIntegerTy(16))
        return bits;
    }
  if (type->isAggregateType() || type->isVectorTy()) {
    // Finds the element that contains the component.
    unsigned index = 0;
    for (;; ++index) {
      Constant *element = constant->getAggregateElement(index);
      if (!element) {
        fail(nullptr, "a constant of this form is not supported");
        return PoisonValue::get(componentType(type, component));
      }
      unsigned count = componentCount(element->getType());
      if (component < count)
        return mapConstant(element, component);
      component -= count;
    }
  }
  Type *mapped = mapScalar(type);
  if (isa<PoisonValue>(constant))
    return PoisonValue::get(mapped);
  if (isa<UndefValue>(constant))
    return Constant::getNullValue(mapped); // one choice for all uses
  if (type->isPointerTy()) {
    if (isa<ConstantPointerNull>(constant))
      return Constant::getNullValue(mapped);
    if (type->getPointerAddressSpace() == 0) {
      fail(nullptr, "a pointer to a constant in the thread address space is not supported");
      return PoisonValue::get(mapped);
    }
    return ConstantExpr::getAddrSpaceCast(constant, mapped);
  }
  if (type->isBFloatTy())
    if (auto *number = dyn_cast<ConstantFP>(constant))
      return ConstantInt::get(mapped, number->getValueAPF().bitcastToAPInt());
  return constant;
}

//===----------------------------------------------------------------------===//
// On demand
//===----------------------------------------------------------------------===//

bool SimdEmitter::isOnDemand(const Instruction &inst) {
  if (isa<BinaryOperator, UnaryOperator, CmpInst, CastInst, SelectInst, GetElementPtrInst,
          ExtractElementInst, InsertElementInst, ShuffleVectorInst, ExtractValueInst,
          InsertValueInst, FreezeInst>(inst))
    return true;
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(&inst))
    return !intrinsic->isAssumeLikeIntrinsic() && !intrinsic->mayReadOrWriteMemory() &&
           !intrinsic->getType()->isVoidTy();
  return false;
}

SimdEmitter::Entry &SimdEmitter::entry(llvm::Value *value) {
  Entry &e = entries[value];
  if (e.components.empty())
    e.components.resize(std::max(1u, componentCount(value->getType())));
  return e;
}

void SimdEmitter::define(Instruction &inst, unsigned component, llvm::Value *value) {
  Entry &e = entry(&inst);
  e.eager = true;
  if (value->getType()->isVectorTy())
    e.components[component].vector = value;
  else
    e.components[component].lanes[0] = value;
}

llvm::Value *SimdEmitter::scalar(llvm::Value *value, unsigned component, unsigned lane) {
  if (auto *constant = dyn_cast<Constant>(value))
    return mapConstant(constant, component);
  auto &inst = *cast<Instruction>(value);
  const LaneShape &s = shape(value);
  bool same = s.isUniform();
  if (same)
    lane = 0;
  {
    Component &known = entry(value).components[component];
    if (auto found = known.lanes.find(lane); found != known.lanes.end())
      return found->second;
    if (auto *vector = dyn_cast_or_null<Constant>(known.vector))
      if (Constant *element = vector->getAggregateElement(lane))
        return element;
  }
  IRBuilderBase::InsertPointGuard guard(b);
  Entry &e = entry(value);
  if (!e.anchor) {
    fail(&inst, "internal error: a value is used before it is defined");
    return PoisonValue::get(componentType(value->getType(), component));
  }
  Value *result = nullptr;
  unsigned rep = s.representative[lane];
  Type *type = componentType(value->getType(), component);
  bool number = isNumber(type);
  bool single = e.components.size() == 1;
  if (!same && single && !s.speculative && rep != lane && number) {
    Value *base = scalar(value, component, rep);
    b.SetInsertPoint(e.anchor);
    result = type->isPointerTy() ? b.CreatePtrAdd(base, b.getInt64(s.offset[lane]))
                                 : b.CreateAdd(base, ConstantInt::get(type, s.offset[lane], true));
  } else if (!e.eager && (same || (number && single && s.isOneClass() && !s.speculative) ||
                          (number && single &&
                           isa<BinaryOperator, CastInst, GetElementPtrInst, FreezeInst>(inst) &&
                           !isa<FPToSIInst, FPToUIInst>(inst) && !inst.isIntDivRem() &&
                           !inst.getOperand(0)->getType()->isVectorTy()))) {
    b.SetInsertPoint(e.anchor);
    result =
        buildOperation(inst, component, /*asVector=*/false,
                       [&](llvm::Value *operand, unsigned c) { return scalar(operand, c, lane); });
  } else {
    Value *all = vector(value, component);
    b.SetInsertPoint(entry(value).anchor);
    result = b.CreateExtractElement(all, b.getInt64(lane));
  }
  entry(value).components[component].lanes[lane] = result;
  return result;
}

llvm::Value *SimdEmitter::vector(llvm::Value *value, unsigned component) {
  if (auto *constant = dyn_cast<Constant>(value))
    return ConstantVector::getSplat(ElementCount::getFixed(simdWidth),
                                    mapConstant(constant, component));
  auto &inst = *cast<Instruction>(value);
  if (Value *known = entry(value).components[component].vector)
    return known;
  IRBuilderBase::InsertPointGuard guard(b);
  const LaneShape &s = shape(value);
  Entry &e = entry(value);
  Type *type = componentType(value->getType(), component);
  if (!e.anchor) {
    fail(&inst, "internal error: a value is used before it is defined");
    return PoisonValue::get(lanesOf(type));
  }
  bool tracked = isTracked(s, type, e.components.size());
  Value *result = nullptr;
  if (tracked) {
    Value *base = scalar(value, component, 0);
    b.SetInsertPoint(e.anchor);
    if (s.isUniform()) {
      result = splat(base);
    } else {
      SmallVector<Constant *> offsets;
      Type *offsetType = type->isPointerTy() ? b.getInt64Ty() : type;
      for (int64_t offset : s.offset)
        offsets.push_back(ConstantInt::get(offsetType, offset, true));
      Constant *numbers = ConstantVector::get(offsets);
      result = type->isPointerTy() ? b.CreateGEP(b.getInt8Ty(), base, numbers)
                                   : b.CreateAdd(splat(base), numbers);
    }
  } else if (!e.eager) {
    b.SetInsertPoint(e.anchor);
    result = buildOperation(inst, component, /*asVector=*/true,
                            [&](llvm::Value *operand, unsigned c) { return vector(operand, c); });
  } else {
    fail(&inst, "internal error: a value has no vector");
    return PoisonValue::get(lanesOf(type));
  }
  entry(value).components[component].vector = result;
  return result;
}

llvm::Value *SimdEmitter::assumption(llvm::Value *value) {
  auto *inst = dyn_cast<Instruction>(value);
  if (!inst || !shape(value).speculative)
    return nullptr;
  if (auto found = assumptions.find(value); found != assumptions.end())
    return found->second;
  IRBuilderBase::InsertPointGuard guard(b);
  Value *result = nullptr;
  SmallVector<Value *> parts;
  for (llvm::Value *operand : inst->operands())
    if (!isa<BasicBlock>(operand))
      if (Value *part = assumption(operand))
        parts.push_back(part);
  auto extends = [&](llvm::Value *operand, bool isSigned) {
    const LaneShape &s = shape(operand);
    if (s.isUniform() || (isSigned ? s.provedNoSignedWrap() : s.provedNoUnsignedWrap()))
      return;
    unsigned width = operand->getType()->getIntegerBitWidth();
    auto *type = b.getIntNTy(width);
    for (unsigned rep = 0; rep != simdWidth; ++rep) {
      if (s.representative[rep] != rep)
        continue;
      int64_t low = 0, high = 0;
      for (unsigned lane = 0; lane != simdWidth; ++lane)
        if (s.representative[lane] == rep) {
          low = std::min(low, s.offset[lane]);
          high = std::max(high, s.offset[lane]);
        }
      Value *base = scalar(operand, 0, rep);
      b.SetInsertPoint(entry(value).anchor);
      if (high) {
        APInt limit = (isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width)) -
                      APInt(width, high, false, true);
        parts.push_back(b.CreateICmp(isSigned ? ICmpInst::ICMP_SLE : ICmpInst::ICMP_ULE, base,
                                     ConstantInt::get(type, limit)));
      }
      if (low) {
        APInt limit = (isSigned ? APInt::getSignedMinValue(width) : APInt(width, 0)) -
                      APInt(width, low, true, true);
        parts.push_back(b.CreateICmp(isSigned ? ICmpInst::ICMP_SGE : ICmpInst::ICMP_UGE, base,
                                     ConstantInt::get(type, limit)));
      }
    }
  };
  if (isa<ZExtInst>(inst))
    extends(inst->getOperand(0), false);
  else if (isa<SExtInst>(inst))
    extends(inst->getOperand(0), true);
  else if (auto *gep = dyn_cast<GetElementPtrInst>(inst))
    for (Use &index : gep->indices())
      if (index->getType()->isIntegerTy() && index->getType()->getIntegerBitWidth() < 64)
        extends(index, true);
  b.SetInsertPoint(entry(value).anchor);
  for (Value *part : parts)
    result = result ? b.CreateAnd(result, part) : part;
  if (!result)
    result = b.getTrue();
  assumptions[value] = result;
  return result;
}

} // namespace triton_metal::engine
