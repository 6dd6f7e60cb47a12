// Parses a text and runs all matchers on its kernels.
#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Invocation.h"
#include "host_device/msl/MetalAttributes.h"
#include "host_device/msl/MetalTarget.h"
#include "host_device/msl/SourceFiles.h"
#include "host_device/quirks/Matchers.h"
#include "host_device/quirks/Quirks.h"
#include "clang/AST/ASTConsumer.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Pragma.h"
#include "clang/Lex/Preprocessor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <set>

using namespace llvm;

namespace triton_metal {

namespace {

using quirks::Scan;
using quirks::Values;
using quirks::Walk;

/// What the preprocessor sees and the syntax tree does not.
struct Directives {
  bool safeMath = false;
  std::vector<std::pair<clang::SourceLocation, clang::SourceLocation>> coherent;
  clang::SourceLocation tensors;
};

/// `#pragma METAL fp math_mode(safe)`
class MathPragma final : public clang::PragmaHandler {
public:
  explicit MathPragma(Directives &directives) : PragmaHandler("fp"), directives(directives) {}

  void HandlePragma(clang::Preprocessor &preprocessor, clang::PragmaIntroducer,
                    clang::Token &) override {
    std::string words;
    clang::Token token;
    for (preprocessor.LexUnexpandedToken(token); token.isNot(clang::tok::eod);
         preprocessor.LexUnexpandedToken(token))
      words += preprocessor.getSpelling(token);
    StringRef mode = words;
    if (mode.consume_front("math_mode("))
      directives.safeMath = mode.starts_with("safe");
  }

private:
  Directives &directives;
};

class Observer final : public clang::PPCallbacks {
public:
  Observer(Directives &directives, clang::SourceManager &sources)
      : directives(directives), sources(sources) {}

  void MacroExpands(const clang::Token &name, const clang::MacroDefinition &,
                    clang::SourceRange range, const clang::MacroArgs *) override {
    if (name.getIdentifierInfo() && name.getIdentifierInfo()->getName() == "coherent")
      directives.coherent.push_back(
          {sources.getExpansionLoc(range.getBegin()), sources.getExpansionLoc(range.getEnd())});
    if (++expansions > 1000000)
      report_fatal_error("the text expands more than 1000000 macros", /*gen_crash_diag=*/false);
  }
  void InclusionDirective(clang::SourceLocation hash, const clang::Token &, StringRef file, bool,
                          clang::CharSourceRange, clang::OptionalFileEntryRef, StringRef, StringRef,
                          const clang::Module *, bool, clang::SrcMgr::CharacteristicKind) override {
    bool isTensors = file.starts_with("MetalPerformancePrimitives") || file == "metal_tensor" ||
                     file == "metal_cooperative_tensor";
    // The standard library's own headers include each other.
    if (isTensors && !directives.tensors.isValid() && !sources.isInSystemHeader(hash))
      directives.tensors = hash;
  }

private:
  Directives &directives;
  clang::SourceManager &sources;
  uint64_t expansions = 0;
};

/// Collects the functions of the text that have a body, with the instances of templates.
class FunctionCollector : public clang::RecursiveASTVisitor<FunctionCollector> {
public:
  explicit FunctionCollector(const Values &values) : values(values) {}
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return false; }
  std::vector<const clang::FunctionDecl *> kernels, others;

  bool TraverseDecl(clang::Decl *decl) {
    // The standard library is large.
    if (decl && !isa<clang::TranslationUnitDecl>(decl) && decl->getLocation().isValid() &&
        values.inLibrary(decl))
      return true;
    return RecursiveASTVisitor::TraverseDecl(decl);
  }
  bool VisitFunctionDecl(clang::FunctionDecl *function) {
    if (!function->isThisDeclarationADefinition() || function->isDependentContext() ||
        !function->getBody() || function->isDefaulted())
      return true;
    (metalAttribute(function, "kernel") ? kernels : others).push_back(function);
    return true;
  }

private:
  const Values &values;
};

class QuirkConsumer final : public clang::ASTConsumer {
public:
  QuirkConsumer(const QuirkOptions &options, Directives &directives, const SourceTexts &texts,
                const DiagnosticCollector &diagnostics, std::vector<QuirkHit> &hits)
      : options(options), directives(directives), texts(texts), diagnostics(diagnostics),
        hits(hits) {}

  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    declarations.insert(declarations.end(), group.begin(), group.end());
    return true;
  }

  void HandleTranslationUnit(clang::ASTContext &ast) override {
    if (diagnostics.hasErrors())
      return;
    Values values(ast);
    values.coherentPlaces = directives.coherent;
    FunctionCollector collector(values);
    for (clang::Decl *declaration : declarations)
      collector.TraverseDecl(declaration);
    llvm::DenseSet<const clang::FunctionDecl *> followed;
    for (const clang::FunctionDecl *kernel : collector.kernels)
      scan(kernel, /*isKernel=*/true, values, followed);
    for (const clang::FunctionDecl *function : collector.others)
      if (!followed.contains(function->getCanonicalDecl()))
        scan(function, /*isKernel=*/false, values, followed);
  }

private:
  const QuirkOptions &options;
  Directives &directives;
  const SourceTexts &texts;
  const DiagnosticCollector &diagnostics;
  std::vector<QuirkHit> &hits;
  std::vector<clang::Decl *> declarations;
  std::set<std::tuple<int, std::string, unsigned, unsigned>> seen;

  void scan(const clang::FunctionDecl *function, bool isKernel, Values &values,
            llvm::DenseSet<const clang::FunctionDecl *> &followed) {
    Walk walk;
    walk.isKernel = isKernel;
    quirks::walkFunction(function, values, walk, followed);
    const clang::SourceManager &sources = values.ast.getSourceManager();
    if (walk.isCut) {
      QuirkHit at = place(sources, function->getLocation());
      problem = at.file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) +
                ": error: '" + function->getNameAsString() +
                "' is too large to be scanned, with all functions that it calls";
      return;
    }
    Scan scan{values, walk, options.safeMath || directives.safeMath,
              [&](int row, QuirkClass kind, clang::SourceLocation location, const Twine &message) {
                report(sources, row, kind, location, message);
              },
              [&](clang::SourceLocation location) { return place(sources, location).line; }};
    quirks::matchSignature(scan);
    quirks::matchArithmetic(scan);
    quirks::matchAccumulations(scan);
    quirks::matchRereads(scan);
    quirks::matchSwaps(scan);
    quirks::matchEndlessLoops(scan);
    quirks::matchByteAccesses(scan);
    quirks::matchLocalArrays(scan);
    quirks::matchSizes(scan);
    quirks::matchAtomics(scan);
    quirks::matchMatrices(scan);
    quirks::matchFloats(scan);
    quirks::matchSimdFunctions(scan);
    quirks::matchBarriers(scan);
  }

public:
  /// Why a function has not been scanned; empty if all have been.
  std::string problem;

  /// A place in the text as it was written.
  QuirkHit place(const clang::SourceManager &sources, clang::SourceLocation location) const {
    QuirkHit hit;
    auto [file, offset] = sources.getDecomposedLoc(sources.getExpansionLoc(location));
    StringRef name;
    if (auto entry = sources.getFileEntryRefForID(file))
      name = entry->getName();
    auto found = texts.find(name);
    hit.file = name.str();
    StringRef body = sources.getBufferData(file);
    size_t at = offset;
    if (found != texts.end()) {
      hit.file = found->second->displayName;
      body = found->second->original;
      at = found->second->rewritten.originalOffset(offset);
    }
    at = std::min(at, body.size());
    size_t begin = body.substr(0, at).rfind('\n');
    begin = begin == StringRef::npos ? 0 : begin + 1;
    hit.line = unsigned(body.substr(0, begin).count('\n') + 1);
    hit.column = unsigned(at - begin + 1);
    return hit;
  }

  void report(const clang::SourceManager &sources, int row, QuirkClass kind,
              clang::SourceLocation location, const Twine &message) {
    QuirkHit hit = place(sources, location);
    hit.row = row;
    hit.kind = kind;
    hit.message = inMetal(message.str());
    if (seen.insert({row, hit.file, hit.line, hit.column}).second)
      hits.push_back(std::move(hit));
  }
};

class QuirkAction final : public clang::ASTFrontendAction {
public:
  QuirkAction(const QuirkOptions &options, const SourceTexts &texts,
              const DiagnosticCollector &diagnostics)
      : options(options), texts(texts), diagnostics(diagnostics) {}

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &,
                                                        StringRef) override {
    auto made = std::make_unique<QuirkConsumer>(options, directives, texts, diagnostics, hits);
    consumer = made.get();
    return made;
  }
  bool BeginSourceFileAction(clang::CompilerInstance &instance) override {
    enableKeywords(instance);
    clang::Preprocessor &preprocessor = instance.getPreprocessor();
    preprocessor.addPPCallbacks(
        std::make_unique<Observer>(directives, instance.getSourceManager()));
    preprocessor.AddPragmaHandler("METAL", new MathPragma(directives));
    return true;
  }
  void ExecuteAction() override {
    beginUsersText(getCompilerInstance(), /*hasPrelude=*/!parsedPrelude().empty());
    ASTFrontendAction::ExecuteAction();
    problem = consumer->problem;
    if (directives.tensors.isValid())
      consumer->report(getCompilerInstance().getSourceManager(), 11, QuirkClass::Unproven,
                       directives.tensors,
                       "cooperative tensors need a library that is compiled for macOS 26.2 or "
                       "later; this scanner does not parse them");
  }

  std::vector<QuirkHit> hits;
  Directives directives;
  std::string problem;

private:
  const QuirkOptions &options;
  const SourceTexts &texts;
  const DiagnosticCollector &diagnostics;
  QuirkConsumer *consumer = nullptr;
};

} // namespace

Expected<std::vector<QuirkHit>> scanForQuirks(StringRef text, const QuirkOptions &options) {
  SourceTexts texts;
  HostFiles hostFiles;
  StringRef prelude = parsedPrelude();
  IntrusiveRefCntPtr<vfs::FileSystem> files =
      makeSourceFiles(text, mainPath, options.text, prelude, texts, hostFiles);
  DiagnosticCollector diagnostics(texts);
  auto instance =
      makeInstance(files, mainPath, options.text, diagnostics, /*withPrelude=*/!prelude.empty());
  QuirkAction action(options, texts, diagnostics);
  if (action.BeginSourceFile(*instance, instance->getFrontendOpts().Inputs.front())) {
    if (Error error = action.Execute())
      return std::move(error);
    action.EndSourceFile();
  }
  if (diagnostics.hasErrors() && action.directives.tensors.isInvalid())
    return createStringError(inconvertibleErrorCode(), diagnostics.text());
  if (!action.problem.empty())
    return createStringError(inconvertibleErrorCode(), action.problem);
  std::vector<QuirkHit> hits = std::move(action.hits);
  llvm::stable_sort(hits, [](const QuirkHit &a, const QuirkHit &b) {
    return std::tie(a.file, a.line, a.column, a.row) < std::tie(b.file, b.line, b.column, b.row);
  });
  return hits;
}

/// The hash of the scanner's sources. The build writes it.
const char *quirkSourceHash();

std::string quirkScannerVersion() {
  [[clang::no_destroy]] static const std::string version = [] {
    SHA256 hash;
    hash.update(frontendVersion());
    hash.update(quirkSourceHash());
    return "quirks-" + toHex(hash.final(), /*LowerCase=*/true).substr(0, 16);
  }();
  return version;
}

} // namespace triton_metal
