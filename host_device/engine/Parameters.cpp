#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace triton_metal::engine {

/// The range of a position. With it, LLVM can prove that narrow index arithmetic does not wrap
/// around.
static ConstantRange rangeOf(Position which) {
  auto range = [](uint64_t first, uint64_t end) {
    return ConstantRange(APInt(32, first), APInt(32, end));
  };
  switch (which) {
  case Position::ThreadIndexInSimdgroup:
    return range(0, simdWidth);
  case Position::ThreadIndexInThreadgroup:
  case Position::ThreadPositionInThreadgroup:
    return range(0, maxThreadsPerThreadgroup);
  case Position::ThreadsPerThreadgroup:
  case Position::DispatchThreadsPerThreadgroup:
    return range(1, maxThreadsPerThreadgroup + 1);
  case Position::SimdgroupIndexInThreadgroup:
    return range(0, maxThreadsPerThreadgroup / simdWidth);
  case Position::SimdgroupsPerThreadgroup:
  case Position::DispatchSimdgroupsPerThreadgroup:
    return range(1, maxThreadsPerThreadgroup / simdWidth + 1);
  default:
    return range(0, uint64_t(1) << 31);
  }
}

static Value *positionScalar(IRBuilder<> &b, Position which, unsigned dimension) {
  Module &module = *b.GetInsertBlock()->getModule();
  auto base = [&](Position position, unsigned dim = 0) -> Value * {
    auto callee =
        declareBuiltin(module, positionName, b.getInt32Ty(), {b.getInt32Ty(), b.getInt32Ty()});
    CallInst *call = b.CreateCall(callee, {b.getInt32(unsigned(position)), b.getInt32(dim)});
    call->addRangeRetAttr(rangeOf(position));
    return call;
  };
  switch (which) {
  case Position::ThreadsPerSimdgroup:
  case Position::ThreadExecutionWidth:
    return b.getInt32(simdWidth);
  case Position::GridSize:
    return base(Position::ThreadsPerGrid, dimension);
  case Position::GridOrigin:
    return b.getInt32(0);
  case Position::QuadgroupIndexInThreadgroup:
    return b.CreateLShr(base(Position::ThreadIndexInThreadgroup), 2);
  case Position::ThreadIndexInQuadgroup:
    return b.CreateAnd(base(Position::ThreadIndexInSimdgroup), 3);
  case Position::QuadgroupsPerThreadgroup:
  case Position::DispatchQuadgroupsPerThreadgroup: {
    Position threads = which == Position::QuadgroupsPerThreadgroup
                           ? Position::ThreadsPerThreadgroup
                           : Position::DispatchThreadsPerThreadgroup;
    Value *total = b.CreateMul(b.CreateMul(base(threads, 0), base(threads, 1)), base(threads, 2));
    return b.CreateLShr(b.CreateAdd(total, b.getInt32(3)), 2);
  }
  default:
    return base(which, dimension);
  }
}

Expected<Function *> replaceParameters(Function &function, const KernelInfo &kernel) {
  Module &module = *function.getParent();
  LLVMContext &context = module.getContext();
  const DataLayout &layout = module.getDataLayout();
  if (function.arg_size() != kernel.parameters.size())
    return createStringError(
        "kernel '%s' has %zu parameters in the module, but %zu in its description",
        kernel.name.c_str(), function.arg_size(), kernel.parameters.size());
  auto *result = Function::Create(FunctionType::get(Type::getVoidTy(context), false),
                                  GlobalValue::ExternalLinkage, "__tm_scalar_kernel", module);
  auto *entry = BasicBlock::Create(context, "parameters", result);
  IRBuilder<> b(entry);
  ValueToValueMapTy map;
  for (auto [argument, info] : zip(function.args(), kernel.parameters)) {
    Type *type = argument.getType();
    Value *value = nullptr;
    switch (info.kind) {
    case ParameterInfo::Kind::Buffer: {
      if (!type->isPointerTy())
        return createStringError("parameter '%s' of kernel '%s' is not a pointer",
                                 info.name.c_str(), kernel.name.c_str());
      auto callee = declareBuiltin(module, bufferName, type, {b.getInt32Ty()},
                                   type->getPointerAddressSpace());
      value = b.CreateCall(callee, {b.getInt32(info.index)}, info.name);
      break;
    }
    case ParameterInfo::Kind::Threadgroup: {
      auto callee = declareBuiltin(module, threadgroupArgumentName, type, {b.getInt32Ty()});
      value = b.CreateCall(callee, {b.getInt32(info.index)}, info.name);
      break;
    }
    case ParameterInfo::Kind::Position: {
      auto *scalar = IntegerType::get(context, info.scalarBits);
      SmallVector<Value *> components;
      for (unsigned dimension = 0; dimension != info.vectorWidth; ++dimension)
        components.push_back(
            b.CreateZExtOrTrunc(positionScalar(b, info.position, dimension), scalar));
      if (info.vectorWidth == 1) {
        value = components[0];
      } else {
        // A vector of three may be declared with the size of four.
        unsigned width = info.vectorWidth;
        if (auto *vector = dyn_cast<FixedVectorType>(type);
            vector && vector->getElementType() == scalar)
          width = vector->getNumElements();
        else if (layout.getTypeSizeInBits(type) % info.scalarBits == 0)
          width = layout.getTypeSizeInBits(type) / info.scalarBits;
        value = PoisonValue::get(FixedVectorType::get(scalar, width));
        for (unsigned dimension = 0; dimension != std::min(width, info.vectorWidth); ++dimension)
          value = b.CreateInsertElement(value, components[dimension], dimension);
      }
      if (value->getType() != type) {
        if (value->getType()->isIntegerTy() && type->isIntegerTy())
          value = b.CreateZExtOrTrunc(value, type);
        else if (layout.getTypeSizeInBits(value->getType()) == layout.getTypeSizeInBits(type))
          value = b.CreateBitCast(value, type);
        else
          return createStringError(
              "parameter '%s' of kernel '%s' has a type that does not fit its attribute",
              info.name.c_str(), kernel.name.c_str());
      }
      break;
    }
    }
    map[&argument] = value;
  }
  SmallVector<ReturnInst *> returns;
  CloneFunctionInto(result, &function, map, CloneFunctionChangeType::LocalChangesOnly, returns);
  result->setAttributes({});
  for (BasicBlock &block : *result)
    if (&block != entry) {
      b.SetInsertPoint(entry);
      b.CreateBr(cast<BasicBlock>(map[&function.getEntryBlock()]));
      break;
    }
  for (BasicBlock &block : *result)
    for (Instruction &inst : block)
      if (auto *call = dyn_cast<CallInst>(&inst); call && spreadOf(*call) == Spread::LaneNumber)
        call->addRangeRetAttr(rangeOf(Position::ThreadIndexInSimdgroup));
  if (!function.use_empty())
    return createStringError("kernel '%s' is called by another function", kernel.name.c_str());
  function.eraseFromParent();
  return result;
}

//===----------------------------------------------------------------------===//
// memcpy, memset
//===----------------------------------------------------------------------===//

/// Runs `body(offset)` for offset = 0, step, ... below `bytes`: in a loop, or unrolled if there are
/// few steps. The code ends before `before`.
static void emitSteps(Instruction *before, uint64_t bytes, uint64_t step,
                      function_ref<void(IRBuilder<> &, Value *)> body) {
  uint64_t count = bytes / step;
  IRBuilder<> b(before);
  if (count <= 16) {
    for (uint64_t i = 0; i != count; ++i)
      body(b, b.getInt64(i * step));
    return;
  }
  BasicBlock *head = before->getParent();
  BasicBlock *tail = head->splitBasicBlock(before);
  auto *loop = BasicBlock::Create(b.getContext(), "copy", head->getParent(), tail);
  head->getTerminator()->setSuccessor(0, loop);
  b.SetInsertPoint(loop);
  PHINode *offset = b.CreatePHI(b.getInt64Ty(), 2);
  body(b, offset);
  Value *next = b.CreateAdd(offset, b.getInt64(step), "", true, true);
  offset->addIncoming(b.getInt64(0), head);
  offset->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(count * step)), loop, tail);
}

void expandMemoryIntrinsics(Function &function) {
  SmallVector<MemIntrinsic *> work;
  for (BasicBlock &block : function)
    for (Instruction &inst : block)
      if (auto *memory = dyn_cast<MemIntrinsic>(&inst))
        work.push_back(memory);
  for (MemIntrinsic *memory : work) {
    auto *length = dyn_cast<ConstantInt>(memory->getLength());
    if (!length)
      continue; // refused by the transformation, which names it
    uint64_t bytes = length->getZExtValue();
    uint64_t alignment = memory->getDestAlign().valueOrOne().value();
    auto *transfer = dyn_cast<MemTransferInst>(memory);
    if (transfer)
      alignment = std::min(alignment, transfer->getSourceAlign().valueOrOne().value());
    uint64_t step = std::min<uint64_t>(alignment, 4);
    if (isa<MemMoveInst>(memory) && bytes > 16 * step)
      continue;
    uint64_t done = 0;
    LLVMContext &context = function.getContext();
    SmallVector<std::pair<Value *, uint64_t>> moved; // loads of a memmove come before its stores
    while (done != bytes) {
      while (step > bytes - done)
        step /= 2;
      uint64_t part = (bytes - done) / step * step;
      auto *type = IntegerType::get(context, step * 8);
      emitSteps(memory, part, step, [&](IRBuilder<> &b, Value *offset) {
        Value *at = b.CreateAdd(offset, b.getInt64(done));
        Value *value;
        if (transfer) {
          value =
              b.CreateAlignedLoad(type, b.CreatePtrAdd(transfer->getRawSource(), at), Align(step));
          if (isa<MemMoveInst>(memory)) {
            moved.push_back({value, cast<ConstantInt>(at)->getZExtValue()});
            return;
          }
        } else {
          Value *byte = cast<MemSetInst>(memory)->getValue();
          value = b.CreateMul(b.CreateZExt(byte, type),
                              ConstantInt::get(type, APInt::getSplat(step * 8, APInt(8, 1))));
        }
        b.CreateAlignedStore(value, b.CreatePtrAdd(memory->getRawDest(), at), Align(step));
      });
      done += part;
    }
    IRBuilder<> b(memory);
    for (auto [value, at] : moved)
      b.CreateAlignedStore(value, b.CreatePtrAdd(memory->getRawDest(), b.getInt64(at)), Align(1));
    memory->eraseFromParent();
  }
}

} // namespace triton_metal::engine
