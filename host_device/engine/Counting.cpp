// Inserts the counters: one call for each basic block, which counts the active lanes that run it,
// together with a table of what one execution of the block does; and one call for each access whose
// number of lines depends on the addresses.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/FloatModifiers.h"
#include "host_device/engine/Footprint.h"
#include "host_device/engine/Lines.h"
#include "host_device/engine/Prepare.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <map>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::engine {

namespace {
enum class Arithmetic { Add, Mul, Fma, Other };

/// What one execution of a block does, by line and counter.
class BlockTally {
public:
  explicit BlockTally(LineTable &lines) : lines(lines) {}
  /// The instruction that the following amounts belong to.
  void at(const Instruction &inst) { line = lines.lineOf(inst); }
  void add(Counters::Index index, uint64_t amount = 1) { lane[{line, index}] += amount; }
  void addSimdgroup(Counters::Index index) { simdgroup[{line, index}] += 1; }
  void addThreadgroup(Counters::Index index) { threadgroup[{line, index}] += 1; }
  bool empty() const { return lane.empty() && simdgroup.empty() && threadgroup.empty(); }
  BlockCounts counts() const { return {listOf(lane), listOf(simdgroup), listOf(threadgroup)}; }

private:
  using Amounts = std::map<std::pair<uint32_t, uint32_t>, uint32_t>;
  static std::vector<LineAmount> listOf(const Amounts &amounts) {
    std::vector<LineAmount> list;
    for (auto [key, amount] : amounts)
      list.push_back({key.first, key.second, amount});
    return list;
  }

  LineTable &lines;
  uint32_t line = 0;
  Amounts lane, simdgroup, threadgroup;
};
} // namespace

/// `first` is the counter of additions of floats: F32Add or OptimizedF32Add. `isFunction` says that
/// the operation is part of an elementary function.
static void tallyArithmetic(BlockTally &tally, Type *type, Arithmetic what, Counters::Index first,
                            bool isFunction) {
  unsigned amount = 1;
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    amount = vector->getNumElements();
    type = vector->getElementType();
  }
  uint32_t offset;
  if (type->isFloatTy())
    offset = Counters::F32Add;
  else if (type->isHalfTy())
    offset = Counters::F16Add;
  else if (type->isBFloatTy())
    offset = Counters::Bf16Add;
  else if (type->isIntegerTy())
    offset = Counters::IntAdd;
  else
    return;
  // Integers have no fused operation.
  uint32_t kind = type->isIntegerTy() && what == Arithmetic::Other ? 2 : uint32_t(what);
  tally.add(Counters::Index(first + (offset - Counters::F32Add) + kind), amount);
  if (isFunction)
    tally.add(type->isIntegerTy() ? Counters::OptimizedFunctionInt
                                  : Counters::OptimizedFunctionFloat,
              amount);
}

static void tallyAccess(BlockTally &tally, const MemoryAccess &access) {
  bool reads = access.kind != AccessKind::Store, writes = access.kind != AccessKind::Load;
  if (access.kind == AccessKind::Atomic)
    tally.add(Counters::Atomics);
  switch (access.space) {
  case AddressSpace::Device:
    if (reads)
      tally.add(Counters::DeviceBytesRead, access.bytes);
    if (writes)
      tally.add(Counters::DeviceBytesWritten, access.bytes);
    tally.add(access.bytes >= 16  ? Counters::DeviceAccesses16
              : access.bytes >= 8 ? Counters::DeviceAccesses8
              : access.bytes >= 4 ? Counters::DeviceAccesses4
              : access.bytes >= 2 ? Counters::DeviceAccesses2
                                  : Counters::DeviceAccesses1);
    break;
  case AddressSpace::Constant:
    tally.add(Counters::ConstantBytesRead, access.bytes);
    break;
  case AddressSpace::Threadgroup:
    if (reads)
      tally.add(Counters::ThreadgroupBytesRead, access.bytes);
    if (writes)
      tally.add(Counters::ThreadgroupBytesWritten, access.bytes);
    break;
  case AddressSpace::Thread:
    if (isa<AllocaInst>(getUnderlyingObject(access.pointer, 0)) ||
        !isa<Constant>(getUnderlyingObject(access.pointer, 0)))
      tally.add(reads ? Counters::PrivateBytesRead : Counters::PrivateBytesWritten, access.bytes);
    break;
  }
}

static void tallyCall(BlockTally &tally, CallBase &call, const MarkedFunctions &marked) {
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
    switch (intrinsic->getIntrinsicID()) {
    case Intrinsic::memcpy:
    case Intrinsic::memmove:
    case Intrinsic::memset:
      if (auto *length = dyn_cast<ConstantInt>(cast<MemIntrinsic>(intrinsic)->getLength())) {
        uint64_t bytes = length->getZExtValue();
        tallyAccess(tally,
                    {cast<MemIntrinsic>(intrinsic)->getRawDest(), bytes, 1, AccessKind::Store,
                     AddressSpace(cast<MemIntrinsic>(intrinsic)->getDestAddressSpace())});
        if (auto *transfer = dyn_cast<MemTransferInst>(intrinsic))
          tallyAccess(tally, {transfer->getRawSource(), bytes, 1, AccessKind::Load,
                              AddressSpace(transfer->getSourceAddressSpace())});
      }
      return;
    default:
      return;
    }
  }
  const Builtin *builtin = builtinCalledBy(&call);
  if (!builtin || !builtin->tally)
    return;
  if (isMathMark(call) && marked.isInside(call))
    return;
  switch (builtin->tally->per) {
  case Tally::Per::Lane:
    tally.add(builtin->tally->counter);
    return;
  case Tally::Per::Simdgroup:
    tally.addSimdgroup(builtin->tally->counter);
    return;
  case Tally::Per::Threadgroup:
    tally.addThreadgroup(builtin->tally->counter);
    return;
  }
}

/// A number, or the half that it was converted from.
static Value *beforeExtension(Value *value) {
  auto *extension = dyn_cast<FPExtInst>(value);
  return extension ? extension->getOperand(0) : value;
}

/// Whether a comparison is the test for NaN in `x < y || x != x ? y : x`, which is how `fmin` and
/// `fmax` are computed here. GPUs have one instruction for all of it.
static bool isTestOfExtreme(Instruction &inst) {
  auto *test = dyn_cast<FCmpInst>(&inst);
  if (!test || !test->hasOneUse() ||
      (test->getPredicate() != FCmpInst::FCMP_UNO && test->getPredicate() != FCmpInst::FCMP_UNE))
    return false;
  Value *order, *x, *y;
  if (test->getOperand(0) != test->getOperand(1) && !match(test->getOperand(1), m_AnyZeroFP()))
    return false;
  User *either = *test->user_begin();
  if (!match(either, m_c_LogicalOr(m_Value(order), m_Specific(test))) || !either->hasOneUse() ||
      !match(*either->user_begin(), m_Select(m_Specific(either), m_Value(y), m_Value(x))))
    return false;
  auto *comparison = dyn_cast<FCmpInst>(order);
  if (!comparison)
    return false;
  Value *tested = beforeExtension(test->getOperand(0));
  Value *a = beforeExtension(comparison->getOperand(0));
  Value *b = beforeExtension(comparison->getOperand(1));
  x = beforeExtension(x), y = beforeExtension(y);
  return tested == x && ((a == x && b == y) || (a == y && b == x));
}

/// The arithmetic of an instruction.
static void tallyArithmetic(BlockTally &tally, Instruction &inst, Counters::Index first,
                            bool isFunction = false) {
  auto add = [&](Type *type, Arithmetic what) {
    tallyArithmetic(tally, type, what, first, isFunction);
  };
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(&inst)) {
    Intrinsic::ID id = intrinsic->getIntrinsicID();
    if (id == Intrinsic::fma || id == Intrinsic::fmuladd)
      add(inst.getType(), Arithmetic::Fma);
    else if (!isa<MemIntrinsic>(inst) && !intrinsic->isAssumeLikeIntrinsic())
      add(inst.getType(), Arithmetic::Other);
    return;
  }
  switch (inst.getOpcode()) {
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::Add:
  case Instruction::Sub:
    return add(inst.getType(), Arithmetic::Add);
  case Instruction::FMul:
  case Instruction::Mul:
    return add(inst.getType(), Arithmetic::Mul);
  case Instruction::FDiv:
  case Instruction::FRem:
  case Instruction::FNeg:
  case Instruction::UDiv:
  case Instruction::SDiv:
  case Instruction::URem:
  case Instruction::SRem:
  case Instruction::Shl:
  case Instruction::LShr:
  case Instruction::AShr:
  case Instruction::And:
  case Instruction::Or:
  case Instruction::Xor:
  case Instruction::FPTrunc:
  case Instruction::FPExt:
  case Instruction::FPToSI:
  case Instruction::FPToUI:
  case Instruction::SIToFP:
  case Instruction::UIToFP:
    if (!inst.getType()->isIntOrIntVectorTy(1))
      add(inst.getType(), Arithmetic::Other);
    return;
  case Instruction::FCmp:
    if (isTestOfExtreme(inst))
      return;
    [[fallthrough]];
  case Instruction::ICmp:
    return add(inst.getOperand(0)->getType(), Arithmetic::Other);
  default:
    return;
  }
}

static void tallyDivision(BlockTally &tally, Instruction &inst) {
  switch (inst.getOpcode()) {
  case Instruction::FDiv:
  case Instruction::FRem:
  case Instruction::UDiv:
  case Instruction::SDiv:
  case Instruction::URem:
  case Instruction::SRem:
    break;
  default:
    return;
  }
  Type *type = inst.getType()->getScalarType();
  auto *vector = dyn_cast<FixedVectorType>(inst.getType());
  tally.add(type->isFloatTy()    ? Counters::F32Div
            : type->isHalfTy()   ? Counters::F16Div
            : type->isBFloatTy() ? Counters::Bf16Div
                                 : Counters::IntDiv,
            vector ? vector->getNumElements() : 1);
}

/// Whether a GPU has an instruction for it: not for addresses, names of values and marks.
static bool isOperation(Instruction &inst) {
  if (isa<PHINode, GetElementPtrInst, BitCastInst, AddrSpaceCastInst, PtrToIntInst, IntToPtrInst,
          AllocaInst, FreezeInst, ExtractElementInst, InsertElementInst, ShuffleVectorInst,
          ExtractValueInst, InsertValueInst, UnreachableInst>(inst) ||
      inst.isDebugOrPseudoInst())
    return false;
  if (auto *branch = dyn_cast<BranchInst>(&inst))
    return branch->isConditional();
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(&inst))
    return !intrinsic->isAssumeLikeIntrinsic();
  if (isMathMark(inst) || isCallOf(&inst, positionName) || isCallOf(&inst, bufferName) ||
      isCallOf(&inst, threadgroupAllocName) || isCallOf(&inst, threadgroupArgumentName))
    return false;
  return true;
}

/// `access` is null for the further numbers of a packed vector.
static void tallyInstruction(BlockTally &tally, Instruction &inst, const MemoryAccess *access,
                             const MarkedFunctions &marked) {
  tally.at(inst);
  bool isMemory = memoryAccess(inst).has_value();
  if (isOperation(inst) && (access || !isMemory)) {
    tally.add(Counters::LaneInstructions);
    tally.addSimdgroup(Counters::SimdgroupInstructions);
  }
  if (isMemory) {
    if (access)
      tallyAccess(tally, *access);
    return;
  }
  tallyArithmetic(tally, inst, Counters::F32Add);
  tallyDivision(tally, inst);
  if (auto *call = dyn_cast<CallBase>(&inst))
    tallyCall(tally, *call, marked);
}

namespace {
/// Inserts what counts amounts that are known only at run time.
class DynamicCounting {
public:
  DynamicCounting(Module &module, CodeFacts &facts, LineTable &lines)
      : module(module), facts(facts), lines(lines), b(module.getContext()) {}

  void count(Instruction &inst, const MemoryAccess &access) {
    bool reads = access.kind != AccessKind::Store, writes = access.kind != AccessKind::Load;
    switch (access.space) {
    case AddressSpace::Device:
      if (reads)
        emit(inst, access, countLinesName, Counters::DeviceLinesRead,
             Counters::DeviceDistinctBytesRead);
      if (writes)
        emit(inst, access, countLinesName, Counters::DeviceLinesWritten,
             Counters::DeviceDistinctBytesWritten);
      return;
    case AddressSpace::Constant:
      return emit(inst, access, countLinesName, Counters::ConstantLinesRead,
                  Counters::ConstantDistinctBytesRead);
    case AddressSpace::Threadgroup:
      return emit(inst, access, countBanksName, Counters::ThreadgroupBankConflicts);
    case AddressSpace::Thread:
      return;
    }
  }

  /// Before a conditional branch or a switch.
  void countBranch(Instruction &branch, Value *condition) {
    b.SetInsertPoint(&branch);
    auto callee = declareBuiltin(module, (countBranchName + "." + typeName(condition)).str(),
                                 b.getVoidTy(), {condition->getType(), b.getInt32Ty()});
    b.CreateCall(callee, {condition, index(branch, Counters::DivergentBranches)});
  }

private:
  static std::string typeName(Value *value) {
    return "i" + std::to_string(value->getType()->getIntegerBitWidth());
  }

  /// The place of a counter, which `next` follows.
  ConstantInt *index(Instruction &inst, Counters::Index counter,
                     std::optional<Counters::Index> next = std::nullopt) {
    uint32_t line = lines.lineOf(inst);
    auto [place, isNew] = known.try_emplace({line, counter}, facts.dynamicCounters.size());
    if (isNew) {
      facts.dynamicCounters.push_back({line, counter, 1});
      if (next)
        facts.dynamicCounters.push_back({line, *next, 1});
    }
    return b.getInt32(place->second);
  }

  void emit(Instruction &inst, const MemoryAccess &access, StringRef name, Counters::Index counter,
            std::optional<Counters::Index> next = std::nullopt) {
    b.SetInsertPoint(&inst);
    Type *pointer = access.pointer->getType();
    SmallVector<Type *> types{pointer, b.getInt32Ty(), b.getInt32Ty()};
    SmallVector<Value *> operands{access.pointer, b.getInt32(access.bytes),
                                  index(inst, counter, next)};
    if (next) { // lines, which are traced by their place
      types.append(2, b.getInt32Ty());
      operands.push_back(b.getInt32(facts.sites.size()));
      operands.push_back(b.getInt32(counter == Counters::DeviceLinesRead      ? Footprint::Read
                                    : counter == Counters::DeviceLinesWritten ? Footprint::Written
                                                                              : Footprint::None));
      Site site;
      fillLocation(site, inst);
      fillObject(site, access);
      // An atomic reads and writes, and is counted once for each.
      site.kind = counter == Counters::DeviceLinesWritten ? AccessKind::Store : AccessKind::Load;
      facts.sites.push_back(site);
    }
    auto callee =
        declareBuiltin(module, name, b.getVoidTy(), types, pointer->getPointerAddressSpace());
    b.CreateCall(callee, operands);
  }

  Module &module;
  CodeFacts &facts;
  LineTable &lines;
  IRBuilder<> b;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;
};
} // namespace

namespace {
/// The accesses of a block, as the text has them: the numbers of a packed vector, which have one
/// place in the text and follow each other in memory, are one access, as in a GPU's code.
class BlockAccesses {
public:
  explicit BlockAccesses(BasicBlock &block) : layout(block.getDataLayout()) {
    for (Instruction &inst : block)
      if (auto access = memoryAccess(inst))
        add(inst, *access);
  }

  ArrayRef<std::pair<Instruction *, MemoryAccess>> list() const { return accesses; }
  /// The access that begins with the instruction, or none if it is a further part of one.
  const MemoryAccess *beginningWith(const Instruction &inst) const {
    auto it = places.find(&inst);
    return it == places.end() ? nullptr : &accesses[it->second].second;
  }

private:
  /// Bytes of the widest vector that a lane accesses at once.
  static constexpr uint64_t kMostBytes = 16;

  void add(Instruction &inst, const MemoryAccess &access) {
    if (continues(inst, access)) {
      accesses.back().second.bytes += access.bytes;
      return;
    }
    places[&inst] = accesses.size();
    accesses.push_back({&inst, access});
    isPlain = access.kind != AccessKind::Atomic && access.space == AddressSpace::Device &&
              inst.getDebugLoc() && !inst.isVolatile();
    std::tie(base, begin) = placeOf(access.pointer);
  }

  bool continues(Instruction &inst, const MemoryAccess &access) const {
    if (accesses.empty() || !isPlain || inst.isVolatile())
      return false;
    auto &[first, whole] = accesses.back();
    auto [otherBase, offset] = placeOf(access.pointer);
    return access.kind == whole.kind && access.space == whole.space &&
           inst.getDebugLoc() == first->getDebugLoc() && otherBase == base &&
           offset == begin + int64_t(whole.bytes) && whole.bytes + access.bytes <= kMostBytes;
  }

  /// A pointer as another one and the bytes between them.
  std::pair<Value *, int64_t> placeOf(Value *pointer) const {
    APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
    Value *from = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
    return {from, offset.getSExtValue()};
  }

  const DataLayout &layout;
  SmallVector<std::pair<Instruction *, MemoryAccess>> accesses;
  DenseMap<const Instruction *, size_t> places;
  /// Of the last access: whether it may go on, and where it begins.
  bool isPlain = false;
  Value *base = nullptr;
  int64_t begin = 0;
};
} // namespace

/// Counts the executions of a block.
static void countBlock(BasicBlock &block, const BlockTally &tally, CodeFacts &facts) {
  IRBuilder<> b(&block, block.getFirstInsertionPt());
  auto callee = declareBuiltin(*block.getModule(), countBlockName, b.getVoidTy(), {b.getInt32Ty()});
  b.CreateCall(callee, {b.getInt32(facts.blocks.size())});
  facts.blocks.push_back(tally.counts());
}

void insertCounting(Function &function, MarkedFunctions &marked, CodeFacts &facts) {
  LineTable lines(facts.lines);
  DynamicCounting dynamic(*function.getParent(), facts, lines);
  for (BasicBlock &block : function) {
    BlockTally tally(lines);
    if (block.isEntryBlock()) {
      tally.at(*block.getTerminator());
      tally.add(Counters::Threads);
      tally.addSimdgroup(Counters::Simdgroups);
    }
    BlockAccesses accesses(block);
    for (Instruction &inst : block)
      tallyInstruction(tally, inst, accesses.beginningWith(inst), marked);
    for (auto &[inst, access] : accesses.list())
      dynamic.count(*inst, access);
    if (auto *branch = dyn_cast<BranchInst>(block.getTerminator());
        branch && branch->isConditional())
      dynamic.countBranch(*branch, branch->getCondition());
    else if (auto *choice = dyn_cast<SwitchInst>(block.getTerminator()))
      dynamic.countBranch(*choice, choice->getCondition());
    if (!tally.empty())
      countBlock(block, tally, facts);
  }
  marked.eraseMarks();
}

/// Whether a call counts at run time.
static bool isCounter(CallInst &call) {
  Function *callee = call.getCalledFunction();
  return callee && any_of(ArrayRef{countBlockName, countLinesName, countBanksName, countBranchName},
                          [&](StringRef name) { return callee->getName().starts_with(name); });
}

/// Whether a value is only the address of accesses.
static bool isAddressAlone(Instruction &inst) {
  return all_of(inst.users(), [&](User *user) {
    auto access = memoryAccess(*cast<Instruction>(user));
    return access && access->pointer == &inst;
  });
}

/// Whether accesses compute a value by themselves. They add a constant to a pointer, or else a
/// number that they may shift.
static bool isPartOfAccess(Instruction &inst) {
  if (auto *address = dyn_cast<GetElementPtrInst>(&inst))
    return address->hasAllConstantIndices() ? none_of(address->users(), IsaPred<PHINode>)
                                            : isAddressAlone(*address);
  const APInt *shift;
  return PatternMatch::match(
             &inst, PatternMatch::m_Shl(PatternMatch::m_Value(), PatternMatch::m_APInt(shift))) &&
         shift->ule(4) && all_of(inst.users(), [](User *user) {
           auto *address = dyn_cast<GetElementPtrInst>(user);
           return address && isPartOfAccess(*address);
         });
}

/// Whether a value is the upper half of a register, which is a register of 16 bits itself.
static bool isUpperHalf(const Instruction &inst) {
  return inst.getType()->isIntegerTy(32) &&
         PatternMatch::match(&inst, PatternMatch::m_LShr(PatternMatch::m_Value(),
                                                         PatternMatch::m_SpecificInt(16))) &&
         all_of(inst.users(), [](const User *user) {
           return isa<TruncInst>(user) && user->getType()->isIntegerTy(16);
         });
}

/// Whether arithmetic does by itself what an instruction does.
static bool isPartOfArithmetic(const Instruction &inst, const MarkedFunctions &marked) {
  auto isFunction = [&](const Instruction &other) { return marked.hasPart(other); };
  // What a function does is counted with it.
  return !isFunction(inst) &&
         (isPartOfUsers(inst, isFunction) || isPartOfOperand(inst, isFunction));
}

void insertOptimizedCounting(Function &function, const MarkedFunctions &marked, CodeFacts &facts) {
  LineTable lines(facts.lines);
  // Counted is a copy in which addresses are arithmetic: a text may write them in `[]`, move
  // pointers or add numbers up.
  ValueToValueMapTy copies;
  Function *copy = CloneFunction(&function, copies);
  for (Instruction &inst : make_early_inc_range(instructions(*copy)))
    if (auto *call = dyn_cast<CallInst>(&inst); call && isCounter(*call))
      call->eraseFromParent();
  expandAddresses(*copy);
  for (BasicBlock &block : function) {
    BlockTally tally(lines);
    for (Instruction &inst : *cast<BasicBlock>(copies.lookup(&block))) {
      if (isPartOfAccess(inst) || isUpperHalf(inst) || isPartOfArithmetic(inst, marked))
        continue;
      tally.at(inst);
      tallyArithmetic(tally, inst, Counters::OptimizedF32Add, marked.hasPart(inst));
      if (isa<GetElementPtrInst>(inst))
        tally.add(Counters::OptimizedIntAdd);
    }
    if (!tally.empty())
      countBlock(block, tally, facts);
  }
  copy->eraseFromParent();
}

} // namespace triton_metal::engine
