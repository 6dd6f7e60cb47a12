#include "host_device/msl/CheckValues.h"
#include "host_device/msl/Marks.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal {

static constexpr StringLiteral bitsName = "tm.checked";

void setChecks(Module &module, const Checks &checks) {
  if (!checks.any())
    return;
  LLVMContext &context = module.getContext();
  module.getOrInsertNamedMetadata(bitsName)->addOperand(MDNode::get(
      context,
      {ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(context), checks.bits()))}));
}

Checks checksOf(const Module &module) {
  NamedMDNode *node = module.getNamedMetadata(bitsName);
  if (!node)
    return {};
  auto *bits = mdconst::extract<ConstantInt>(node->getOperand(0)->getOperand(0));
  return Checks::fromBits(bits->getZExtValue());
}

void dropChecks(Module &module) {
  if (NamedMDNode *node = module.getNamedMetadata(bitsName))
    node->eraseFromParent();
}

void buildCheck(IRBuilderBase &builder, Value *bad, StringRef text) {
  if (bad->getType()->isVectorTy())
    bad = builder.CreateOrReduce(bad);
  if (auto *constant = dyn_cast<ConstantInt>(bad); constant && constant->isZero())
    return;
  Module &module = *builder.GetInsertBlock()->getModule();
  LLVMContext &context = module.getContext();
  NamedMDNode *notes = module.getOrInsertNamedMetadata(checkNotesName);
  auto *node = MDNode::get(context, {MDString::get(context, text)});
  unsigned count = notes->getNumOperands(), number = count;
  for (unsigned back = 1; back <= std::min(count, 32u) && number == count; ++back)
    if (notes->getOperand(count - back) == node)
      number = count - back;
  if (number == count)
    notes->addOperand(node);
  FunctionCallee callee = declareMark(
      module, checkValueName,
      FunctionType::get(builder.getVoidTy(), {builder.getInt1Ty(), builder.getInt32Ty()}, false));
  builder.CreateCall(callee, {bad, builder.getInt32(number)});
}

PreservedAnalyses DropChecksPass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &inst : make_early_inc_range(instructions(function))) {
    auto *call = dyn_cast<CallInst>(&inst);
    if (!call || !call->getCalledFunction() ||
        call->getCalledFunction()->getName() != checkValueName)
      continue;
    auto *bad = dyn_cast<ConstantInt>(call->getArgOperand(0));
    if (!bad || !bad->isZero())
      continue;
    call->eraseFromParent();
    changed = true;
  }
  if (!changed)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

//===----------------------------------------------------------------------===//
// NaN
//===----------------------------------------------------------------------===//

/// Whether the text of the function is a header of mathematical functions, whose steps may make
/// NaNs that they do not return.
static bool isMathematical(const Function &function) {
  DISubprogram *program = function.getSubprogram();
  StringRef file = program ? program->getFilename() : "";
  return file.contains("float_math") || file.contains("metal_math") || file.contains("__tm_bfloat");
}

/// Whether it is what a mathematical function of vectors does with each element.
static bool isElementwise(const Function &function) {
  return isMathematical(function) && function.getName().contains("E_clE");
}

/// Whether it makes sums or products of several threads' numbers.
static bool isOfSeveralThreads(const Function &function) {
  StringRef name = function.getName();
  return name == "__tm_simdgroup_mma" ||
         ((name.starts_with("__tm_simd_") || name.starts_with("__tm_quad_")) &&
          (name.ends_with("_sum_f32") || name.ends_with("_product_f32")));
}

/// Whether an operand of the call is a NaN in any active thread.
static Value *isNanInAnyThread(IRBuilder<> &builder, CallInst &call) {
  Value *found = builder.getFalse();
  for (Value *operand : call.args())
    if (operand->getType()->isFPOrFPVectorTy()) {
      Value *isNan = builder.CreateFCmpUNO(operand, operand);
      found = builder.CreateOr(found, isNan->getType()->isVectorTy() ? builder.CreateOrReduce(isNan)
                                                                     : isNan);
    }
  FunctionCallee ballot = call.getModule()->getOrInsertFunction(
      "__tm_simd_ballot", builder.getInt64Ty(), builder.getInt32Ty());
  cast<Function>(ballot.getCallee())->setConvergent();
  cast<Function>(ballot.getCallee())->setDoesNotThrow();
  cast<Function>(ballot.getCallee())->setDoesNotAccessMemory();
  CallInst *votes =
      builder.CreateCall(ballot, builder.CreateZExt(found, builder.getInt32Ty()), "nans");
  votes->setConvergent();
  return builder.CreateICmpNE(votes, builder.getInt64(0));
}

void checkNans(Module &module) {
  for (Function &function : module) {
    bool elementwise = isElementwise(function);
    if (function.isDeclaration() || (isMathematical(function) && !elementwise))
      continue;
    SmallVector<Instruction *> made;
    for (Instruction &inst : instructions(function)) {
      if (!inst.getType()->isFPOrFPVectorTy() || (elementwise && !isa<CallInst>(inst)))
        continue;
      auto *call = dyn_cast<CallInst>(&inst);
      const Function *callee = call ? call->getCalledFunction() : nullptr;
      bool isMath =
          callee && (callee->isIntrinsic() || callee->getName().starts_with("__tm_libm") ||
                     (!callee->isDeclaration() && isMathematical(*callee)));
      if (isMath || isa<BinaryOperator>(inst) || (callee && isOfSeveralThreads(*callee)))
        made.push_back(&inst);
    }
    for (Instruction *inst : made) {
      IRBuilder<> builder(inst->getNextNode());
      builder.SetCurrentDebugLocation(inst->getDebugLoc());
      Value *bad = builder.CreateFCmpUNO(inst, inst);
      auto *call = dyn_cast<CallInst>(inst);
      if (call && isOfSeveralThreads(*call->getCalledFunction())) {
        Value *given = isNanInAnyThread(builder, *call);
        if (bad->getType()->isVectorTy())
          bad = builder.CreateOrReduce(bad);
        buildCheck(builder, builder.CreateAnd(bad, builder.CreateNot(given)),
                   "a NaN comes of operands that are none");
        continue;
      }
      bool isKnown = true;
      for (Use &use : call ? call->args() : inst->operands())
        if (use->getType() == inst->getType())
          bad = builder.CreateAnd(bad, builder.CreateFCmpORD(use, use));
        else if (!use->getType()->isIntegerTy())
          isKnown = false;
      if (isKnown)
        buildCheck(builder, bad, "a NaN comes of operands that are none");
    }
  }
}

} // namespace triton_metal
