#include "host_device/msl/Rewriter.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

using llvm::SmallVector;
using llvm::StringRef;
namespace tok = clang::tok;

namespace triton_metal {

namespace {

constexpr size_t npos = Tokens::npos;
/// What may follow an operand of a conditional.
constexpr tok::TokenKind operandEnds[] = {tok::colon,   tok::semi,     tok::comma,
                                          tok::r_paren, tok::r_square, tok::r_brace};

bool isAddressSpace(StringRef text) {
  return text == "thread" || text == "device" || text == "constant" || text == "threadgroup";
}

bool isSpecifier(StringRef text) {
  return text == "static" || text == "const" || text == "constexpr" || text == "volatile" ||
         text == "inline" || text == "extern";
}

class Rewriter {
public:
  explicit Rewriter(StringRef source) : tokens(source), edits(source) {}

  RewrittenText run() {
    attributes();
    defaultConstructors();
    vectorWidths();
    methodQualifiers();
    arrayParameters();
    threadgroupInitialisers();
    memberDefinitions();
    coherence();
    literals();
    loadsInConditionals();
    return edits.apply();
  }

private:
  Tokens tokens;
  TextEdits edits;
  /// Address spaces that defaultConstructors() removes.
  llvm::DenseSet<size_t> plainSpaces;

  /// `[[kernel]]` -> `[[__tm_kernel]]`, because `kernel` and `threadgroup` are macros.
  /// `template [[host_name("f")]]` -> `template __attribute__((host_name("f")))`, because clang
  /// rejects
  /// `[[]]` in an explicit instantiation.
  void attributes() {
    size_t end = npos; // the last token of an attribute of an explicit instantiation
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens.isAttribute(i))
        continue;
      size_t inner = tokens.match(i + 1), outer = tokens.match(i);
      for (size_t at = i + 2; at < inner; ++at) {
        if (tokens.is(at, tok::l_paren) && tokens.match(at) != npos) {
          // Its arguments are types, which attributes of clang cannot have.
          if (tokens.text(at - 1) == "intersection")
            edits.replace(tokens.begin(at), tokens.end(tokens.match(at)), "");
          at = tokens.match(at);
        } else if (llvm::is_contained({"kernel", "threadgroup", "vertex", "fragment"},
                                      tokens.text(at))) {
          edits.insert(tokens.begin(at), "__tm_");
        }
      }
      if (i > 0 && (tokens.text(i - 1) == "template" || i - 1 == end)) {
        end = outer;
        edits.replace(tokens.begin(i), tokens.end(i + 1), "__attribute__((");
        edits.replace(tokens.begin(inner), tokens.end(outer), "))");
      }
      i = outer;
    }
  }

  /// Whether the function with the parameter list at `open` is a constructor. It then has the
  /// name of the enclosing class, or of the class before `::`.
  bool isConstructor(size_t open) const {
    if (open < 3)
      return false;
    size_t at = open - 1;
    if (tokens.is(at, tok::greater)) { // `S<T>()`
      while (at > 0 && !tokens.is(at, tok::less))
        --at;
      if (at == 0)
        return false;
      --at;
    }
    StringRef name = tokens.text(at);
    if (at < 2)
      return false;
    open = at + 1;
    if (tokens.is(open - 2, tok::coloncolon) && tokens.text(open - 3) == name)
      return true;
    size_t body = tokens.scope(open);
    if (body == npos)
      return false;
    bool named = false;
    for (size_t i = body; i-- > 0;) {
      if (tokens.isOneOf(i, {tok::semi, tok::l_brace, tok::r_brace}))
        return false;
      if (tokens.text(i) == "struct" || tokens.text(i) == "class" || tokens.text(i) == "union")
        return named;
      named |= tokens.text(i) == name;
    }
    return false;
  }

  /// `C() = default; C() threadgroup = default;` -> `C() = default;`, which makes objects in all
  /// address spaces. For clang, a class with the other one would not be an aggregate.
  void defaultConstructors() {
    llvm::DenseSet<size_t> classes; // by the brace that opens them: those with the first one
    auto isDefault = [&](size_t at) {
      return tokens.is(at, tok::equal) && tokens.text(at + 1) == "default";
    };
    auto constructs = [&](size_t i) {
      return tokens.is(i, tok::l_paren) && tokens.is(i + 1, tok::r_paren) && isConstructor(i);
    };
    llvm::DenseSet<size_t> others; // those with one that does something
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!constructs(i))
        continue;
      if (isDefault(i + 2))
        classes.insert(tokens.scope(i));
      else if (!isDefault(i + 3))
        others.insert(tokens.scope(i));
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!constructs(i) || !isAddressSpace(tokens.text(i + 2)) || !isDefault(i + 3) ||
          others.contains(tokens.scope(i)))
        continue;
      plainSpaces.insert(i + 2);
      if (classes.insert(tokens.scope(i)).second) {
        edits.replace(tokens.begin(i + 2), tokens.end(i + 2), "");
        continue;
      }
      size_t first = i;
      while (first > 0 &&
             !tokens.isOneOf(first - 1, {tok::semi, tok::l_brace, tok::r_brace, tok::colon}))
        --first;
      edits.replace(tokens.begin(first), tokens.end(i + 5), "");
    }
  }

  /// Whether `vec<..., name>` stands among the tokens from `begin` to `end`.
  bool isVectorWidth(StringRef name, size_t begin, size_t end) const {
    for (size_t i = begin; i + 1 < end; ++i) {
      if ((tokens.text(i) != "vec" && tokens.text(i) != "packed_vec") ||
          !tokens.is(i + 1, tok::less))
        continue;
      int angle = 1;
      for (size_t k = i + 2; k < end && angle > 0; ++k) {
        if (angle == 1 && tokens.is(k - 1, tok::comma) && tokens.text(k) == name &&
            tokens.isOneOf(k + 1, {tok::greater, tok::greatergreater}))
          return true;
        angle += tokens.is(k, tok::less);
        angle -= tokens.is(k, tok::greater) + 2 * tokens.is(k, tok::greatergreater);
      }
    }
    return false;
  }

  /// `template <typename T, uint N> T f(vec<T, N> v)` -> `template <typename T, auto N> …`. In
  /// Metal, a width of any integral type is deduced, and for clang its type must be the one in the
  /// declaration of `vec`.
  void vectorWidths() {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens.text(i) != "template" || !tokens.is(i + 1, tok::less))
        continue;
      SmallVector<std::pair<size_t, size_t>> types; // the first token of a type, and the name
      size_t first = i + 2, k = first;
      for (int angle = 1; k < tokens.size() && angle > 0; ++k) {
        if (tokens.isOneOf(k, {tok::l_paren, tok::l_square, tok::l_brace}) &&
            tokens.match(k) != npos) {
          k = tokens.match(k);
          continue;
        }
        bool ends = angle == 1 && tokens.isOneOf(k, {tok::comma, tok::greater});
        if (ends) {
          if (k >= first + 2 && tokens.is(k - 1, tok::raw_identifier) && isInteger(first, k - 1))
            types.push_back({first, k - 1});
          first = k + 1;
        }
        angle += tokens.is(k, tok::less);
        angle -= tokens.is(k, tok::greater) + 2 * tokens.is(k, tok::greatergreater);
      }
      if (types.empty())
        continue;
      StringRef word = tokens.text(k);
      bool isClass = word == "struct" || word == "class" || word == "union";
      if (word == "using" || (isClass && !tokens.is(k + 2, tok::less)))
        continue; // nothing is deduced
      size_t end = k;
      while (end < tokens.size() && !tokens.isOneOf(end, {tok::l_brace, tok::semi}))
        ++end;
      for (auto [type, name] : types)
        if (isVectorWidth(tokens.text(name), k, end))
          edits.replace(tokens.begin(type), tokens.end(name - 1), "auto");
    }
  }

  /// Whether the tokens name an integral type other than that of the width of `vec`.
  bool isInteger(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i)
      if (!llvm::is_contained({"unsigned", "uint", "size_t", "ushort", "uchar", "ulong", "short",
                               "long", "char", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
                               "int8_t", "int16_t", "int64_t"},
                              tokens.text(i)) &&
          (tokens.text(i) != "int" || end - begin == 1))
        return false;
    return begin < end;
  }

  /// `T get() device {` -> `T get() __global __restrict {`. The address space belongs to a method
  /// if no type follows it. The macros of address spaces contain attributes, which are not
  /// allowed here. For an object in thread memory, clang compares address spaces only if another
  /// qualifier differs, so the method also becomes `__restrict`.
  void methodQualifiers() {
    auto isQualifier = [&](size_t at) {
      return tokens.text(at) == "const" || tokens.text(at) == "volatile";
    };
    for (size_t i = 1; i < tokens.size(); ++i) {
      StringRef space = tokens.text(i);
      if (!isAddressSpace(space))
        continue;
      size_t next = i + 1, before = i - 1;
      bool isConst = false;
      for (; isQualifier(next); ++next)
        isConst |= tokens.text(next) == "const";
      for (; before > 0 && isQualifier(before); --before)
        isConst |= tokens.text(before) == "const";
      size_t open = tokens.match(before);
      if (plainSpaces.contains(i))
        continue;
      StringRef word = tokens.text(next);
      bool ends = tokens.isOneOf(next, {tok::l_brace, tok::semi, tok::equal, tok::colon});
      if (!tokens.is(before, tok::r_paren) || open == npos ||
          !(ends || tokens.is(next, tok::arrow) || word == "noexcept" || word == "override" ||
            word == "final" || word == "requires"))
        continue;
      std::string words = space == "device"        ? "__global"
                          : space == "constant"    ? "__constant"
                          : space == "threadgroup" ? "__local"
                                                   : "";
      if (!isConstructor(open)) {
        words += " __restrict";
        // Objects in constant memory are const.
        if (space == "constant" && !isConst)
          words += " const";
        // Prefer this method to one without an address space, which accepts all objects.
        if (space != "thread" && ends)
          edits.insert(tokens.begin(next), " __attribute__((enable_if(true, \"\"))) ");
      }
      edits.replace(tokens.begin(i), tokens.end(i), words);
    }
  }

  /// `f(constant int strides[2])` -> `f(constant int (*strides))`, because clang applies the
  /// address space to the parameter itself.
  void arrayParameters() {
    for (size_t i = 1; i < tokens.size(); ++i) {
      if (!isAddressSpace(tokens.text(i)))
        continue;
      size_t first = i;
      while (first > 0 && isSpecifier(tokens.text(first - 1)))
        --first;
      if (first == 0 || !tokens.isOneOf(first - 1, {tok::l_paren, tok::comma}))
        continue;
      int angle = 0;
      size_t name = npos; // the last identifier outside of template arguments
      for (size_t k = i + 1; k < tokens.size(); ++k) {
        if (tokens.is(k, tok::less))
          ++angle;
        else if (tokens.is(k, tok::greater))
          --angle;
        else if (tokens.is(k, tok::greatergreater))
          angle -= 2;
        if (angle > 0)
          continue;
        if (tokens.isAttribute(k)) {
          k = tokens.match(k);
        } else if (tokens.is(k, tok::l_square) && tokens.match(k) != npos && name != npos) {
          makePointer(name, k);
          break;
        } else if (tokens.is(k, tok::raw_identifier)) {
          name = k;
        } else if (!tokens.isOneOf(
                       k, {tok::coloncolon, tok::greater, tok::greatergreater, tok::less})) {
          break;
        }
      }
    }
  }

  /// `threadgroup float a[4] = {0};` -> `threadgroup float a[4];`. Metal's compiler accepts the
  /// initialiser, and the memory has no value at first all the same.
  void threadgroupInitialisers() {
    for (size_t i = 0; i < tokens.size(); ++i) {
      // After a parameter list, it is the address space of a method.
      if (tokens.text(i) != "threadgroup" || (i > 0 && tokens.is(i - 1, tok::r_paren)))
        continue;
      bool pointer = false;
      for (size_t k = i + 1; k < tokens.size(); ++k) {
        if (tokens.isOneOf(k, {tok::star, tok::amp}))
          pointer = true;
        if (tokens.isOneOf(k, {tok::l_square, tok::less}) || tokens.is(k, tok::raw_identifier) ||
            tokens.isOneOf(k, {tok::coloncolon, tok::greater, tok::comma, tok::numeric_constant})) {
          if (tokens.is(k, tok::l_square) && tokens.match(k) != npos)
            k = tokens.match(k);
          continue;
        }
        if (!tokens.is(k, tok::equal) || pointer)
          break;
        size_t end = k + 1;
        if (tokens.is(end, tok::l_brace) && tokens.match(end) != npos)
          end = tokens.match(end) + 1;
        else
          while (end < tokens.size() &&
                 !tokens.isOneOf(end, {tok::semi, tok::comma, tok::l_paren, tok::l_brace}))
            ++end;
        if (tokens.isOneOf(end, {tok::semi, tok::comma}))
          edits.replace(tokens.begin(k), tokens.end(end - 1), "");
        break;
      }
    }
  }

  /// `constant float S<1>::table[4];` defines a member that has its value in the class. Clang
  /// would ask for another value. The class's own declaration is enough.
  void memberDefinitions() {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens.text(i) != "constant")
        continue;
      size_t first = i;
      while (first > 0 && isSpecifier(tokens.text(first - 1)))
        --first;
      if (first > 0 && tokens.is(first - 1, tok::greater)) { // `template <typename T>`
        size_t open = first - 1;
        while (open > 0 && !tokens.is(open, tok::less))
          --open;
        if (open == 0 || tokens.text(open - 1) != "template")
          continue;
        first = open - 1;
      }
      if (first > 0 && !tokens.isOneOf(first - 1, {tok::semi, tok::r_brace}))
        continue;
      size_t k = i + 1;
      bool isMember = false;
      for (int angle = 0; k < tokens.size(); ++k) {
        if (tokens.is(k, tok::less))
          ++angle;
        else if (tokens.is(k, tok::greater))
          --angle;
        else if (tokens.is(k, tok::coloncolon) && angle == 0)
          isMember =
              tokens.is(k + 1, tok::raw_identifier) && !tokens.is(k + 2, tok::raw_identifier);
        else if (tokens.is(k, tok::l_square) && tokens.match(k) != npos)
          k = tokens.match(k);
        else if (!tokens.isOneOf(k, {tok::raw_identifier, tok::numeric_constant, tok::comma}))
          break;
      }
      if (isMember && tokens.is(k, tok::semi))
        edits.replace(tokens.begin(first), tokens.end(k), "");
    }
  }

  /// `coherent device T *` -> `coherent(device) device T *`.
  void coherence() {
    for (size_t i = 0; i < tokens.size(); ++i)
      if (tokens.text(i) == "coherent" && isAddressSpace(tokens.text(i + 1)))
        edits.insert(tokens.end(i), "(device)");
  }

  void makePointer(size_t name, size_t square) {
    // Attributes after the array belong to the parameter.
    size_t last = tokens.match(square);
    while (tokens.isAttribute(last + 1))
      last = tokens.match(last + 1);
    if (!tokens.isOneOf(last + 1, {tok::comma, tok::r_paren, tok::l_square}))
      return;
    edits.insert(tokens.begin(name), "(*");
    edits.replace(tokens.begin(square), tokens.end(tokens.match(square)), " ");
    edits.insert(tokens.end(last), ")");
  }

public:
  RewrittenText runLiterals() {
    literals();
    return edits.apply();
  }

private:
  /// `1.0bf` -> `1.0_bf`, `1.0f` -> `1.0`, which is a float here.
  void literals() {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens.is(i, tok::numeric_constant))
        continue;
      StringRef number = tokens.text(i);
      bool isHex = number.starts_with_insensitive("0x");
      if (isHex && !number.contains_insensitive("p"))
        continue;
      size_t end = tokens.end(i);
      bool isFraction = number.contains('.') || number.contains_insensitive(isHex ? "p" : "e");
      if (number.ends_with_insensitive("bf"))
        edits.replace(end - 2, end, "_bf");
      else if (isFraction && number.ends_with_insensitive("f"))
        edits.replace(end - 1, end, "");
      else if (number.ends_with("H"))
        edits.replace(end - 1, end, "_h");
    }
  }

  /// The end of an operand that only reads memory (`p[i]`, `*(p + i)`), or npos.
  size_t loadEnd(size_t i) const {
    bool reads = false;
    size_t start = i;
    for (; tokens.is(i, tok::star); ++i)
      reads = true;
    for (bool first = true;; first = false) {
      if (tokens.isOneOf(i, {tok::l_paren, tok::l_square})) {
        if (tokens.match(i) == npos)
          return npos;
        if (tokens.is(i, tok::l_square)) {
          if (first)
            return npos; // a lambda
          reads = true;
        }
        i = tokens.match(i) + 1;
      } else if (tokens.isOneOf(i,
                                {tok::raw_identifier, tok::coloncolon, tok::period, tok::arrow})) {
        ++i;
      } else {
        break;
      }
    }
    // `a.b` and `p->b`
    if (i >= start + 3 && tokens.is(i - 1, tok::raw_identifier) &&
        tokens.isOneOf(i - 2, {tok::period, tok::arrow}))
      reads = true;
    return tokens.isOneOf(i, operandEnds) && reads ? i : npos;
  }

  /// The names that this text declares with `constant`, without pointers and arrays.
  llvm::StringSet<> constants() const {
    llvm::StringSet<> names;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens.text(i) != "constant")
        continue;
      size_t name = npos;
      int angle = 0;
      for (size_t k = i + 1; k < tokens.size(); ++k) {
        if (tokens.is(k, tok::less))
          ++angle;
        else if (tokens.is(k, tok::greater))
          --angle;
        else if (angle == 0 && tokens.is(k, tok::raw_identifier))
          name = k;
        else if (angle == 0 && !tokens.isOneOf(k, {tok::coloncolon, tok::amp})) {
          bool declares =
              tokens.isOneOf(k, {tok::equal, tok::semi, tok::comma, tok::r_paren, tok::l_brace}) ||
              tokens.isAttribute(k);
          if (declares && name != npos && name > i + 1)
            names.insert(tokens.text(name));
          break;
        }
      }
    }
    return names;
  }

  /// The end of an operand that is a name (`zero`, `tables::zero`), or npos.
  size_t nameEnd(size_t i) const {
    for (; tokens.is(i, tok::raw_identifier) && tokens.is(i + 1, tok::coloncolon); i += 2)
      ;
    bool ends = tokens.is(i, tok::raw_identifier) && tokens.isOneOf(i + 1, operandEnds);
    return ends ? i + 1 : npos;
  }

  /// Whether an operand is a call, as far as its first tokens tell.
  bool isCall(size_t i) const {
    while (tokens.is(i, tok::raw_identifier) && tokens.is(i + 1, tok::coloncolon))
      i += 2;
    return tokens.is(i, tok::raw_identifier) && tokens.isOneOf(i + 1, {tok::l_paren, tok::l_brace});
  }

  /// Whether both operands of a conditional are places in memory, and it stands for one of them:
  /// `device S &s = c ? p[i] : q[i];`, `(c ? p[i] : q[i]) = v`, `(c ? p[i] : q[i]).add(v)`,
  /// `&(c ? *p : *q)`.
  bool isObject(size_t question, size_t colon) const {
    size_t left = loadEnd(question + 1), right = loadEnd(colon + 1);
    if (left != colon || right == npos)
      return false;
    if (tokens.is(right, tok::r_paren) && tokens.match(right) != npos) {
      size_t open = tokens.match(right), next = right + 1;
      while (tokens.isOneOf(next, {tok::period, tok::l_square}))
        next = tokens.is(next, tok::period) ? next + 2
               : tokens.match(next) != npos ? tokens.match(next) + 1
                                            : tokens.size();
      bool isWritten = tokens.isOneOf(
          next, {tok::equal, tok::plusequal, tok::minusequal, tok::starequal, tok::slashequal,
                 tok::percentequal, tok::ampequal, tok::pipeequal, tok::caretequal,
                 tok::lesslessequal, tok::greatergreaterequal, tok::plusplus, tok::minusminus});
      bool hasAddress = open > 1 && tokens.is(open - 1, tok::amp) &&
                        tokens.isOneOf(open - 2, {tok::equal, tok::l_paren, tok::comma});
      // A method may change the object.
      bool isCalled = next > right + 2 && tokens.is(next, tok::l_paren);
      return isWritten || hasAddress || isCalled;
    }
    if (!tokens.is(right, tok::semi))
      return false;
    for (size_t i = question; i-- > 2;) {
      if (tokens.isOneOf(i, {tok::r_paren, tok::r_square}) && tokens.match(i) != npos)
        i = tokens.match(i);
      else if (tokens.is(i, tok::equal))
        return tokens.is(i - 1, tok::raw_identifier) && tokens.is(i - 2, tok::amp);
      else if (tokens.isOneOf(i, {tok::semi, tok::l_brace, tok::r_brace}))
        return false;
    }
    return false;
  }

  /// `c ? p[i] : float4(0)` -> `c ? __tm_load(p[i]) : float4(0)`, because vectors are classes,
  /// and classes in two address spaces have no common type. A name is read so, too, if this text
  /// declares it as a constant, or beside an operand that reads memory or is a call.
  void loadsInConditionals() {
    llvm::StringSet<> constantNames = constants();
    auto load = [&](size_t begin, size_t end) {
      edits.insert(tokens.begin(begin), "__tm_load(");
      edits.insert(tokens.end(end - 1), ")");
    };
    auto read = [&](size_t begin, size_t other) {
      size_t end = loadEnd(begin);
      if (end != npos && end != begin)
        return load(begin, end);
      end = nameEnd(begin);
      if (end == npos)
        return;
      size_t reads = loadEnd(other);
      if (constantNames.contains(tokens.text(end - 1)) || (reads != npos && reads != other) ||
          isCall(other))
        load(begin, end);
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens.is(i, tok::question))
        continue;
      // The colon that belongs to this question mark.
      size_t colon = npos;
      int nested = 0;
      for (size_t k = i + 1; k < tokens.size(); ++k) {
        if (tokens.isOneOf(k, {tok::l_paren, tok::l_square, tok::l_brace}) &&
            tokens.match(k) != npos) {
          k = tokens.match(k);
        } else if (tokens.is(k, tok::question)) {
          ++nested;
        } else if (tokens.isOneOf(k, {tok::semi, tok::r_paren, tok::r_brace})) {
          break;
        } else if (tokens.is(k, tok::colon) && nested-- == 0) {
          colon = k;
          break;
        }
      }
      if (colon == npos || isObject(i, colon))
        continue;
      read(i + 1, colon + 1);
      read(colon + 1, i + 1);
    }
  }
};

} // namespace

std::string rewriteLiterals(StringRef source) {
  std::string terminated = source.str();
  return Rewriter(terminated).runLiterals().text;
}

RewrittenText rewriteMsl(StringRef source) {
  // The lexer needs a null-terminated text.
  std::string terminated = source.str();
  return Rewriter(terminated).run();
}

} // namespace triton_metal
