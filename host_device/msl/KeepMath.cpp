#include "host_device/msl/KeepMath.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace triton_metal {

namespace {

bool isOrder(StringRef name) {
  return name == "fmin" || name == "fmax" || name == "min" || name == "max";
}

bool isKept(StringRef name) {
  [[clang::no_destroy]] static const StringSet<> names = {
      "acos",   "acosh", "asin",  "asinh", "atan", "atan2", "atanh", "cos",  "cosh", "cospi",
      "divide", "exp",   "exp10", "exp2",  "fmod", "log",   "log10", "log2", "pow",  "powr",
      "rsqrt",  "sin",   "sinh",  "sinpi", "sqrt", "tan",   "tanh",  "tanpi"};
  return isOrder(name) || names.contains(name);
}

/// "fast.exp", "precise.exp", or nothing for any other function.
std::string keptName(const Function &function) {
  std::string full = demangle(function.getName());
  StringRef name = full;
  if (!name.consume_front("metal::"))
    return {};
  StringRef kind = name.consume_front("fast::") ? "fast" : "precise";
  if (!name.consume_front("precise::"))
    name.consume_front("__tm::");
  StringRef base = name.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (!name.drop_front(base.size()).starts_with("(") || !isKept(base))
    return {};
  return (kind + "." + base).str();
}

/// Whether all arguments and the result are numbers of one type, float or half.
bool takesNumbers(const Function &function) {
  Type *type = function.getReturnType();
  return (type->isFloatTy() || type->isHalfTy()) && function.arg_size() > 0 &&
         all_of(function.args(), [&](const Argument &arg) { return arg.getType() == type; });
}

} // namespace

void keepMath(Module &module) {
  for (Function &function : module) {
    if (function.isDeclaration() || !takesNumbers(function))
      continue;
    std::string name = keptName(function);
    if (name.empty())
      continue;
    Type *type = function.getReturnType(), *computed = type;
    if (!isOrder(StringRef(name).split('.').second))
      computed = Type::getFloatTy(module.getContext());
    SmallVector<Type *> types(function.arg_size(), computed);
    FunctionCallee callee = module.getOrInsertFunction(
        (keptMathPrefix + name + (computed->isHalfTy() ? ".f16" : ".f32")).str(),
        FunctionType::get(computed, types, false));
    auto *declaration = cast<Function>(callee.getCallee());
    declaration->setDoesNotAccessMemory();
    declaration->setDoesNotThrow();
    declaration->setWillReturn();
    GlobalValue::LinkageTypes linkage = function.getLinkage();
    function.deleteBody();
    function.setLinkage(linkage);
    function.setSubprogram(nullptr);
    IRBuilder<> b(BasicBlock::Create(module.getContext(), "entry", &function));
    SmallVector<Value *> arguments;
    for (Argument &argument : function.args())
      arguments.push_back(b.CreateFPCast(&argument, computed));
    b.CreateRet(b.CreateFPCast(b.CreateCall(callee, arguments), type));
  }
}

} // namespace triton_metal
