#include "host_device/msl/Lowering.h"
#include "host_device/msl/AnyValues.h"
#include "host_device/msl/CheckValues.h"
#include "host_device/msl/Initialisers.h"
#include "host_device/msl/KeepMath.h"
#include "host_device/msl/LoopExits.h"
#include "host_device/msl/MarkMath.h"
#include "host_device/msl/Marks.h"
#include "host_device/msl/MetalTarget.h"
#include "host_device/msl/OutOfLine.h"
#include "host_device/msl/PassRunner.h"
#include "host_device/msl/Passes.h"
#include "host_device/msl/PointerTables.h"
#include "host_device/msl/Stdlib.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/IR/Verifier.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/GlobalOpt.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/InferAddressSpaces.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/LowerExpectIntrinsic.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Scalar/TailRecursionElimination.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace triton_metal {

namespace {

constexpr unsigned threadgroupSpace = static_cast<unsigned>(AddressSpace::Threadgroup);
constexpr unsigned constantSpace = static_cast<unsigned>(AddressSpace::Constant);

Error failure(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

/// The constant of this type whose bytes from `offset` on are those of the word; null if it does
/// not fit into the word.
Constant *constantOf(Type *type, uint64_t word, uint64_t offset, const DataLayout &layout) {
  uint64_t bits = type->isIntOrPtrTy() || type->isFloatingPointTy()
                      ? layout.getTypeSizeInBits(type).getFixedValue()
                      : 0;
  if (bits) {
    if (type->isPointerTy() || 8 * offset + bits > 64)
      return nullptr;
    Constant *number =
        ConstantInt::get(type->getContext(), APInt(64, word >> (8 * offset)).trunc(bits));
    return type->isIntegerTy() ? number : ConstantExpr::getBitCast(number, type);
  }
  SmallVector<Constant *> elements;
  auto add = [&](Type *element, uint64_t at) {
    elements.push_back(constantOf(element, word, offset + at, layout));
    return elements.back() != nullptr;
  };
  if (auto *structure = dyn_cast<StructType>(type)) {
    for (unsigned i = 0; i != structure->getNumElements(); ++i)
      if (!add(structure->getElementType(i),
               layout.getStructLayout(structure)->getElementOffset(i).getFixedValue()))
        return nullptr;
    return ConstantStruct::get(structure, elements);
  }
  uint64_t count = 0;
  Type *element = nullptr;
  if (auto *array = dyn_cast<ArrayType>(type))
    count = array->getNumElements(), element = array->getElementType();
  else if (auto *vector = dyn_cast<FixedVectorType>(type))
    count = vector->getNumElements(), element = vector->getElementType();
  for (uint64_t i = 0; i != count; ++i)
    if (!add(element, i * layout.getTypeAllocSize(element).getFixedValue()))
      return nullptr;
  if (!count)
    return nullptr;
  return type->isArrayTy() ? ConstantArray::get(cast<ArrayType>(type), elements)
                           : ConstantVector::get(elements);
}

/// Gives function constants their values and answers `is_function_constant_defined`.
Error bindFunctionConstants(Module &module, ArrayRef<GeneratedConstant> constants,
                            const MslOptions &options) {
  for (const GeneratedConstant &constant : constants) {
    const FunctionConstantValue *value = nullptr;
    for (const FunctionConstantValue &candidate : options.functionConstants)
      if (candidate.index == constant.info->index)
        value = &candidate;
    constant.info->defined = value != nullptr;
    GlobalVariable *variable = constant.getVariable();
    if (!value || !variable)
      continue;
    Constant *initializer =
        constantOf(variable->getValueType(), value->bits, 0, module.getDataLayout());
    if (!initializer)
      return failure("function constant '" + constant.info->name + "' has type '" +
                     constant.info->type + "', which cannot be given a value");
    variable->setInitializer(initializer);
    variable->setConstant(true);
    variable->setLinkage(GlobalValue::InternalLinkage);
  }
  if (Function *query = module.getFunction("__tm_function_constant_defined")) {
    for (User *user : make_early_inc_range(query->users())) {
      auto *call = dyn_cast<CallInst>(user);
      if (!call)
        continue;
      auto *variable = dyn_cast<GlobalVariable>(call->getArgOperand(0)->stripPointerCasts());
      if (!variable)
        return failure("is_function_constant_defined needs the name of a function constant");
      call->replaceAllUsesWith(
          ConstantInt::get(call->getType(), variable->hasInitializer() ? 1 : 0));
      call->eraseFromParent();
    }
    query->eraseFromParent();
  }
  return Error::success();
}

/// Creates the kernel's function, whose parameters are plain values and whose positions are
/// vectors.
Function *makeKernel(Module &module, const GeneratedKernel &kernel) {
  LLVMContext &context = module.getContext();
  SmallVector<Type *> types;
  for (auto [index, parameter] : enumerate(kernel.info->parameters)) {
    if (parameter.kind == ParameterInfo::Kind::Position) {
      Type *scalar = Type::getIntNTy(context, parameter.scalarBits);
      types.push_back(parameter.vectorWidth == 1
                          ? scalar
                          : FixedVectorType::get(scalar, parameter.vectorWidth));
    } else {
      types.push_back(PointerType::get(context, static_cast<unsigned>(parameter.addressSpace)));
    }
  }
  Function *inner = kernel.function;
  inner->setName(kernel.info->name + ".body");
  inner->setComdat(nullptr);
  Function *outer = Function::Create(FunctionType::get(Type::getVoidTy(context), types, false),
                                     GlobalValue::ExternalLinkage, kernel.info->name, module);
  outer->addFnAttr(Attribute::NoUnwind);
  outer->addFnAttr(Attribute::Convergent);
  if (DISubprogram *program = inner->getSubprogram()) {
    // The wrapper is at the kernel's first line. Inlined code keeps its own locations.
    outer->setSubprogram(DISubprogram::getDistinct(
        context, program->getScope(), kernel.info->name, kernel.info->name, program->getFile(),
        program->getLine(), program->getType(), program->getScopeLine(), nullptr, 0, 0,
        program->getFlags(), program->getSPFlags(), program->getUnit()));
  }
  IRBuilder<> builder(BasicBlock::Create(context, "entry", outer));
  if (!kernel.info->unusable.empty()) {
    builder.CreateRetVoid();
    return outer;
  }
  if (DISubprogram *program = outer->getSubprogram())
    builder.SetCurrentDebugLocation(DILocation::get(context, program->getLine(), 1, program));
  SmallVector<Value *> arguments;
  for (auto [index, parameter] : enumerate(kernel.info->parameters)) {
    Argument *argument = outer->getArg(static_cast<unsigned>(index));
    argument->setName(parameter.name);
    if (Type *type = inner->getArg(static_cast<unsigned>(index))->getParamByValType()) {
      AllocaInst *slot = builder.CreateAlloca(type);
      slot->setAlignment(Align(16));
      builder.CreateAlignedStore(argument, slot, Align(16));
      arguments.push_back(slot);
    } else {
      arguments.push_back(argument);
    }
  }
  CallInst *call = builder.CreateCall(inner, arguments);
  call->setCallingConv(inner->getCallingConv());
  builder.CreateRetVoid();
  return outer;
}

/// Inlines all functions except kernels into their callers, and those that are marked.
void inlineEverything(Module &module, const SetVector<Function *> &kernels) {
  for (Function &function : module) {
    function.setCallingConv(CallingConv::C);
    if (function.isDeclaration()) {
      continue;
    }
    if (!isOutOfLine(function))
      function.removeFnAttr(Attribute::NoInline);
    function.removeFnAttr(Attribute::OptimizeNone);
    if (kernels.contains(&function))
      continue;
    // The rewriter adds `__restrict` to methods, which must not have an effect on aliasing.
    for (Argument &argument : function.args())
      if (argument.getName() == "this")
        argument.removeAttr(Attribute::NoAlias);
    function.setLinkage(GlobalValue::InternalLinkage);
    function.setComdat(nullptr);
    if (!isOutOfLine(function))
      function.addFnAttr(Attribute::AlwaysInline);
  }
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (auto *call = dyn_cast<CallBase>(&instruction)) {
        if (call->getIntrinsicID() ==
            Intrinsic::var_annotation) { // an attribute that has been read
          call->eraseFromParent();
          continue;
        }
        call->setCallingConv(CallingConv::C);
        if (call->isNoInline())
          call->removeFnAttr(Attribute::NoInline);
      }
  for (GlobalVariable &variable : module.globals())
    if (!variable.isDeclaration() && !variable.getName().starts_with("llvm.")) {
      // Of a variable of its own, LLVM knows which elements nothing writes, and removes their
      // reads.
      bool isAny = (isPortable(module) || checksOf(module).any()) &&
                   variable.getAddressSpace() == threadgroupSpace;
      variable.setLinkage(isAny ? GlobalValue::ExternalLinkage : GlobalValue::InternalLinkage);
      variable.setComdat(nullptr);
    }
}

/// Runs before anything is folded.
void defineArithmetic(Module &module) {
  FunctionAnalysisManager unused;
  for (Function &function : module)
    if (!function.isDeclaration())
      DefineArithmeticPass().run(function, unused);
}

/// Brings each function into SSA form, which shows what a sum is for. Inlining would already
/// simplify arithmetic that overflows.
void prepareOverflow(Module &module) {
  PassRunner runner;
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    FunctionPassManager manager;
    manager.addPass(ExpandCopiesPass());
    addVariablesToRegisters(manager);
    runner.run(function, std::move(manager));
    pessimizeOverflow(function);
  }
}

/// Kernels with more instructions would take too long to compile.
constexpr uint64_t mostInlined = 1'000'000;
constexpr unsigned deepestLoop = 128;

/// The number of instructions of a function after inlining everything that it calls.
uint64_t inlinedSize(const Function &function, DenseMap<const Function *, uint64_t> &known) {
  auto [entry, isNew] = known.try_emplace(&function, 1);
  if (!isNew) // one that is being counted calls itself, which is refused later
    return entry->second;
  uint64_t size = 0;
  for (const Instruction &instruction : instructions(function)) {
    size = SaturatingAdd(size, uint64_t(1));
    if (auto *call = dyn_cast<CallBase>(&instruction))
      if (const Function *callee = call->getCalledFunction(); callee && !callee->isDeclaration())
        size = SaturatingAdd(size, inlinedSize(*callee, known));
  }
  return known[&function] = size;
}

/// Refuses a small text that would become too much code.
Error checkSize(Module &module, const SetVector<Function *> &kernels) {
  DenseMap<const Function *, uint64_t> known;
  for (Function *kernel : kernels)
    if (inlinedSize(*kernel, known) > mostInlined)
      return failure("kernel '" + kernel->getName() + "' becomes more than " + Twine(mostInlined) +
                     " instructions when the functions that it calls are inlined");
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    DominatorTree dominators(function);
    LoopInfo loops(dominators);
    for (BasicBlock &block : function)
      if (loops.getLoopDepth(&block) > deepestLoop)
        return failure("function '" + demangle(function.getName()) +
                       "' has loops that are nested deeper than " + Twine(deepestLoop));
  }
  return Error::success();
}

/// Metal has no recursion, but a function that calls itself at its end is a loop. Published kernels
/// contain such calls.
void loopTailCalls(Module &module) {
  PassRunner runner;
  for (Function &function : module) {
    bool callsItself = any_of(instructions(function), [&](Instruction &instruction) {
      auto *call = dyn_cast<CallBase>(&instruction);
      return call && call->getCalledFunction() == &function;
    });
    if (!callsItself)
      continue;
    FunctionPassManager manager;
    addVariablesToRegisters(manager);
    manager.addPass(SimplifyCFGPass());
    manager.addPass(TailCallElimPass());
    runner.run(function, std::move(manager));
  }
}

template <typename PassT> void addLoopPass(FunctionPassManager &manager, PassT pass) {
  manager.addPass(createFunctionToLoopPassAdaptor(std::move(pass)));
}

/// LLVM's InferAddressSpaces, for volatile accesses, too. The processor has no volatile accesses of
/// its own for each address space, so LLVM would leave these generic.
struct InferSpacesPass : PassInfoMixin<InferSpacesPass> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    SmallVector<WeakVH> accesses;
    auto setVolatile = [](Value *access, bool isVolatile) {
      if (auto *load = dyn_cast_if_present<LoadInst>(access))
        load->setVolatile(isVolatile);
      else if (auto *store = dyn_cast_if_present<StoreInst>(access))
        store->setVolatile(isVolatile);
    };
    for (Instruction &instruction : instructions(function))
      if (isa<LoadInst, StoreInst>(instruction) && instruction.isVolatile())
        accesses.push_back(&instruction);
    for (Value *access : accesses)
      setVolatile(access, false);
    PreservedAnalyses preserved = InferAddressSpacesPass(0).run(function, analyses);
    for (Value *access : accesses)
      setVolatile(access, true);
    return preserved;
  }
};

/// The instructions that are counted and checked, and those that a GPU would run, are those of the
/// text. Others only have to be few.
bool isMeasured(const MslOptions &options) {
  return options.count || options.portable || options.gpu || options.checks.any();
}

uint64_t mostUnrolled(const MslOptions &options) {
  if (options.gpu)
    return LimitUnrollingPass::mostForGpu;
  return LimitUnrollingPass::getMost(options.count, options.portable);
}

/// Simplifies to a form that is the same on every machine: no pass in here asks the target for
/// costs.
void simplify(Module &module, const MslOptions &options) {
  FunctionPassManager clean;
  clean.addPass(LowerExpectIntrinsicPass());
  clean.addPass(ExpandCopiesPass());
  addVariablesToRegisters(clean);
  clean.addPass(InferSpacesPass());
  clean.addPass(EarlyCSEPass());
  clean.addPass(SimplifyCFGPass());
  clean.addPass(CombineInstructionsPass());
  if (options.checks.any())
    clean.addPass(DropChecksPass());
  // Arrays become registers if their only indices come from `#pragma unroll` loops.
  addLoopPass(clean, LoopRotatePass());
  if (isMeasured(options))
    addLoopPass(clean, IndVarSimplifyPass());
  clean.addPass(LimitUnrollingPass(mostUnrolled(options)));
  addLoopPass(clean, LoopFullUnrollPass());
  addVariablesToRegisters(clean);
  clean.addPass(InferSpacesPass());
  clean.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  clean.addPass(CombineInstructionsPass());
  clean.addPass(SimplifyCFGPass());
  // Vectors remain for loads and stores only; arithmetic becomes scalar.
  ScalarizerPassOptions scalarizer;
  scalarizer.ScalarizeLoadStore = false;
  clean.addPass(ScalarizerPass(scalarizer));
  clean.addPass(EarlyCSEPass());
  clean.addPass(ADCEPass());

  if (!isMeasured(options))
    inlineSimplified(module);
  ModulePassManager manager;
  manager.addPass(AlwaysInlinerPass(/*InsertLifetime=*/false));
  manager.addPass(GlobalDCEPass());
  manager.addPass(GlobalOptPass()); // evaluates initialisers of file-scope constants
  manager.addPass(createModuleToFunctionPassAdaptor(std::move(clean)));
  manager.addPass(GlobalDCEPass());
  PassRunner().run(module, std::move(manager));
}

/// Drops the calls of `__tm_together`, unless they are checked.
void resolveTogether(Module &module, const Checks &checks) {
  if (!checks.divergence)
    eraseCalls(module, togetherName);
}

/// Inlines everything and checks the kernels' variables.
void checkAllVariables(Module &module, const SetVector<Function *> &kernels) {
  ModulePassManager manager;
  // The variables of a function begin to live at each of its calls.
  manager.addPass(AlwaysInlinerPass(/*InsertLifetime=*/true));
  PassRunner().run(module, std::move(manager));
  for (Function *kernel : kernels)
    checkVariables(*kernel);
}

/// Clang represents threadgroup variables as globals. Each kernel gets the variables that it uses,
/// in its entry block and by number.
void placeThreadgroupVariables(Module &module,
                               ArrayRef<std::pair<Function *, KernelInfo *>> kernels,
                               ArrayRef<GeneratedVariable> declarations) {
  LLVMContext &context = module.getContext();
  SmallVector<GlobalVariable *> variables;
  for (GlobalVariable &variable : module.globals())
    if (variable.getAddressSpace() == threadgroupSpace)
      variables.push_back(&variable);
  if (variables.empty())
    return;
  SmallVector<Constant *> constants(variables.begin(), variables.end());
  convertUsersOfConstantsToInstructions(constants);
  Type *i32 = Type::getInt32Ty(context), *i64 = Type::getInt64Ty(context);
  FunctionCallee allocate = module.getOrInsertFunction(
      "__tm_threadgroup_alloc", PointerType::get(context, threadgroupSpace), i32, i64, i64);
  auto *callee = cast<Function>(allocate.getCallee());
  callee->setDoesNotThrow();
  callee->setDoesNotAccessMemory();
  callee->setWillReturn();
  for (auto [function, info] : kernels) {
    uint32_t next = 0;
    for (GlobalVariable *variable : variables) {
      SmallVector<Use *> uses;
      for (Use &use : variable->uses())
        if (auto *instruction = dyn_cast<Instruction>(use.getUser());
            instruction && instruction->getFunction() == function)
          uses.push_back(&use);
      if (uses.empty())
        continue;
      ThreadgroupVariableInfo item;
      item.id = next++;
      item.size = module.getDataLayout().getTypeAllocSize(variable->getValueType());
      item.alignment = variable->getAlign().valueOrOne().value();
      std::string full = demangle(variable->getName());
      item.name = StringRef(full).rsplit("::").second.str();
      if (item.name.empty())
        item.name = full;
      // A name that several functions use belongs to the function that the full name begins with.
      for (const GeneratedVariable &declaration : declarations)
        if (declaration.name == item.name &&
            (!item.line || StringRef(full).contains(declaration.function + "("))) {
          item.line = declaration.line;
          item.column = declaration.column;
        }
      IRBuilder<> builder(&*function->getEntryBlock().getFirstInsertionPt());
      CallInst *call = builder.CreateCall(allocate, {ConstantInt::get(i32, item.id),
                                                     ConstantInt::get(i64, item.size),
                                                     ConstantInt::get(i64, item.alignment)});
      call->setName(item.name);
      for (Use *use : uses)
        use->set(call);
      info->threadgroupVariables.push_back(std::move(item));
    }
  }
  for (GlobalVariable *variable : variables) {
    variable->replaceAllUsesWith(PoisonValue::get(variable->getType()));
    variable->eraseFromParent();
  }
}

/// The place in the user's text that an instruction of the standard library comes from.
std::string userPlace(const Instruction &instruction) {
  const DILocation *place = instruction.getDebugLoc();
  while (place && place->getInlinedAt() && isStdlibFile(filePathOf(*place)))
    place = place->getInlinedAt();
  return place ? "line " + std::to_string(place->getLine()) : "it";
}

/// Marks kernels that use what the standard library only declares.
void markRefused(ArrayRef<std::pair<Function *, KernelInfo *>> kernels) {
  for (auto [function, info] : kernels)
    for (Instruction &instruction : instructions(*function)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      const Function *callee = call ? call->getCalledFunction() : nullptr;
      StringRef name = callee ? callee->getName() : "";
      if (!name.consume_front("__tm_refused_") || !info->unusable.empty())
        continue;
      std::string what = name.str();
      std::replace(what.begin(), what.end(), '_', ' ');
      info->unusable =
          userPlace(instruction) + " uses " + what + ", which the host device does not have";
    }
}

/// Marks kernels that use a function constant without a value. The other kernels of the library can
/// be run.
void markUnusable(ArrayRef<std::pair<Function *, KernelInfo *>> kernels,
                  ArrayRef<GeneratedConstant> constants, const Dependences &dependences) {
  for (auto [function, info] : kernels)
    for (const GeneratedConstant &constant : constants)
      info->functionConstants.push_back(*constant.info);
  auto mark = [&](GlobalVariable *variable, size_t number, const FunctionConstantInfo &constant) {
    if (variable->use_empty())
      return;
    convertUsersOfConstantsToInstructions({variable});
    for (auto [function, info] : kernels) {
      bool uses = any_of(variable->users(), [function = function](User *user) {
        auto *instruction = dyn_cast<Instruction>(user);
        return instruction && instruction->getFunction() == function;
      });
      if (!uses)
        continue;
      info->functionConstants[number].required = true;
      if (info->unusable.empty())
        info->unusable = "function constant '" + constant.name + "' (index " +
                         std::to_string(constant.index) + ") is used but has no value";
    }
  };
  for (auto [number, constant] : enumerate(constants)) {
    GlobalVariable *variable = constant.getVariable();
    if (!variable || !variable->isDeclaration())
      continue;
    mark(variable, number, *constant.info);
    for (auto [dependent, source] : dependences)
      if (source == variable)
        mark(dependent, number, *constant.info);
  }
  markRefused(kernels);
  for (auto [function, info] : kernels) {
    if (info->unusable.empty())
      continue;
    DISubprogram *program = function->getSubprogram();
    function->deleteBody();
    function->setSubprogram(program);
    IRBuilder<> builder(BasicBlock::Create(function->getContext(), "entry", function));
    builder.CreateRetVoid();
    info->threadgroupVariables.clear();
  }
}

bool isOther(const Function &function, const SetVector<Function *> &kernels) {
  return !function.isDeclaration() && !kernels.contains(const_cast<Function *>(&function)) &&
         !isOutOfLine(function);
}

/// Whether a function remains that was not inlined.
bool hasOtherFunctions(Module &module, const SetVector<Function *> &kernels) {
  return any_of(module, [&](Function &function) { return isOther(function, kernels); });
}

/// Refuses what the device cannot run, with an error that names it.
Error check(Module &module, const SetVector<Function *> &kernels) {
  if (GlobalVariable *initialisers = module.getNamedGlobal("llvm.global_ctors"))
    if (auto *type = dyn_cast<ArrayType>(initialisers->getValueType());
        !type || type->getNumElements() > 0)
      return failure("a variable at file scope has an initialiser that is not constant");
  for (Function &function : module)
    if (isOther(function, kernels)) {
      const DISubprogram *place = function.getSubprogram();
      return failure("function '" + demangle(function.getName()) + "'" +
                     (place ? " (line " + Twine(place->getLine()) + ")" : Twine()) +
                     " is recursive or is called through a pointer; Metal kernels can call "
                     "neither");
    }
  for (GlobalVariable &variable : module.globals()) {
    // The code of each kernel contains the constants that it reads.
    constexpr uint64_t mostBytes = uint64_t(16) << 20;
    if (uint64_t bytes = module.getDataLayout().getTypeAllocSize(variable.getValueType());
        !variable.isDeclaration() && bytes > mostBytes)
      return failure("constant '" + demangle(variable.getName()) + "' has " + Twine(bytes) +
                     " bytes; the host device takes constants of up to " + Twine(mostBytes));
    if (!variable.isDeclaration() && !variable.isConstant() && !variable.use_empty() &&
        variable.getAddressSpace() != constantSpace && !variable.getName().starts_with("llvm."))
      return failure("variable '" + demangle(variable.getName()) +
                     "' lives as long as the program and can change; such variables must be in the "
                     "constant address space");
    if (!variable.isDeclaration() || variable.use_empty())
      continue;
    return failure("variable '" + variable.getName() + "' is declared but nowhere defined");
  }
  for (Function *kernel : kernels)
    for (Instruction &instruction : instructions(*kernel))
      if (instruction.getType()->getScalarType()->isDoubleTy())
        return failure("kernel '" + kernel->getName() +
                       "' computes in double, which Metal does not have");
      else if (auto *store = dyn_cast<StoreInst>(&instruction);
               store && store->getPointerAddressSpace() == constantSpace)
        return failure("kernel '" + kernel->getName() + "' writes to constant memory");
  return Error::success();
}

} // namespace

Error lowerModule(Module &module, ArrayRef<GeneratedKernel> kernels,
                  ArrayRef<GeneratedConstant> constants,
                  ArrayRef<GeneratedVariable> threadgroupVariables, const MslOptions &options) {
  if (options.gpu)
    dropLoopExits(module);
  else
    keepExitsInLoops(module);
  if (options.portable) {
    makePortable(module);
    for (Function &function : module)
      if (!function.isDeclaration())
        fillVariables(function);
    prepareOverflow(module);
  }
  setChecks(module, options.checks);
  resolvePromises(module);
  resolveTogether(module, options.checks);
  if (options.checks.nans)
    checkNans(module);
  defineArithmetic(module);
  if (options.count)
    markMath(module);
  if (options.gpu)
    keepMath(module);
  if (Error error = bindFunctionConstants(module, constants, options))
    return error;
  separateInitialisers(module);
  SetVector<Function *> entries;
  SmallVector<std::pair<Function *, KernelInfo *>> pairs;
  for (const GeneratedKernel &kernel : kernels) {
    Function *entry = makeKernel(module, kernel);
    entries.insert(entry);
    pairs.push_back({entry, kernel.info});
  }
  if (Error error = checkSize(module, entries))
    return error;
  // Counters and any values are for each instruction of the kernel.
  if (!isMeasured(options))
    keepLongFunctions(module, entries);
  inlineEverything(module, entries);
  // Clang keeps some globals for the linker, which is not used here.
  for (StringRef name : {"llvm.used", "llvm.compiler.used", "llvm.global.annotations"})
    if (GlobalVariable *used = module.getNamedGlobal(name))
      used->eraseFromParent();
  if (Error error = expandPointerTables(module))
    return error;
  loopTailCalls(module);
  if (options.checks.initialized)
    checkAllVariables(module, entries);
  if (options.gpu)
    module.setDataLayout(gpuDataLayout);
  simplify(module, options);
  // A function that was called through a local pointer has become a callee.
  if (hasOtherFunctions(module, entries))
    simplify(module, options);
  // An initialiser may be a number only now, and others may be made of it.
  SmallPtrSet<Function *, 4> stuck;
  size_t before = std::numeric_limits<size_t>::max();
  for (size_t left; (left = foldInitialisers(module)); before = left) {
    Function *first = orderInitialisers(module, stuck);
    if (first && left == before) {
      stuck.insert(first);
      first = orderInitialisers(module, stuck);
    }
    if (!first)
      break;
    ModulePassManager manager;
    FunctionPassManager numbers;
    numbers.addPass(CombineInstructionsPass());
    if (options.checks.any())
      numbers.addPass(DropChecksPass());
    manager.addPass(createModuleToFunctionPassAdaptor(std::move(numbers)));
    manager.addPass(GlobalOptPass());
    manager.addPass(GlobalDCEPass());
    PassRunner().run(module, std::move(manager));
  }
  Dependences dependences = removeWaitingInitialisers(module);
  placeThreadgroupVariables(module, pairs, threadgroupVariables);
  markUnusable(pairs, constants, dependences);
  if (Error error = check(module, entries))
    return error;
  module.setTargetTriple(Triple(sys::getProcessTriple()));
  std::string broken;
  raw_string_ostream stream(broken);
  if (verifyModule(module, &stream))
    return failure("the Metal front end made invalid code: " + broken);
  return Error::success();
}

} // namespace triton_metal
