#include "host_device/msl/Initialisers.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <cmath>

using namespace llvm;

namespace triton_metal {

static std::vector<Function *> constructors(Module &module) {
  std::vector<Function *> result;
  GlobalVariable *list = module.getNamedGlobal("llvm.global_ctors");
  if (!list || !list->hasInitializer())
    return result;
  if (auto *entries = dyn_cast<ConstantArray>(list->getInitializer()))
    for (Use &entry : entries->operands())
      if (auto *fields = dyn_cast<ConstantStruct>(entry))
        if (auto *function = dyn_cast<Function>(fields->getOperand(1)->stripPointerCasts()))
          result.push_back(function);
  return result;
}

static void setConstructors(Module &module, ArrayRef<Function *> functions) {
  if (GlobalVariable *list = module.getNamedGlobal("llvm.global_ctors"))
    list->eraseFromParent();
  // LLVM evaluates them in the order of these numbers, and none after one that it cannot evaluate.
  int priority = 0;
  for (Function *function : functions)
    appendToGlobalCtors(module, function, priority++);
}

/// The variables that a function names.
static SmallPtrSet<GlobalVariable *, 4> variablesOf(Function &function) {
  SmallPtrSet<GlobalVariable *, 4> result;
  for (Instruction &instruction : instructions(function))
    for (Value *operand : instruction.operands())
      if (auto *variable = dyn_cast<GlobalVariable>(getUnderlyingObject(operand)))
        result.insert(variable);
  return result;
}

Function *orderInitialisers(Module &module, const SmallPtrSetImpl<Function *> &stuck) {
  // A variable without a value yet has it from the first constructor that names it.
  std::vector<Function *> first, last;
  SmallPtrSet<GlobalVariable *, 8> known, waiting;
  for (Function *function : constructors(module)) {
    SmallPtrSet<GlobalVariable *, 4> named = variablesOf(*function);
    bool waits = stuck.contains(function) || any_of(named, [&](GlobalVariable *variable) {
                   return variable->isDeclaration() || waiting.contains(variable);
                 });
    (waits ? last : first).push_back(function);
    for (GlobalVariable *variable : named)
      if (!variable->isDeclaration() && !variable->isConstant() && known.insert(variable).second &&
          waits)
        waiting.insert(variable);
  }
  Function *result = first.empty() ? nullptr : first.front();
  append_range(first, last);
  setConstructors(module, first);
  return result;
}

void separateInitialisers(Module &module) {
  std::vector<Function *> all = constructors(module), separate;
  for (Function *outer : all) {
    std::vector<Function *> called;
    bool onlyCalls = outer->size() == 1;
    for (Instruction &instruction : instructions(*outer)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      if (call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration() &&
          call->arg_empty())
        called.push_back(call->getCalledFunction());
      else if (!isa<ReturnInst>(instruction))
        onlyCalls = false;
    }
    if (onlyCalls)
      separate.insert(separate.end(), called.begin(), called.end());
    else
      separate.push_back(outer);
  }
  setConstructors(module, separate);
  for (Function *outer : all)
    if (outer->use_empty() && !is_contained(separate, outer))
      outer->eraseFromParent();
  orderInitialisers(module, SmallPtrSet<Function *, 1>());
}

/// The value of a call of the C library with numbers, or null.
static Constant *valueOf(CallInst &call) {
  [[clang::no_destroy]] static const StringMap<float (*)(float)> unary = {
      {"acos", acosf}, {"acosh", acoshf}, {"asin", asinf}, {"asinh", asinhf},
      {"atan", atanf}, {"atanh", atanhf}, {"cosh", coshf}, {"sinh", sinhf}};
  [[clang::no_destroy]] static const StringMap<float (*)(float, float)> binary = {
      {"atan2", atan2f}, {"fmod", fmodf}, {"nextafter", nextafterf}, {"pow", powf}};
  Function *callee = call.getCalledFunction();
  StringRef name = callee ? callee->getName() : "";
  if (!name.consume_front("__tm_libm_") || !name.consume_back("_f32"))
    return nullptr;
  SmallVector<float, 2> numbers;
  for (Use &argument : call.args()) {
    auto *number = dyn_cast<ConstantFP>(argument);
    if (!number || !number->getType()->isFloatTy())
      return nullptr;
    numbers.push_back(number->getValueAPF().convertToFloat());
  }
  if (auto found = unary.find(name); found != unary.end() && numbers.size() == 1)
    return ConstantFP::get(call.getContext(), APFloat(found->second(numbers[0])));
  if (auto found = binary.find(name); found != binary.end() && numbers.size() == 2)
    return ConstantFP::get(call.getContext(), APFloat(found->second(numbers[0], numbers[1])));
  return nullptr;
}

/// Writes a constant as it lies in memory. Returns whether it has only numbers.
static bool writeBytes(const Constant *constant, const DataLayout &layout,
                       MutableArrayRef<uint8_t> bytes) {
  Type *type = constant->getType();
  if (isa<UndefValue>(constant) || constant->isNullValue()) {
    fill(bytes.take_front(layout.getTypeStoreSize(type)), 0);
    return true;
  }
  if (type->isIntOrIntVectorTy(1))
    return false;
  if (type->isIntegerTy() || type->isFloatingPointTy()) {
    auto *number = dyn_cast<ConstantInt>(constant);
    auto *fraction = dyn_cast<ConstantFP>(constant);
    if (!number && !fraction)
      return false;
    APInt bits = number ? number->getValue() : fraction->getValueAPF().bitcastToAPInt();
    StoreIntToMemory(bits, bytes.data(), layout.getTypeStoreSize(type));
    return true;
  }
  uint64_t count = 0;
  auto *record = dyn_cast<StructType>(type);
  if (record)
    count = record->getNumElements();
  else if (auto *array = dyn_cast<ArrayType>(type))
    count = array->getNumElements();
  else if (auto *vector = dyn_cast<FixedVectorType>(type))
    count = vector->getNumElements();
  else
    return false;
  for (uint64_t i = 0; i != count; ++i) {
    Constant *element = constant->getAggregateElement(i);
    if (!element)
      return false;
    uint64_t at = record ? layout.getStructLayout(record)->getElementOffset(i).getFixedValue()
                  : type->isVectorTy() ? i * layout.getTypeStoreSize(element->getType())
                                       : i * layout.getTypeAllocSize(element->getType());
    if (!writeBytes(element, layout, bytes.drop_front(at)))
      return false;
  }
  return true;
}

/// Carries out a constructor that only stores numbers, and removes it. GlobalOpt does not know
/// stores whose type is not the variable's, as those of vectors of three.
static bool storeNumbers(Function &constructor) {
  if (constructor.size() != 1)
    return false;
  Module &module = *constructor.getParent();
  const DataLayout &layout = module.getDataLayout();
  MapVector<GlobalVariable *, std::vector<uint8_t>> contents;
  for (Instruction &instruction : constructor.getEntryBlock()) {
    auto *call = dyn_cast<CallInst>(&instruction);
    if (isa<ReturnInst>(instruction) ||
        (call && call->getIntrinsicID() == Intrinsic::invariant_start))
      continue;
    auto *store = dyn_cast<StoreInst>(&instruction);
    auto *value = store ? dyn_cast<Constant>(store->getValueOperand()) : nullptr;
    if (!value)
      return false;
    APInt offset(64, 0);
    auto *variable =
        dyn_cast<GlobalVariable>(store->getPointerOperand()->stripAndAccumulateConstantOffsets(
            layout, offset, /*AllowNonInbounds=*/true));
    if (!variable || !variable->hasInitializer())
      return false;
    uint64_t size = layout.getTypeAllocSize(variable->getValueType());
    auto [found, isNew] = contents.insert({variable, std::vector<uint8_t>(size)});
    std::vector<uint8_t> &bytes = found->second;
    if (isNew && !writeBytes(variable->getInitializer(), layout, bytes))
      return false;
    if (offset.ugt(size) ||
        layout.getTypeStoreSize(value->getType()) > size - offset.getZExtValue() ||
        !writeBytes(value, layout, MutableArrayRef(bytes).drop_front(offset.getZExtValue())))
      return false;
  }
  for (auto &[variable, bytes] : contents) {
    Constant *content = ConstantDataArray::get(module.getContext(), bytes);
    auto *made = new GlobalVariable(module, content->getType(), /*isConstant=*/true,
                                    GlobalValue::InternalLinkage, content, "", variable,
                                    GlobalValue::NotThreadLocal, variable->getAddressSpace());
    made->setAlignment(layout.getPreferredAlign(variable));
    made->takeName(variable);
    variable->replaceAllUsesWith(made);
    variable->eraseFromParent();
  }
  return true;
}

size_t foldInitialisers(Module &module) {
  std::vector<Function *> left = constructors(module), others;
  for (Function *function : left)
    for (Instruction &instruction : make_early_inc_range(instructions(*function)))
      if (auto *call = dyn_cast<CallInst>(&instruction))
        if (Constant *value = valueOf(*call)) {
          call->replaceAllUsesWith(value);
          call->eraseFromParent();
        }
  for (Function *function : left)
    if (!storeNumbers(*function))
      others.push_back(function);
  if (others.size() != left.size()) {
    setConstructors(module, others);
    for (Function *function : left) {
      function->removeDeadConstantUsers();
      if (!is_contained(others, function) && function->use_empty())
        function->eraseFromParent();
    }
  }
  return others.size();
}

/// The declared variable that a constructor reads, itself or by way of another variable. Null if
/// there is none.
static GlobalVariable *missing(Function &function, const Dependences &known) {
  for (Instruction &instruction : instructions(function))
    for (Value *operand : instruction.operands())
      if (auto *variable = dyn_cast<GlobalVariable>(operand->stripInBoundsConstantOffsets())) {
        if (auto found = known.find(variable); found != known.end())
          return found->second;
        if (variable->isDeclaration())
          return variable;
      }
  return nullptr;
}

Dependences removeWaitingInitialisers(Module &module) {
  Dependences result;
  std::vector<Function *> left;
  for (Function *function : constructors(module)) {
    GlobalVariable *source = missing(*function, result);
    if (!source) {
      left.push_back(function);
      continue;
    }
    for (Instruction &instruction : instructions(*function))
      if (auto *store = dyn_cast<StoreInst>(&instruction))
        if (auto *variable = dyn_cast<GlobalVariable>(
                store->getPointerOperand()->stripInBoundsConstantOffsets()))
          result.insert({variable, source});
    function->deleteBody();
  }
  if (result.empty())
    return result;
  setConstructors(module, left);
  for (auto [variable, source] : result) {
    variable->setInitializer(nullptr);
    variable->setLinkage(GlobalValue::ExternalLinkage);
  }
  for (Function &function : make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty() &&
        function.getName().starts_with("__cxx_global_var_init"))
      function.eraseFromParent();
  return result;
}

} // namespace triton_metal
