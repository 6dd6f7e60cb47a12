#include "host_device/engine/Prepare.h"
#include "host_device/engine/Builtins.h"
#include "host_device/engine/LaneFunctions.h"
#include "host_device/msl/AnyValues.h"
#include "host_device/msl/CheckValues.h"
#include "host_device/msl/MarkMath.h"
#include "host_device/msl/OutOfLine.h"
#include "host_device/msl/PassRunner.h"
#include "host_device/msl/Passes.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/TargetTransformInfoImpl.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/FixIrreducible.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LowerSwitch.h"
#include "llvm/Transforms/Utils/UnifyFunctionExitNodes.h"
#include "llvm/Transforms/Vectorize/LoadStoreVectorizer.h"

using namespace llvm;

namespace triton_metal::engine {

namespace {
/// The costs of one thread of a GPU: neighbouring accesses of up to 16 bytes are merged, and only
/// need the alignment of their elements.
class ThreadTTI final : public TargetTransformInfoImplCRTPBase<ThreadTTI> {
public:
  explicit ThreadTTI(const DataLayout &layout) : TargetTransformInfoImplCRTPBase(layout) {}
  unsigned getLoadStoreVecRegBitWidth(unsigned) const override { return 128; }
  bool allowsMisalignedMemoryAccesses(LLVMContext &, unsigned, unsigned, Align,
                                      unsigned *fast) const override {
    if (fast)
      *fast = 1;
    return true;
  }
};
} // namespace

static TargetIRAnalysis threadCosts() {
  return TargetIRAnalysis([](const Function &function) {
    return TargetTransformInfo(std::make_unique<ThreadTTI>(function.getDataLayout()));
  });
}

AtomicOrdering orderingOf(const Instruction &inst) {
  AtomicOrdering order = AtomicOrdering::Monotonic;
  if (auto *load = dyn_cast<LoadInst>(&inst))
    order = load->getOrdering();
  else if (auto *store = dyn_cast<StoreInst>(&inst))
    order = store->getOrdering();
  else if (auto *rmw = dyn_cast<AtomicRMWInst>(&inst))
    order = rmw->getOrdering();
  else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst))
    order = exchange->getSuccessOrdering();
  return order;
}

bool isOrdered(const Instruction &inst) { return isStrongerThanMonotonic(orderingOf(inst)); }

std::optional<MemoryAccess> memoryAccess(Instruction &inst) {
  const DataLayout &layout = inst.getDataLayout();
  MemoryAccess access;
  Type *type = nullptr;
  Align align;
  if (auto *load = dyn_cast<LoadInst>(&inst)) {
    access.pointer = load->getPointerOperand();
    type = load->getType();
    align = load->getAlign();
    access.kind = load->isAtomic() ? AccessKind::Atomic : AccessKind::Load;
  } else if (auto *store = dyn_cast<StoreInst>(&inst)) {
    access.pointer = store->getPointerOperand();
    type = store->getValueOperand()->getType();
    align = store->getAlign();
    access.kind = store->isAtomic() ? AccessKind::Atomic : AccessKind::Store;
  } else if (auto *rmw = dyn_cast<AtomicRMWInst>(&inst)) {
    access.pointer = rmw->getPointerOperand();
    type = rmw->getType();
    align = rmw->getAlign();
    access.kind = AccessKind::Atomic;
  } else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst)) {
    access.pointer = exchange->getPointerOperand();
    type = exchange->getCompareOperand()->getType();
    align = exchange->getAlign();
    access.kind = AccessKind::Atomic;
  } else {
    return std::nullopt;
  }
  access.bytes = layout.getTypeStoreSize(type);
  access.alignment = align.value();
  access.space = AddressSpace(access.pointer->getType()->getPointerAddressSpace());
  return access;
}

/// Unrolls only completely. `#pragma unroll` on a loop with an unknown trip count has no effect.
static void keepOnlyFullUnrolling(LoopUnrollOptions &options) {
  options.setPartial(false).setRuntime(false).setPeeling(false).setUpperBound(false);
}

static Error refuse(Function &function) {
  for (Instruction &inst : instructions(function)) {
    auto *call = dyn_cast<CallBase>(&inst);
    if (!call)
      continue;
    Function *callee = call->getCalledFunction();
    std::string where =
        inst.getDebugLoc() ? ":" + std::to_string(inst.getDebugLoc().getLine()) : "";
    if (!callee)
      return createStringError("line%s: calls through pointers are not supported", where.c_str());
    if (callee->isIntrinsic() || builtinCalledBy(call) || isOutOfLine(*callee))
      continue;
    if (!callee->isDeclaration())
      return createStringError("line%s: '%s' is recursive, which Metal does not allow",
                               where.c_str(), callee->getName().str().c_str());
    return createStringError(
        "line%s: the function '%s' is not defined and not one of the device's own", where.c_str(),
        callee->getName().str().c_str());
  }
  return Error::success();
}

/// Declares that address spaces do not overlap, for all later passes.
static void addAliasScopes(Function &function) {
  LLVMContext &context = function.getContext();
  auto *domain = MDNode::getDistinct(context, {MDString::get(context, "metal address spaces")});
  std::array<MDNode *, 4> scope, own, others;
  for (unsigned space = 0; space != 4; ++space)
    scope[space] = MDNode::getDistinct(
        context, {MDString::get(context, "space" + std::to_string(space)), domain});
  for (unsigned space = 0; space != 4; ++space) {
    SmallVector<Metadata *> rest;
    for (unsigned other = 0; other != 4; ++other)
      // In Metal, a buffer may be bound as device memory and as constant memory.
      if (other != space && !((space == 1 && other == 2) || (space == 2 && other == 1)))
        rest.push_back(scope[other]);
    others[space] = MDNode::get(context, rest);
    own[space] = MDNode::get(context, {scope[space]});
  }
  for (Instruction &inst : instructions(function))
    if (auto access = memoryAccess(inst); access && unsigned(access->space) < 4) {
      inst.setMetadata(LLVMContext::MD_alias_scope, own[unsigned(access->space)]);
      inst.setMetadata(LLVMContext::MD_noalias, others[unsigned(access->space)]);
    }
}

/// Converts halves to short integers by way of float. With native instructions of the host, LLVM 22
/// converts NaN to the least number.
static void widenConversions(Function &function) {
  for (Instruction &inst : instructions(function)) {
    auto *call = dyn_cast<IntrinsicInst>(&inst);
    if (!call || (call->getIntrinsicID() != Intrinsic::fptosi_sat &&
                  call->getIntrinsicID() != Intrinsic::fptoui_sat))
      continue;
    Type *type = call->getArgOperand(0)->getType();
    if (!type->getScalarType()->isHalfTy())
      continue;
    IRBuilder<> builder(call);
    Value *wide =
        builder.CreateFPExt(call->getArgOperand(0), type->getWithNewType(builder.getFloatTy()));
    Value *result =
        builder.CreateIntrinsic(call->getIntrinsicID(), {call->getType(), wide->getType()}, {wide});
    call->replaceAllUsesWith(result);
  }
}

/// Collects the constants with which the kernel compares. A value that is not promised may be one
/// of them.
static void collectComparedConstants(Function &function, CodeFacts &facts) {
  constexpr size_t mostConstants = 64;
  auto add = [](std::vector<uint64_t> &constants, uint64_t bits) {
    if (constants.size() < mostConstants && !is_contained(constants, bits))
      constants.push_back(bits);
  };
  auto addInteger = [&](const APInt &value) {
    if (value.getBitWidth() >= 8 && value.getBitWidth() <= 64 && !value.isZero() &&
        !value.isOne() && !value.isAllOnes())
      add(facts.comparedIntegers, value.getZExtValue());
  };
  for (Instruction &inst : instructions(function)) {
    if (auto *choice = dyn_cast<SwitchInst>(&inst))
      for (auto &target : choice->cases())
        addInteger(target.getCaseValue()->getValue());
    if (!isa<CmpInst>(inst))
      continue;
    for (Value *operand : inst.operands()) {
      if (const APInt *value; PatternMatch::match(operand, PatternMatch::m_APInt(value)))
        addInteger(*value);
      if (const APFloat *value; operand->getType()->getScalarType()->isFloatTy() &&
                                PatternMatch::match(operand, PatternMatch::m_APFloat(value)))
        add(facts.comparedFloats, value->bitcastToAPInt().getZExtValue());
    }
  }
}

/// A fixed sequence of clean-up passes. Counting takes place after it.
static void simplify(PassRunner &runner, Function &function, const CodeOptions &options) {
  LoopUnrollOptions asked(2, /*OnlyWhenForced=*/true);
  keepOnlyFullUnrolling(asked);
  {
    FunctionPassManager passes;
    addVariablesToRegisters(passes);
    passes.addPass(EarlyCSEPass());
    passes.addPass(SimplifyCFGPass());
    passes.addPass(InstSimplifyPass());
    passes.addPass(createFunctionToLoopPassAdaptor(LoopRotatePass()));
    passes.addPass(
        LimitUnrollingPass(LimitUnrollingPass::getMost(options.count, options.portable)));
    passes.addPass(LoopUnrollPass(asked));
    addVariablesToRegisters(passes);
    passes.addPass(EarlyCSEPass(true));
    passes.addPass(SimplifyCFGPass());
    passes.addPass(InstSimplifyPass());
    passes.addPass(ADCEPass());
    runner.run(function, std::move(passes));
  }
}

/// Makes an addition of every `or` of numbers that have no bit in common only because of a
/// condition. One thread computes for those of its class, also where the condition is not its own:
/// an addition then still differs from theirs by what its operands differ, and an `or` does not.
static void addDisjointNumbers(Function &function) {
  SimplifyQuery anywhere(function.getDataLayout());
  for (Instruction &inst : make_early_inc_range(instructions(function))) {
    auto *disjoint = dyn_cast<PossiblyDisjointInst>(&inst);
    if (!disjoint || !disjoint->isDisjoint())
      continue;
    Value *a = inst.getOperand(0), *b = inst.getOperand(1);
    if (haveNoCommonBitsSet(a, b, anywhere))
      continue;
    auto *sum = BinaryOperator::CreateAdd(a, b, "", inst.getIterator());
    sum->takeName(&inst);
    sum->setDebugLoc(inst.getDebugLoc());
    inst.replaceAllUsesWith(sum);
    inst.eraseFromParent();
  }
}

/// Optimises the code of a thread, and gives it the control flow that is transformed.
static void optimize(PassRunner &runner, Function &function, bool isQuick) {
  LoopUnrollOptions small(2);
  keepOnlyFullUnrolling(small);
  small.setFullUnrollMaxCount(16);
  {
    FunctionPassManager passes;
    passes.addPass(CombineInstructionsPass());
    passes.addPass(SimplifyCFGPass());
    passes.addPass(createFunctionToLoopPassAdaptor(LoopRotatePass()));
    {
      LoopPassManager loop;
      loop.addPass(LICMPass(LICMOptions()));
      passes.addPass(createFunctionToLoopPassAdaptor(std::move(loop), /*UseMemorySSA=*/true));
    }
    if (!isQuick) {
      passes.addPass(CombineInstructionsPass());
      passes.addPass(createFunctionToLoopPassAdaptor(IndVarSimplifyPass(/*WidenIndVars=*/false)));
    }
    passes.addPass(LoopUnrollPass(small));
    addVariablesToRegisters(passes);
    passes.addPass(GVNPass());
    passes.addPass(DefineValuesPass());
    passes.addPass(CombineInstructionsPass());
    passes.addPass(SimplifyCFGPass());
    passes.addPass(ADCEPass());
    passes.addPass(LoadStoreVectorizerPass());
    runner.run(function, std::move(passes));
  }
  expandMemoryIntrinsics(function);
  for (BasicBlock &block : function)
    if (auto *unreachable = dyn_cast<UnreachableInst>(block.getTerminator())) {
      ReturnInst::Create(function.getContext(), nullptr, unreachable->getIterator());
      unreachable->eraseFromParent();
    }
  {
    FunctionPassManager passes;
    ScalarizerPassOptions scalarizer;
    scalarizer.ScalarizeLoadStore = false;
    passes.addPass(ScalarizerPass(scalarizer));
    passes.addPass(CombineInstructionsPass());
    passes.addPass(LowerSwitchPass());
    passes.addPass(UnifyFunctionExitNodesPass());
    passes.addPass(FixIrreduciblePass());
    passes.addPass(LoopSimplifyPass());
    passes.addPass(LCSSAPass());
    runner.run(function, std::move(passes));
  }
  addDisjointNumbers(function);
}

Expected<Function *> prepareKernel(Module &module, const KernelInfo &kernel,
                                   const CodeOptions &options, CodeFacts &facts,
                                   SmallVectorImpl<Function *> &laneFunctions) {
  Function *original = module.getFunction(kernel.name);
  if (!original || original->isDeclaration())
    return createStringError("the module has no kernel '%s'", kernel.name.c_str());
  const Checks &checks = options.checks;
  // What is counted and checked is the kernel, and does not depend on how the code is generated.
  bool isMeasured = options.count || options.portable || checks.any();
  bool isQuick = options.quick && !isMeasured;
  for (Function &function : module) {
    if (function.isDeclaration()) {
      if (const Builtin *builtin = findBuiltin(function.getName())) {
        bool isOwn = (options.portable && isAnyFunction(builtin->name)) ||
                     (options.checks.any() &&
                      (builtin->name == checkValueName || builtin->name == togetherName)) ||
                     (options.count && builtin->name.starts_with(mathMarkPrefix));
        if (builtin->isInternal && !isOwn)
          return createStringError("the function '%s' is the device's own",
                                   function.getName().str().c_str());
        addAttributes(function, *builtin);
      }
      continue;
    }
    if (isMeasured)
      inlineAfterAll(function);
    else if (!options.quick)
      inlineIfRepeated(function);
    // Removes the front end's target attributes, because the code is compiled for the host, and
    // because they would prevent inlining.
    if (!isOutOfLine(function))
      function.removeFnAttr(Attribute::NoInline);
    function.removeFnAttr(Attribute::OptimizeNone);
    for (StringRef attribute :
         {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width", "frame-pointer",
          "stack-protector-buffer-size", "no-trapping-math"})
      function.removeFnAttr(attribute);
    function.removeFnAttr(Attribute::MustProgress);
    function.removeFnAttr(Attribute::StackProtect);
    function.removeFnAttr(Attribute::StackProtectStrong);
    if (&function != original) {
      if (!isOutOfLine(function))
        function.addFnAttr(Attribute::AlwaysInline);
      function.setLinkage(GlobalValue::InternalLinkage);
    }
    function.setComdat(nullptr);
  }
  Expected<Function *> replaced = replaceParameters(*original, kernel);
  if (!replaced)
    return replaced.takeError();
  Function &function = **replaced;

  PassRunner runner(/*machine=*/nullptr, threadCosts());
  {
    ModulePassManager passes;
    passes.addPass(AlwaysInlinerPass(/*InsertLifetime=*/false));
    passes.addPass(GlobalDCEPass());
    runner.run(module, std::move(passes));
  }
  if (Error error = refuse(function))
    return std::move(error);
  laneFunctions = makeLaneFunctions(function);

  simplify(runner, function, options);
  for (Function *body : laneFunctions) {
    simplify(runner, *body, options);
    widenConversions(*body);
    optimize(runner, *body, isQuick);
  }
  bool isRecorded = checks.races || checks.outputs || checks.initialized;
  if (options.portable || isRecorded)
    expandMemoryIntrinsics(function);
  if (options.portable)
    collectCoherent(function);
  facts.writtenBuffers = findWrittenBuffers(function, kernel);
  facts.usedBuffers = findUsedBuffers(function);
  MarkedFunctions marked(function);
  if (options.count) {
    facts.registersPerThread = estimateRegisters(function);
    insertCounting(function, marked, facts);
  }
  if (options.portable)
    collectComparedConstants(function, facts);
  insertChecks(function, options.checks.bounds, facts);
  if (checks.any())
    insertValueChecks(function, facts);
  if (checks.any() && !options.portable) {
    if (checks.steps)
      insertSteps(function, facts);
    if (isRecorded)
      accessWholeBytes(function);
    if (checks.races || checks.outputs)
      trackRaces(function, kernel, /*onlyStores=*/!checks.races, facts);
    if (checks.initialized)
      checkThreadgroupMemory(function, facts);
  }
  if (options.portable) {
    insertWaits(function, facts);
    accessWholeBytes(function); // so that no access is overlooked
    insertSites(function, facts);
    trackVisibility(function, kernel, facts);
  }
  addAliasScopes(function);
  widenConversions(function);

  optimize(runner, function, isQuick);
  accessWholeBytes(function);
  if (options.count)
    insertOptimizedCounting(function, marked, facts);
#ifndef NDEBUG
  if (verifyFunction(function, &errs()))
    return createStringError("the prepared kernel is not valid IR");
#endif
  return &function;
}

} // namespace triton_metal::engine
