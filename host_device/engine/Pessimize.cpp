// Numbers the values that Metal does not promise. Values that the front end has found are calls of
// `__tm_any`. Threadgroup memory gets a shadow: a byte of it is set once a thread has written the
// byte that it stands for, and a load of anything else is any value.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "host_device/msl/AnyValues.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine {

namespace {

constexpr unsigned threadgroupSpace = unsigned(AddressSpace::Threadgroup);

/// The shadow of a variable's memory.
Value *shadowOf(IRBuilderBase &builder, Value *pointer) {
  return builder.CreatePtrAdd(pointer, builder.getInt64(maxThreadgroupMemory));
}

/// The type with integers in place of other numbers, or null.
Type *integersLike(Type *type) {
  Type *scalar = type->getScalarType();
  unsigned bits = scalar->getPrimitiveSizeInBits();
  if (bits % 8 || !bits || bits > 64 || !(scalar->isIntegerTy() || scalar->isFloatingPointTy()))
    return nullptr;
  return type->getWithNewType(Type::getIntNTy(type->getContext(), bits));
}

/// The name of the threadgroup variable that a pointer points into.
StringRef variableOf(Value *pointer) {
  Value *object = getUnderlyingObject(pointer, 0);
  return object->hasName() ? object->getName() : "threadgroup memory";
}

/// The bits of each element that have not been written.
Value *isUnwritten(IRBuilderBase &builder, Value *pointer, Type *type, Align align) {
  Value *shadow = builder.CreateAlignedLoad(integersLike(type), shadowOf(builder, pointer), align);
  return builder.CreateICmpNE(shadow, Constant::getAllOnesValue(shadow->getType()));
}

AnyValue unwritten(IRBuilderBase &builder, Value *pointer) {
  Value *place = builder.CreateAnd(builder.CreatePtrToInt(pointer, builder.getInt64Ty()), 0xfff);
  return {Unpromised::ThreadgroupRead, variableOf(pointer), /*ofLane=*/false, place};
}

void markWritten(IRBuilderBase &builder, Value *pointer, Type *type, Align align) {
  if (Type *integers = integersLike(type))
    builder.CreateAlignedStore(Constant::getAllOnesValue(integers), shadowOf(builder, pointer),
                               align);
}

/// The result of a load that reaches bytes nobody has written is any value.
void guardLoad(LoadInst *load) {
  Type *type = load->getType();
  if (!integersLike(type))
    return;
  IRBuilder<> builder(load);
  Value *pointer = load->getPointerOperand();
  Value *bad = isUnwritten(builder, pointer, type, load->getAlign());
  AnyValue what = unwritten(builder, pointer);
  builder.SetInsertPoint(load->getNextNode());
  builder.SetCurrentDebugLocation(load->getDebugLoc());
  SmallVector<Use *> uses;
  for (Use &use : load->uses())
    uses.push_back(&use);
  Value *result = load;
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    // One call for all elements: it is rarely taken.
    Value *some = builder.CreateOrReduce(bad);
    AnyValue number = what;
    Value *bits = buildAny(builder, some, builder.getInt64Ty(), number);
    unsigned width = vector->getScalarSizeInBits();
    Value *any = PoisonValue::get(vector);
    for (unsigned i = 0; i != vector->getNumElements(); ++i) {
      Value *own =
          builder.CreateTrunc(builder.CreateLShr(bits, i * width % 64), builder.getIntNTy(width));
      any =
          builder.CreateInsertElement(any, builder.CreateBitCast(own, vector->getElementType()), i);
    }
    result = builder.CreateSelect(bad, any, load);
  } else {
    result = buildAnyIf(builder, bad, load, what);
  }
  for (Use *use : uses)
    use->set(result);
}

/// An atomic operation on memory that nobody has written finds any value there.
void guardAtomic(Instruction *inst, Value *pointer, Type *type, Align align) {
  if (!integersLike(type))
    return;
  IRBuilder<> builder(inst);
  Value *bad = isUnwritten(builder, pointer, type, align);
  LoadInst *old = builder.CreateAlignedLoad(type, pointer, align);
  builder.CreateAlignedStore(buildAnyIf(builder, bad, old, unwritten(builder, pointer)), pointer,
                             align);
  markWritten(builder, pointer, type, align);
}

void shadowThreadgroupMemory(Function &function) {
  SmallVector<Instruction *> accesses;
  for (Instruction &inst : instructions(function)) {
    if (auto access = memoryAccess(inst); access && access->space == AddressSpace::Threadgroup)
      accesses.push_back(&inst);
    else if (auto *memory = dyn_cast<MemIntrinsic>(&inst);
             memory && memory->getDestAddressSpace() == threadgroupSpace)
      accesses.push_back(&inst);
  }
  for (Instruction *inst : accesses) {
    IRBuilder<> builder(inst);
    if (auto *load = dyn_cast<LoadInst>(inst))
      guardLoad(load);
    else if (auto *store = dyn_cast<StoreInst>(inst))
      markWritten(builder, store->getPointerOperand(), store->getValueOperand()->getType(),
                  store->getAlign());
    else if (auto *rmw = dyn_cast<AtomicRMWInst>(inst))
      guardAtomic(inst, rmw->getPointerOperand(), rmw->getType(), rmw->getAlign());
    else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(inst))
      guardAtomic(inst, exchange->getPointerOperand(), exchange->getCompareOperand()->getType(),
                  exchange->getAlign());
    else if (auto *memory = dyn_cast<MemIntrinsic>(inst))
      builder.CreateMemSet(shadowOf(builder, memory->getRawDest()), builder.getInt8(0xff),
                           memory->getLength(), memory->getDestAlign());
  }
}

/// The type that the bits of a call become: its users say it.
Type *typeOf(CallInst *call) {
  SmallVector<Instruction *> work{call};
  Type *type = call->getType();
  for (unsigned steps = 0; !work.empty() && steps != 16; ++steps) {
    Instruction *inst = work.pop_back_val();
    for (User *user : inst->users())
      if (auto *cast = dyn_cast<CastInst>(user); cast && isa<TruncInst, BitCastInst>(cast)) {
        if (cast->getType()->isVectorTy())
          continue;
        if (isa<BitCastInst>(cast))
          return cast->getType();
        type = cast->getType();
        work.push_back(cast);
      } else if (user != call && isa<BinaryOperator>(user) &&
                 cast_or_null<BinaryOperator>(user)->getOpcode() == Instruction::LShr) {
        work.push_back(cast_or_null<Instruction>(user));
      }
  }
  return type;
}

} // namespace

void insertSites(Function &function, CodeFacts &facts) {
  shadowThreadgroupMemory(function);
  Module &module = *function.getParent();
  NamedMDNode *notes = module.getNamedMetadata(notesName);
  if (!notes)
    return;
  for (Instruction &inst : instructions(function)) {
    if (!isCallOf(&inst, anyName) && !isCallOf(&inst, anyOfLaneName))
      continue;
    auto *call = cast<CallInst>(&inst);
    auto *note = dyn_cast<ConstantInt>(call->getArgOperand(1));
    Site site;
    fillLocation(site, inst);
    site.kind = AccessKind::AnyValue;
    site.space = AddressSpace::Thread;
    if (note && note->getZExtValue() < notes->getNumOperands()) {
      MDNode *node = notes->getOperand(note->getZExtValue());
      site.reason = Unpromised(mdconst::extract<ConstantInt>(node->getOperand(0))->getZExtValue());
      site.note = cast<MDString>(node->getOperand(1))->getString().str();
    }
    Type *type = typeOf(call);
    site.bits = type->getPrimitiveSizeInBits();
    site.isFloat = type->isFloatingPointTy();
    call->setArgOperand(
        1, ConstantInt::get(Type::getInt32Ty(module.getContext()), facts.sites.size()));
    facts.sites.push_back(site);
  }
  // What becomes undefined from now on is of our own making.
  module.eraseNamedMetadata(notes);
}

} // namespace triton_metal::engine
