// Clang's diagnostics, in terms of the user's own text.
#pragma once

#include "host_device/msl/Rewriter.h"
#include "clang/Basic/Diagnostic.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/VirtualFileSystem.h"
#include <memory>
#include <string>

namespace clang {
class ASTContext;
}

namespace triton_metal {

/// A file as the user wrote it, and as clang reads it.
struct SourceText {
  std::string displayName;
  std::string original;
  RewrittenText rewritten;
};

/// The files of one compilation, by the path that clang uses.
using SourceTexts = llvm::StringMap<std::unique_ptr<SourceText>>;

/// Replaces clang's terms by Metal's terms.
std::string inMetal(llvm::StringRef message);

/// The names of types in a text of clang's: `double` is Metal's float, and `float` its bfloat.
std::string typeInMetal(llvm::StringRef text);

/// Makes clang use Metal's names for types in its messages. The AST context must exist.
void nameTypesInMetal(clang::DiagnosticsEngine &engine, clang::ASTContext &context);

/// Collects errors and their notes, with positions in the original text.
class DiagnosticCollector final : public clang::DiagnosticConsumer {
public:
  explicit DiagnosticCollector(const SourceTexts &texts) : texts(texts) {}
  /// Where clang stops. Fewer are shown.
  static constexpr unsigned mostErrors = 100;

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic &diagnostic) override;

  /// Reports an error of this front end at a position in the text.
  void error(const clang::SourceManager &sources, clang::SourceLocation location,
             llvm::StringRef message);

  bool hasErrors() const { return errors != 0; }
  /// For each error `file:line:column: error: message`, the line, and a caret.
  const std::string &text() const { return out; }

private:
  const SourceTexts &texts;
  std::string out;
  unsigned errors = 0;
  bool lastShown = false;

  void show(llvm::StringRef level, llvm::StringRef message, const clang::SourceManager *sources,
            clang::SourceLocation location);
};

} // namespace triton_metal
