// The tokens of a text before macro expansion, from clang's lexer, and edits of the text that keep
// its line ends.
#pragma once

#include "clang/Basic/TokenKinds.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <map>
#include <string>
#include <vector>

namespace triton_metal {

/// Text with its edits. No edit adds or removes a line.
struct RewrittenText {
  std::string text;

  /// Where in the original text this byte of the rewritten one comes from.
  size_t originalOffset(size_t rewritten) const;

  struct Edit {
    size_t original;  // where in the original text
    size_t removed;   // bytes of the original that it replaces
    size_t rewritten; // where in the rewritten text
    size_t inserted;  // bytes that stand there instead
  };
  llvm::SmallVector<Edit> edits;
};

/// Queries accept numbers of tokens that do not exist.
class Tokens {
public:
  static constexpr size_t npos = ~size_t(0);

  /// The text must be null-terminated and outlive this object.
  explicit Tokens(llvm::StringRef source);

  size_t size() const { return tokens.size(); }
  bool is(size_t i, clang::tok::TokenKind kind) const {
    return i < size() && tokens[i].kind == kind;
  }
  bool isOneOf(size_t i, llvm::ArrayRef<clang::tok::TokenKind> kinds) const;
  llvm::StringRef text(size_t i) const { return i < size() ? tokens[i].text : llvm::StringRef(); }
  size_t begin(size_t i) const { return tokens[i].offset; }
  size_t end(size_t i) const { return tokens[i].offset + tokens[i].text.size(); }
  /// The closing bracket of an opening bracket and vice versa. npos for all other tokens and for
  /// brackets without a partner, which branches of #if can produce.
  size_t match(size_t i) const { return i < size() ? tokens[i].match : npos; }
  /// The innermost `{` around a token, or npos.
  size_t scope(size_t i) const { return i < size() ? tokens[i].scope : npos; }
  /// Whether an attribute `[[...]]` begins here.
  bool isAttribute(size_t i) const;

private:
  struct Token {
    clang::tok::TokenKind kind;
    size_t offset;
    llvm::StringRef text;
    size_t match = npos, scope = npos;
  };
  void pairBrackets();
  std::vector<Token> tokens;
};

/// Edits of a text. An edit must not be inside another edit.
class TextEdits {
public:
  explicit TextEdits(llvm::StringRef source) : source(source) {}

  /// `text` must not contain line ends. The line ends of the replaced text are kept.
  void replace(size_t begin, size_t end, llvm::StringRef text);
  /// Insertions at the same offset keep their order.
  void insert(size_t offset, llvm::StringRef text);
  RewrittenText apply() const;

private:
  struct Edit {
    size_t length = 0;
    std::string text;
  };
  llvm::StringRef source;
  /// Ordered by offset. At the same offset, insertions precede the replacement.
  std::map<std::pair<size_t, bool>, Edit> edits;
};

} // namespace triton_metal
