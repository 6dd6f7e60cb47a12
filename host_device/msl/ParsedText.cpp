#include "host_device/msl/ParsedText.h"
#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Invocation.h"
#include "host_device/msl/Kernels.h"
#include "host_device/msl/Lowering.h"
#include "host_device/msl/MetalTarget.h"
#include "clang/AST/GlobalDecl.h"
#include "clang/CodeGen/ModuleBuilder.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Preprocessor.h"
#include "clang/Sema/ExternalSemaSource.h"
#include "clang/Sema/Sema.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/FileSystem.h"
#include <functional>

using namespace llvm;

namespace triton_metal {

namespace {

/// Ends compilations whose macros expand without bound.
class ExpansionLimit final : public clang::PPCallbacks {
public:
  /// `asksForValues` becomes true if the text asks whether function constants have values.
  explicit ExpansionLimit(bool &asksForValues) : asksForValues(asksForValues) {}
  void MacroExpands(const clang::Token &name, const clang::MacroDefinition &, clang::SourceRange,
                    const clang::MacroArgs *) override {
    if (const clang::IdentifierInfo *macro = name.getIdentifierInfo())
      asksForValues |= macro->isStr("is_function_constant_defined");
    if (++expansions > most)
      report_fatal_error("the text expands more than 1000000 macros", /*gen_crash_diag=*/false);
  }

private:
  static constexpr uint64_t most = 1000000;
  bool &asksForValues;
  uint64_t expansions = 0;
};

/// Ends compilations that look up unknown names without bound: clang tries two meanings of each `<`
/// behind one, and in each of them those of the next.
class LookupLimit final : public clang::ExternalSemaSource {
public:
  bool LookupUnqualified(clang::LookupResult &, clang::Scope *) override {
    if (++lookups > most)
      report_fatal_error("the text looks up unknown names more than 4000000 times, as in a < b < c "
                         "with names that are not declared",
                         /*gen_crash_diag=*/false);
    return false;
  }

private:
  static constexpr uint64_t most = 4000000;
  uint64_t lookups = 0;
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

/// Keeps what clang tells its code generator, and tells it to any number of generators.
class Recorder final : public clang::ASTConsumer {
public:
  /// Says everything to a generator, and what follows until `stop`.
  void play(clang::CodeGenerator &generator) {
    isPlaying = true;
    for (size_t i = 0; i != events.size(); ++i) { // what is said may lead to more
      Event event = events[i];
      event(generator);
    }
    isPlaying = false;
    current = &generator;
  }
  void stop() { current = nullptr; }

  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    for (clang::Decl *decl : group)
      if (isParsed)
        makeDiscardable(decl);
      else
        parsed.push_back(decl);
    SmallVector<clang::Decl *, 1> decls(group.begin(), group.end());
    add([decls](clang::CodeGenerator &generator) {
      for (clang::Decl *decl : decls)
        generator.HandleTopLevelDecl(clang::DeclGroupRef(decl));
    });
    return true;
  }
  void HandleInlineFunctionDefinition(clang::FunctionDecl *function) override {
    add([function](clang::CodeGenerator &generator) {
      generator.HandleInlineFunctionDefinition(function);
    });
  }
  void HandleCXXStaticMemberVarInstantiation(clang::VarDecl *variable) override {
    add([variable](clang::CodeGenerator &generator) {
      generator.HandleCXXStaticMemberVarInstantiation(variable);
    });
  }
  void HandleVTable(clang::CXXRecordDecl *record) override {
    add([record](clang::CodeGenerator &generator) { generator.HandleVTable(record); });
  }
  void HandleTranslationUnit(clang::ASTContext &) override {
    isParsed = true;
    for (clang::Decl *decl : parsed)
      makeDiscardable(decl);
    parsed.clear();
  }

private:
  using Event = std::function<void(clang::CodeGenerator &)>;
  std::vector<Event> events;
  std::vector<clang::Decl *> parsed;
  bool isParsed = false, isPlaying = false;
  clang::CodeGenerator *current = nullptr;

  void add(Event event) {
    events.push_back(event);
    if (current && !isPlaying)
      event(*current);
  }

  /// Clang generates code for everything that another file may call. Here, code is generated for
  /// what a kernel calls.
  static void makeDiscardable(clang::Decl *decl) {
    if (isa<clang::NamespaceDecl, clang::LinkageSpecDecl>(decl)) {
      for (clang::Decl *inner : cast<clang::DeclContext>(decl)->decls())
        makeDiscardable(inner);
      return;
    }
    auto *function = dyn_cast<clang::FunctionDecl>(decl);
    if (!function || function->isDependentContext())
      return;
    if (function->getTemplateSpecializationKind() == clang::TSK_ExplicitInstantiationDefinition)
      function->setTemplateSpecializationKind(clang::TSK_ImplicitInstantiation);
    if (!function->isInlined())
      function->setImplicitlyInline();
  }
};

/// Parses the text and keeps the information from the declarations of kernels.
class MslAction final : public clang::ASTFrontendAction {
public:
  MslAction(DiagnosticCollector &diagnostics, const MslOptions &options, bool hasPrelude)
      : diagnostics(diagnostics), options(options), hasPrelude(hasPrelude) {}

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &,
                                                        StringRef) override {
    auto kernels = std::make_unique<KernelCollector>(diagnostics, options);
    auto events = std::make_unique<Recorder>();
    collector = kernels.get();
    recorder = events.get();
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(std::move(kernels)); // first: it changes what is recorded
    consumers.push_back(std::move(events));
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }

  bool BeginSourceFileAction(clang::CompilerInstance &instance) override {
    enableKeywords(instance);
    instance.getPreprocessor().addPPCallbacks(std::make_unique<ExpansionLimit>(asksForValues));
    instance.getPreprocessor().addPPCallbacks(std::make_unique<TensorLanguage>(instance));
    return true;
  }

  void ExecuteAction() override {
    clang::CompilerInstance &instance = getCompilerInstance();
    beginUsersText(instance, hasPrelude);
    instance.createSema(getTranslationUnitKind(), nullptr);
    instance.getSema().addExternalSource(makeIntrusiveRefCnt<LookupLimit>());
    // The construction of Sema has set clang's own function for the names of types.
    nameTypesInMetal(instance.getDiagnostics(), instance.getASTContext());
    ASTFrontendAction::ExecuteAction();
  }

  KernelCollector *collector = nullptr;
  Recorder *recorder = nullptr;
  bool asksForValues = false;

private:
  DiagnosticCollector &diagnostics;
  const MslOptions &options;
  bool hasPrelude;
};

} // namespace

struct ParsedText::State {
  MslOptions options;
  SourceTexts texts;
  IntrusiveRefCntPtr<vfs::FileSystem> files;
  DiagnosticCollector diagnostics{texts};
  std::unique_ptr<clang::CompilerInstance> instance;
  std::unique_ptr<MslAction> action;
  bool isOpen = false;
  /// The values that the tree has.
  std::vector<FunctionConstantValue> constants;
  /// Constants without a value that a constant expression needs. The tree has others instead, so
  /// its kernels can only be listed.
  std::vector<FunctionConstantInfo> missing;
  const FunctionConstantInfo *firstMissing = nullptr;
  /// Whether other values would have made another tree, without an error.
  bool needsValues = false;
  unsigned generated = 0;

  ~State() {
    if (isOpen)
      action->EndSourceFile();
  }
  KernelCollector &collector() const { return *action->collector; }
  Error parse(StringRef source, HostFiles &hostFiles);
  void describe(KernelInfo &kernel, const DeclaredKernel &declared,
                ArrayRef<FunctionConstantValue> values) const;
  void refuseMissing(KernelInfo &kernel) const;
};

Error ParsedText::State::parse(StringRef source, HostFiles &hostFiles) {
  for (const std::string &folder : options.includeDirectories)
    if (!sys::fs::is_directory(folder))
      return createStringError(
          inconvertibleErrorCode(),
          options.fileName + ": error: the folder to include from '" + folder + "' " +
              (sys::fs::exists(folder) ? "is not a folder" : "does not exist"));
  StringRef prelude = parsedPrelude();
  files = makeSourceFiles(source, mainPath, options, prelude, texts, hostFiles);
  instance = makeInstance(files, mainPath, options, diagnostics, /*withPrelude=*/!prelude.empty());
  action = std::make_unique<MslAction>(diagnostics, options, !prelude.empty());
  isOpen = action->BeginSourceFile(*instance, instance->getFrontendOpts().Inputs.front());
  if (isOpen)
    if (Error error = action->Execute())
      return error;
  if (diagnostics.hasErrors() || !isOpen)
    return createStringError(inconvertibleErrorCode(), diagnostics.text());
  needsValues =
      action->asksForValues || collector().needsValues() || any_of(texts, [](const auto &text) {
        return StringRef(text.second->original).contains("constant_p");
      });
  return Error::success();
}

void ParsedText::State::describe(KernelInfo &kernel, const DeclaredKernel &declared,
                                 ArrayRef<FunctionConstantValue> values) const {
  auto valueOf = [&](uint32_t index) {
    return find_if(values, [&](const FunctionConstantValue &one) { return one.index == index; });
  };
  for (const DeclaredConstant &constant : collector().constants)
    for (auto [parameter, name] : zip(kernel.parameters, declared.existsIf))
      // A constant that is computed from others, or has no value: what is bound decides.
      if (constant.info.name == name)
        if (auto value = valueOf(constant.info.index); value != values.end())
          parameter.exists = value->bits != 0;
}

/// A kernel that was made with values that nobody gave cannot be run.
void ParsedText::State::refuseMissing(KernelInfo &kernel) const {
  if (missing.empty())
    return;
  for (FunctionConstantInfo &constant : kernel.functionConstants)
    constant.defined &= none_of(
        missing, [&](const FunctionConstantInfo &one) { return one.index == constant.index; });
  if (kernel.unusable.empty())
    kernel.unusable = "function constant '" + firstMissing->name + "' (index " +
                      std::to_string(firstMissing->index) +
                      ") is used in a constant expression but has no value";
}

ParsedText::ParsedText(std::unique_ptr<State> state) : state(std::move(state)) {}
ParsedText::~ParsedText() = default;

size_t ParsedText::numKernels() const { return state->collector().kernels.size(); }

unsigned ParsedText::takeGeneratedFunctions() { return std::exchange(state->generated, 0); }

Expected<std::unique_ptr<ParsedText>> ParsedText::parse(StringRef source, const MslOptions &options,
                                                        HostFiles &files) {
  auto state = std::make_unique<State>();
  state->options = options;
  llvm::erase(state->options.includeDirectories, "");
  state->constants = options.functionConstants;
  Error error = state->parse(source, files);
  if (!error)
    return std::unique_ptr<ParsedText>(new ParsedText(std::move(state)));
  std::vector<FunctionConstantInfo> missing;
  if (state->isOpen && state->collector().isReady())
    missing = state->collector().constantsWithoutValue();
  if (missing.empty())
    return std::move(error);
  // A constant expression may need a function constant. With any value, the kernels can be listed.
  auto other = std::make_unique<State>();
  other->options = options;
  for (const FunctionConstantInfo &constant : missing)
    other->options.functionConstants.push_back({constant.index, 1});
  other->constants = options.functionConstants;
  if (Error second = other->parse(source, files)) {
    consumeError(std::move(second));
    return std::move(error);
  }
  std::string errors = toString(std::move(error));
  other->missing = std::move(missing);
  other->firstMissing = &other->missing.front();
  for (const FunctionConstantInfo &constant : other->missing)
    if (StringRef(errors).contains("'" + constant.name + "'"))
      other->firstMissing = &constant;
  return std::unique_ptr<ParsedText>(new ParsedText(std::move(other)));
}

bool ParsedText::takes(ArrayRef<FunctionConstantValue> constants) const {
  return constants == ArrayRef(state->constants) ||
         (state->constants.empty() && state->missing.empty() && !state->needsValues);
}

std::vector<KernelInfo> ParsedText::kernels(ArrayRef<FunctionConstantValue> constants) const {
  std::vector<KernelInfo> result;
  for (const DeclaredKernel &declared : state->collector().kernels) {
    KernelInfo &kernel = result.emplace_back(declared.info);
    state->describe(kernel, declared, constants);
    for (const DeclaredConstant &constant : state->collector().constants) {
      kernel.functionConstants.push_back(constant.info);
      kernel.functionConstants.back().defined =
          any_of(constants, [&](const FunctionConstantValue &one) {
            return one.index == constant.info.index;
          });
    }
    state->refuseMissing(kernel);
  }
  return result;
}

/// Keeps the places of loops in the module.
static void addLoops(Module &module, ArrayRef<std::array<unsigned, 4>> loops) {
  if (loops.empty())
    return;
  NamedMDNode *list = module.getOrInsertNamedMetadata(loopsMetadata);
  Type *i32 = Type::getInt32Ty(module.getContext());
  for (const std::array<unsigned, 4> &loop : loops) {
    std::array<Metadata *, 4> numbers;
    for (auto [number, value] : zip(numbers, loop))
      number = ConstantAsMetadata::get(ConstantInt::get(i32, value));
    list->addOperand(MDNode::get(module.getContext(), numbers));
  }
}

Expected<CompiledMsl> ParsedText::generate(ArrayRef<std::string> names,
                                           ArrayRef<FunctionConstantValue> constants,
                                           LLVMContext &context) {
  KernelCollector &collector = state->collector();
  MslOptions options = state->options;
  if (state->missing.empty() && constants != ArrayRef(state->constants)) {
    state->constants = constants.vec();
    collector.setValues(constants);
  }
  if (state->missing.empty())
    options.functionConstants = constants.vec();
  std::unique_ptr<clang::CodeGenerator> generator(
      clang::CreateLLVMCodeGen(*state->instance, "metal", context));
  generator->Initialize(state->instance->getASTContext());
  Recorder &recorder = *state->action->recorder;
  recorder.play(*generator);
  CompiledMsl result;
  std::vector<clang::GlobalDecl> decls;
  for (const DeclaredKernel &kernel : collector.kernels)
    if (is_contained(names, kernel.info.name)) {
      KernelInfo &info = result.kernels.emplace_back(kernel.info);
      state->describe(info, kernel, options.functionConstants);
      decls.push_back(clang::GlobalDecl(kernel.decl));
      generator->GetAddrOfGlobal(decls.back(), /*isForDefinition=*/false);
    }
  generator->HandleTranslationUnit(state->instance->getASTContext());
  recorder.stop();
  if (state->diagnostics.hasErrors() || !generator->GetModule())
    return createStringError(inconvertibleErrorCode(), state->diagnostics.text());
  Module &module = *generator->GetModule();
  std::vector<GeneratedKernel> kernels;
  for (auto [info, decl] : zip(result.kernels, decls))
    kernels.push_back({&info, module.getFunction(generator->GetMangledName(decl))});
  std::vector<FunctionConstantInfo> infos;
  for (const DeclaredConstant &constant : collector.constants)
    infos.push_back(constant.info);
  std::vector<GeneratedConstant> variables;
  for (auto [info, constant] : zip(infos, collector.constants))
    variables.push_back({&info, module.getNamedGlobal(
                                    generator->GetMangledName(clang::GlobalDecl(constant.decl)))});
  std::vector<GeneratedVariable> threadgroupVariables;
  for (const auto &variable : collector.threadgroupVariables())
    threadgroupVariables.push_back(
        {variable.name, variable.function, variable.line, variable.column});
  result.module.reset(generator->ReleaseModule().release());
  state->generated +=
      count_if(*result.module, [](const Function &function) { return !function.isDeclaration(); });
  addLoops(*result.module, collector.loops);
  if (Error error = lowerModule(*result.module, kernels, variables, threadgroupVariables, options))
    return createStringError(inconvertibleErrorCode(),
                             options.fileName + ": error: " + toString(std::move(error)));
  for (KernelInfo &kernel : result.kernels)
    state->refuseMissing(kernel);
  return std::move(result);
}

} // namespace triton_metal
