// Replaces the calls of the front end's functions by what a GPU has.
#include "Gpu.h"
#include "host_device/msl/KeepMath.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"
#include <map>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::gpu {

namespace {

Error failure(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

class Lowering {
public:
  Lowering(Function &kernel, Gpu &gpu) : kernel(kernel), gpu(gpu) {}
  Error run(uint64_t &threadgroupBytes);

private:
  /// The call's value; an error for functions that no GPU of this tool has.
  Expected<Value *> lower(CallInst &call, StringRef name);
  Value *allocate(CallInst &call);
  Value *shuffle(Value *value, Value *lane);
  Value *across(StringRef name, Value *value);

  Function &kernel;
  Gpu &gpu;
  IRBuilder<> b{kernel.getContext()};
  std::map<uint64_t, GlobalVariable *> variables;
  uint64_t bytes = 0;
};

Value *Lowering::allocate(CallInst &call) {
  auto operand = [&](unsigned i) {
    return cast<ConstantInt>(call.getArgOperand(i))->getZExtValue();
  };
  GlobalVariable *&variable = variables[operand(0)];
  if (!variable) {
    uint64_t size = operand(1), alignment = std::max<uint64_t>(operand(2), 4);
    Type *type = ArrayType::get(b.getInt32Ty(), divideCeil(size, 4));
    variable = new GlobalVariable(
        *kernel.getParent(), type, false, GlobalValue::InternalLinkage, UndefValue::get(type),
        kernel.getName() + ".threadgroup" + Twine(operand(0)), nullptr, GlobalValue::NotThreadLocal,
        gpu.addressSpace(static_cast<unsigned>(AddressSpace::Threadgroup)));
    variable->setAlignment(Align(alignment));
    bytes = alignTo(bytes, alignment) + size;
  }
  return variable;
}

Value *Lowering::shuffle(Value *value, Value *lane) {
  Source source = sourceOf(lane);
  source.operand = b.CreateZExtOrTrunc(source.operand, b.getInt32Ty());
  if (!value->getType()->isIntegerTy(64))
    return gpu.shuffle(b, value, source);
  Value *low = gpu.shuffle(b, b.CreateTrunc(value, b.getInt32Ty()), source);
  Value *high = gpu.shuffle(b, b.CreateTrunc(b.CreateLShr(value, 32), b.getInt32Ty()), source);
  return b.CreateOr(b.CreateZExt(low, b.getInt64Ty()),
                    b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32));
}

/// Reductions and scans: "sum_f32", "exclusive_sum_u32".
Value *Lowering::across(StringRef name, Value *value) {
  auto [operation, type] = name.rsplit('_');
  Number number = type == "f32" ? Number::Float : type == "i32" ? Number::Signed : Number::Unsigned;
  bool isExclusive = operation.consume_front("exclusive_"),
       isInclusive = operation.consume_front("inclusive_");
  static const std::map<StringRef, Across> operations = {
      {"sum", Across::Sum}, {"product", Across::Product}, {"min", Across::Min},
      {"max", Across::Max}, {"and", Across::And},         {"or", Across::Or},
      {"xor", Across::Xor}};
  auto found = operations.find(operation);
  if (found == operations.end())
    return nullptr;
  if (isExclusive || isInclusive)
    return gpu.scan(b, found->second, number, isInclusive, value);
  return gpu.reduce(b, found->second, number, value);
}

Expected<Value *> Lowering::lower(CallInst &call, StringRef name) {
  auto argument = [&](unsigned i) { return call.getArgOperand(i); };
  Value *result = nullptr;
  if (name == "__tm_threadgroup_alloc") {
    result = allocate(call);
  } else if (name == "__tm_threadgroup_barrier") {
    return gpu.threadgroupBarrier(b), nullptr;
  } else if (name == "__tm_simdgroup_barrier") {
    return gpu.simdgroupBarrier(b), nullptr;
  } else if (name == "__tm_fence" || name == "__tm_together") {
    return nullptr;
  } else if (name == "__tm_coherent") {
    result = argument(0);
  } else if (name == "__tm_simd_shuffle_u32" || name == "__tm_simd_shuffle_u64") {
    result = shuffle(argument(0), argument(1));
  } else if (name == "__tm_simd_ballot") {
    Value *votes = gpu.ballot(b, b.CreateIsNotNull(argument(0)));
    result = b.CreateZExt(votes, call.getType());
  } else if (name == "__tm_simdgroup_mma") {
    result = gpu.multiply(b, argument(0), argument(1), argument(2));
    if (!result)
      return failure("the kernel multiplies SIMD-group matrices, which this GPU does not have");
  } else if (name.starts_with(keptMathPrefix)) {
    SmallVector<Value *> arguments(call.args());
    result = lowerMath(b, gpu, name.drop_front(keptMathPrefix.size()), arguments);
  } else if (name.starts_with("__tm_simd_")) {
    result = across(name.drop_front(StringRef("__tm_simd_").size()), argument(0));
  }
  if (!result)
    return failure("the kernel calls '" + name + "', which has no form for GPUs");
  return result;
}

Error Lowering::run(uint64_t &threadgroupBytes) {
  // Lanes come last: shuffles look for them.
  for (bool lanes : {false, true}) {
    SmallVector<CallInst *> calls;
    for (Instruction &instruction : instructions(kernel))
      if (auto *call = dyn_cast<CallInst>(&instruction))
        if (Function *callee = call->getCalledFunction();
            callee && callee->getName().starts_with("__tm_") &&
            (callee->getName() == "__tm_lane") == lanes)
          calls.push_back(call);
    for (CallInst *call : calls) {
      b.SetInsertPoint(call);
      Expected<Value *> result = lanes ? Expected<Value *>(gpu.lane(b))
                                       : lower(*call, call->getCalledFunction()->getName());
      if (!result)
        return result.takeError();
      if (*result) {
        Value *value = *result;
        if (value->getType() != call->getType())
          value = value->getType()->isPointerTy() ? b.CreateAddrSpaceCast(value, call->getType())
                                                  : b.CreateBitCast(value, call->getType());
        call->replaceAllUsesWith(value);
      }
      call->eraseFromParent();
    }
  }
  threadgroupBytes = bytes;
  return Error::success();
}

/// The divisor of the text: the front end makes 1 of those for which the division is not defined.
Value *givenDivisor(Value *divisor) {
  Value *condition, *given;
  if (match(divisor, m_Select(m_Value(condition), m_One(), m_Value(given))) &&
      (match(condition, m_SpecificICmp(CmpInst::ICMP_EQ, m_Specific(given), m_Zero())) ||
       match(condition,
             m_c_Or(m_SpecificICmp(CmpInst::ICMP_EQ, m_Specific(given), m_Zero()), m_Value()))))
    return given;
  if (match(divisor, m_Intrinsic<Intrinsic::umax>(m_Value(given), m_One())))
    return given;
  return divisor;
}

/// x * y + z in one instruction, where each of the two allows it.
Value *fused(Instruction &sum) {
  bool isDifference = sum.getOpcode() == Instruction::FSub;
  if ((sum.getOpcode() != Instruction::FAdd && !isDifference) || !sum.hasAllowContract())
    return nullptr;
  for (unsigned side : {0u, 1u}) {
    auto *product = dyn_cast<BinaryOperator>(sum.getOperand(side));
    if (!product || product->getOpcode() != Instruction::FMul || !product->hasAllowContract() ||
        !product->hasOneUse())
      continue;
    IRBuilder<> b(&sum);
    Value *x = product->getOperand(0), *z = sum.getOperand(1 - side);
    if (isDifference && side == 0)
      z = b.CreateFNeg(z);
    else if (isDifference)
      x = b.CreateFNeg(x);
    return b.CreateIntrinsic(Intrinsic::fma, {sum.getType()}, {x, product->getOperand(1), z});
  }
  return nullptr;
}

} // namespace

Error lowerBuiltins(Function &kernel, Gpu &gpu, uint64_t &threadgroupBytes) {
  return Lowering(kernel, gpu).run(threadgroupBytes);
}

void tidyArithmetic(Function &kernel, Gpu &gpu, bool fuse) {
  for (Instruction &instruction : make_early_inc_range(instructions(kernel))) {
    IRBuilder<> b(&instruction);
    Value *result = nullptr;
    switch (instruction.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
      instruction.setOperand(1, givenDivisor(instruction.getOperand(1)));
      break;
    case Instruction::FDiv:
      if (instruction.getType()->isFloatTy())
        result =
            gpu.divide(b, instruction.getOperand(0), instruction.getOperand(1), /*isFast=*/false);
      break;
    case Instruction::FAdd:
    case Instruction::FSub:
      if (fuse)
        result = fused(instruction);
      break;
    case Instruction::Call: {
      auto &call = cast<CallInst>(instruction);
      if (call.getIntrinsicID() == Intrinsic::fptosi_sat) // what a GPU's conversion does anyhow
        result = b.CreateFPToSI(call.getArgOperand(0), call.getType());
      else if (call.getIntrinsicID() == Intrinsic::fptoui_sat)
        result = b.CreateFPToUI(call.getArgOperand(0), call.getType());
      break;
    }
    default:
      break;
    }
    if (!result)
      continue;
    instruction.replaceAllUsesWith(result);
    instruction.eraseFromParent();
  }
  SmallVector<WeakTrackingVH> dead;
  for (Instruction &instruction : instructions(kernel))
    if (isInstructionTriviallyDead(&instruction))
      dead.push_back(&instruction);
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
}

} // namespace triton_metal::gpu
