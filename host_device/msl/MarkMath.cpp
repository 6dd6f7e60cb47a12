#include "host_device/msl/MarkMath.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace triton_metal {

/// Functions that a GPU computes in several instructions, or on a unit of its own. The
/// specification's tables of accuracy have these names.
static bool isElementary(StringRef name) {
  [[clang::no_destroy]] static const StringSet<> names = {
      "acos",   "acosh", "asin",   "asinh", "atan",  "atan2", "atanh", "cos",  "cosh", "cospi",
      "divide", "exp",   "exp10",  "exp2",  "fmod",  "log",   "log10", "log2", "pow",  "powr",
      "rsqrt",  "sin",   "sincos", "sinh",  "sinpi", "sqrt",  "tan",   "tanh", "tanpi"};
  return names.contains(name);
}

/// "fast", "precise" or "default" for an elementary function of numbers, "product" for one of
/// tensor operations on what threads hold, and otherwise nothing. Functions of vectors call that of
/// numbers for each component.
static StringRef kindOf(const Function &function) {
  std::string full = demangle(function.getName());
  StringRef name = full;
  if (name.contains("::__multiply_registers<"))
    return "product";
  if (name.contains("vec<"))
    return {};
  // A template's name follows its result: "T metal::exp<float>(float)".
  size_t start = name.find("metal::");
  if (start == StringRef::npos || (start != 0 && name[start - 1] != ' '))
    return {};
  name = name.substr(start + StringRef("metal::").size());
  StringRef kind = name.consume_front("fast::")      ? "fast"
                   : name.consume_front("precise::") ? "precise"
                                                     : "default";
  name = name.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  return isElementary(name) ? kind : StringRef();
}

void markMath(Module &module) {
  for (Function &function : module) {
    if (function.isDeclaration() || !function.getSubprogram())
      continue;
    StringRef kind = kindOf(function);
    if (kind.empty())
      continue;
    IRBuilder<> b(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
    b.SetCurrentDebugLocation(DILocation::get(
        module.getContext(), function.getSubprogram()->getLine(), 0, function.getSubprogram()));
    FunctionCallee mark = module.getOrInsertFunction((mathMarkPrefix + kind).str(), b.getVoidTy());
    cast<Function>(mark.getCallee())->setDoesNotThrow();
    b.CreateCall(mark);
  }
}

} // namespace triton_metal
