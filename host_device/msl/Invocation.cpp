#include "host_device/msl/Invocation.h"
#include "host_device/msl/MetalAttributes.h"
#include "host_device/msl/MetalTarget.h"
#include "host_device/msl/SourceFiles.h"
#include "clang/Basic/Version.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Lex/Preprocessor.h"
#include "clang/Lex/PreprocessorOptions.h"
#include "clang/Serialization/ASTWriter.h"
#include "clang/Serialization/PCHContainerOperations.h"

using namespace llvm;

namespace triton_metal {

static std::shared_ptr<clang::CompilerInvocation>
makeInvocation(const char *path, const MslOptions &options, clang::DiagnosticsEngine &diagnostics,
               bool withPrelude) {
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  std::vector<const char *> arguments = {
      "-triple", metalTriple, "-x", "c++", "-std=c++23", "-emit-llvm-only",
      // Optimised code, but only by this front end's own passes.
      "-O2", "-disable-llvm-passes", "-ffp-contract=off", "-ffreestanding", "-fno-builtin",
      "-fdeclspec", "-fno-rtti", "-fno-threadsafe-statics", "-nostdsysteminc", "-nobuiltininc",
      "-relaxed-aliasing", "-debug-info-kind=line-tables-only", "-dwarf-version=5",
      "-mframe-pointer=none", "-ffloat16-excess-precision=none", "-Wno-everything",
      // Metal's own compiler accepts these, at most with a warning.
      "-Wno-error=c++11-narrowing", "-Wno-error=reserved-user-defined-literal", path};
  // What a GPU's compiler may fuse. A text that forbids it says so at its beginning.
  if (options.gpu)
    arguments.insert(arguments.end() - 1, "-ffp-contract=fast");
  // A portable variable has any value each time that it comes to life.
  // Its signed arithmetic is marked, so that PessimizeOverflow.cpp sees what may overflow.
  if (!options.portable)
    arguments.insert(arguments.end() - 1, "-fwrapv");
  // A variable whose reads are checked has no value each time that it comes to life.
  if (!options.portable && !options.checks.initialized)
    arguments.insert(arguments.end() - 1, "-disable-lifetime-markers");
  clang::CompilerInvocation::CreateFromArgs(*invocation, arguments, diagnostics);
  clang::LangOptions &language = invocation->getLangOpts();
  language.NativeHalfType = language.NativeHalfArgsAndReturns = true;
  language.CXXExceptions = language.Exceptions = false;
  language.PointerOverflowDefined = true;
  // A loop may run forever, and a null pointer may be dereferenced: LLVM must not remove the code
  // after either.
  clang::CodeGenOptions &generation = invocation->getCodeGenOpts();
  generation.setFiniteLoops(clang::CodeGenOptions::FiniteLoopsKind::Never);
  generation.NullPointerIsValid = true;
  clang::PreprocessorOptions &preprocessor = invocation->getPreprocessorOpts();
  if (withPrelude) {
    preprocessor.ImplicitPCHInclude = preludePath;
    // This process created it, from the same headers and options.
    preprocessor.DisablePCHOrModuleValidation = clang::DisableValidationForModuleKind::All;
  } else {
    preprocessor.Includes.push_back("metal_stdlib");
  }
  for (const auto &[name, value] : options.macros)
    preprocessor.addMacroDef(name + "=" + rewriteMsl(value).text);
  clang::HeaderSearchOptions &search = invocation->getHeaderSearchOpts();
  search.UseBuiltinIncludes = search.UseStandardSystemIncludes = search.UseStandardCXXIncludes =
      false;
  search.AddPath("/metal/include", clang::frontend::System, false, true);
  for (const std::string &directory : options.includeDirectories)
    search.AddPath(directory, clang::frontend::Angled, false, true);
  return invocation;
}

std::unique_ptr<clang::CompilerInstance> makeInstance(IntrusiveRefCntPtr<vfs::FileSystem> files,
                                                      const char *path, const MslOptions &options,
                                                      DiagnosticCollector &diagnostics,
                                                      bool withPrelude) {
  registerMetalAttributes();
  clang::DiagnosticOptions diagnosticOptions;
  auto engine = clang::CompilerInstance::createDiagnostics(*files, diagnosticOptions, &diagnostics,
                                                           /*ShouldOwnClient=*/false);
  auto instance = std::make_unique<clang::CompilerInstance>(
      makeInvocation(path, options, *engine, withPrelude));
  instance->setVirtualFileSystem(files);
  instance->createDiagnostics(&diagnostics, /*ShouldOwnClient=*/false);
  // A file that includes itself has its errors hundreds of times. Only the first ones are shown.
  instance->getDiagnostics().setErrorLimit(DiagnosticCollector::mostErrors);
  instance->createFileManager();
  instance->createSourceManager();
  instance->setTarget(
      createMetalTarget(instance->getDiagnostics(), instance->getTargetOpts()).get());
  return instance;
}

/// `1.1f` that a macro has pasted together -> `1.1`, which is a float here. Those that the text has
/// itself have been rewritten.
static void dropPastedSuffix(const clang::Token &token, const clang::SourceManager &sources) {
  if (token.isNot(clang::tok::numeric_constant) || token.needsCleaning() ||
      !sources.isWrittenInScratchSpace(sources.getSpellingLoc(token.getLocation())))
    return;
  StringRef text(token.getLiteralData(), token.getLength());
  bool isFloat = text.starts_with_insensitive("0x") ? text.contains_insensitive('p')
                                                    : text.find_first_of(".eE") != StringRef::npos;
  if (!isFloat || !text.ends_with_insensitive("f") || text.ends_with_insensitive("bf"))
    return;
  // The preprocessor tells of its own token, which the parser sees next, and whose text it has just
  // written to a buffer of its own. A number may not go on behind its end.
  const_cast<char *>(text.data())[text.size() - 1] = ' ';
  const_cast<clang::Token &>(token).setLength(token.getLength() - 1);
}

void beginUsersText(clang::CompilerInstance &instance, bool hasPrelude) {
  if (hasPrelude)
    useMetalsLanguage(instance);
  clang::Preprocessor &preprocessor = instance.getPreprocessor();
  preprocessor.setTokenWatcher([&preprocessor](const clang::Token &token) {
    dropPastedSuffix(token, preprocessor.getSourceManager());
  });
  preprocessor.setPredefines(
      preprocessor.getPredefines() +
      "#pragma clang attribute push(__attribute__((__tm_overload)), apply_to = function)\n");
}

namespace {

/// Parses a header and serialises its AST.
class PreludeAction final : public clang::ASTFrontendAction {
public:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &instance,
                                                        StringRef) override {
    return std::make_unique<clang::PCHGenerator>(
        instance.getPreprocessor(), instance.getModuleCache(), preludePath, /*isysroot=*/"", buffer,
        instance.getCodeGenOpts(), ArrayRef<std::shared_ptr<clang::ModuleFileExtension>>(),
        /*AllowASTWithErrors=*/false, /*IncludeTimestamps=*/false);
  }
  bool BeginSourceFileAction(clang::CompilerInstance &instance) override {
    enableKeywords(instance);
    return true;
  }
  clang::TranslationUnitKind getTranslationUnitKind() override { return clang::TU_Prefix; }
  bool hasASTFileSupport() const override { return false; }

  std::shared_ptr<clang::PCHBuffer> buffer = std::make_shared<clang::PCHBuffer>();
};

} // namespace

std::string parsePrelude() {
  SourceTexts texts;
  MslOptions options;
  const char *path = "/metal/prelude.metal";
  HostFiles none;
  auto files = makeSourceFiles("#include <metal_stdlib>\n", path, options, "", texts, none);
  DiagnosticCollector diagnostics(texts);
  auto instance = makeInstance(files, path, options, diagnostics, /*withPrelude=*/false);
  // What the library needs of its own templates is made here, and not again for each text.
  instance->getLangOpts().PCHInstantiateTemplates = true;
  PreludeAction action;
  if (!action.BeginSourceFile(*instance, instance->getFrontendOpts().Inputs.front()))
    return "";
  if (Error error = action.Execute())
    consumeError(std::move(error));
  action.EndSourceFile();
  if (diagnostics.hasErrors() || !action.buffer->IsComplete)
    return "";
  return std::string(action.buffer->Data.begin(), action.buffer->Data.end());
}

StringRef parsedPrelude() {
  EmbeddedPrelude embedded = embeddedPrelude();
  if (!embedded.bytes.empty() && embedded.clangVersion == clang::getClangFullVersion())
    return embedded.bytes;
  [[clang::no_destroy]] static const std::string prelude = parsePrelude();
  return prelude;
}

} // namespace triton_metal
