#include "host_device/engine/RegisterCode.h"
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::engine::registers {

namespace {

/// Arrays of a thread of at most so many bytes are in registers even if they are indexed at run
/// time, by comparisons with every index. Longer ones are in memory.
constexpr uint64_t longestArrayInRegisters = 256;
/// An access scales its 32-bit offset by the size of its element, or by two or four times that.
constexpr uint64_t largestScale = 4;
/// The bits of a constant that is part of an instruction.
constexpr unsigned bitsOfShort = 8;

/// A shuffle from any lane takes a number from each of the lanes of a quad and chooses.
constexpr unsigned lanesOfQuad = 4;

/// Arithmetic on floats: it converts operands of 16 bits, and negates, by itself.
bool isFloatArithmetic(const User *user) {
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(user))
    return intrinsic->getIntrinsicID() == Intrinsic::fma ||
           intrinsic->getIntrinsicID() == Intrinsic::fmuladd;
  auto *inst = dyn_cast<Instruction>(user);
  if (!inst)
    return false;
  switch (inst->getOpcode()) {
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
  case Instruction::FCmp:
  case Instruction::FNeg:
    return !inst->getOperand(0)->getType()->getScalarType()->isBFloatTy();
  default:
    return false;
  }
}

StringRef calleeOf(const Value *value) {
  auto *call = dyn_cast<CallBase>(value);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee ? callee->getName() : StringRef();
}

/// The bytes of a vector of bytes from memory, which stay in whole registers until they are used;
/// otherwise 0.
unsigned bytesInWords(const Value *value) {
  auto *vector = dyn_cast<FixedVectorType>(value->getType());
  if (!vector || !isa<LoadInst>(value) || !vector->getElementType()->isIntegerTy(8) ||
      vector->getNumElements() % 4)
    return 0;
  return vector->getNumElements();
}

bool isMatrixProduct(const User *user) { return calleeOf(user) == "__tm_simdgroup_mma"; }

class Reader {
public:
  explicit Reader(Function &function) : function(function), layout(function.getDataLayout()) {}
  Code run();

private:
  /// Whether a value is a constant, or the same for all threads of the launch.
  bool isUniform(const Value *value) const {
    return isa<Constant>(value) || uniform.contains(value);
  }
  void findUniform();
  /// Whether a uniform address is also an operand of arithmetic, which takes no uniform registers
  /// of 64 bits: it is moved where it is made.
  bool isMoved(const Instruction &inst) const;
  bool isFolded(const GetElementPtrInst &address) const;
  bool computesUniform(const Instruction &inst) const;
  /// Whether the users of a value compute it by themselves.
  bool isPartOfUsers(const Instruction &inst) const;
  bool isNoStep(const Instruction &inst) const;
  /// Whether a phi of floats that all become halves takes halves.
  bool isNarrowed(const PHINode &phi) const;

  unsigned halvesOf(Type *type) const;
  unsigned componentsOf(const Value *value) const {
    auto *vector = dyn_cast<FixedVectorType>(value->getType());
    return vector ? vector->getNumElements() : 1;
  }
  /// New names for the components of a value.
  ArrayRef<Name> define(const Value *value);
  /// The numbers in registers that computing with the value takes.
  void use(const Value *value, Step &step);
  /// The same for what cannot be a uniform register: it is moved into a register first.
  void useInRegister(const Value *value, Step &step);
  void useComponent(const Value *value, unsigned component, SmallVectorImpl<Name> &names);
  void useAddress(const Value *pointer, Type *accessed, Step &step);
  bool isFoldedAddress(const GetElementPtrInst &address, Type *accessed, const Value *&index) const;
  bool isOwnLane(const Value *lane) const;

  bool takesLongOperand(const Instruction &inst) const;
  void readStep(Instruction &inst, Block &block);
  void readCall(CallBase &call, Step &step, Block &block);
  void shuffleInQuads(const Value *lane, Step &step, Block &block);
  /// Copies components of matrices for the phis of a loop if others take them, too.
  void copyComponents();
  void dropDead();

  Function &function;
  const DataLayout &layout;
  Code code;
  DenseSet<const Value *> uniform, moved;
  DenseMap<const Value *, SmallVector<Name, 4>> names;
  DenseMap<const AllocaInst *, SmallVector<Name, 4>> arrays;
  /// The lanes of a quad that a shuffle in this block takes numbers from, by the lane that it
  /// names.
  DenseMap<const Value *, SmallVector<Name, 4>> quadLanes;
};

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

bool Reader::isFolded(const GetElementPtrInst &address) const {
  return !address.use_empty() && all_of(address.users(), [&](const User *user) {
    auto access = memoryAccess(*const_cast<Instruction *>(cast<Instruction>(user)));
    const Value *index;
    return access && access->pointer == &address &&
           isFoldedAddress(address,
                           isa<StoreInst>(user) ? user->getOperand(0)->getType() : user->getType(),
                           index);
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
    return inst.getOperand(0)->getType()->getScalarType()->isHalfTy() &&
           all_of(inst.users(), [](const User *user) {
             return isFloatArithmetic(user) || isMatrixProduct(user) ||
                    (isa<InsertElementInst>(user) && all_of(user->users(), [](const User *vector) {
                       return isMatrixProduct(vector) || isa<InsertElementInst>(vector);
                     }));
           });
  case Instruction::FNeg:
    return all_of(inst.users(), isFloatArithmetic);
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

/// Whether an access adds the index, or a constant, to the base by itself.
bool Reader::isFoldedAddress(const GetElementPtrInst &address, Type *accessed,
                             const Value *&index) const {
  index = nullptr;
  if (AddressSpace(address.getPointerAddressSpace()) == AddressSpace::Threadgroup)
    return false;
  if (address.hasAllConstantIndices())
    return true;
  if (address.getNumIndices() != 1)
    return false;
  uint64_t scale = layout.getTypeAllocSize(address.getSourceElementType()).getFixedValue();
  uint64_t element = layout.getTypeAllocSize(accessed->getScalarType()).getFixedValue();
  const Value *given = address.getOperand(1);
  const APInt *shift;
  const Value *shifted;
  if (match(given, m_Shl(m_Value(shifted), m_APInt(shift))) && shift->ule(4)) {
    scale <<= shift->getZExtValue();
    given = shifted;
  }
  // The offset is of 32 bits.
  if (!match(given, m_ZExtOrSExt(m_Value(index))) || !index->getType()->isIntegerTy(32)) {
    index = nullptr;
    return false;
  }
  // An element of 64 bits is two of 32.
  element = std::min<uint64_t>(element, 4);
  return isPowerOf2_64(scale) && scale >= element && scale <= element * largestScale;
}

ArrayRef<Name> Reader::define(const Value *value) {
  auto &made = names[value];
  if (!made.empty())
    return made;
  unsigned halves = halvesOf(value->getType());
  if (unsigned bytes = bytesInWords(value)) {
    made.assign(divideCeil(bytes, 4), 0);
    for (Name &name : made) {
      name = code.halves.size();
      code.halves.push_back(2);
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
  if (bytesInWords(value))
    component /= 4;
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

void Reader::useAddress(const Value *pointer, Type *accessed, Step &step) {
  if (isUniform(pointer))
    return;
  auto *address = dyn_cast<GetElementPtrInst>(pointer);
  const Value *index;
  if (!address || !isFoldedAddress(*address, accessed, index))
    return use(pointer, step);
  use(address->getPointerOperand(), step);
  if (index)
    use(index, step);
}

/// Looks through conversions and `& 31`, which do not change a lane.
const Value *withoutMask(const Value *lane) {
  const Value *inner;
  while (match(lane, m_ZExtOrSExt(m_Value(inner))) || match(lane, m_Trunc(m_Value(inner))) ||
         match(lane, m_And(m_Value(inner), m_SpecificInt(simdWidth - 1))))
    lane = inner;
  return lane;
}

bool isLane(const Value *value) {
  value = withoutMask(value);
  if (calleeOf(value) == "__tm_lane")
    return true;
  return isCallOf(value, positionName) &&
         Position(cast<ConstantInt>(cast<CallBase>(value)->getArgOperand(0))->getZExtValue()) ==
             Position::ThreadIndexInSimdgroup;
}

/// Whether an instruction shuffles from this lane by itself: the same one for all threads, or the
/// thread's own with some bits changed, or moved by a constant as far as there are lanes.
bool Reader::isOwnLane(const Value *lane) const {
  lane = withoutMask(lane);
  if (isUniform(lane) || isLane(lane))
    return true;
  const Value *left, *right;
  if (match(lane, m_Xor(m_Value(left), m_Value(right))))
    return (isLane(left) && isa<Constant>(right)) || (isLane(right) && isa<Constant>(left));
  if (!match(lane, m_Select(m_Value(), m_Value(left), m_Value(right))))
    return false;
  if (isLane(left))
    std::swap(left, right);
  const Value *moved;
  const APInt *by;
  return isLane(right) && match(withoutMask(left), m_AddLike(m_Value(moved), m_APInt(by))) &&
         isLane(moved);
}

/// Appends the steps of a shuffle but the last, which chooses between two numbers.
void Reader::shuffleInQuads(const Value *lane, Step &step, Block &block) {
  // The nesting of conditions and a zero are in a register all the time.
  code.reserved = 2;
  auto make = [&](const Step &from) {
    Name name = code.halves.size();
    code.halves.push_back(2);
    block.steps.push_back(from);
    block.steps.back().defines.push_back(name);
    return name;
  };
  auto &lanes = quadLanes[lane];
  while (lanes.size() < lanesOfQuad) {
    Step place;
    use(lane, place);
    lanes.push_back(make(place));
  }
  Name chosen = 0;
  for (unsigned i = 0; i != lanesOfQuad; ++i) {
    Step take = step;
    take.uses.push_back(lanes[i]);
    Name taken = make(take);
    if (i == 0) {
      chosen = taken;
      continue;
    }
    Step choose;
    use(lane, choose);
    choose.uses.append({lanes[i], taken, chosen});
    if (i + 1 == lanesOfQuad)
      step = std::move(choose);
    else
      chosen = make(choose);
  }
}

void Reader::readCall(CallBase &call, Step &step, Block &block) {
  StringRef name = calleeOf(&call);
  if (name.starts_with("__tm_simd_shuffle")) {
    useInRegister(call.getArgOperand(0), step);
    if (!isOwnLane(call.getArgOperand(1)))
      shuffleInQuads(call.getArgOperand(1), step, block);
    return;
  }
  // Lanes, matrices and reductions take no uniform registers.
  bool inRegisters = name.starts_with("__tm_simd");
  for (const Use &argument : call.args())
    inRegisters ? useInRegister(argument.get(), step) : use(argument.get(), step);
  step.isOrdered = !isa<IntrinsicInst>(call) && call.mayReadOrWriteMemory();
}

/// Whether a number of 64 bits has to be made for the instruction alone.
bool Reader::takesLongOperand(const Instruction &inst) const {
  if (auto *address = dyn_cast<GetElementPtrInst>(&inst)) {
    APInt offset(64, 0);
    return !address->accumulateConstantOffset(layout, offset) || !offset.abs().isIntN(bitsOfShort);
  }
  return any_of(inst.operands(), [&](const Use &use) {
    auto *number = dyn_cast<ConstantInt>(use.get());
    return number ? !number->getValue().abs().isIntN(bitsOfShort)
                  : isUniform(use.get()) && halvesOf(use->getType()) == 4;
  });
}

void Reader::readStep(Instruction &inst, Block &block) {
  if (moved.contains(&inst) || isCallOf(&inst, positionName)) {
    // Arguments and positions are there from the beginning.
    bool isGiven = calleeOf(&inst).starts_with(bufferName) || isCallOf(&inst, positionName);
    std::vector<Step> &steps = (isGiven ? code.blocks.front() : block).steps;
    if (uniform.contains(&inst) && !moved.contains(&inst))
      return;
    Step step;
    ArrayRef<Name> defined = define(&inst);
    step.defines.append(defined.begin(), defined.end());
    steps.insert(isGiven ? steps.begin() : steps.end(), std::move(step));
    return;
  }
  if (uniform.contains(&inst) || isNoStep(inst) || isPartOfUsers(inst) ||
      inst.isDebugOrPseudoInst())
    return;
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(&inst);
      intrinsic && intrinsic->isAssumeLikeIntrinsic())
    return;
  Step step;
  if (auto access = memoryAccess(inst)) {
    step.isOrdered = true;
    Type *type = inst.getType();
    if (auto *store = dyn_cast<StoreInst>(&inst)) {
      type = store->getValueOperand()->getType();
      useInRegister(store->getValueOperand(), step);
    } else if (auto *rmw = dyn_cast<AtomicRMWInst>(&inst)) {
      useInRegister(rmw->getValOperand(), step);
    } else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst)) {
      type = exchange->getCompareOperand()->getType();
      useInRegister(exchange->getCompareOperand(), step);
      useInRegister(exchange->getNewValOperand(), step);
    }
    useAddress(access->pointer, type, step);
    if (AllocaInst *array = arrayOf(access->pointer))
      if (auto found = arrays.find(array); found != arrays.end())
        step.uses.append(found->second.begin(), found->second.end());
  } else if (auto *call = dyn_cast<CallBase>(&inst)) {
    readCall(*call, step, block);
  } else {
    for (const Use &operand : inst.operands()) {
      if (moved.contains(operand.get()))
        step.uses.append(define(operand.get()).begin(), define(operand.get()).end());
      else
        use(operand.get(), step);
    }
    // Arithmetic of 64 bits takes no constants but short ones, and no uniform registers.
    if (halvesOf(inst.getType()) == 4 && !inst.isCast() && takesLongOperand(inst))
      step.passing += 4;
  }
  if (!inst.getType()->isVoidTy()) {
    ArrayRef<Name> defined = define(&inst);
    step.defines.append(defined.begin(), defined.end());
  }
  if (inst.isTerminator()) {
    if (step.uses.empty())
      return;
    block.endsInBranch = true;
  }
  block.steps.push_back(std::move(step));
}

void Reader::copyComponents() {
  size_t count = code.halves.size();
  std::vector<bool> isComponent(count);
  std::vector<unsigned> phis(count);
  for (const Block &block : code.blocks) {
    for (const Step &step : block.steps)
      if (step.defines.size() > 1 && !step.isOrdered)
        for (Name name : step.defines)
          isComponent[name] = true;
    for (const Phi &phi : block.phis)
      for (auto [from, name] : phi.incoming)
        ++phis[name];
  }
  for (auto [place, block] : enumerate(code.blocks))
    for (Phi &phi : block.phis)
      for (auto &[from, name] : phi.incoming) {
        if (from < place || name >= count || !isComponent[name] || phis[name] < 2)
          continue;
        Step copy;
        copy.uses.push_back(name);
        name = code.halves.size();
        code.halves.push_back(code.halves[copy.uses.front()]);
        copy.defines.push_back(name);
        Block &before = code.blocks[from];
        before.steps.insert(before.steps.end() - (before.endsInBranch ? 1 : 0), std::move(copy));
      }
}

/// Removes steps whose numbers nothing uses.
void Reader::dropDead() {
  std::vector<unsigned> uses(code.halves.size());
  for (const Block &block : code.blocks) {
    for (const Phi &phi : block.phis)
      for (auto [from, name] : phi.incoming)
        ++uses[name];
    for (const Step &step : block.steps)
      for (Name name : step.uses)
        ++uses[name];
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Block &block : reverse(code.blocks)) {
      std::vector<Step> kept;
      for (Step &step : reverse(block.steps)) {
        bool isLast = &step == &block.steps.back() && block.endsInBranch;
        if (step.isOrdered || isLast ||
            any_of(step.defines, [&](Name name) { return uses[name] != 0; })) {
          kept.push_back(std::move(step));
          continue;
        }
        for (Name name : step.uses)
          --uses[name];
        changed = true;
      }
      block.steps.assign(std::make_move_iterator(kept.rbegin()),
                         std::make_move_iterator(kept.rend()));
      erase_if(block.phis, [&](const Phi &phi) {
        if (uses[phi.defines])
          return false;
        for (auto [from, name] : phi.incoming)
          --uses[name];
        return changed = true;
      });
    }
  }
}

Code Reader::run() {
  findUniform();
  for (Instruction &inst : instructions(function))
    if (auto *array = dyn_cast<AllocaInst>(&inst)) {
      std::optional<TypeSize> size = array->getAllocationSize(layout);
      if (!size || size->getFixedValue() > longestArrayInRegisters)
        continue;
      for (uint64_t i = 0; i < divideCeil(size->getFixedValue(), 4); ++i) {
        arrays[array].push_back(code.halves.size());
        code.halves.push_back(2);
      }
    }
  ReversePostOrderTraversal<Function *> order(&function);
  DenseMap<const BasicBlock *, uint32_t> places;
  for (BasicBlock *block : order)
    places.try_emplace(block, places.size());
  code.blocks.resize(places.size());
  for (BasicBlock *block : order) {
    uint32_t place = places[block];
    Block &made = code.blocks[place];
    for (BasicBlock *successor : successors(block))
      if (!is_contained(made.successors, places[successor])) {
        made.successors.push_back(places[successor]);
        code.blocks[places[successor]].predecessors.push_back(place);
      }
    quadLanes.clear();
    for (Instruction &inst : *block) {
      auto *phi = dyn_cast<PHINode>(&inst);
      if (!phi) {
        readStep(inst, made);
        continue;
      }
      if (phi->getNumIncomingValues() == 1)
        continue;
      bool isNarrow = isNarrowed(*phi);
      SmallVector<Name, 4> defined(define(phi));
      if (isNarrow)
        code.halves[defined.front()] = 1;
      for (auto [component, name] : enumerate(defined)) {
        Phi one{name, {}};
        for (unsigned i = 0; i != phi->getNumIncomingValues(); ++i) {
          auto from = places.find(phi->getIncomingBlock(i));
          if (from == places.end())
            continue;
          SmallVector<Name, 4> incoming;
          useComponent(phi->getIncomingValue(i), component, incoming);
          for (Name each : incoming) {
            if (isNarrow) {
              Block &before = code.blocks[from->second];
              Step conversion;
              conversion.uses.push_back(each);
              each = code.halves.size();
              code.halves.push_back(1);
              conversion.defines.push_back(each);
              before.steps.insert(before.steps.end() - (before.endsInBranch ? 1 : 0),
                                  std::move(conversion));
            }
            one.incoming.emplace_back(from->second, each);
          }
        }
        made.phis.push_back(std::move(one));
      }
    }
  }
  // The depth of nested conditions is in a half of its own.
  code.reserved = std::max(code.reserved, code.blocks.size() > 1 ? 1u : 0u);
  copyComponents();
  dropDead();
  return std::move(code);
}

} // namespace

Code readCode(Function &function) { return Reader(function).run(); }

} // namespace triton_metal::engine::registers
