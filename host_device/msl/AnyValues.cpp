#include "host_device/msl/AnyValues.h"
#include "host_device/msl/CheckValues.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal {

void makePortable(Module &module) { module.getOrInsertNamedMetadata(notesName); }
bool isPortable(const Module &module) { return module.getNamedMetadata(notesName); }

static ConstantInt *noteOf(Module &module, const AnyValue &what) {
  LLVMContext &context = module.getContext();
  NamedMDNode *notes = module.getOrInsertNamedMetadata(notesName);
  auto *node = MDNode::get(
      context,
      {ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(context), unsigned(what.reason))),
       MDString::get(context, what.note)});
  // Equal notes of neighbouring places share a node.
  unsigned count = notes->getNumOperands();
  for (unsigned back = 1; back <= std::min(count, 16u); ++back)
    if (notes->getOperand(count - back) == node)
      return ConstantInt::get(Type::getInt32Ty(context), count - back);
  notes->addOperand(node);
  return ConstantInt::get(Type::getInt32Ty(context), count);
}

/// Any value of one number.
static Value *buildAnyNumber(IRBuilderBase &builder, Value *wanted, Type *type,
                             const AnyValue &what, uint64_t element) {
  Module &module = *builder.GetInsertBlock()->getModule();
  Type *i32 = builder.getInt32Ty(), *i64 = builder.getInt64Ty();
  auto callee =
      module.getOrInsertFunction(what.ofLane ? anyOfLaneName : anyName,
                                 FunctionType::get(i64, {builder.getInt1Ty(), i32, i64}, false));
  auto *function = cast<Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  Value *salt = builder.getInt64(element * 0x9e3779b97f4a7c15);
  if (what.salt)
    salt = element ? builder.CreateXor(what.salt, salt) : what.salt;
  Value *bits = builder.CreateCall(callee, {wanted, noteOf(module, what), salt});
  unsigned width = type->getPrimitiveSizeInBits();
  bits = builder.CreateTrunc(bits, builder.getIntNTy(width));
  return builder.CreateBitCast(bits, type);
}

Value *buildAny(IRBuilderBase &builder, Value *wanted, Type *type, const AnyValue &what) {
  auto *vector = dyn_cast<FixedVectorType>(type);
  if (!vector)
    return buildAnyNumber(builder, wanted, type, what, 0);
  Value *result = PoisonValue::get(vector);
  for (unsigned i = 0; i != vector->getNumElements(); ++i) {
    Value *element =
        wanted->getType()->isVectorTy() ? builder.CreateExtractElement(wanted, i) : wanted;
    result = builder.CreateInsertElement(
        result, buildAnyNumber(builder, element, vector->getElementType(), what, i), i);
  }
  return result;
}

Value *buildAnyIf(IRBuilderBase &builder, Value *bad, Value *value, const AnyValue &what) {
  if (auto *constant = dyn_cast<Constant>(bad); constant && constant->isNullValue())
    return value;
  return builder.CreateSelect(bad, buildAny(builder, bad, value->getType(), what), value);
}

//===----------------------------------------------------------------------===//
// What the standard library says
//===----------------------------------------------------------------------===//

/// Moves a result by the error that is allowed, in the launch's direction.
static Value *moveByError(IRBuilderBase &builder, Value *value, Value *ulps, Value *absolute) {
  Module &module = *builder.GetInsertBlock()->getModule();
  auto callee =
      module.getOrInsertFunction(directionName, FunctionType::get(builder.getInt32Ty(), false));
  auto *function = cast<Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  Value *direction = builder.CreateSIToFP(builder.CreateCall(callee), builder.getFloatTy());
  Value *added = builder.CreateFAdd(value, builder.CreateFMul(direction, absolute));
  // In the last places, unless that would leave the normal numbers.
  Value *bits = builder.CreateBitCast(value, builder.getInt32Ty());
  Value *size = builder.CreateAnd(bits, 0x7fffffff);
  Value *clamped = builder.CreateMinNum(ulps, ConstantFP::get(builder.getFloatTy(), 65536.0));
  Value *steps =
      builder.CreateIntrinsic(Intrinsic::fptosi_sat, {builder.getInt32Ty(), builder.getFloatTy()},
                              {builder.CreateFMul(direction, clamped)});
  Value *isInside = builder.CreateAnd(builder.CreateICmpUGT(size, builder.getInt32(0x00810000)),
                                      builder.CreateICmpULT(size, builder.getInt32(0x7f000000)));
  Value *stepped = builder.CreateSelect(isInside, builder.CreateAdd(bits, steps), bits);
  Value *isAbsolute = builder.CreateFCmpOGT(absolute, ConstantFP::getZero(builder.getFloatTy()));
  return builder.CreateSelect(isAbsolute, added,
                              builder.CreateBitCast(stepped, builder.getFloatTy()));
}

/// The function of the standard library that a call stands in, without its namespace.
static std::string callerOf(const CallInst &call) {
  std::string name = demangle(call.getFunction()->getName());
  return StringRef(name).split('(').first.rsplit("metal::").second.str();
}

void resolvePromises(Module &module) {
  auto replaceCalls = [&](StringRef name, function_ref<Value *(CallInst *)> replacement) {
    Function *function = module.getFunction(name);
    if (!function || !function->isDeclaration())
      return;
    for (User *user : make_early_inc_range(function->users()))
      if (auto *call = dyn_cast<CallInst>(user); call && call->getCalledFunction() == function) {
        call->replaceAllUsesWith(replacement(call));
        call->eraseFromParent();
      }
  };
  bool portable = isPortable(module);
  replaceCalls("__tm_outside", [&](CallInst *call) -> Value * {
    return portable ? ConstantInt::get(call->getType(), 64) : call->getArgOperand(0);
  });
  bool checksBounds = checksOf(module).bounds;
  replaceCalls("__tm_component", [&](CallInst *call) -> Value * {
    Value *index = call->getArgOperand(0);
    if (checksBounds) {
      IRBuilder<> builder(call);
      buildCheck(builder, builder.CreateICmpUGE(index, call->getArgOperand(1)),
                 "an index outside of the vector");
    }
    return index;
  });
  // A template: one function for each type.
  SmallVector<std::string> undefined;
  for (Function &function : module)
    if (function.isDeclaration() && function.getName().contains("14__tm_undefinedI"))
      undefined.push_back(function.getName().str());
  for (StringRef name : undefined)
    replaceCalls(name, [&](CallInst *call) -> Value * {
      if (!portable)
        return call->getArgOperand(0);
      IRBuilder<> builder(call);
      std::string caller = callerOf(*call);
      return buildAnyIf(builder, call->getArgOperand(1), call->getArgOperand(0),
                        {Unpromised::UndefinedResult, caller});
    });
  replaceCalls("__tm_fast_f32", [&](CallInst *call) -> Value * {
    Value *value = call->getArgOperand(0);
    if (!portable)
      return value;
    IRBuilder<> builder(call);
    std::string caller = callerOf(*call);
    Value *moved = moveByError(builder, value, call->getArgOperand(2), call->getArgOperand(3));
    AnyValue what{Unpromised::FastFunction, caller};
    what.salt = builder.CreateZExt(builder.CreateBitCast(value, builder.getInt32Ty()),
                                   builder.getInt64Ty());
    return buildAnyIf(builder, call->getArgOperand(1), moved, what);
  });
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

namespace {

/// Writes any values to a variable of any type.
class Filler {
public:
  Filler(IRBuilderBase &builder, const DataLayout &layout, StringRef name)
      : builder(builder), layout(layout), name(name) {}

  void fill(Value *variable, Type *type) {
    uint64_t left = mostStores;
    if (count(type, left))
      return store(variable, type, 0);
    // A large array: one byte for all of it.
    Value *byte = any(builder.getInt8Ty(), 0);
    builder.CreateMemSet(variable, byte, layout.getTypeAllocSize(type).getFixedValue(), Align(1));
  }

private:
  static constexpr uint64_t mostStores = 128;
  IRBuilderBase &builder;
  const DataLayout &layout;
  StringRef name;

  /// Whether the type has at most `left` parts.
  static bool count(Type *type, uint64_t &left) {
    if (auto *array = dyn_cast<ArrayType>(type)) {
      if (array->getNumElements() > left)
        return false;
      for (uint64_t i = 0; i != array->getNumElements(); ++i)
        if (!count(array->getElementType(), left))
          return false;
      return true;
    }
    if (auto *structure = dyn_cast<StructType>(type)) {
      for (Type *element : structure->elements())
        if (!count(element, left))
          return false;
      return true;
    }
    return left-- != 0;
  }

  Value *any(Type *type, uint64_t offset) {
    AnyValue what{Unpromised::Variable, name, /*ofLane=*/true,
                  builder.getInt64(offset * 0x2545f4914f6cdd1d)};
    return buildAny(builder, builder.getTrue(), type, what);
  }

  void store(Value *variable, Type *type, uint64_t offset) {
    if (auto *array = dyn_cast<ArrayType>(type)) {
      uint64_t size = layout.getTypeAllocSize(array->getElementType());
      for (uint64_t i = 0; i != array->getNumElements(); ++i)
        store(variable, array->getElementType(), offset + i * size);
    } else if (auto *structure = dyn_cast<StructType>(type)) {
      const StructLayout *places = layout.getStructLayout(structure);
      for (unsigned i = 0; i != structure->getNumElements(); ++i)
        store(variable, structure->getElementType(i), offset + places->getElementOffset(i));
    } else if (Type *scalar = type->getScalarType();
               (scalar->isIntegerTy() && scalar->getIntegerBitWidth() % 8 == 0 &&
                scalar->getIntegerBitWidth() <= 64) ||
               scalar->isHalfTy() || scalar->isBFloatTy() || scalar->isFloatTy()) {
      // Pointers stay null: an address that is any number says nothing about its memory.
      builder.CreateStore(any(type, offset),
                          builder.CreatePtrAdd(variable, builder.getInt64(offset)));
    }
  }
};

} // namespace

void fillVariables(Function &function) {
  SmallVector<AllocaInst *> variables;
  SmallVector<IntrinsicInst *> markers;
  for (Instruction &inst : instructions(function))
    if (auto *variable = dyn_cast<AllocaInst>(&inst))
      variables.push_back(variable);
    else if (auto *intrinsic = dyn_cast<IntrinsicInst>(&inst);
             intrinsic && intrinsic->isLifetimeStartOrEnd())
      markers.push_back(intrinsic);
  const DataLayout &layout = function.getDataLayout();
  SmallPtrSet<AllocaInst *, 8> filled;
  auto fill = [&](AllocaInst *variable, IRBuilderBase &builder) {
    filled.insert(variable);
    if (!variable->isArrayAllocation())
      Filler(builder, layout, variable->getName().split('.').first)
          .fill(variable, variable->getAllocatedType());
  };
  for (IntrinsicInst *marker : markers)
    if (marker->getIntrinsicID() == Intrinsic::lifetime_start)
      if (auto *variable = dyn_cast<AllocaInst>(
              marker->getArgOperand(marker->arg_size() - 1)->stripPointerCasts())) {
        IRBuilder<> builder(marker);
        fill(variable, builder);
      }
  for (IntrinsicInst *marker : markers)
    marker->eraseFromParent();
  DebugLoc beginning;
  if (DISubprogram *program = function.getSubprogram())
    beginning = DILocation::get(function.getContext(), program->getLine(), 1, program);
  for (AllocaInst *variable : variables)
    if (!filled.contains(variable)) {
      IRBuilder<> builder(variable->getNextNode());
      if (!builder.getCurrentDebugLocation())
        builder.SetCurrentDebugLocation(beginning);
      fill(variable, builder);
    }
}

} // namespace triton_metal
