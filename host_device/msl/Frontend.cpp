#include "host_device/msl/Frontend.h"
#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Invocation.h"
#include "host_device/msl/Kernels.h"
#include "host_device/msl/Lowering.h"
#include "host_device/msl/MetalTarget.h"
#include "host_device/msl/SourceFiles.h"
#include "host_device/msl/Stdlib.h"
#include "clang/AST/GlobalDecl.h"
#include "clang/Basic/Version.h"
#include "clang/CodeGen/ModuleBuilder.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Preprocessor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;

namespace triton_metal {

namespace {

/// Ends compilations whose macros expand without bound.
class ExpansionLimit final : public clang::PPCallbacks {
public:
  void MacroExpands(const clang::Token &, const clang::MacroDefinition &, clang::SourceRange,
                    const clang::MacroArgs *) override {
    if (++expansions > most)
      report_fatal_error("the text expands more than 1000000 macros", /*gen_crash_diag=*/false);
  }

private:
  static constexpr uint64_t most = 1000000;
  uint64_t expansions = 0;
};

/// Lets values of classes be template parameters in the header of the tensor operations, as C++20
/// does: they describe an operation.
class TensorLanguage final : public clang::PPCallbacks {
public:
  explicit TensorLanguage(clang::CompilerInstance &instance) : instance(instance) {}
  void FileChanged(clang::SourceLocation location, FileChangeReason reason,
                   clang::SrcMgr::CharacteristicKind, clang::FileID) override {
    if (reason == EnterFile || reason == ExitFile)
      instance.getLangOpts().CPlusPlus20 =
          instance.getSourceManager().getFilename(location).ends_with("__tm_tensor_ops");
  }

private:
  clang::CompilerInstance &instance;
};

/// Parses the text, generates code for it, and keeps the information from the declarations of
/// kernels.
class MslAction final : public clang::ASTFrontendAction {
public:
  MslAction(LLVMContext &context, DiagnosticCollector &diagnostics, const MslOptions &options,
            bool hasPrelude)
      : context(context), diagnostics(diagnostics), options(options), hasPrelude(hasPrelude) {}

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &instance,
                                                        StringRef) override {
    std::unique_ptr<clang::CodeGenerator> generator =
        clang::CreateLLVMCodeGen(instance, "metal", context);
    auto kernels = std::make_unique<KernelCollector>(diagnostics, options);
    codeGenerator = generator.get();
    collector = kernels.get();
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(
        std::move(kernels)); // first: it reads the declarations before code generation ends
    consumers.push_back(std::move(generator));
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }

  bool BeginSourceFileAction(clang::CompilerInstance &instance) override {
    enableKeywords(instance);
    instance.getPreprocessor().addPPCallbacks(std::make_unique<ExpansionLimit>());
    instance.getPreprocessor().addPPCallbacks(std::make_unique<TensorLanguage>(instance));
    return true;
  }

  void ExecuteAction() override {
    clang::CompilerInstance &instance = getCompilerInstance();
    beginUsersText(instance, hasPrelude);
    instance.createSema(getTranslationUnitKind(), nullptr);
    // The construction of Sema has set clang's own function for the names of types.
    nameTypesInMetal(instance.getDiagnostics(), instance.getASTContext());
    ASTFrontendAction::ExecuteAction();
    if (diagnostics.hasErrors()) {
      withoutValue = collector->constantsWithoutValue();
      return;
    }
    for (const DeclaredKernel &kernel : collector->kernels) {
      infos.push_back(kernel.info);
      names.push_back(codeGenerator->GetMangledName(clang::GlobalDecl(kernel.decl)).str());
    }
    for (const DeclaredConstant &constant : collector->constants) {
      constantInfos.push_back(constant.info);
      constantNames.push_back(
          codeGenerator->GetMangledName(clang::GlobalDecl(constant.decl)).str());
    }
    for (const auto &variable : collector->threadgroupVariables())
      variables.push_back({variable.name, variable.function, variable.line, variable.column});
    module = codeGenerator->ReleaseModule();
    if (module && !collector->loops.empty()) {
      NamedMDNode *loops = module->getOrInsertNamedMetadata(loopsMetadata);
      Type *i32 = Type::getInt32Ty(context);
      for (const std::array<unsigned, 4> &loop : collector->loops) {
        std::array<Metadata *, 4> numbers;
        for (auto [number, value] : zip(numbers, loop))
          number = ConstantAsMetadata::get(ConstantInt::get(i32, value));
        loops->addOperand(MDNode::get(context, numbers));
      }
    }
  }

  std::unique_ptr<Module> module;
  std::vector<KernelInfo> infos;
  std::vector<std::string> names;
  std::vector<FunctionConstantInfo> constantInfos;
  std::vector<std::string> constantNames;
  std::vector<GeneratedVariable> variables;
  /// If the text has errors: the function constants without values.
  std::vector<FunctionConstantInfo> withoutValue;

private:
  LLVMContext &context;
  DiagnosticCollector &diagnostics;
  const MslOptions &options;
  bool hasPrelude;
  clang::CodeGenerator *codeGenerator = nullptr;
  KernelCollector *collector = nullptr;
};

} // namespace

/// Compiles a text. If it has errors, sets the function constants that have no value.
static Expected<CompiledMsl> compileOnce(StringRef source, const MslOptions &options,
                                         LLVMContext &context,
                                         std::vector<FunctionConstantInfo> &withoutValue) {
  for (const std::string &folder : options.includeDirectories)
    if (!sys::fs::is_directory(folder))
      return createStringError(
          inconvertibleErrorCode(),
          options.fileName + ": error: the folder to include from '" + folder + "' " +
              (sys::fs::exists(folder) ? "is not a folder" : "does not exist"));
  SourceTexts texts;
  StringRef prelude = parsedPrelude();
  IntrusiveRefCntPtr<vfs::FileSystem> files =
      makeSourceFiles(source, mainPath, options, prelude, texts);
  DiagnosticCollector diagnostics(texts);
  auto owner =
      makeInstance(files, mainPath, options, diagnostics, /*withPrelude=*/!prelude.empty());
  clang::CompilerInstance &instance = *owner;
  MslAction action(context, diagnostics, options, !prelude.empty());
  const clang::FrontendInputFile &input = instance.getFrontendOpts().Inputs.front();
  if (action.BeginSourceFile(instance, input)) {
    if (Error error = action.Execute())
      return std::move(error);
    action.EndSourceFile();
  }
  withoutValue = std::move(action.withoutValue);
  if (diagnostics.hasErrors() || !action.module)
    return createStringError(inconvertibleErrorCode(), diagnostics.text());

  CompiledMsl result;
  result.module = std::move(action.module);
  result.kernels = std::move(action.infos);
  std::vector<GeneratedKernel> kernels;
  for (size_t i = 0; i < result.kernels.size(); ++i)
    kernels.push_back({&result.kernels[i], result.module->getFunction(action.names[i])});
  std::vector<GeneratedConstant> constants;
  for (size_t i = 0; i < action.constantInfos.size(); ++i)
    constants.push_back(
        {&action.constantInfos[i], result.module->getNamedGlobal(action.constantNames[i])});
  if (Error error = lowerModule(*result.module, kernels, constants, action.variables, options))
    return createStringError(inconvertibleErrorCode(),
                             options.fileName + ": error: " + toString(std::move(error)));
  return std::move(result);
}

Expected<CompiledMsl> compileMsl(StringRef source, const MslOptions &options,
                                 LLVMContext &context) {
  std::vector<FunctionConstantInfo> withoutValue, unused;
  Expected<CompiledMsl> result = compileOnce(source, options, context, withoutValue);
  if (result || withoutValue.empty())
    return result;
  // A constant expression may need a function constant. With any value, the kernels can be listed.
  MslOptions others = options;
  for (const FunctionConstantInfo &constant : withoutValue)
    others.functionConstants.push_back({constant.index, 1});
  Expected<CompiledMsl> listed = compileOnce(source, others, context, unused);
  if (!listed) {
    consumeError(listed.takeError());
    return result;
  }
  std::string errors = toString(result.takeError());
  const FunctionConstantInfo *missing = &withoutValue.front();
  for (const FunctionConstantInfo &constant : withoutValue)
    if (StringRef(errors).contains("'" + constant.name + "'"))
      missing = &constant;
  for (KernelInfo &kernel : listed->kernels) {
    for (FunctionConstantInfo &constant : kernel.functionConstants)
      constant.defined &= none_of(withoutValue, [&](const FunctionConstantInfo &one) {
        return one.index == constant.index;
      });
    if (kernel.unusable.empty())
      kernel.unusable = "function constant '" + missing->name + "' (index " +
                        std::to_string(missing->index) +
                        ") is used in a constant expression but has no value";
  }
  return listed;
}

/// The hash of this program's sources. The build writes it.
const char *hostDeviceSourceHash();

std::string frontendVersion() {
  static const std::string version = [] {
    SHA256 hash;
    hash.update(clang::getClangFullVersion());
    for (const StdlibHeader &header : stdlibHeaders()) {
      hash.update(header.name);
      hash.update(header.text);
    }
    hash.update(hostDeviceSourceHash());
    return "msl-" + toHex(hash.final(), /*LowerCase=*/true).substr(0, 16);
  }();
  return version;
}

} // namespace triton_metal
