// What an instruction takes from registers: not what is uniform, nor what its users compute.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/FloatModifiers.h"
#include "host_device/engine/RegisterReader.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::engine::registers {

StringRef calleeOf(const Value *value) {
  auto *call = dyn_cast<CallBase>(value);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee ? callee->getName() : StringRef();
}

/// How many neighbouring bytes of a vector of bytes are one number in memory.
unsigned bytesTogether(const Type *type) {
  auto *vector = dyn_cast<FixedVectorType>(type);
  if (!vector || !vector->getElementType()->isIntegerTy(8))
    return 1;
  return vector->getNumElements() % 4 == 0 ? 4 : vector->getNumElements() % 2 == 0 ? 2 : 1;
}

namespace {

/// An access scales its 32-bit offset by the size of its element, or by two or four times that.
constexpr uint64_t largestScale = 4;

/// Of a vector of bytes from memory, which stay together until they are used: the bytes of each
/// number; otherwise 1.
unsigned bytesLoaded(const Value *value) {
  return isa<LoadInst>(value) ? bytesTogether(value->getType()) : 1;
}

/// The bytes that an access moves at once.
uint64_t bytesOfUnit(const Type *accessed) {
  return std::max<uint64_t>(bytesTogether(accessed),
                            divideCeil(accessed->getScalarSizeInBits(), 8));
}

/// Whether a number is a position that is used as 64 bits without a sign. OpenCL's positions are
/// of 64 bits, but for those in a SIMD-group and of one, and stay so.
bool isLongPosition(const Value *value) {
  auto *extended = dyn_cast<ZExtInst>(value);
  if (!extended || extended->hasNonNeg() || !isCallOf(extended->getOperand(0), positionName))
    return false;
  auto *call = cast<CallBase>(extended->getOperand(0));
  auto which = Position(cast<ConstantInt>(call->getArgOperand(0))->getZExtValue());
  return which != Position::ThreadIndexInSimdgroup &&
         which != Position::SimdgroupIndexInThreadgroup;
}

} // namespace

unsigned Reader::halvesOf(Type *type) const {
  type = type->getScalarType();
  if (auto *pointer = dyn_cast<PointerType>(type)) {
    switch (AddressSpace(pointer->getAddressSpace())) {
    case AddressSpace::Threadgroup:
      return 1;
    case AddressSpace::Thread:
      return 2;
    default:
      return 4;
    }
  }
  if (!type->isSized())
    return 0;
  uint64_t bits = layout.getTypeSizeInBits(type).getFixedValue();
  return bits <= 16 ? 1 : bits <= 32 ? 2 : 4 * divideCeil(bits, 64);
}

bool Reader::computesUniform(const Instruction &inst) const {
  if (calleeOf(&inst).starts_with(bufferName) ||
      calleeOf(&inst).starts_with(threadgroupAllocName) ||
      calleeOf(&inst).starts_with(threadgroupArgumentName))
    return true;
  auto operandsAre = [&] {
    return all_of(inst.operands(), [&](const Use &use) { return isUniform(use.get()); });
  };
  if (auto *load = dyn_cast<LoadInst>(&inst))
    return load->isSimple() &&
           AddressSpace(load->getPointerAddressSpace()) == AddressSpace::Constant && operandsAre();
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(&inst))
    return !intrinsic->mayReadOrWriteMemory() && !inst.getType()->isVoidTy() &&
           all_of(intrinsic->args(), [&](const Use &use) { return isUniform(use.get()); });
  if (auto *call = dyn_cast<CallBase>(&inst)) {
    if (!isCallOf(call, positionName))
      return false;
    // The text's launch has a known number of threads in a group.
    auto which = Position(cast<ConstantInt>(call->getArgOperand(0))->getZExtValue());
    return which == Position::ThreadsPerThreadgroup || which == Position::ThreadsPerGrid ||
           which == Position::SimdgroupsPerThreadgroup ||
           which == Position::DispatchThreadsPerThreadgroup ||
           which == Position::DispatchSimdgroupsPerThreadgroup;
  }
  return isa<BinaryOperator, UnaryOperator, CastInst, CmpInst, SelectInst, GetElementPtrInst,
             ExtractElementInst, InsertElementInst, ShuffleVectorInst, ExtractValueInst,
             InsertValueInst, FreezeInst>(inst) &&
         operandsAre();
}

void Reader::findUniform() {
  // Operands come before their users, except those of phis, which are not uniform.
  for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
    for (Instruction &inst : *block)
      if (computesUniform(inst))
        uniform.insert(&inst);
  for (Instruction &inst : instructions(function))
    if (isMoved(inst))
      moved.insert(&inst);
}

/// Whether an address is a uniform one and a number of bytes. A constant that is added to it is
/// added to the uniform address.
bool Reader::isUniformPlusBytes(const GetElementPtrInst &address) const {
  return isUniform(address.getPointerOperand()) && !isUniform(&address) &&
         address.getSourceElementType()->isIntegerTy(8) && address.getNumIndices() == 1 &&
         match(address.getOperand(1), m_ZExtOrSExt(m_Value()));
}

bool Reader::isFolded(const GetElementPtrInst &address) const {
  return !address.use_empty() && all_of(address.users(), [&](const User *user) {
    if (auto *further = dyn_cast<GetElementPtrInst>(user))
      return isUniformPlusBytes(address) && further->hasAllConstantIndices() && isFolded(*further);
    auto access = memoryAccess(*const_cast<Instruction *>(cast<Instruction>(user)));
    FoldedAddress folded;
    return access && access->pointer == &address &&
           isFoldedAddress(address,
                           isa<StoreInst>(user) ? user->getOperand(0)->getType() : user->getType(),
                           folded);
  });
}

bool Reader::isMoved(const Instruction &inst) const {
  return uniform.contains(&inst) && halvesOf(inst.getType()) == 4 &&
         any_of(inst.users(), [&](const User *user) {
           auto *by = cast<Instruction>(user);
           if (uniform.contains(by) || memoryAccess(*const_cast<Instruction *>(by)))
             return false;
           auto *address = dyn_cast<GetElementPtrInst>(by);
           return !address || !isFolded(*address);
         });
}

bool Reader::isNarrowed(const PHINode &phi) const {
  return phi.getType()->isFloatTy() && !phi.use_empty() &&
         all_of(phi.users(),
                [](const User *user) {
                  return isa<FPTruncInst>(user) && user->getType()->isHalfTy();
                }) &&
         none_of(phi.incoming_values(), [&](const Use &use) {
           auto *inst = dyn_cast<Instruction>(use.get());
           return inst && isa<PHINode>(inst) && inst->getParent() == phi.getParent();
         });
}

bool Reader::isNoStep(const Instruction &inst) const {
  switch (inst.getOpcode()) {
  case Instruction::BitCast:
  case Instruction::Freeze:
  case Instruction::AddrSpaceCast:
  case Instruction::PtrToInt:
  case Instruction::IntToPtr:
  case Instruction::InsertElement:
  case Instruction::ShuffleVector:
  case Instruction::InsertValue:
  case Instruction::ExtractValue:
  case Instruction::Alloca:
    return true;
  case Instruction::ExtractElement:
    return isa<ConstantInt>(inst.getOperand(1));
  case Instruction::FPTrunc: {
    auto *phi = dyn_cast<PHINode>(inst.getOperand(0));
    return phi && phi->getNumIncomingValues() > 1 && isNarrowed(*phi);
  }
  case Instruction::Trunc:
    return inst.getOperand(0)->getType()->isIntegerTy(64);
  default:
    return calleeOf(&inst).starts_with(coherentName);
  }
}

bool Reader::isPartOfUsers(const Instruction &inst) const {
  if (inst.use_empty())
    return false;
  switch (inst.getOpcode()) {
  case Instruction::ZExt:
  case Instruction::SExt:
    // As the offset of an access.
    return inst.getType()->isIntegerTy(64) && inst.getOperand(0)->getType()->isIntegerTy() &&
           all_of(inst.users(), [](const User *user) {
             return isa<GetElementPtrInst>(user) || isa<TruncInst>(user);
           });
  case Instruction::FPExt:
  case Instruction::FNeg:
    return engine::isPartOfUsers(inst);
  case Instruction::ICmp:
  case Instruction::FCmp:
    // Selections and branches compare by themselves.
    return inst.hasOneUse() &&
           ((isa<SelectInst>(*inst.user_begin()) &&
             cast<SelectInst>(*inst.user_begin())->getCondition() == &inst &&
             cast<Instruction>(*inst.user_begin())->getParent() == inst.getParent()) ||
            (isa<BranchInst>(*inst.user_begin()) &&
             cast<Instruction>(*inst.user_begin())->getParent() == inst.getParent()));
  case Instruction::GetElementPtr:
    return isFolded(cast<GetElementPtrInst>(inst));
  default:
    return false;
  }
}

/// Whether an access adds the index, or a constant, to the base by itself. A constant beside an
/// index is added to a uniform base, in uniform registers.
bool Reader::isFoldedAddress(const GetElementPtrInst &address, Type *accessed,
                             FoldedAddress &folded) const {
  folded = {address.getPointerOperand(), nullptr};
  if (AddressSpace(address.getPointerAddressSpace()) == AddressSpace::Threadgroup)
    return false;
  if (address.hasAllConstantIndices()) {
    auto *inner = dyn_cast<GetElementPtrInst>(folded.base);
    FoldedAddress before;
    if (inner && isUniformPlusBytes(*inner) && isFoldedAddress(*inner, accessed, before))
      folded = before;
    return true;
  }
  if (address.getNumIndices() != 1)
    return false;
  uint64_t scale = layout.getTypeAllocSize(address.getSourceElementType()).getFixedValue();
  uint64_t element = bytesOfUnit(accessed);
  const Value *given = address.getOperand(1);
  const APInt *shift;
  const Value *shifted;
  if (match(given, m_Shl(m_Value(shifted), m_APInt(shift))) && shift->ule(4)) {
    scale <<= shift->getZExtValue();
    given = shifted;
  }
  // The offset is of 32 bits.
  if (!match(given, m_ZExtOrSExt(m_Value(folded.index))) ||
      !folded.index->getType()->isIntegerTy(32)) {
    folded.index = nullptr;
    return false;
  }
  if (isLongPosition(given))
    return false;
  // An element of 64 bits is two of 32.
  element = std::min<uint64_t>(element, 4);
  return isPowerOf2_64(scale) && scale >= element && scale <= element * largestScale;
}

ArrayRef<Name> Reader::define(const Value *value) {
  auto &made = names[value];
  if (!made.empty())
    return made;
  unsigned halves = halvesOf(value->getType());
  if (unsigned bytes = bytesLoaded(value); bytes > 1) {
    made.assign(componentsOf(value) / bytes, 0);
    for (Name &name : made) {
      name = code.halves.size();
      code.halves.push_back(divideCeil(bytes, 2));
    }
    return made;
  }
  for (unsigned i = 0, count = componentsOf(value); i != count && halves; ++i) {
    made.push_back(code.halves.size());
    code.halves.push_back(halves);
  }
  return made;
}

void Reader::useComponent(const Value *value, unsigned component, SmallVectorImpl<Name> &into) {
  if (isUniform(value))
    return;
  auto *inst = dyn_cast<Instruction>(value);
  if (!inst || isa<AllocaInst>(inst))
    return;
  if (auto *phi = dyn_cast<PHINode>(inst); phi && phi->getNumIncomingValues() == 1)
    return useComponent(phi->getIncomingValue(0), component, into);
  if (isNoStep(*inst)) {
    const Value *from = inst->getOperand(0);
    switch (inst->getOpcode()) {
    case Instruction::ExtractElement:
      return useComponent(from, cast<ConstantInt>(inst->getOperand(1))->getZExtValue(), into);
    case Instruction::InsertElement:
      if (auto *place = dyn_cast<ConstantInt>(inst->getOperand(2))) {
        if (place->getZExtValue() == component)
          return useComponent(inst->getOperand(1), 0, into);
        return useComponent(from, component, into);
      }
      useComponent(from, component, into);
      return useComponent(inst->getOperand(1), 0, into);
    case Instruction::ShuffleVector: {
      int place = cast<ShuffleVectorInst>(inst)->getMaskValue(component);
      if (place < 0)
        return;
      unsigned width = componentsOf(from);
      if (unsigned(place) < width)
        return useComponent(from, place, into);
      return useComponent(inst->getOperand(1), place - width, into);
    }
    case Instruction::BitCast: {
      unsigned before = componentsOf(from), after = componentsOf(inst);
      if (before == after)
        return useComponent(from, component, into);
      // Several smaller numbers of one, or the other way around.
      if (before < after)
        return useComponent(from, component * before / after, into);
      for (unsigned i = 0; i != before / after; ++i)
        useComponent(from, component * before / after + i, into);
      return;
    }
    case Instruction::InsertValue:
    case Instruction::ExtractValue:
      for (const Use &operand : inst->operands())
        useComponent(operand.get(), 0, into);
      return;
    default:
      return useComponent(from, component, into);
    }
  }
  if (isPartOfUsers(*inst)) {
    for (const Use &operand : inst->operands()) {
      unsigned count = componentsOf(operand.get());
      for (unsigned i = 0; i != count; ++i)
        if (count == 1 || i == component)
          useComponent(operand.get(), i, into);
    }
    return;
  }
  ArrayRef<Name> known = define(value);
  if (known.empty())
    return;
  component /= bytesLoaded(value);
  Name name = known[std::min<size_t>(component, known.size() - 1)];
  if (!is_contained(into, name))
    into.push_back(name);
}

void Reader::use(const Value *value, Step &step) {
  if (value->getType()->isVoidTy() || value->getType()->isLabelTy() ||
      value->getType()->isMetadataTy())
    return;
  for (unsigned i = 0, count = componentsOf(value); i != count; ++i)
    useComponent(value, i, step.uses);
}

void Reader::useInRegister(const Value *value, Step &step) {
  SmallVector<Name, 4> vector;
  for (unsigned i = 0, count = componentsOf(value); i != count; ++i) {
    SmallVector<Name, 4> component;
    useComponent(value, i, component);
    if (component.empty())
      step.passing += halvesOf(value->getType());
    vector.append(component);
  }
  for (Name name : vector)
    if (!is_contained(step.uses, name))
      step.uses.push_back(name);
  if (vector.size() > 1)
    step.vectors.push_back(std::move(vector));
}

/// The numbers of a vector of bytes, of which each is put together in a step of its own.
void Reader::usePacked(const Value *value, unsigned bytes, Step &step, Block &block) {
  SmallVector<Name, 4> vector;
  for (unsigned first = 0, count = componentsOf(value); first != count; first += bytes) {
    Step pack;
    for (unsigned i = 0; i != bytes; ++i)
      useComponent(value, first + i, pack.uses);
    Name name = code.halves.size();
    if (pack.uses.size() == 1 && code.halves[pack.uses.front()] * 2 == bytes) {
      // As it came from memory.
      vector.push_back(pack.uses.front());
      continue;
    }
    code.halves.push_back(divideCeil(bytes, 2));
    pack.defines.push_back(name);
    pack.isLate = pack.uses.size() < 2;
    vector.push_back(name);
    block.steps.push_back(std::move(pack));
  }
  for (Name name : vector)
    if (!is_contained(step.uses, name))
      step.uses.push_back(name);
  if (vector.size() > 1)
    step.vectors.push_back(std::move(vector));
}

void Reader::useAddress(const Value *pointer, Type *accessed, Step &step) {
  if (isUniform(pointer))
    return;
  auto *address = dyn_cast<GetElementPtrInst>(pointer);
  FoldedAddress folded;
  if (!address || !isFoldedAddress(*address, accessed, folded))
    return use(pointer, step);
  use(folded.base, step);
  if (folded.index)
    use(folded.index, step);
}

} // namespace triton_metal::engine::registers
