// Refuses texts for which MLIR's parser would end the process.
//
// MLIR's parser expects the output of a printer. It allocates as many values as `%x#2147483647`
// asks for, recurses for each bracket, and asks for the width of types without one. A library must
// not crash on its input, so such texts are refused before they are parsed.

#include "dialect/tt/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace triton_metal::tt {

namespace {

/// The largest depth of brackets; a kernel has a few dozen.
constexpr unsigned kMaxDepth = 256;
/// The largest number of results of an operation, and of operands of a group.
constexpr unsigned kMaxResults = 4096;

/// The largest number of parts of a type, an attribute or a location. The parts of an alias count
/// at each of its uses.
constexpr uint64_t kMaxParts = 4096;

bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; }

class TextCheck {
public:
  TextCheck(StringRef text, StringRef name, MLIRContext *context)
      : text(text), name(name), context(context) {}

  LogicalResult run() {
    if (size_t null = text.find('\0'); null != StringRef::npos) {
      at = null;
      return fail() << "a null byte is no text";
    }
    while (at < text.size())
      if (failed(token()))
        return failure();
    return success();
  }

private:
  /// The character `ahead` of the current one; a null byte after the end.
  char peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }

  InFlightDiagnostic fail() {
    StringRef before = text.take_front(at);
    size_t line = before.count('\n') + 1;
    size_t column = at - (before.rfind('\n') + 1) + 1;
    return emitError(FileLineColLoc::get(context, name, line, column));
  }

  StringRef takeWord() {
    size_t begin = at;
    while (at < text.size() && isWordCharacter(text[at]))
      ++at;
    return text.slice(begin, at);
  }

  void skipBlanks() {
    while (at < text.size() && llvm::isSpace(text[at]))
      ++at;
  }

  LogicalResult token() {
    char c = peek();
    switch (c) {
    case '"':
      skipString();
      return success();
    case '#':
    case '!':
      return alias();
    case '/':
      at = peek(1) == '/' ? std::min(text.find('\n', at), text.size()) : at + 1;
      return success();
    case '-':
      // An arrow is not a closing bracket.
      at += peek(1) == '>' ? 2 : 1;
      return success();
    case '{':
      if (peek(1) == '-' && peek(2) == '#')
        return fail() << "Triton IR has no metadata of a file";
      [[fallthrough]];
    case '(':
    case '[':
    case '<':
      if (++depth > kMaxDepth)
        return fail() << "more than " << kMaxDepth << " brackets are within one another";
      noteDepth(depth);
      ++at;
      return success();
    case ')':
    case ']':
    case '}':
    case '>':
      depth -= depth > 0;
      ++at;
      return success();
    case '%':
      return value();
    default:
      break;
    }
    if (!isWordCharacter(c)) {
      ++at;
      return success();
    }
    size_t begin = at;
    StringRef word = takeWord();
    endDefinition(word);
    skipBlanks();
    if (word == "array" && peek() == '<')
      return denseArray();
    if (at == begin)
      ++at;
    return success();
  }

  void skipString() {
    size_t begin = at + 1;
    for (++at; at < text.size(); ++at) {
      if (text[at] == '\\')
        ++at;
      else if (text[at] == '"' || text[at] == '\n')
        break;
    }
    endDefinition(text.slice(begin, at));
    at = std::min(at + 1, text.size());
  }

  /// The definition of an alias ends at the next definition, or at the first operation.
  void endDefinition(StringRef word) {
    if (depth == 0 && llvm::is_contained({"module", "builtin.module", "tt.func"}, word))
      defined = nullptr;
  }

  void noteDepth(unsigned reached) {
    if (defined)
      defined->depth = std::max(defined->depth, reached);
  }

  /// `#name` or `!name`: the definition of an alias, a use of one, or a name of a dialect.
  LogicalResult alias() {
    size_t begin = at++;
    takeWord();
    StringRef spelled = text.slice(begin, at);
    size_t end = at;
    skipBlanks();
    if (depth == 0 && peek() == '=' && peek(1) != '=') {
      defined = &aliases[spelled];
      *defined = {};
      return success();
    }
    at = end;
    auto found = aliases.find(spelled);
    if (!defined || found == aliases.end())
      return success();
    const Alias used = found->second;
    noteDepth(depth + used.depth);
    defined->parts += used.parts;
    if (defined->depth > kMaxDepth || defined->parts > kMaxParts) {
      at = begin;
      return fail() << "aliases of aliases make an attribute that is too "
                    << (defined->depth > kMaxDepth ? "deep" : "large");
    }
    return success();
  }

  /// `%name`, possibly with the number of a result or with the number of results.
  LogicalResult value() {
    ++at;
    while (at < text.size() && (isWordCharacter(text[at]) || text[at] == '-'))
      ++at;
    skipBlanks();
    if (peek() != '#' && peek() != ':')
      return success();
    size_t place = at++;
    skipBlanks();
    StringRef digits = text.drop_front(at).take_while(llvm::isDigit);
    unsigned number;
    if (!digits.empty() && (digits.getAsInteger(10, number) || number > kMaxResults)) {
      at = place;
      return fail() << "an operation has at most " << kMaxResults << " results, not " << digits;
    }
    return success();
  }

  /// `array<TYPE: ...>`, whose type must have a width.
  LogicalResult denseArray() {
    size_t bracket = at++;
    skipBlanks();
    size_t place = at;
    bool known = llvm::StringSwitch<bool>(takeWord())
                     .Cases({"i1", "i8", "i16", "i32", "i64", "f32", "f64"}, true)
                     .Default(false);
    at = place;
    if (!known)
      return fail() << "an array is one of i1, i8, i16, i32, i64, f32 or f64";
    // The bracket is counted by the caller like any other.
    at = bracket;
    return success();
  }

  struct Alias {
    unsigned depth = 0;
    uint64_t parts = 1;
  };

  StringRef text, name;
  MLIRContext *context;
  size_t at = 0;
  unsigned depth = 0;
  /// A StringMap does not move its entries, so that `defined` may point to one.
  llvm::StringMap<Alias> aliases;
  Alias *defined = nullptr;
};

} // namespace

LogicalResult checkText(StringRef text, StringRef name, MLIRContext *context) {
  return TextCheck(text, name, context).run();
}

} // namespace triton_metal::tt
