// The atomic updates that Metal has no function for: written in front of the kernels that call
// them. docs/msl-text.md ("Atomics") says why each is right.

#include "target/msl/AtomicFunctions.h"

#include "target/msl/Types.h"

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// The bits of a bfloat as an expression of a float, rounded to nearest even; a NaN stays one.
constexpr const char *narrowText = R"(
// The bits of the nearest bfloat, ties to even.
__attribute__((always_inline)) inline ushort bfloat_bits(float x) {
  uint bits = as_type<uint>(x), odd = (bits >> 16u) & 1u;
  return ushort(x != x ? (bits >> 16u) | 64u : (bits + 32767u + odd) >> 16u);
}
)";

StringRef getVerb(AtomicKind kind) {
  switch (kind) {
  case AtomicKind::Add:
  case AtomicKind::FAdd:
    return "add";
  case AtomicKind::Min:
  case AtomicKind::UMin:
  case AtomicKind::FMin:
    return "min";
  case AtomicKind::Max:
  case AtomicKind::UMax:
  case AtomicKind::FMax:
    return "max";
  case AtomicKind::And:
    return "and";
  case AtomicKind::Or:
    return "or";
  case AtomicKind::Xor:
    return "xor";
  case AtomicKind::Exchange:
    return "exchange";
  case AtomicKind::BFAdd:
    return "add_bfloat";
  case AtomicKind::BFMin:
    return "min_bfloat";
  case AtomicKind::BFMax:
    return "max_bfloat";
  case AtomicKind::DAdd:
    return "add_float64";
  case AtomicKind::DMin:
    return "min_float64";
  case AtomicKind::DMax:
    return "max_float64";
  }
  llvm_unreachable("covered");
}

/// What is in memory afterwards, as an expression of `found` and `value`.
std::string getUpdate(AtomicKind kind) {
  auto bfloats = [](StringRef first, StringRef between) {
    auto wide = [](StringRef name) { return ("as_type<float>(uint(" + name + ") << 16u)").str(); };
    return ("bfloat_bits(" + first + wide("found") + between + wide("value") + ")").str();
  };
  switch (kind) {
  case AtomicKind::Add:
  case AtomicKind::FAdd:
    return "found + value";
  case AtomicKind::Min:
  case AtomicKind::UMin:
    return "min(found, value)";
  case AtomicKind::Max:
  case AtomicKind::UMax:
    return "max(found, value)";
  case AtomicKind::FMin:
    return "fmin(found, value)";
  case AtomicKind::FMax:
    return "fmax(found, value)";
  case AtomicKind::And:
    return "found & value";
  case AtomicKind::Or:
    return "found | value";
  case AtomicKind::Xor:
    return "found ^ value";
  case AtomicKind::Exchange:
    return "value";
  case AtomicKind::BFAdd:
    return bfloats("", " + ");
  case AtomicKind::BFMin:
    return bfloats("fmin(", ", ") + ")";
  case AtomicKind::BFMax:
    return bfloats("fmax(", ", ") + ")";
  case AtomicKind::DAdd:
  case AtomicKind::DMin:
  case AtomicKind::DMax:
    return (*AtomicFunctions::getCallee(kind) + "(found, value)").str();
  }
  llvm_unreachable("covered");
}

constexpr const char *relaxed = ", memory_order_relaxed";

/// A loop around the compare-and-exchange of the 32-bit word that holds the number. One of the
/// threads that try succeeds each time, so no thread waits for another one.
std::string getWordText(StringRef head, StringRef type, unsigned bits, bool isFloat,
                        std::optional<AtomicKind> kind) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string unit = bits == 16 ? "ushort" : "uchar";
  os << head;
  if (bits == 32) {
    os << "  device atomic_uint *word = (device atomic_uint *)p;\n";
  } else {
    // For numbers of 16 bits one bit of the address: of a number between two words the word is
    // misaligned, which the host device reports.
    os << "  uint byte = uint(reinterpret_cast<ulong>(p)) & " << (bits == 16 ? 2 : 3) << "u;\n"
       << "  device atomic_uint *word = (device atomic_uint *)((device uchar *)p - byte);\n"
       << "  uint shift = 8u * byte;\n";
  }
  // A plain atomic load may find an older value, which costs a round of the loop, or is the answer
  // of a compare-and-exchange that fails. An update finds the newest.
  os << "  uint old = atomic_fetch_or_explicit(word, 0u" << relaxed << ");\n";
  std::string cut = bits == 32 ? "old" : unit + "(old >> shift)";
  std::string found = isFloat ? ("as_type<" + type + ">(" + cut + ")").str() : cut;
  if (bits < 32 && !isFloat && type != unit)
    found = (type + "(" + found + ")").str();
  std::string update = kind ? getUpdate(*kind) : "desired";
  if (isFloat)
    update = ("as_type<" + (bits == 32 ? Twine("uint") : Twine(unit)) + ">(" + type + "(" + update +
              "))")
                 .str();
  else if (bits < 32)
    update = unit + "(" + update + ")";
  std::string next = bits == 32 ? update
                                : "(old & ~(" + std::string(bits == 16 ? "65535u" : "255u") +
                                      " << shift)) | (uint(" + update + ") << shift)";
  os << "  " << type << " found = " << found << ";\n"
     << "  while (" << (kind ? "" : "found == expected &&\n         ")
     << "!atomic_compare_exchange_weak_explicit(word, &old, " << next << relaxed << relaxed
     << "))\n"
     << "    found = " << found << ";\n"
     << "  return found;\n}\n";
  return text;
}

/// Two atomics of 32 bits, for updates that commute and of which nobody asks what they found.
std::string getHalvesText(StringRef head, AtomicKind kind) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << head << "  device atomic_uint *halves = (device atomic_uint *)p;\n"
     << "  uint low = uint(value), high = uint(value >> 32);\n";
  if (kind == AtomicKind::Add) {
    os << "  uint old = atomic_fetch_add_explicit(halves, low" << relaxed << ");\n"
       << "  high += old + low < low ? 1u : 0u;\n"
       << "  atomic_fetch_add_explicit(halves + 1, high" << relaxed << ");\n}\n";
  } else {
    for (StringRef half : {"halves, low", "halves + 1, high"})
      os << "  atomic_fetch_" << getVerb(kind) << "_explicit(" << half << relaxed << ");\n";
    os << "}\n";
  }
  return text;
}

} // namespace

std::optional<StringRef> AtomicFunctions::getCallee(AtomicKind kind) {
  switch (kind) {
  case AtomicKind::DAdd:
    return "float64_add";
  case AtomicKind::DMin:
    return "float64_min";
  case AtomicKind::DMax:
    return "float64_max";
  default:
    return std::nullopt;
  }
}

std::string AtomicFunctions::use(AtomicForm form, std::optional<AtomicKind> kind, Type type) {
  std::string typeName = getTypeName(type);
  StringRef verb = kind ? getVerb(*kind) : StringRef("compare_exchange");
  bool isFetch = kind && *kind != AtomicKind::Exchange;
  std::string name = ((isFetch && form != AtomicForm::Halves ? "fetch_" : "") + verb +
                      (form == AtomicForm::Halves  ? "_halves"
                       : form == AtomicForm::Alone ? "_alone"
                                                   : ""))
                         .str();
  if (llvm::is_contained({AtomicKind::BFAdd, AtomicKind::BFMin, AtomicKind::BFMax},
                         kind.value_or(AtomicKind::Add)))
    narrows = true;
  std::string key = name + "(" + typeName + ")";
  if (!known.insert(key).second)
    return name;
  std::string comment =
      form == AtomicForm::Word
          ? "An update of the 32-bit word that holds the number; gives what was "
            "there."
      : form == AtomicForm::Halves
          ? "A 64-bit number in two halves: exact when all have updated it."
          : "An update that no other thread runs meanwhile; gives what was there.";
  std::string head =
      "\n// " + comment + "\n__attribute__((always_inline)) inline " +
      (form == AtomicForm::Halves ? "void" : typeName) + " " + name + "(" +
      // Programs follow each other in a loop, which must read again what an earlier one has stored
      // (docs/apple-quirks.md, row 5).
      (form == AtomicForm::Alone ? "volatile " : "") + "device " + typeName + " *p, " +
      (kind ? typeName + " value" : typeName + " expected, " + typeName + " desired") + ") {\n";
  switch (form) {
  case AtomicForm::Word:
    text += getWordText(head, typeName, type.getIntOrFloatBitWidth(), isa<FloatType>(type), kind);
    break;
  case AtomicForm::Halves:
    text += getHalvesText(head, *kind);
    break;
  case AtomicForm::Alone:
    text += head + "  " + typeName + " found = *p;\n" +
            (kind ? "  *p = " + getUpdate(*kind) : "  *p = found == expected ? desired : found") +
            ";\n  return found;\n}\n";
    break;
  case AtomicForm::Metal:
    llvm_unreachable("is Metal's own");
  }
  return name;
}

void AtomicFunctions::print(llvm::raw_ostream &os) const {
  if (narrows)
    os << narrowText;
  os << text;
}
