#include "host_device/msl/Tokens.h"
#include "clang/Basic/LangOptions.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"

using llvm::StringRef;
namespace tok = clang::tok;

namespace triton_metal {

size_t RewrittenText::originalOffset(size_t rewritten) const {
  size_t shiftFrom = 0, shiftTo = 0;
  for (const Edit &edit : edits) {
    if (rewritten < edit.rewritten)
      break;
    if (rewritten < edit.rewritten + edit.inserted)
      return edit.original;
    shiftFrom = edit.rewritten + edit.inserted;
    shiftTo = edit.original + edit.removed;
  }
  return shiftTo + (rewritten - shiftFrom);
}

Tokens::Tokens(StringRef source) {
  clang::LangOptions options;
  options.CPlusPlus = options.CPlusPlus11 = options.CPlusPlus14 = options.CPlusPlus17 = true;
  options.LineComment = true;
  options.Bool = true;
  clang::Lexer lexer(clang::SourceLocation(), options, source.begin(), source.begin(),
                     source.end());
  for (bool last = false; !last;) {
    clang::Token raw;
    last = lexer.LexFromRawLexer(raw);
    if (raw.is(tok::eof))
      break;
    size_t end = lexer.getCurrentBufferOffset(), offset = end - raw.getLength();
    // For clang, a token at the start of a line includes a line end with a backslash before it.
    while (offset < end && source[offset] == '\\') {
      size_t next = offset + 1;
      while (next < end && (source[next] == '\n' || source[next] == '\r'))
        ++next;
      if (next == offset + 1)
        break;
      offset = next;
    }
    tokens.push_back({raw.getKind(), offset, source.slice(offset, end)});
  }
  pairBrackets();
}

void Tokens::pairBrackets() {
  std::vector<size_t> open, braces;
  for (size_t i = 0; i < tokens.size(); ++i) {
    tok::TokenKind kind = tokens[i].kind;
    if (!braces.empty())
      tokens[i].scope = braces.back();
    if (kind == tok::l_paren || kind == tok::l_square || kind == tok::l_brace) {
      open.push_back(i);
      if (kind == tok::l_brace)
        braces.push_back(i);
    } else if (kind == tok::r_paren || kind == tok::r_square || kind == tok::r_brace) {
      tok::TokenKind wanted = kind == tok::r_paren    ? tok::l_paren
                              : kind == tok::r_square ? tok::l_square
                                                      : tok::l_brace;
      // Branches of #if may leave brackets unbalanced: look for the nearest of the kind.
      while (!open.empty() && tokens[open.back()].kind != wanted) {
        if (tokens[open.back()].kind == tok::l_brace && !braces.empty())
          braces.pop_back();
        open.pop_back();
      }
      if (!open.empty()) {
        tokens[i].match = open.back();
        tokens[open.back()].match = i;
        open.pop_back();
        if (kind == tok::r_brace && !braces.empty())
          braces.pop_back();
      }
    }
  }
}

bool Tokens::isOneOf(size_t i, llvm::ArrayRef<tok::TokenKind> kinds) const {
  return i < size() && llvm::is_contained(kinds, tokens[i].kind);
}

bool Tokens::isAttribute(size_t i) const {
  return is(i, tok::l_square) && is(i + 1, tok::l_square) && match(i) != npos &&
         match(i + 1) != npos && match(i) == match(i + 1) + 1;
}

void TextEdits::replace(size_t begin, size_t end, StringRef text) {
  // Keep line ends and the backslashes that continue a macro.
  std::string kept;
  StringRef old = source.slice(begin, end);
  for (size_t i = 0; i < old.size(); ++i) {
    bool continues =
        old[i] == '\\' && (i + 1 == old.size() || old[i + 1] == '\n' || old[i + 1] == '\r');
    if (old[i] == '\n' || old[i] == '\r' || continues)
      kept += old[i];
  }
  edits[{begin, true}] = {end - begin, text.str() + kept};
}

void TextEdits::insert(size_t offset, StringRef text) { edits[{offset, false}].text += text; }

RewrittenText TextEdits::apply() const {
  RewrittenText result;
  size_t at = 0;
  for (auto &[place, edit] : edits) {
    size_t offset = place.first;
    if (offset < at)
      continue; // inside another replacement
    result.text += source.slice(at, offset);
    result.edits.push_back({offset, edit.length, result.text.size(), edit.text.size()});
    result.text += edit.text;
    at = offset + edit.length;
  }
  result.text += source.substr(at);
  return result;
}

} // namespace triton_metal
