#include "host_device/msl/Rewriter.h"
#include "clang/Basic/LangOptions.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <vector>

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

namespace {

struct Token {
  tok::TokenKind kind;
  size_t offset;
  size_t length;
  StringRef text;
  bool startsDirective = false; // the `#` of a preprocessor directive
  bool afterDirective = false;  // the first token after a directive's last line
  bool startsMacroBody = false; // the first token of what a #define stands for
};

bool isAddressSpace(StringRef text) {
  return text == "thread" || text == "device" || text == "constant" || text == "threadgroup";
}

class Rewriter {
public:
  explicit Rewriter(StringRef source) : source(source) { lex(); }

  RewrittenText run() {
    attributes();
    methodQualifiers();
    arrayParameters();
    literals();
    loadsInConditionals();
    return apply();
  }

private:
  StringRef source;
  std::vector<Token> tokens;
  /// For every opening bracket its closing one, and the other way.
  std::vector<size_t> match;
  /// For every token the innermost `{` around it, or npos.
  std::vector<size_t> scope;
  /// Tokens that an edit has taken out.
  std::vector<bool> gone;

  struct Replacement {
    size_t length;
    std::string text;
  };
  /// By offset; an insertion has length 0.
  std::map<std::pair<size_t, size_t>, Replacement> replacements;

  static constexpr size_t npos = ~size_t(0);

  void lex() {
    clang::LangOptions options;
    options.CPlusPlus = options.CPlusPlus11 = options.CPlusPlus14 = options.CPlusPlus17 = true;
    options.LineComment = true;
    options.Bool = true;
    clang::Lexer lexer(clang::SourceLocation(), options, source.begin(), source.begin(),
                       source.end());
    bool inDirective = false, inDefine = false, sawDirective = false;
    size_t defineAt = 0; // tokens of the directive so far
    int defineParens = 0;
    bool bodyNext = false;
    for (;;) {
      clang::Token raw;
      bool last = lexer.LexFromRawLexer(raw);
      if (raw.is(tok::eof))
        break;
      size_t offset = lexer.getCurrentBufferOffset() - raw.getLength();
      Token token{raw.getKind(), offset, raw.getLength(), source.substr(offset, raw.getLength())};
      if (raw.isAtStartOfLine()) {
        if (inDirective)
          sawDirective = true;
        inDirective = inDefine = bodyNext = false;
        if (raw.is(tok::hash)) {
          inDirective = true;
          defineAt = 0;
          defineParens = 0;
          token.startsDirective = true;
        } else if (sawDirective) {
          token.afterDirective = true;
          sawDirective = false;
        }
      } else if (inDirective) {
        ++defineAt;
        if (defineAt == 1)
          inDefine = token.text == "define";
        else if (inDefine && defineAt == 2)
          bodyNext = true;
        else if (inDefine && defineAt == 3 && token.kind == tok::l_paren &&
                 offset == tokens.back().offset + tokens.back().length) {
          defineParens = 1;
          bodyNext = false;
        } else if (defineParens > 0) {
          defineParens += token.kind == tok::l_paren ? 1 : token.kind == tok::r_paren ? -1 : 0;
          bodyNext = defineParens == 0;
        } else if (bodyNext) {
          token.startsMacroBody = true;
          bodyNext = false;
        }
      }
      tokens.push_back(token);
      if (last)
        break;
    }
    gone.assign(tokens.size(), false);
    match.assign(tokens.size(), npos);
    scope.assign(tokens.size(), npos);
    std::vector<size_t> open, braces;
    for (size_t i = 0; i < tokens.size(); ++i) {
      tok::TokenKind kind = tokens[i].kind;
      if (!braces.empty())
        scope[i] = braces.back();
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
          match[i] = open.back();
          match[open.back()] = i;
          open.pop_back();
          if (kind == tok::r_brace && !braces.empty())
            braces.pop_back();
        }
      }
    }
  }

  bool is(size_t i, tok::TokenKind kind) const {
    return i < tokens.size() && tokens[i].kind == kind;
  }
  StringRef text(size_t i) const { return i < tokens.size() ? tokens[i].text : StringRef(); }

  void replace(size_t offset, size_t length, std::string text) {
    replacements[{offset, length ? 1 : 0}] = {length, std::move(text)};
  }
  /// Takes the place of two tokens that may be on two lines.
  void replaceTokens(size_t first, size_t last, const std::string &text) {
    size_t end = tokens[last].offset + tokens[last].length;
    blank(tokens[first].offset, end);
    Replacement &entry = replacements[{tokens[first].offset, 1}];
    entry.text =
        text + entry.text.substr(std::min(entry.text.find_first_not_of(' '), entry.text.size()));
  }
  void insert(size_t offset, const std::string &text) {
    Replacement &entry = replacements[{offset, 0}];
    entry.length = 0;
    entry.text += text;
  }
  /// Takes text out and leaves its line ends (and a macro's continuation marks) where they are.
  void blank(size_t begin, size_t end) {
    std::string text = source.slice(begin, end).str();
    for (size_t i = 0; i < text.size(); ++i) {
      bool continues =
          text[i] == '\\' && (i + 1 == text.size() || text[i + 1] == '\n' || text[i + 1] == '\r');
      if (text[i] != '\n' && text[i] != '\r' && !continues)
        text[i] = ' ';
    }
    replace(begin, end - begin, std::move(text));
  }

  /// Whether an attribute `[[...]]` begins at token `i`.
  bool isAttribute(size_t i) const {
    return is(i, tok::l_square) && is(i + 1, tok::l_square) && match[i] != npos &&
           match[i + 1] != npos && match[i] == match[i + 1] + 1;
  }

  /// `[[kernel]]` -> `[[__tm_kernel]]`, as `kernel` and `threadgroup` are macros; and
  /// `template [[host_name("f")]]` -> `template __attribute__((host_name("f")))`, as clang takes no
  /// other attribute in an explicit instantiation.
  void attributes() {
    size_t end = npos; // the last token of an attribute of an explicit instantiation
    for (size_t i = 0; i + 3 < tokens.size(); ++i) {
      if (!isAttribute(i))
        continue;
      for (size_t at = i + 2; at < match[i + 1]; ++at) {
        if (is(at, tok::l_paren) && match[at] != npos)
          at = match[at];
        else if (text(at) == "kernel" || text(at) == "threadgroup")
          insert(tokens[at].offset, "__tm_");
      }
      if (i > 0 && (text(i - 1) == "template" || i - 1 == end)) {
        end = match[i];
        replaceTokens(i, i + 1, "__attribute__((");
        replaceTokens(match[i + 1], match[i], "))");
      }
      i = match[i];
    }
  }

  /// The first token of the declaration that token `i` is part of: after the nearest `;`, `{`, `}`
  /// or access specifier.
  size_t declarationStart(size_t i) const {
    while (i > 0) {
      size_t previous = i - 1;
      tok::TokenKind kind = tokens[previous].kind;
      if (kind == tok::semi || kind == tok::l_brace || kind == tok::r_brace ||
          tokens[i].afterDirective || tokens[i].startsMacroBody)
        return i;
      if (kind == tok::colon && previous > 0 &&
          (text(previous - 1) == "public" || text(previous - 1) == "private" ||
           text(previous - 1) == "protected"))
        return i;
      if ((kind == tok::r_paren || kind == tok::r_square) && match[previous] != npos)
        i = match[previous];
      else
        i = previous;
    }
    return 0;
  }

  /// The last token of a function definition or declaration whose parameters end before token `i`.
  size_t declarationEnd(size_t i) const {
    while (i < tokens.size()) {
      if (is(i, tok::semi))
        return i;
      if (is(i, tok::l_brace))
        return match[i] == npos ? i : match[i];
      if (is(i, tok::colon)) { // member initialisers, each `name(...)` or `name{...}`
        for (++i; i < tokens.size();) {
          while (i < tokens.size() && !is(i, tok::l_paren) && !is(i, tok::l_brace))
            ++i;
          if (i >= tokens.size() || match[i] == npos)
            return i;
          i = match[i] + 1;
          if (!is(i, tok::comma))
            break;
        }
        continue;
      }
      if ((is(i, tok::l_paren) || is(i, tok::l_square)) && match[i] != npos)
        i = match[i];
      ++i;
    }
    return tokens.empty() ? 0 : tokens.size() - 1;
  }

  /// Whether the function whose parameters begin at `open` has no return type and no `operator`.
  bool isConstructor(size_t start, size_t open) const {
    if (open == start || tokens[open - 1].kind != tok::raw_identifier)
      return false;
    if (open - 1 == start)
      return true;
    size_t before = open - 2;
    for (size_t i = start; i < open; ++i)
      if (text(i) == "operator")
        return false;
    return text(before) == "constexpr" || text(before) == "explicit" || text(before) == "inline" ||
           text(before) == "METAL_FUNC" ||
           (is(before, tok::greater) && closesTemplateHeader(before));
  }

  /// What tells one member function from the others: its class, its declaration up to the
  /// parameters' end, and const.
  std::string memberSignature(size_t at, size_t start, size_t close) const {
    std::string signature =
        std::to_string(scope[at] == npos ? 0 : tokens[scope[at]].offset + 1) + ":";
    for (size_t k = start; k <= close; ++k)
      signature += (tokens[k].text + " ").str();
    for (size_t k = close + 1;
         text(k) == "const" || text(k) == "volatile" || isAddressSpace(text(k)); ++k)
      if (!isAddressSpace(text(k)))
        signature += (tokens[k].text + " ").str();
    return signature;
  }

  /// Constructors without an address space: `T() : x(0) {}`.
  void addPlainConstructors(llvm::StringSet<> &seen) const {
    for (size_t close = 1; close + 1 < tokens.size(); ++close) {
      if (!is(close, tok::r_paren) || match[close] == npos ||
          (!is(close + 1, tok::colon) && !is(close + 1, tok::l_brace)))
        continue;
      size_t open = match[close];
      if (open == 0 || tokens[open - 1].kind != tok::raw_identifier || scope[close] == npos)
        continue;
      size_t start = declarationStart(open);
      if (isConstructor(start, open))
        seen.insert(memberSignature(close, start, close));
    }
  }

  /// What has parentheses and is no function: `coherent(device) device const T *p`.
  static bool isQualifierOrStatement(StringRef text) {
    return text == "coherent" || text == "alignas" || text == "decltype" || text == "if" ||
           text == "for" || text == "while" || text == "switch";
  }

  /// `operator T() const device { ... }`.
  void methodQualifiers() {
    llvm::StringSet<> seen;
    bool seesPlain = false;
    for (size_t i = 1; i + 1 < tokens.size(); ++i) {
      if (gone[i] || !isAddressSpace(text(i)))
        continue;
      tok::TokenKind next = tokens[i + 1].kind;
      StringRef nextText = text(i + 1);
      if (next != tok::l_brace && next != tok::semi && next != tok::equal && next != tok::colon &&
          nextText != "noexcept" && nextText != "const" && nextText != "volatile" &&
          nextText != "override")
        continue;
      size_t before = i - 1;
      while (before > 0 && (text(before) == "const" || text(before) == "volatile"))
        --before;
      if (!is(before, tok::r_paren) || match[before] == npos)
        continue;
      // A cast is no method: `(T) constant` does not occur, but `sizeof(x) const` does not either;
      // a name must stand before.
      size_t open = match[before];
      if (open == 0 || isQualifierOrStatement(text(open - 1)) ||
          (tokens[open - 1].kind != tok::raw_identifier && !is(open - 1, tok::r_paren) &&
           !is(open - 1, tok::greater) && !tok::getPunctuatorSpelling(tokens[open - 1].kind)))
        continue;
      size_t start = declarationStart(open);
      if (!seesPlain)
        addPlainConstructors(seen);
      seesPlain = true;
      std::string signature = memberSignature(i, start, before);
      if (seen.insert(signature).second) {
        // A method on an object in constant memory does not change it.
        bool isConst = text(before + 1) == "const" || nextText == "const";
        if (text(i) == "constant" && !isConst && !isConstructor(start, open))
          replace(tokens[i].offset, tokens[i].length, "const   ");
        else
          blank(tokens[i].offset, tokens[i].offset + tokens[i].length);
        gone[i] = true;
        continue;
      }
      size_t end = declarationEnd(i + 1);
      // Edits inside what goes must go too.
      size_t from = tokens[start].offset, to = tokens[end].offset + tokens[end].length;
      for (auto it = replacements.lower_bound({from, 0});
           it != replacements.end() && it->first.first < to;)
        it = replacements.erase(it);
      blank(from, to);
      for (size_t k = start; k <= end; ++k)
        gone[k] = true;
    }
  }

  static bool isSpecifier(StringRef text) {
    return text == "static" || text == "const" || text == "constexpr" || text == "volatile" ||
           text == "inline" || text == "extern";
  }

  /// The end of an operand that reads memory and does nothing else (`p[i]`, `*(p + i)`), or npos.
  size_t loadEnd(size_t i) const {
    bool reads = false;
    while (is(i, tok::star)) {
      reads = true;
      ++i;
    }
    for (bool first = true;; first = false) {
      if (is(i, tok::l_paren) || is(i, tok::l_square)) {
        if (match[i] == npos || gone[i])
          return npos;
        if (is(i, tok::l_square)) {
          if (first)
            return npos; // a lambda
          reads = true;
        }
        i = match[i] + 1;
      } else if (is(i, tok::raw_identifier) || is(i, tok::coloncolon) || is(i, tok::period) ||
                 is(i, tok::arrow)) {
        ++i;
      } else {
        break;
      }
    }
    bool ends = is(i, tok::colon) || is(i, tok::semi) || is(i, tok::comma) || is(i, tok::r_paren) ||
                is(i, tok::r_square) || is(i, tok::r_brace);
    bool indexed = i > 0 && (is(i - 1, tok::r_square) || reads);
    return ends && reads && indexed ? i : npos;
  }

  /// `c ? p[i] : float4(0)` -> `c ? __tm_load(p[i]) : float4(0)`: for clang a vector is an object,
  /// and an object in another address space and one in the thread's have no common type.
  void loadsInConditionals() {
    auto wrap = [&](size_t begin) {
      size_t end = loadEnd(begin);
      if (end == npos || end == begin)
        return;
      insert(tokens[begin].offset, "__tm_load(");
      insert(tokens[end - 1].offset + tokens[end - 1].length, ")");
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!is(i, tok::question) || gone[i])
        continue;
      wrap(i + 1);
      // The colon that belongs to this question mark.
      int nested = 0;
      for (size_t k = i + 1; k < tokens.size(); ++k) {
        if ((is(k, tok::l_paren) || is(k, tok::l_square) || is(k, tok::l_brace)) &&
            match[k] != npos) {
          k = match[k];
        } else if (is(k, tok::question)) {
          ++nested;
        } else if (is(k, tok::semi) || is(k, tok::r_paren) || is(k, tok::r_brace)) {
          break;
        } else if (is(k, tok::colon) && nested-- == 0) {
          wrap(k + 1);
          break;
        }
      }
    }
  }

  /// `1.0bf` -> `1.0_bf`, `1.0` -> `1.0f`. (Clang has an option for the latter, which templates
  /// forget.)
  void literals() {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (gone[i] || !is(i, tok::numeric_constant))
        continue;
      StringRef number = text(i);
      bool isHex = number.starts_with_insensitive("0x");
      if (isHex && !number.contains_insensitive("p"))
        continue;
      size_t end = tokens[i].offset + tokens[i].length;
      char last = number.back();
      bool isFraction = number.contains('.') || number.contains_insensitive(isHex ? "p" : "e");
      if (isFraction && (last == '.' || (last >= '0' && last <= '9') ||
                         (isHex && !number.contains_insensitive("p"))))
        insert(end, "f");
      else if (number.ends_with_insensitive("bf"))
        replace(end - 2, 2, "_bf");
      else if (number.ends_with("H"))
        replace(end - 1, 1, "_h");
    }
  }

  /// `f(constant int strides[2])` -> `f(constant int (*strides))`: clang would give the pointer
  /// itself the address space.
  void arrayParameters() {
    for (size_t i = 1; i < tokens.size(); ++i) {
      if (gone[i] || !isAddressSpace(text(i)))
        continue;
      size_t first = i;
      while (first > 0 && isSpecifier(text(first - 1)))
        --first;
      if (first == 0 || (!is(first - 1, tok::l_paren) && !is(first - 1, tok::comma)))
        continue;
      int angle = 0;
      size_t name = npos; // the last identifier outside of template arguments
      for (size_t k = i + 1; k < tokens.size(); ++k) {
        tok::TokenKind kind = tokens[k].kind;
        if (kind == tok::less)
          ++angle;
        else if (kind == tok::greater)
          --angle;
        else if (kind == tok::greatergreater)
          angle -= 2;
        if (angle > 0)
          continue;
        if (isAttribute(k)) {
          k = match[k];
        } else if (kind == tok::l_square && match[k] != npos && name != npos) {
          // What follows the array is the pointer's.
          size_t last = match[k];
          while (isAttribute(last + 1))
            last = match[last + 1];
          if (is(last + 1, tok::comma) || is(last + 1, tok::r_paren) ||
              is(last + 1, tok::l_square)) {
            insert(tokens[name].offset, "(*");
            blank(tokens[k].offset, tokens[match[k]].offset + 1);
            insert(tokens[last].offset + 1, ")");
          }
          break;
        } else if (kind == tok::raw_identifier) {
          name = k;
        } else if (kind != tok::coloncolon && kind != tok::greater && kind != tok::greatergreater &&
                   kind != tok::less) {
          break;
        }
      }
    }
  }

  /// Whether `>` closes `template <...>`.
  bool closesTemplateHeader(size_t close) const {
    int depth = 0;
    for (size_t i = close + 1; i-- > 0;) {
      if (is(i, tok::greater))
        ++depth;
      else if (is(i, tok::greatergreater))
        depth += 2;
      else if (is(i, tok::less) && --depth == 0)
        return i > 0 && text(i - 1) == "template";
      else if (is(i, tok::semi) || is(i, tok::l_brace) || is(i, tok::r_brace))
        return false;
    }
    return false;
  }

  RewrittenText apply() {
    RewrittenText result;
    size_t at = 0;
    for (auto &[key, replacement] : replacements) {
      size_t offset = key.first;
      if (offset < at)
        continue; // inside something that another edit replaced
      result.text += source.slice(at, offset);
      result.edits.push_back(
          {offset, replacement.length, result.text.size(), replacement.text.size()});
      result.text += replacement.text;
      at = offset + replacement.length;
    }
    result.text += source.substr(at);
    return result;
  }
};

} // namespace

RewrittenText rewriteMsl(StringRef source) {
  // The lexer wants a terminating zero.
  std::string terminated = source.str();
  return Rewriter(terminated).run();
}

} // namespace triton_metal
