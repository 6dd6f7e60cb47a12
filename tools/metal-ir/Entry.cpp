// Makes the function that a GPU starts of the front end's, whose parameters are a thread's
// positions, too.
#include "Gpu.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace triton_metal::gpu {

namespace {

/// Pointers of the front end's address spaces become the GPU's, and bfloats integers where it has
/// none.
class Types final : public ValueMapTypeRemapper {
public:
  explicit Types(Gpu &gpu) : gpu(gpu) {}

  Type *remapType(Type *type) override {
    if (auto *pointer = dyn_cast<PointerType>(type))
      return PointerType::get(type->getContext(), gpu.addressSpace(pointer->getAddressSpace()));
    if (gpu.hasBfloat())
      return type;
    if (type->isBFloatTy())
      return Type::getInt16Ty(type->getContext());
    if (auto *vector = dyn_cast<VectorType>(type))
      return VectorType::get(remapType(vector->getElementType()), vector->getElementCount());
    if (auto *array = dyn_cast<ArrayType>(type))
      return ArrayType::get(remapType(array->getElementType()), array->getNumElements());
    if (auto *structure = dyn_cast<StructType>(type); structure && !structure->isOpaque()) {
      SmallVector<Type *> elements;
      for (Type *element : structure->elements())
        elements.push_back(remapType(element));
      if (ArrayRef<Type *>(elements) != structure->elements())
        return StructType::get(type->getContext(), elements, structure->isPacked());
    }
    return type;
  }

private:
  Gpu &gpu;
};

/// The number of components, 1 for a number.
Value *positionOf(IRBuilder<> &b, Gpu &gpu, const ParameterInfo &parameter, Type *type,
                  function_ref<Value *(unsigned dimension)> missing) {
  auto one = [&](unsigned dimension) {
    Value *value = gpu.position(b, parameter.position, dimension);
    return b.CreateZExtOrTrunc(value ? value : missing(dimension), type->getScalarType());
  };
  if (!type->isVectorTy())
    return one(0);
  Value *result = PoisonValue::get(type);
  for (unsigned i = 0; i != parameter.vectorWidth; ++i)
    result = b.CreateInsertElement(result, one(i), i);
  return result;
}

/// Constants of a type that changes are not remapped by LLVM.
void mapConstants(Function &function, Types &types, ValueToValueMapTy &map) {
  for (Instruction &instruction : instructions(function))
    for (Value *operand : instruction.operands()) {
      auto *constant = dyn_cast<Constant>(operand);
      if (!constant || isa<GlobalValue>(constant) || map.count(constant))
        continue;
      Type *type = constant->getType(), *mapped = types.remapType(type);
      if (type == mapped || type->isPointerTy())
        continue;
      if (type->getScalarType()->isBFloatTy())
        map[constant] = isa<PoisonValue>(constant)  ? PoisonValue::get(mapped)
                        : isa<UndefValue>(constant) ? UndefValue::get(mapped)
                                                    : ConstantExpr::getBitCast(constant, mapped);
    }
}

/// Whether the bytes at `from` are only read, so that they may be anywhere.
bool isOnlyRead(Value *from) {
  return all_of(from->users(), [](User *user) {
    return isa<LoadInst>(user) || (isa<GetElementPtrInst>(user) && isOnlyRead(user));
  });
}

/// Has what reads at `from` read at `to`, which is of another address space.
void readElsewhere(Value *from, Value *to) {
  for (User *user : make_early_inc_range(from->users())) {
    if (auto *load = dyn_cast<LoadInst>(user)) {
      load->setOperand(LoadInst::getPointerOperandIndex(), to);
      continue;
    }
    auto *step = cast<GetElementPtrInst>(user);
    IRBuilder<> b(step);
    readElsewhere(step,
                  b.CreateGEP(step->getSourceElementType(), to,
                              SmallVector<Value *>(step->indices()), "", step->getNoWrapFlags()));
    step->eraseFromParent();
  }
}

Error checkByValue(const DenseMap<unsigned, unsigned> &byValue, Gpu &gpu, const KernelInfo &kernel,
                   Function &body) {
  auto fail = [&](unsigned buffer, const Twine &message) {
    return createStringError("kernel '" + kernel.name + "': buffer " + Twine(buffer) + message);
  };
  for (auto [buffer, bytes] : byValue) {
    if (!gpu.hasBuffersByValue())
      return fail(buffer, " cannot be handed over by value to this GPU");
    auto found = find_if(kernel.parameters, [&](const ParameterInfo &parameter) {
      return parameter.kind == ParameterInfo::Kind::Buffer && parameter.index == buffer;
    });
    if (found == kernel.parameters.end())
      return fail(buffer, " is to be handed over by value, but the kernel has none");
    Value *argument = body.getArg(found - kernel.parameters.begin());
    if (found->addressSpace != AddressSpace::Constant || !isOnlyRead(argument))
      return fail(buffer, " cannot be handed over by value: it is not only read as constants");
  }
  return Error::success();
}

} // namespace

Expected<Function *> makeEntry(Module &module, Gpu &gpu, const KernelInfo &kernel, unsigned threads,
                               const DenseMap<unsigned, unsigned> &byValue,
                               std::vector<std::string> &more) {
  Function *body = module.getFunction(kernel.name);
  LLVMContext &context = module.getContext();
  gpu.setThreads(threads);
  if (Error failed = checkByValue(byValue, gpu, kernel, *body))
    return std::move(failed);
  body->setName(kernel.name + ".body");
  if (!gpu.hasBfloat())
    expandBfloat(*body);
  Types types(gpu);

  auto bytesOf = [&](const ParameterInfo &parameter) {
    return parameter.kind == ParameterInfo::Kind::Buffer ? byValue.lookup(parameter.index) : 0;
  };
  SmallVector<Type *> parameters;
  for (auto [index, parameter] : enumerate(kernel.parameters))
    if (parameter.kind != ParameterInfo::Kind::Position)
      parameters.push_back(bytesOf(parameter) ? PointerType::get(context, 0)
                                              : types.remapType(body->getArg(index)->getType()));
  // The positions that the GPU does not know, asked for on a trial.
  Type *i32 = Type::getInt32Ty(context);
  Function *probe = Function::Create(FunctionType::get(Type::getVoidTy(context), false),
                                     GlobalValue::InternalLinkage, "probe", module);
  IRBuilder<> b(BasicBlock::Create(context, "entry", probe));
  for (const ParameterInfo &parameter : kernel.parameters)
    if (parameter.kind == ParameterInfo::Kind::Position)
      for (unsigned i = 0; i != parameter.vectorWidth; ++i)
        if (!gpu.position(b, parameter.position, i)) {
          more.push_back(parameter.name +
                         (parameter.vectorWidth > 1 ? "." + std::to_string(i) : ""));
          parameters.push_back(i32);
        }
  probe->eraseFromParent();

  Function *entry = Function::Create(FunctionType::get(Type::getVoidTy(context), parameters, false),
                                     GlobalValue::ExternalLinkage, kernel.name, module);
  b.SetInsertPoint(BasicBlock::Create(context, "start", entry));
  ValueToValueMapTy map;
  SmallVector<std::pair<AddrSpaceCastInst *, unsigned>> values;
  unsigned next = 0, missing = entry->arg_size() - more.size();
  for (auto [index, parameter] : enumerate(kernel.parameters)) {
    Argument *given = body->getArg(index);
    if (parameter.kind != ParameterInfo::Kind::Position) {
      Argument *argument = entry->getArg(next++);
      argument->setName(parameter.name);
      map[given] = argument;
      if (unsigned bytes = bytesOf(parameter)) {
        auto *address = new AddrSpaceCastInst(argument, types.remapType(given->getType()), "",
                                              b.GetInsertBlock());
        map[given] = address;
        values.emplace_back(address, bytes);
      }
      continue;
    }
    map[given] = positionOf(b, gpu, parameter, given->getType(), [&](unsigned) -> Value * {
      Argument *argument = entry->getArg(missing++);
      argument->setName(more[argument->getArgNo() - (entry->arg_size() - more.size())]);
      return argument;
    });
  }
  mapConstants(*body, types, map);
  BasicBlock *start = &entry->getEntryBlock();
  SmallVector<ReturnInst *> returns;
  CloneFunctionInto(entry, body, map, CloneFunctionChangeType::LocalChangesOnly, returns, "",
                    nullptr, &types);
  entry->setAttributes(AttributeList());
  entry->addFnAttr(Attribute::NoUnwind);
  entry->addFnAttr(Attribute::Convergent);
  b.SetInsertPoint(start);
  b.CreateBr(cast<BasicBlock>(map[&body->getEntryBlock()]));
  body->eraseFromParent();
  for (auto [address, bytes] : values) {
    auto *argument = cast<Argument>(address->getPointerOperand());
    readElsewhere(address, argument);
    address->eraseFromParent();
    argument->addAttr(
        Attribute::getWithByValType(context, ArrayType::get(i32, divideCeil(bytes, 4))));
    argument->addAttr(Attribute::getWithAlignment(context, Align(4)));
  }
  entry->setCallingConv(gpu.callingConvention());
  gpu.makeEntry(*entry, threads);
  return entry;
}

} // namespace triton_metal::gpu
