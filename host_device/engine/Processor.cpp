#include "host_device/engine/Processor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"
#include "llvm/TargetParser/Host.h"
#include <map>
#include <mutex>

using namespace llvm;

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// Which processor
//===----------------------------------------------------------------------===//

std::string Processor::requested() {
  const char *name = std::getenv("TRITON_METAL_HOST_CPU");
  return name ? name : "";
}

Error Processor::start(StringRef name) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  triple = Triple(sys::getProcessTriple());
  std::string error;
  target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("the host's processor is not one that LLVM knows: " + error);
  StringMap<bool> flags = sys::getHostCPUFeatures();
  if (name.empty()) {
    cpuName = sys::getHostCPUName().str();
    std::vector<std::string> sorted;
    for (auto &flag : flags)
      sorted.push_back((flag.second ? "+" : "-") + flag.first().str());
    llvm::sort(sorted);
    features = join(sorted, ",");
  } else {
    cpuName = name.str();
    std::unique_ptr<MCSubtargetInfo> any(target->createMCSubtargetInfo(triple, "", ""));
    if (!any->isCPUStringValid(cpuName))
      return createStringError("'%s' is not a processor that LLVM knows for %s", cpuName.c_str(),
                               triple.str().c_str());
  }
  std::unique_ptr<MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(triple, cpuName, features));
  if (!name.empty())
    for (auto &flag : flags)
      if (!flag.second && subtarget->checkFeatures("+" + flag.first().str()))
        return createStringError("code for '%s' does not run here: this processor has no %s",
                                 cpuName.c_str(), flag.first().str().c_str());
  if (triple.isX86())
    hostTraits.avx512 = subtarget->checkFeatures("+avx512f,+avx512bw,+avx512vl,+avx512dq");
  std::unique_ptr<MCInstrInfo> instructions(target->createMCInstrInfo());
  Expected<MaskExtensions> extensions = MaskExtensions::of(triple, *instructions);
  if (!extensions)
    return extensions.takeError();
  maskExtensions = std::move(*extensions);
  return Error::success();
}

Expected<const Processor *> Processor::get(StringRef name) {
  static std::mutex mutex;
  static auto &known = *new std::map<std::string, std::unique_ptr<Processor>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<Processor> &place = known[name.str()];
  if (!place) {
    auto processor = std::make_unique<Processor>();
    if (Error error = processor->start(name))
      return std::move(error);
    place = std::move(processor);
  }
  return place.get();
}

std::string Processor::description() const { return triple.str() + " " + cpuName + " " + features; }

std::string hostDescription() {
  Expected<const Processor *> host = Processor::get();
  if (host)
    return (*host)->description();
  return toString(host.takeError());
}

std::unique_ptr<TargetMachine> Processor::machine(bool quick) const {
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  options.EmitStackSizeSection = true;
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, cpuName, features, options, Reloc::PIC_, CodeModel::Small,
                                  quick ? CodeGenOptLevel::None : CodeGenOptLevel::Default, true));
}

void Processor::annotate(Module &module) const {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", cpuName);
    function.addFnAttr("target-features", features);
    if (hostTraits.avx512) {
      function.addFnAttr("prefer-vector-width", "512");
      function.addFnAttr("min-legal-vector-width", "512");
    }
  }
}

//===----------------------------------------------------------------------===//
// Object files
//===----------------------------------------------------------------------===//

/// The pass to insert into the pipeline that is built on this thread.
static thread_local std::function<MachineFunctionPass *()> *extraPass = nullptr;

Error Processor::emitObject(Module &module, TargetMachine &machine,
                            SmallVectorImpl<char> &object) const {
  // LLVM builds the pipeline itself and calls hooks that are common to the whole process. The
  // thread-local variable distinguishes the pipelines of different threads.
  static auto *hook [[maybe_unused]] = new RegisterTargetPassConfigCallback(
      [](TargetMachine &, PassManagerBase &, TargetPassConfig *config) {
        if (extraPass)
          // After the last pass that replaces registers by mask registers, and before the first
          // pass that moves instructions. Code that is generated quickly has neither.
          config->insertPass(config->getOptLevel() == CodeGenOptLevel::None
                                 ? &FinalizeISelID
                                 : &EarlyTailDuplicateLegacyID,
                             (*extraPass)());
      });
  bool ran = false;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  std::function<MachineFunctionPass *()> create = [&] { return maskExtensions.createPass(ran); };
  if (!maskExtensions.empty())
    extraPass = &create;
  bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile);
  extraPass = nullptr;
  if (refused)
    return createStringError("LLVM cannot write object files for this host");
  passes.run(module);
  bool hasCode = any_of(module, [](Function &function) { return !function.isDeclaration(); });
  if (hasCode && !maskExtensions.empty() && !ran)
    return createStringError("internal error: LLVM left out the pass that keeps lane masks");
  return Error::success();
}

} // namespace triton_metal::engine
