// Turns kernels of Metal texts into code for the compilers of other GPUs, by way of the host
// device's front end.
#include "Gpu.h"
#include "host_device/msl/Frontend.h"
#include "host_device/msl/PassRunner.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/InferAddressSpaces.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;
using namespace triton_metal;

namespace {

const char overview[] =
    R"(metal-ir: turns a kernel of a Metal text into code for another GPU's compiler

KERNEL.metal is read by the host device's front end. Loops are unrolled as the text asks. Elementary functions, shuffles and
reductions become what the GPU has for them. The standard output gets JSON: the kernel's parameters, its threadgroup
memory and the loops that are left.

Example:
  metal-ir --target=nvptx softmax.metal -o softmax.ptx)";

enum class TargetKind : uint8_t { Spirv, Nvptx };
enum class Form : uint8_t { Code, Ir };

cl::OptionCategory category("metal-ir's options");
cl::opt<std::string> input(cl::Positional, cl::desc("KERNEL.metal"), cl::Required,
                           cl::cat(category));
cl::opt<TargetKind>
    target("target", cl::desc("whose code"), cl::cat(category), cl::init(TargetKind::Spirv),
           cl::values(clEnumValN(TargetKind::Spirv, "spirv", "SPIR-V, for Mesa (the default)"),
                      clEnumValN(TargetKind::Nvptx, "nvptx", "PTX, for NVIDIA")));
cl::opt<std::string> output("o", cl::desc("where the code goes (the default: nowhere)"),
                            cl::value_desc("file"), cl::cat(category));
cl::opt<Form> form("emit", cl::desc("what is written"), cl::cat(category), cl::init(Form::Code),
                   cl::values(clEnumValN(Form::Code, "code", "SPIR-V or PTX (the default)"),
                              clEnumValN(Form::Ir, "ir", "LLVM IR")));
cl::opt<std::string> processor("processor", cl::desc("NVIDIA's architecture (the default: sm_90)"),
                               cl::init("sm_90"), cl::cat(category));
cl::opt<std::string> kernelName("kernel", cl::desc("which kernel of a text with several"),
                                cl::cat(category));
cl::list<std::string> includes("include", cl::desc("a folder for #include"),
                               cl::value_desc("folder"), cl::cat(category));
cl::list<std::string> constants("constant",
                                cl::desc("the value of a function constant, for example 200=1"),
                                cl::value_desc("index=value"), cl::cat(category));
cl::list<std::string>
    byValue("by-value",
            cl::desc("a buffer of constants that is handed over itself, and its bytes: 2=12"),
            cl::value_desc("buffer=bytes"), cl::cat(category));
cl::list<std::string> macros("define", cl::desc("a macro"), cl::value_desc("name=value"),
                             cl::cat(category));
cl::opt<unsigned> threads("threads-per-threadgroup",
                          cl::desc("threads of a threadgroup (the default: the kernel's maximum)"),
                          cl::cat(category));

Error failure(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

Expected<MslOptions> makeOptions() {
  MslOptions options;
  options.fileName = input;
  options.gpu = true;
  options.includeDirectories.assign(includes.begin(), includes.end());
  for (const std::string &text : constants) {
    auto [index, value] = StringRef(text).split('=');
    FunctionConstantValue constant;
    if (index.getAsInteger(10, constant.index) || value.getAsInteger(0, constant.bits))
      return failure("--constant=" + text + " is not INDEX=VALUE, two integers");
    options.functionConstants.push_back(constant);
  }
  for (const std::string &text : macros) {
    auto [name, value] = StringRef(text).split('=');
    options.macros.emplace_back(name.str(), value.str());
  }
  return options;
}

std::unique_ptr<TargetMachine> makeMachine(std::string &error) {
  bool isSpirv = target == TargetKind::Spirv;
  Triple triple(isSpirv ? "spirv64-unknown-unknown" : "nvptx64-nvidia-cuda");
  if (isSpirv) {
    LLVMInitializeSPIRVTargetInfo();
    LLVMInitializeSPIRVTarget();
    LLVMInitializeSPIRVTargetMC();
    LLVMInitializeSPIRVAsmPrinter();
  } else {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  }
  const Target *found = TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return nullptr;
  return std::unique_ptr<TargetMachine>(found->createTargetMachine(
      triple, isSpirv ? std::string() : std::string(processor), isSpirv ? "" : "+ptx80",
      TargetOptions(), Reloc::PIC_, std::nullopt, CodeGenOptLevel::Aggressive));
}

void simplify(Module &module, TargetMachine &machine) {
  PassRunner runner(&machine);
  if (target == TargetKind::Nvptx) {
    // As for any program of this GPU.
    PassBuilder builder(&machine);
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);
    for (Function &function : module)
      if (!function.isDeclaration()) {
        // LLVM narrows the low half's product to 32 bits, and ptxas does not find the two again.
        gpu::shareProducts(function);
        gpu::versionUnaligned(function);
      }
    return;
  }
  // Little, so that the text's own choices are what is judged: Mesa has its own passes.
  FunctionPassManager passes;
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass());
  passes.addPass(SimplifyCFGPass());
  ModulePassManager manager;
  manager.addPass(createModuleToFunctionPassAdaptor(std::move(passes)));
  manager.addPass(GlobalDCEPass());
  runner.run(module, std::move(manager));
}

json::Object describe(const KernelInfo &kernel, unsigned count, uint64_t bytes,
                      ArrayRef<std::string> more, ArrayRef<gpu::LoopInfo> loops) {
  json::Array parameters;
  for (const ParameterInfo &parameter : kernel.parameters)
    if (parameter.kind == ParameterInfo::Kind::Buffer)
      parameters.push_back(
          json::Object{{"name", parameter.name},
                       {"buffer", parameter.index},
                       {"type", parameter.elementType},
                       {"constant", parameter.addressSpace == AddressSpace::Constant}});
  for (const std::string &name : more)
    parameters.push_back(json::Object{{"name", name}, {"type", "uint"}});
  json::Array nest;
  for (const gpu::LoopInfo &loop : loops)
    nest.push_back(
        json::Object{{"depth", loop.depth},
                     {"trips", loop.trips ? json::Value(*loop.trips) : json::Value(nullptr)},
                     {"line", loop.line}});
  return json::Object{{"kernel", kernel.name},
                      {"threads", count},
                      {"threadgroup_bytes", static_cast<int64_t>(bytes)},
                      {"parameters", std::move(parameters)},
                      {"loops", std::move(nest)}};
}

Error emit(Module &module, TargetMachine &machine) {
  if (output.empty())
    return Error::success();
  std::error_code code;
  ToolOutputFile file(output, code, sys::fs::OF_None);
  if (code)
    return failure("'" + output + "' cannot be written: " + code.message());
  if (form == Form::Ir) {
    module.print(file.os(), nullptr);
  } else {
    legacy::PassManager passes;
    CodeGenFileType type =
        target == TargetKind::Spirv ? CodeGenFileType::ObjectFile : CodeGenFileType::AssemblyFile;
    SmallVector<char, 0> bytes;
    raw_svector_ostream stream(bytes);
    if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
      return failure("LLVM's back end writes no such file");
    passes.run(module);
    file.os().write(bytes.data(), bytes.size());
  }
  file.keep();
  return Error::success();
}

Error run() {
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFileOrSTDIN(input);
  if (!text)
    return failure("'" + input + "' cannot be read: " + text.getError().message());
  Expected<MslOptions> options = makeOptions();
  if (!options)
    return options.takeError();
  LLVMContext context;
  Expected<CompiledMsl> compiled = compileMsl((*text)->getBuffer(), *options, context);
  if (!compiled)
    return compiled.takeError();
  Module &module = *compiled->module;
  const KernelInfo *kernel = nullptr;
  for (const KernelInfo &candidate : compiled->kernels) {
    if (!kernelName.empty() && candidate.name != kernelName)
      continue;
    if (kernel)
      return failure("the text has several kernels ('" + kernel->name + "', '" + candidate.name +
                     "', ...): choose one with --kernel");
    kernel = &candidate;
  }
  if (!kernel)
    return failure(kernelName.empty() ? Twine("the text has no kernel")
                                      : "the text has no kernel '" + Twine(kernelName) + "'");
  if (!kernel->unusable.empty())
    return failure("kernel '" + kernel->name + "': " + kernel->unusable);
  for (const ParameterInfo &parameter : kernel->parameters)
    if (parameter.kind == ParameterInfo::Kind::Threadgroup)
      return failure("kernel '" + kernel->name + "' has the threadgroup argument '" +
                     parameter.name + "', whose size the text does not say");
  for (const KernelInfo &other : compiled->kernels)
    if (&other != kernel)
      module.getFunction(other.name)->eraseFromParent();

  std::string error;
  std::unique_ptr<TargetMachine> machine = makeMachine(error);
  if (!machine)
    return failure(error);
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  std::unique_ptr<gpu::Gpu> gpu =
      target == TargetKind::Spirv ? gpu::makeSpirv(module) : gpu::makeNvptx(module);
  unsigned count = threads ? unsigned(threads) : kernel->maxTotalThreadsPerThreadgroup;
  std::vector<std::string> more;
  DenseMap<unsigned, unsigned> values;
  for (const std::string &text : byValue) {
    auto [buffer, bytes] = StringRef(text).split('=');
    unsigned index, size;
    if (buffer.getAsInteger(10, index) || bytes.getAsInteger(10, size) || !size)
      return failure("--by-value=" + text + " is not BUFFER=BYTES, two integers");
    values[index] = size;
  }
  Expected<Function *> made = gpu::makeEntry(module, *gpu, *kernel, count, values, more);
  if (!made)
    return made.takeError();
  Function *entry = *made;
  uint64_t bytes = 0;
  if (Error failed = gpu::lowerBuiltins(*entry, *gpu, bytes))
    return failed;
  gpu::tidyArithmetic(*entry, *gpu, !(*text)->getBuffer().contains("fp contract(off)"));
  if (target == TargetKind::Spirv)
    gpu::standInForFloatAtomics(*entry);
  std::string broken;
  raw_string_ostream stream(broken);
  if (verifyModule(module, &stream))
    return failure("metal-ir made invalid code: " + broken);
  simplify(module, *machine);
  std::vector<gpu::LoopInfo> loops = gpu::findLoops(*entry);
  StripDebugInfo(module);
  if (Error failed = emit(module, *machine))
    return failed;
  outs() << json::Value(describe(*kernel, count, bytes, more, loops)) << "\n";
  return Error::success();
}

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, overview);
  if (Error error = run()) {
    errs() << "metal-ir: " << toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
