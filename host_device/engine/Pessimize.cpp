// Numbers the values that Metal does not promise. Values that the front end has found are calls of
// `__tm_any`. Threadgroup memory gets a record of who has written each byte (Abi.h). A load of what
// nobody has written is any value. What another SIMD-group has written since the last barrier may
// be there or not (ThreadgroupOrder.cpp).
#include "host_device/engine/Builtins.h"
#include "host_device/engine/GroupRecord.h"
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

/// The name of the threadgroup variable that a pointer points into.
StringRef variableOf(Value *pointer) {
  Value *object = getUnderlyingObject(pointer, 0);
  return object->hasName() ? object->getName() : "threadgroup memory";
}

/// This SIMD-group as the writer of each byte of a value of the type.
Value *thisWriter(IRBuilderBase &builder, Type *integers) {
  Module &module = *builder.GetInsertBlock()->getModule();
  Value *bytes = builder.CreateCall(declareBuiltin(module, writerName, builder.getInt64Ty(), {}));
  Value *own = builder.CreateTrunc(bytes, integers->getScalarType());
  auto *vector = dyn_cast<FixedVectorType>(integers);
  return vector ? builder.CreateVectorSplat(vector->getNumElements(), own) : own;
}

void recordWriter(IRBuilderBase &builder, Value *pointer, Type *type, Align align) {
  if (Type *integers = integersLike(type))
    builder.CreateAlignedStore(thisWriter(builder, integers), writersOf(builder, pointer), align);
}

/// Two sites: bytes that nobody has written, and bytes that another SIMD-group has written since
/// the last barrier. Returns the number of the first.
uint32_t addSites(Instruction &inst, Value *pointer, Type *type, CodeFacts &facts) {
  Site site;
  fillLocation(site, inst);
  site.kind = AccessKind::AnyValue;
  site.space = AddressSpace::Threadgroup;
  site.note = variableOf(pointer).str();
  site.reason = Unpromised::ThreadgroupRead;
  site.bits = type->getScalarSizeInBits();
  site.isFloat = type->getScalarType()->isFloatingPointTy();
  facts.sites.push_back(site);
  site.reason = Unpromised::UnorderedThreadgroupRead;
  site.bits = 1;
  site.isFloat = false;
  facts.sites.push_back(site);
  return facts.sites.size() - 2;
}

/// Passes a load to the runtime if it reaches bytes that this SIMD-group need not see.
void guardLoad(LoadInst *load, CodeFacts &facts) {
  Type *type = load->getType(), *integers = integersLike(type);
  if (!integers)
    return;
  IRBuilder<> builder(load);
  Value *pointer = load->getPointerOperand();
  Value *writers =
      builder.CreateAlignedLoad(integers, writersOf(builder, pointer), load->getAlign());
  Value *bad = builder.CreateAnd(builder.CreateICmpNE(writers, Constant::getAllOnesValue(integers)),
                                 builder.CreateICmpNE(writers, thisWriter(builder, integers)));
  if (integers->isVectorTy())
    bad = builder.CreateOrReduce(bad);
  uint32_t site = addSites(*load, pointer, type, facts);
  replaceByCall(*load, stagedName, {pointer, builder.getInt32(site), bad});
}

/// An atomic operation on memory that nobody has written finds any value there. All threads see
/// what it leaves.
void guardAtomic(Instruction *inst, Value *pointer, Type *type, Align align) {
  Type *integers = integersLike(type);
  if (!integers)
    return;
  IRBuilder<> builder(inst);
  Value *place = builder.CreateAnd(builder.CreatePtrToInt(pointer, builder.getInt64Ty()), 0xfff);
  AnyValue unwritten{Unpromised::ThreadgroupRead, variableOf(pointer), /*ofLane=*/false, place};
  Value *writers = builder.CreateAlignedLoad(integers, writersOf(builder, pointer), align);
  // Whether a byte is zero: it borrows from the bit above it.
  auto repeated = [&](uint64_t byte) {
    unsigned width = integers->getIntegerBitWidth();
    return ConstantInt::get(integers, APInt::getSplat(width, APInt(8, byte)));
  };
  Value *zeros = builder.CreateAnd(
      builder.CreateAnd(builder.CreateSub(writers, repeated(1)), builder.CreateNot(writers)),
      repeated(0x80));
  Value *bad = builder.CreateICmpNE(zeros, Constant::getNullValue(integers));
  LoadInst *old = builder.CreateAlignedLoad(type, pointer, align);
  builder.CreateAlignedStore(buildAnyIf(builder, bad, old, unwritten), pointer, align);
  builder.CreateAlignedStore(Constant::getAllOnesValue(integers), writersOf(builder, pointer),
                             align);
}

void recordThreadgroupMemory(Function &function, CodeFacts &facts) {
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
      guardLoad(load, facts);
    else if (auto *store = dyn_cast<StoreInst>(inst))
      recordWriter(builder, store->getPointerOperand(), store->getValueOperand()->getType(),
                   store->getAlign());
    else if (auto *rmw = dyn_cast<AtomicRMWInst>(inst))
      guardAtomic(inst, rmw->getPointerOperand(), rmw->getType(), rmw->getAlign());
    else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(inst))
      guardAtomic(inst, exchange->getPointerOperand(), exchange->getCompareOperand()->getType(),
                  exchange->getAlign());
    else if (auto *memory = dyn_cast<MemIntrinsic>(inst))
      builder.CreateMemSet(writersOf(builder, memory->getRawDest()),
                           thisWriter(builder, builder.getInt8Ty()), memory->getLength(),
                           memory->getDestAlign());
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
  recordThreadgroupMemory(function, facts);
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
