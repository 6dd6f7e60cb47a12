#include "host_device/engine/Builtins.h"
#include "host_device/engine/Vectorize.h"
#include "host_device/msl/OutOfLine.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace triton_metal::engine {

std::vector<const Builtin *> builtins() {
  std::vector<const Builtin *> rows;
  for (ArrayRef<Builtin> part : {SimdEmitter::laneFunctions(), SimdEmitter::threadFunctions()})
    for (const Builtin &row : part)
      rows.push_back(&row);
  return rows;
}

const Builtin *findBuiltin(StringRef name) {
  [[clang::no_destroy]] static const StringMap<const Builtin *> rows = [] {
    StringMap<const Builtin *> map;
    for (const Builtin *row : builtins())
      map[row->name] = row;
    return map;
  }();
  return name.starts_with("__tm_") ? rows.lookup(name.split('.').first) : nullptr;
}

const Builtin *builtinCalledBy(const Value *value) {
  auto *call = dyn_cast<CallBase>(value);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->isDeclaration() ? findBuiltin(callee->getName()) : nullptr;
}

bool isCallOf(const Value *value, StringRef name) {
  const Builtin *row = builtinCalledBy(value);
  return row && row->name == name;
}

Spread spreadOf(const CallBase &call) {
  if (call.getIntrinsicID() != Intrinsic::not_intrinsic)
    return Spread::Elementwise;
  if (const Function *callee = call.getCalledFunction(); callee && isOutOfLine(*callee))
    return Spread::Elementwise;
  const Builtin *row = builtinCalledBy(&call);
  return row ? row->spread : Spread::PerLane;
}

void addAttributes(Function &function, const Builtin &builtin) {
  function.setDoesNotThrow();
  switch (builtin.effect) {
  case Effect::ReadsLanes:
    function.setConvergent();
    [[fallthrough]];
  case Effect::None:
    function.setDoesNotAccessMemory();
    function.setWillReturn();
    return;
  case Effect::OrdersMemory:
    function.setConvergent();
    return;
  case Effect::Counts:
    function.setWillReturn();
    [[fallthrough]];
  case Effect::Checks:
    function.setOnlyAccessesInaccessibleMemory();
    function.setConvergent();
    function.addFnAttr(Attribute::NoMerge);
    return;
  case Effect::Observes:
    function.setOnlyAccessesInaccessibleMemOrArgMem();
    function.setConvergent();
    function.addFnAttr(Attribute::NoMerge);
    return;
  }
}

FunctionCallee declareBuiltin(Module &module, StringRef name, Type *result,
                              ArrayRef<Type *> parameters, std::optional<unsigned> space) {
  const Builtin *row = findBuiltin(name);
  assert(row && "not a function of the table");
  std::string full = space ? (name + "." + Twine(*space)).str() : name.str();
  auto callee = module.getOrInsertFunction(full, FunctionType::get(result, parameters, false));
  addAttributes(*cast<Function>(callee.getCallee()), *row);
  return callee;
}

void replaceByCall(LoadInst &load, StringRef name, ArrayRef<Value *> more) {
  Type *type = load.getType();
  SmallVector<Value *> operands{&load};
  append_range(operands, more);
  SmallVector<Type *> types;
  for (Value *operand : operands)
    types.push_back(operand->getType());
  std::string full;
  raw_string_ostream(full) << name << '.' << *type;
  auto callee = load.getModule()->getOrInsertFunction(full, FunctionType::get(type, types, false));
  addAttributes(*cast<Function>(callee.getCallee()), *findBuiltin(name));
  IRBuilder<> builder(load.getNextNode());
  builder.SetCurrentDebugLocation(load.getDebugLoc());
  CallInst *call = builder.CreateCall(callee, operands);
  load.replaceUsesWithIf(call, [&](Use &use) { return use.getUser() != call; });
}

} // namespace triton_metal::engine
