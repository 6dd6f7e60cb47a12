#include "host_device/engine/Jit.h"
#include "host_device/engine/ContextErrors.h"
#include "host_device/engine/GuardMaskedLoads.h"
#include "host_device/engine/HighProducts.h"
#include "host_device/engine/LaneFunctions.h"
#include "host_device/engine/Prepare.h"
#include "host_device/engine/Processor.h"
#include "host_device/engine/Runtime.h"
#include "host_device/engine/Vectorize.h"
#include "host_device/msl/PassRunner.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/DeadStoreElimination.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <pthread.h>

using namespace llvm;

namespace triton_metal::engine {

static void optimize(Module &module, Function &function, TargetMachine &machine,
                     const HostTraits &traits, bool quick) {
  PassRunner runner(&machine);
  if (quick) {
    FunctionPassManager passes;
    passes.addPass(EarlyCSEPass());
    passes.addPass(GuardMaskedLoadsPass());
    passes.addPass(InstCombinePass());
    passes.addPass(SimplifyCFGPass());
    passes.addPass(ADCEPass());
    runner.run(function, std::move(passes));
  } else {
    FunctionPassManager passes;
    passes.addPass(EarlyCSEPass(true));
    passes.addPass(GuardMaskedLoadsPass());
    passes.addPass(InstCombinePass());
    passes.addPass(SimplifyCFGPass());
    {
      LoopPassManager loop;
      loop.addPass(LICMPass(LICMOptions()));
      passes.addPass(createFunctionToLoopPassAdaptor(std::move(loop), /*UseMemorySSA=*/true));
    }
    passes.addPass(GVNPass(GVNOptions().setMemDep(false).setMemorySSA(false)));
    passes.addPass(GuardMaskedLoadsPass());
    passes.addPass(InstCombinePass());
    passes.addPass(DSEPass());
    passes.addPass(
        SimplifyCFGPass(SimplifyCFGOptions().hoistCommonInsts(true).sinkCommonInsts(true)));
    passes.addPass(ADCEPass());
    runner.run(function, std::move(passes));
  }
  if (lowerShuffles(function, traits)) {
    FunctionPassManager passes;
    passes.addPass(EarlyCSEPass());
    if (!quick) {
      passes.addPass(GuardMaskedLoadsPass());
      passes.addPass(InstCombinePass());
    }
    runner.run(function, std::move(passes));
  }
  splitHighProducts(function);
}

/// The total stack of the functions of an object file, from its .stack_sizes section; 0 without one
/// (Mach-O). Spilled values of a SIMD-group can exceed any fixed estimate: a thousand registers for
/// each thread are 128 KB.
static uint64_t stackBytesOf(StringRef object) {
  Expected<std::unique_ptr<object::ObjectFile>> file =
      object::ObjectFile::createObjectFile(MemoryBufferRef(object, "kernel"));
  if (!file) {
    consumeError(file.takeError());
    return 0;
  }
  uint64_t bytes = 0;
  for (const object::SectionRef &section : (*file)->sections()) {
    Expected<StringRef> name = section.getName();
    Expected<StringRef> contents = section.getContents();
    if (!name || !contents) {
      consumeError(name.takeError());
      consumeError(contents.takeError());
      continue;
    }
    if (*name != ".stack_sizes")
      continue;
    // Each entry is an address and a size in ULEB128.
    const uint8_t *at = contents->bytes_begin(), *end = contents->bytes_end();
    while (end - at > 8) {
      unsigned length = 0;
      bytes += decodeULEB128(at + 8, &length, end);
      at += 8 + length;
    }
  }
  return bytes;
}

Expected<KernelCode> compileKernel(Module &module, const KernelInfo &kernel,
                                   const CodeOptions &options, const Processor &processor) {
  ContextErrors errors(module.getContext());
  std::unique_ptr<TargetMachine> machine = processor.machine(options.quick);
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  KernelCode code;
  SmallVector<Function *> laneFunctions;
  Expected<Function *> scalar = prepareKernel(module, kernel, options, code.facts, laneFunctions);
  if (!scalar)
    return joinErrors(createStringError("kernel '%s'", kernel.name.c_str()), scalar.takeError());
  const char *dump = std::getenv("TRITON_METAL_HOST_DUMP");
  if (dump)
    (*scalar)->print(errs());
  code.entryName = "__tm_kernel";
  SmallVector<Function *> functions;
  for (Function *body : laneFunctions) {
    CodeFacts ignored;
    Expected<Function *> made =
        vectorizeKernel(*body, simdNameOf(*body), options, processor.traits(), ignored);
    if (!made)
      return joinErrors(createStringError("kernel '%s'", kernel.name.c_str()), made.takeError());
    (*made)->setLinkage(GlobalValue::InternalLinkage);
    functions.push_back(*made);
    body->eraseFromParent();
  }
  Expected<Function *> simd =
      vectorizeKernel(**scalar, code.entryName, options, processor.traits(), code.facts);
  if (!simd)
    return joinErrors(createStringError("kernel '%s'", kernel.name.c_str()), simd.takeError());
  if (dump)
    (*simd)->print(errs());
  (*scalar)->eraseFromParent();
  functions.push_back(*simd);
  processor.annotate(module);
  for (Function *function : functions)
    optimize(module, *function, *machine, processor.traits(), options.quick);
  if (dump)
    (*simd)->print(errs());
  // Erases functions that only the scalar code used.
  for (Function &function : make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
  for (GlobalVariable &global : make_early_inc_range(module.globals()))
    if (global.use_empty() && global.hasLocalLinkage())
      global.eraseFromParent();
    else if (!global.isDeclaration())
      global.setLinkage(GlobalValue::InternalLinkage);
  SmallVector<char, 0> object;
  if (Error error = processor.emitObject(module, *machine, object))
    return std::move(error);
  if (Error error = errors.take())
    return joinErrors(createStringError("kernel '%s'", kernel.name.c_str()), std::move(error));
  code.object.assign(object.begin(), object.end());
  code.facts.stackBytes = std::max(code.facts.stackBytes, stackBytesOf(code.object));
  return code;
}

//===----------------------------------------------------------------------===//
// Jit
//===----------------------------------------------------------------------===//

Jit::Jit() = default;
Jit::~Jit() = default;

Expected<Jit *> Jit::get() {
  // Never destroyed, because kernels may run until the end of the process.
  [[clang::no_destroy]] static Expected<Jit *> instance = []() -> Expected<Jit *> {
    Expected<const Processor *> processor = Processor::get();
    if (!processor)
      return processor.takeError();
    auto created = orc::LLJITBuilder().create();
    if (!created)
      return created.takeError();
    auto *result = new Jit;
    result->jit = std::move(*created);
    // A thread that compiles in the background may be loading code when another one forks. The
    // child has no such thread, which would never give the loader back.
    static Jit *ofParent = result;
    pthread_atfork([] { ofParent->mutex.lock(); }, [] { ofParent->mutex.unlock(); },
                   [] { ofParent->mutex.unlock(); });
    orc::SymbolMap symbols;
    for (auto [name, address] : runtimeSymbols())
      symbols[result->jit->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                                     JITSymbolFlags::Exported};
    if (Error error =
            result->jit->getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols))))
      return std::move(error);
    auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
        result->jit->getDataLayout().getGlobalPrefix());
    if (!process)
      return process.takeError();
    result->jit->getMainJITDylib().addGenerator(std::move(*process));
    return result;
  }();
  if (!instance)
    return createStringError("the JIT did not start");
  return *instance;
}

Expected<KernelEntry> Jit::load(StringRef object, StringRef entryName) {
  std::lock_guard lock(mutex);
  auto dylib = jit->createJITDylib("kernel" + std::to_string(loaded++));
  if (!dylib)
    return dylib.takeError();
  dylib->addToLinkOrder(jit->getMainJITDylib());
  if (Error error = jit->addObjectFile(*dylib, MemoryBuffer::getMemBufferCopy(object, "kernel")))
    return std::move(error);
  auto address = jit->lookup(*dylib, entryName);
  if (!address)
    return address.takeError();
  return address->toPtr<KernelEntry>();
}

} // namespace triton_metal::engine
