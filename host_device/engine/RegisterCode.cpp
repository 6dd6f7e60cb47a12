#include "host_device/engine/RegisterCode.h"
#include "host_device/engine/Builtins.h"
#include "host_device/engine/RegisterReader.h"
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
/// The bits of a constant that is part of an instruction.
constexpr unsigned bitsOfShort = 8;
/// A shuffle from any lane takes a number from each of the lanes of a quad and chooses.
constexpr unsigned lanesOfQuad = 4;

bool isArithmetic(const Instruction &inst) {
  return isa<BinaryOperator, UnaryOperator, CastInst, CmpInst, SelectInst, GetElementPtrInst>(
             inst) ||
         (isa<IntrinsicInst>(inst) && !inst.mayReadOrWriteMemory());
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

} // namespace

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

/// A division of 32 bits, which there is no instruction for: by a constant, a product of 64 bits
/// and shifts; otherwise a reciprocal, a product of 64 bits, and two corrections.
void Reader::readDivision(const Instruction &inst, Step &step, Block &block) {
  const Value *number = inst.getOperand(0), *divisor = inst.getOperand(1);
  bool isSigned = inst.getOpcode() == Instruction::SDiv || inst.getOpcode() == Instruction::SRem;
  bool isRemainder = inst.getOpcode() == Instruction::SRem || inst.getOpcode() == Instruction::URem;
  Step made;
  auto make = [&](unsigned halves) {
    Name name = code.halves.size();
    code.halves.push_back(halves);
    made.defines.push_back(name);
    block.steps.push_back(std::move(made));
    made = Step();
    return name;
  };
  if (auto *constant = dyn_cast<ConstantInt>(divisor)) {
    if (!constant->getValue().isPowerOf2()) {
      use(number, made);
      made.uses.push_back(make(4));
      step.uses.push_back(make(2));
    }
    if (isRemainder || step.uses.empty())
      use(number, step);
    return;
  }
  auto magnitudeOf = [&](const Value *value) {
    use(value, made);
    return isSigned || made.uses.size() != 1 ? make(2) : std::exchange(made, {}).uses.front();
  };
  if (isSigned) {
    use(number, made);
    use(divisor, made);
    step.uses.push_back(make(2));
  }
  // Those of a uniform divisor are uniform.
  SmallVector<Name, 4> positive, reciprocal;
  if (!isUniform(divisor)) {
    positive.push_back(magnitudeOf(divisor));
    made.uses = positive;
    reciprocal.push_back(make(2));
  }
  Name whole = magnitudeOf(number);
  made.uses = reciprocal;
  made.uses.push_back(whole);
  Name product = make(4);
  made.uses = positive;
  made.uses.append({whole, product});
  step.uses.push_back(make(2));
  step.uses.append(positive);
  if (!isRemainder)
    step.uses.push_back(product);
}

/// The sum of an address and an offset, which is made 64 bits long and scaled first.
void Reader::readAddress(const GetElementPtrInst &address, Step &step, Block &block) {
  const Value *base = address.getPointerOperand(), *index = address.getOperand(1), *shifted;
  uint64_t scale = layout.getTypeAllocSize(address.getSourceElementType()).getFixedValue();
  const APInt *by;
  if (match(index, m_Shl(m_Value(shifted), m_APInt(by))) && by->ult(32)) {
    scale <<= by->getZExtValue();
    index = shifted;
  }
  if (moved.contains(base))
    step.uses.append(define(base).begin(), define(base).end());
  else if (isUniform(base))
    step.passing += 4;
  else
    use(base, step);
  if (isUniform(index)) {
    step.passing += 4;
    return;
  }
  const Value *number;
  bool isShort = match(index, m_ZExtOrSExt(m_Value(number)));
  if (!isShort && scale == 1)
    return use(index, step);
  auto [offset, isNew] = longOffsets.try_emplace({index, scale}, 0);
  if (isNew) {
    // The high half is made while the number is still there, and then the low one.
    Step whole;
    SmallVector<Name, 4> parts;
    auto part = [&](bool isFromNumber) {
      Step half;
      if (isFromNumber)
        use(index, half);
      half.isLate = true;
      Name name = code.halves.size();
      code.halves.push_back(2);
      half.defines.push_back(name);
      block.steps.push_back(std::move(half));
      return name;
    };
    bool isZero = scale == 1 && isa<ZExtInst>(index);
    Name high = part(!isZero);
    if (scale == 1 && isShort)
      useComponent(number, 0, parts);
    if (parts.size() != 1 || code.halves[parts.front()] != 2)
      parts.assign(1, part(true));
    parts.push_back(high);
    whole.uses = parts;
    whole.vectors.push_back(parts);
    offset->second = code.halves.size();
    code.halves.push_back(4);
    whole.defines.push_back(offset->second);
    block.steps.push_back(std::move(whole));
  }
  step.uses.push_back(offset->second);
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
                  : isUniform(use.get()) && !moved.contains(use.get()) &&
                        halvesOf(use->getType()) == 4;
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
      if (unsigned bytes = bytesTogether(type); bytes > 1)
        usePacked(store->getValueOperand(), bytes, step, block);
      else
        useInRegister(store->getValueOperand(), step);
    } else if (auto *rmw = dyn_cast<AtomicRMWInst>(&inst)) {
      useInRegister(rmw->getValOperand(), step);
    } else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst)) {
      type = exchange->getCompareOperand()->getType();
      useInRegister(exchange->getNewValOperand(), step);
      useInRegister(exchange->getCompareOperand(), step);
      if (step.uses.size() == 2)
        step.vectors.push_back(SmallVector<Name, 4>(step.uses));
    }
    useAddress(access->pointer, type, step);
    if (AllocaInst *array = arrayOf(access->pointer))
      if (auto found = arrays.find(array); found != arrays.end())
        step.uses.append(found->second.begin(), found->second.end());
  } else if (auto *call = dyn_cast<CallBase>(&inst)) {
    readCall(*call, step, block);
  } else if (auto *address = dyn_cast<GetElementPtrInst>(&inst);
             address && halvesOf(inst.getType()) == 4 && !address->hasAllConstantIndices() &&
             address->getNumIndices() == 1) {
    readAddress(*address, step, block);
  } else if (inst.getType()->isIntegerTy(32) && inst.isIntDivRem()) {
    readDivision(inst, step, block);
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
  step.isLate = isArithmetic(inst) && (step.uses.size() < 2 || isa<CmpInst>(inst));
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
    longOffsets.clear();
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

Code readCode(Function &function) { return Reader(function).run(); }

} // namespace triton_metal::engine::registers
