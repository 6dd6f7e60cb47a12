#include "host_device/engine/Shape.h"
#include "host_device/engine/Abi.h"
#include "host_device/engine/Builtins.h"
#include "llvm/ADT/GenericUniformityImpl.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/TargetTransformInfoImpl.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// LaneShape
//===----------------------------------------------------------------------===//

static unsigned trailingZeros(int64_t value) { return value ? countr_zero(uint64_t(value)) : 63; }

LaneShape LaneShape::uniform(unsigned alignment) {
  LaneShape shape;
  shape.representative.fill(0);
  shape.offset.fill(0);
  shape.alignment = std::min(alignment, 63u);
  shape.noUnsignedWrap = shape.noSignedWrap = true;
  return shape;
}

LaneShape LaneShape::varying() {
  LaneShape shape = uniform();
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    shape.representative[lane] = lane;
  return shape;
}

LaneShape LaneShape::strided(int64_t stride, unsigned alignment) {
  LaneShape shape = uniform(alignment);
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    shape.offset[lane] = lane * stride;
  shape.noUnsignedWrap = shape.noSignedWrap = true;
  return shape;
}

bool LaneShape::isUniform() const {
  if (speculative)
    return false;
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    if (representative[lane] || offset[lane])
      return false;
  return true;
}

unsigned LaneShape::classes() const {
  unsigned count = 0;
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    count += representative[lane] == lane;
  return count;
}

bool LaneShape::offsetsBelowAlignment() const {
  for (int64_t value : offset)
    if (value < 0 || value >= (int64_t(1) << std::min<unsigned>(alignment, 62)))
      return false;
  return true;
}

bool LaneShape::provedNoUnsignedWrap() const { return noUnsignedWrap || offsetsBelowAlignment(); }
bool LaneShape::provedNoSignedWrap() const { return noSignedWrap || offsetsBelowAlignment(); }

/// Puts lanes with equal keys into one class.
template <typename Key> static std::array<uint8_t, simdWidth> partition(Key key) {
  std::array<uint8_t, simdWidth> result;
  for (unsigned lane = 0; lane != simdWidth; ++lane) {
    result[lane] = lane;
    for (unsigned other = 0; other != lane; ++other)
      if (result[other] == other && key(lane) == key(other)) {
        result[lane] = other;
        break;
      }
  }
  return result;
}

/// Creates a shape from a partition and a number for each lane. The numbers are relative to a value
/// that is common to the class and a multiple of 2^alignment.
static LaneShape fromNumbers(const std::array<uint8_t, simdWidth> &representative,
                             const std::array<int64_t, simdWidth> &number, unsigned alignment) {
  LaneShape shape = LaneShape::uniform(alignment);
  shape.representative = representative;
  unsigned align = alignment;
  for (unsigned lane = 0; lane != simdWidth; ++lane) {
    unsigned rep = representative[lane];
    shape.offset[lane] = number[lane] - number[rep];
    if (rep == lane)
      align = std::min(align, trailingZeros(number[lane]));
  }
  shape.alignment = align;
  return shape;
}

/// A shape without offsets, in which lanes with known equal values are in one class.
static LaneShape sameValues(const LaneShape &a) {
  LaneShape shape = LaneShape::uniform();
  shape.representative =
      partition([&](unsigned l) { return std::make_pair(a.representative[l], a.offset[l]); });
  return shape;
}

static LaneShape intersect(const LaneShape &a, const LaneShape &b) {
  LaneShape shape = LaneShape::uniform();
  shape.representative = partition(
      [&](unsigned l) { return std::make_pair(a.representative[l], b.representative[l]); });
  return shape;
}

/// The shape of a value that is one of two. Differences are kept if they hold in both.
static LaneShape meet(const LaneShape &a, const LaneShape &b) {
  if (a == b)
    return a;
  auto rep = partition([&](unsigned l) {
    return std::make_tuple(a.representative[l], b.representative[l], a.offset[l] - b.offset[l]);
  });
  LaneShape shape = fromNumbers(rep, a.offset, 0);
  // A finer partition has other representatives.
  unsigned alignment = std::min(a.alignment, b.alignment);
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    if (rep[lane] == lane)
      alignment =
          std::min({alignment, trailingZeros(a.offset[lane]), trailingZeros(b.offset[lane])});
  shape.alignment = alignment;
  shape.noUnsignedWrap = a.provedNoUnsignedWrap() && b.provedNoUnsignedWrap();
  shape.noSignedWrap = a.provedNoSignedWrap() && b.provedNoSignedWrap();
  shape.speculative = a.speculative || b.speculative;
  return shape;
}

static int64_t signedOf(int64_t value, unsigned width) {
  return width >= 64 ? value : SignExtend64(value, width);
}

static LaneShape addShapes(const LaneShape &a, const LaneShape &b, int64_t scale, unsigned width,
                           bool nuw, bool nsw) {
  LaneShape same = intersect(a, b);
  std::array<int64_t, simdWidth> number;
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    number[lane] = int64_t(uint64_t(a.offset[lane]) + uint64_t(b.offset[lane]) * uint64_t(scale));
  LaneShape shape = fromNumbers(
      same.representative, number,
      std::min<unsigned>(a.alignment, std::min(63u, b.alignment + trailingZeros(scale))));
  bool wide = false;
  for (int64_t &value : shape.offset) {
    int64_t narrow = signedOf(value, width);
    wide |= narrow != value;
    value = narrow;
  }
  // If no sum wraps around, the sum of a lane is that of its representative plus the difference, as
  // integers.
  shape.noUnsignedWrap = nuw && a.provedNoUnsignedWrap() && b.provedNoUnsignedWrap() && !wide;
  shape.noSignedWrap = nsw && a.provedNoSignedWrap() && b.provedNoSignedWrap() && !wide;
  shape.speculative = a.speculative || b.speculative;
  return shape;
}

static LaneShape scaleShape(const LaneShape &a, int64_t factor, unsigned width, bool nuw,
                            bool nsw) {
  LaneShape shape = a;
  bool wide = false;
  for (int64_t &value : shape.offset) {
    int64_t product = int64_t(uint64_t(value) * uint64_t(factor));
    int64_t narrow = signedOf(product, width);
    wide |= narrow != product;
    value = narrow;
  }
  shape.alignment = std::min(63u, a.alignment + trailingZeros(factor));
  shape.noUnsignedWrap = nuw && a.provedNoUnsignedWrap() && !wide;
  shape.noSignedWrap = nsw && a.provedNoSignedWrap() && !wide;
  return shape;
}

//===----------------------------------------------------------------------===//
// LaneAnalysis
//===----------------------------------------------------------------------===//

namespace {
/// Tells LLVM's uniformity analysis what it cannot know itself.
class LaneTTI final : public TargetTransformInfoImplCRTPBase<LaneTTI> {
public:
  LaneTTI(const DataLayout &layout, std::function<InstructionUniformity(const Value *)> query)
      : TargetTransformInfoImplCRTPBase(layout), query(std::move(query)) {}
  bool hasBranchDivergence(const Function *) const override { return true; }
  InstructionUniformity getInstructionUniformity(const Value *value) const override {
    return query(value);
  }

private:
  std::function<InstructionUniformity(const Value *)> query;
};
} // namespace

static unsigned widthOf(Type *type, const DataLayout &layout) {
  if (type->isPointerTy())
    return 64;
  return type->isIntegerTy() ? type->getIntegerBitWidth() : 64;
}

LaneShape &LaneAnalysis::slot(const Value *value) { return shapes[value]; }

const LaneShape &LaneAnalysis::shape(const Value *value) const {
  auto found = shapes.find(value);
  if (found != shapes.end())
    return found->second;
  auto [it, inserted] = constants.try_emplace(value, LaneShape::uniform());
  if (inserted)
    if (auto *number = dyn_cast<ConstantInt>(value); number && number->getBitWidth() <= 64)
      it->second.alignment = std::min(63u, trailingZeros(number->getSExtValue()));
  return it->second;
}

LaneShape LaneAnalysis::sameOperands(Instruction &inst) {
  LaneShape result = LaneShape::uniform();
  for (Value *operand : inst.operands()) {
    if (isa<BasicBlock>(operand) || isa<Function>(operand) || isa<MetadataAsValue>(operand))
      continue;
    result = intersect(result, sameValues(shape(operand)));
  }
  if (result.isUniform() && inst.getType()->isIntegerTy() &&
      inst.getType()->getIntegerBitWidth() <= 64)
    result.alignment = std::min(63u, computeKnownBits(&inst, layout).countMinTrailingZeros());
  return result;
}

/// Whether an operation wraps around in no lane. Its own flags do not tell: LLVM finds them from
/// the conditions under which it runs, and the representative of a class may be a lane that does
/// not.
static std::pair<bool, bool> neverWraps(BinaryOperator &inst, const DataLayout &layout) {
  SimplifyQuery query(layout);
  Value *a = inst.getOperand(0), *b = inst.getOperand(1);
  auto never = [](OverflowResult result) { return result == OverflowResult::NeverOverflows; };
  switch (inst.getOpcode()) {
  case Instruction::Add:
    return {never(computeOverflowForUnsignedAdd(a, b, query)),
            never(computeOverflowForSignedAdd(a, b, query))};
  case Instruction::Sub:
    return {never(computeOverflowForUnsignedSub(a, b, query)),
            never(computeOverflowForSignedSub(a, b, query))};
  case Instruction::Mul:
    return {never(computeOverflowForUnsignedMul(a, b, query)),
            never(computeOverflowForSignedMul(a, b, query))};
  case Instruction::Shl: {
    auto *amount = dyn_cast<ConstantInt>(b);
    if (!amount)
      return {false, false};
    uint64_t by = amount->getZExtValue();
    return {computeKnownBits(a, query).countMinLeadingZeros() >= by,
            ComputeNumSignBits(a, layout) > by};
  }
  default:
    return {false, false};
  }
}

LaneShape LaneAnalysis::transferBinary(BinaryOperator &inst) {
  const LaneShape a = shape(inst.getOperand(0)), b = shape(inst.getOperand(1));
  if (!inst.getType()->isIntegerTy() || inst.getType()->getIntegerBitWidth() > 64)
    return sameOperands(inst);
  unsigned width = inst.getType()->getIntegerBitWidth();
  auto *constant = dyn_cast<ConstantInt>(inst.getOperand(1));
  auto [nuw, nsw] = neverWraps(inst, layout);
  switch (inst.getOpcode()) {
  case Instruction::Add:
    return addShapes(a, b, 1, width, nuw, nsw);
  case Instruction::Sub:
    return addShapes(a, b, -1, width, nuw, nsw);
  case Instruction::Mul:
    if (constant)
      return scaleShape(a, constant->getSExtValue(), width, nuw, nsw);
    break;
  case Instruction::Shl:
    if (constant && constant->getZExtValue() < width)
      return scaleShape(a, int64_t(uint64_t(1) << constant->getZExtValue()), width, nuw, nsw);
    break;
  case Instruction::LShr:
  case Instruction::AShr: {
    if (!constant || constant->getZExtValue() >= width)
      break;
    unsigned amount = constant->getZExtValue();
    bool exact =
        inst.getOpcode() == Instruction::LShr ? a.provedNoUnsignedWrap() : a.provedNoSignedWrap();
    if (!exact || a.alignment < amount)
      break;
    LaneShape shape = a;
    for (int64_t &value : shape.offset)
      value >>= amount;
    shape.alignment = a.alignment >= 63 ? 63 : a.alignment - amount;
    shape.noUnsignedWrap = shape.noSignedWrap = false;
    if (inst.getOpcode() == Instruction::LShr && amount)
      shape.noUnsignedWrap = shape.noSignedWrap = true;
    return shape;
  }
  case Instruction::Or:
    if (haveNoCommonBitsSet(inst.getOperand(0), inst.getOperand(1), SimplifyQuery(layout)))
      return addShapes(a, b, 1, width, true, true);
    [[fallthrough]];
  case Instruction::And:
  case Instruction::Xor: {
    // If low bits belong to the lanes and high bits to their class, the operation treats them
    // separately.
    auto *left = dyn_cast<ConstantInt>(inst.getOperand(0));
    unsigned bits = std::min(left ? 63u : a.alignment, constant ? 63u : unsigned(b.alignment));
    bits = std::min({bits, width, 62u});
    int64_t low = (int64_t(1) << bits) - 1;
    auto numberOf = [&](const LaneShape &s, ConstantInt *c, unsigned lane) {
      return c ? c->getSExtValue() & low : s.offset[lane];
    };
    std::array<int64_t, simdWidth> number;
    bool fits = true;
    for (unsigned lane = 0; lane != simdWidth; ++lane) {
      int64_t x = numberOf(a, left, lane), y = numberOf(b, constant, lane);
      fits &= x >= 0 && x <= low && y >= 0 && y <= low;
      number[lane] = inst.getOpcode() == Instruction::And  ? x & y
                     : inst.getOpcode() == Instruction::Or ? x | y
                                                           : x ^ y;
    }
    if (!fits)
      break;
    auto representative = intersect(a, b).representative;
    unsigned alignment = bits;
    auto *mask = constant ? constant : left;
    if (inst.getOpcode() == Instruction::And && mask && mask->getZExtValue() <= uint64_t(low)) {
      representative.fill(0); // nothing of the classes' part is left
      alignment = 63;
    }
    LaneShape shape = fromNumbers(representative, number, alignment);
    shape.noUnsignedWrap = shape.noSignedWrap = alignment == 63;
    shape.speculative = a.speculative || b.speculative;
    return shape;
  }
  default:
    break;
  }
  return sameOperands(inst);
}

LaneShape LaneAnalysis::transferPosition(CallInst &call) {
  auto which = Position(cast<ConstantInt>(call.getArgOperand(0))->getZExtValue());
  unsigned dimension = cast<ConstantInt>(call.getArgOperand(1))->getZExtValue();
  switch (which) {
  case Position::ThreadIndexInSimdgroup:
    return LaneShape::strided(1, 63);
  case Position::ThreadIndexInThreadgroup:
    return LaneShape::strided(1, 5);
  case Position::ThreadPositionInThreadgroup:
  case Position::ThreadPositionInGrid:
    if (options.scatteredPositions)
      return LaneShape::varying();
    if (dimension)
      return LaneShape::uniform();
    return LaneShape::strided(1,
                              options.partial && which == Position::ThreadPositionInGrid ? 0 : 5);
  default:
    return LaneShape::uniform();
  }
}

LaneShape LaneAnalysis::transferCall(CallInst &call) {
  switch (spreadOf(call)) {
  case Spread::Elementwise:
    return sameOperands(call);
  case Spread::Uniform:
    return LaneShape::uniform();
  case Spread::PerLane:
    return LaneShape::varying();
  case Spread::LaneNumber:
    return LaneShape::strided(1, 63);
  case Spread::Shuffle:
    // In a portable launch, lanes without a value to give differ.
    return shape(call.getArgOperand(1)).isUniform() ||
                   (!options.portable && shape(call.getArgOperand(0)).isUniform())
               ? LaneShape::uniform()
               : LaneShape::varying();
  case Spread::Position:
    return transferPosition(call);
  }
  llvm_unreachable("all kinds are covered");
}

LaneShape LaneAnalysis::transfer(Instruction &inst, bool final) {
  if (final && uniformByControl.contains(&inst) && !isa<AllocaInst>(inst)) {
    // Keeps what is known of the low bits.
    LaneShape shape = isa<PHINode>(inst) ? LaneShape::uniform() : transfer(inst, false);
    return LaneShape::uniform(shape.isUniform() ? shape.alignment : 0);
  }
  if (auto *binary = dyn_cast<BinaryOperator>(&inst))
    return transferBinary(*binary);
  if (auto *call = dyn_cast<CallInst>(&inst))
    return transferCall(*call);
  switch (inst.getOpcode()) {
  case Instruction::Alloca:
    return LaneShape::uniform(std::min(63u, unsigned(Log2(cast<AllocaInst>(inst).getAlign()))));
  case Instruction::PHI: {
    auto &phi = cast<PHINode>(inst);
    if (!final || isDivergentJoin(*phi.getParent()))
      return LaneShape::varying();
    std::optional<LaneShape> result;
    for (Value *incoming : phi.incoming_values()) {
      if (incoming == &phi || isa<UndefValue>(incoming))
        continue;
      if (isa<Instruction>(incoming) && !shapes.contains(incoming))
        continue; // not reached yet: optimistic
      const LaneShape &s = shape(incoming);
      result = result ? meet(*result, s) : s;
    }
    if (!result)
      return LaneShape::uniform(63);
    if (result->speculative)
      return LaneShape::varying(); // whether the assumption holds would have to be carried along
    return *result;
  }
  case Instruction::GetElementPtr: {
    auto &gep = cast<GetElementPtrInst>(inst);
    if (gep.getType()->isVectorTy())
      return sameOperands(inst);
    LaneShape result = shape(gep.getPointerOperand());
    for (auto it = gep_type_begin(gep), end = gep_type_end(gep); it != end; ++it) {
      if (it.isStruct()) {
        int64_t field = layout.getStructLayout(it.getStructType())
                            ->getElementOffset(cast<ConstantInt>(it.getOperand())->getZExtValue());
        result = addShapes(result, LaneShape::uniform(trailingZeros(field)), 1, 64, false, false);
        continue;
      }
      Value *index = it.getOperand();
      LaneShape term = shape(index);
      if (index->getType()->getIntegerBitWidth() < 64 && !term.isUniform() &&
          !term.provedNoSignedWrap())
        term.speculative = true;
      result =
          addShapes(result, term, int64_t(it.getSequentialElementStride(layout)), 64, false, false);
    }
    return result;
  }
  case Instruction::ZExt:
  case Instruction::SExt: {
    LaneShape result = shape(inst.getOperand(0));
    if (!inst.getType()->isIntegerTy() || inst.getType()->getIntegerBitWidth() > 64 ||
        inst.getOperand(0)->getType()->isIntegerTy(1))
      return sameOperands(inst);
    bool proved = isa<ZExtInst>(inst) ? result.provedNoUnsignedWrap() : result.provedNoSignedWrap();
    bool any = false;
    for (int64_t value : result.offset)
      any |= value != 0;
    if (!proved && any)
      result.speculative = true;
    unsigned narrow = inst.getOperand(0)->getType()->getIntegerBitWidth();
    if (result.alignment >= narrow)
      result.alignment = 63; // zero
    result.noUnsignedWrap = isa<ZExtInst>(inst);
    result.noSignedWrap = true;
    return result;
  }
  case Instruction::Trunc: {
    LaneShape result = shape(inst.getOperand(0));
    if (!inst.getType()->isIntegerTy() || inst.getOperand(0)->getType()->getIntegerBitWidth() > 64)
      return sameOperands(inst);
    unsigned width = inst.getType()->getIntegerBitWidth();
    bool low = result.offsetsBelowAlignment();
    for (int64_t &value : result.offset) {
      low &= value < (int64_t(1) << std::min(width - 1, 62u));
      value = signedOf(value, width);
    }
    result.noUnsignedWrap = result.noSignedWrap = low;
    return result;
  }
  case Instruction::Freeze:
  case Instruction::PtrToInt:
  case Instruction::IntToPtr:
  case Instruction::AddrSpaceCast:
  case Instruction::BitCast: {
    Type *from = inst.getOperand(0)->getType(), *to = inst.getType();
    if ((from->isPointerTy() || from->isIntegerTy()) && (to->isPointerTy() || to->isIntegerTy()) &&
        widthOf(from, layout) == widthOf(to, layout) && widthOf(to, layout) <= 64)
      return shape(inst.getOperand(0));
    return sameOperands(inst);
  }
  case Instruction::Select: {
    auto &select = cast<SelectInst>(inst);
    if (shape(select.getCondition()).isUniform() &&
        (inst.getType()->isIntegerTy() || inst.getType()->isPointerTy()))
      return meet(shape(select.getTrueValue()), shape(select.getFalseValue()));
    return sameOperands(inst);
  }
  case Instruction::Load: {
    auto &load = cast<LoadInst>(inst);
    if (load.getPointerAddressSpace() == unsigned(AddressSpace::Thread) || load.isAtomic() ||
        load.isVolatile()) {
      if (load.isAtomic() && shape(load.getPointerOperand()).isUniform())
        return LaneShape::uniform();
      return LaneShape::varying();
    }
    return sameValues(shape(load.getPointerOperand()));
  }
  case Instruction::AtomicRMW:
  case Instruction::AtomicCmpXchg:
    return LaneShape::varying();
  default:
    return sameOperands(inst);
  }
}

LaneAnalysis::LaneAnalysis(Function &function, const CodeOptions &options, DominatorTree &domTree,
                           LoopInfo &loops)
    : options(options), layout(function.getDataLayout()) {
  ReversePostOrderTraversal<Function *> order(&function);
  // The first pass ignores phis. It finds values that are uniform in any control flow, such as the
  // index of the SIMD-group.
  for (BasicBlock *block : order)
    for (Instruction &inst : *block)
      if (!inst.getType()->isVoidTy())
        slot(&inst) = transfer(inst, /*final=*/false);

  // A phi with different constants in every join shows where lanes meet that came along different
  // edges.
  SmallVector<PHINode *> probes;
  for (BasicBlock &block : function) {
    if (!block.hasNPredecessorsOrMore(2))
      continue;
    auto *probe = PHINode::Create(Type::getInt32Ty(function.getContext()), 2, "", block.begin());
    unsigned number = 0;
    for (BasicBlock *pred : predecessors(&block))
      probe->addIncoming(ConstantInt::get(probe->getType(), number++), pred);
    probes.push_back(probe);
  }
  CycleInfo cycles;
  cycles.compute(function);
  TargetTransformInfo tti(std::make_unique<LaneTTI>(layout, [&](const Value *value) {
    auto *inst = dyn_cast<Instruction>(value);
    if (!inst || inst->getType()->isVoidTy() || isa<PHINode>(inst))
      return InstructionUniformity::Default;
    auto found = shapes.find(inst);
    if (found == shapes.end())
      return InstructionUniformity::Default;
    if (found->second.isUniform())
      return InstructionUniformity::AlwaysUniform;
    if (auto *load = dyn_cast<LoadInst>(inst))
      return load->getPointerAddressSpace() == unsigned(AddressSpace::Thread) || load->isAtomic() ||
                     load->isVolatile()
                 ? InstructionUniformity::NeverUniform
                 : InstructionUniformity::Default;
    if (isa<AtomicRMWInst, AtomicCmpXchgInst>(inst))
      return InstructionUniformity::NeverUniform;
    if (auto *call = dyn_cast<CallInst>(inst)) {
      Spread spread = spreadOf(*call);
      if (spread == Spread::PerLane || spread == Spread::LaneNumber || spread == Spread::Position)
        return InstructionUniformity::NeverUniform;
    }
    return InstructionUniformity::Default;
  }));
  UniformityInfo uniformity(domTree, cycles, &tti);
  uniformity.compute();
  for (PHINode *probe : probes)
    if (uniformity.isDivergent(probe))
      divergentJoins.insert(probe->getParent());
  for (BasicBlock &block : function) {
    if (isa<BranchInst>(block.getTerminator()) && block.getTerminator()->getNumSuccessors() > 1 &&
        uniformity.hasDivergentTerminator(block))
      divergentBranches.insert(&block);
    for (Instruction &inst : block)
      if (!inst.getType()->isVoidTy() && uniformity.isUniform(&inst))
        uniformByControl.insert(&inst);
  }
  // A value that leaves a loop in different iterations differs between lanes, even if it is uniform
  // inside. In LCSSA form, such a value passes through a phi, which the analysis marks. The shape
  // of the value inside does not hold outside.
  DenseSet<const PHINode *> temporal;
  for (BasicBlock &block : function)
    for (PHINode &phi : block.phis())
      for (Use &use : phi.incoming_values())
        if (uniformity.isDivergentUse(use) && isa<Instruction>(use.get()) &&
            uniformity.isUniform(use.get()))
          temporal.insert(&phi);
  for (PHINode *probe : probes) {
    uniformByControl.erase(probe);
    probe->eraseFromParent();
  }
  for (const PHINode *phi : temporal)
    uniformByControl.erase(phi);

  // The second pass treats all values, and phis optimistically, until nothing changes. Shapes only
  // become finer.
  shapes.clear();
  constants.clear();
  bool changed = true;
  unsigned round = 0;
  while (changed) {
    changed = false;
    for (BasicBlock *block : order)
      for (Instruction &inst : *block) {
        if (inst.getType()->isVoidTy())
          continue;
        LaneShape next;
        auto *phi = dyn_cast<PHINode>(&inst);
        bool leaves = false;
        if (phi && !uniformByControl.contains(phi))
          for (BasicBlock *pred : phi->blocks())
            if (Loop *loop = loops.getLoopFor(pred); loop && !loop->contains(block))
              leaves = true;
        if (phi && (temporal.contains(phi) || leaves))
          next = LaneShape::varying();
        else
          next = transfer(inst, /*final=*/true);
        auto [it, inserted] = shapes.try_emplace(&inst, next);
        if (inserted) {
          changed = true;
        } else if (!(it->second == next)) {
          // Around a loop, an alignment could decrease by one bit in each round.
          if (round > 8 && phi)
            next = LaneShape::varying();
          if (!(it->second == next)) {
            it->second = next;
            changed = true;
          }
        }
      }
    if (++round > 64) {
      for (auto &[value, shape] : shapes)
        if (!uniformByControl.contains(cast<Instruction>(value)))
          shape = LaneShape::varying();
      break;
    }
  }
}

} // namespace triton_metal::engine
