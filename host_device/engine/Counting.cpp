// Inserts the counters: one call for each basic block, which counts the active lanes that run it,
// together with a table of what one execution of the block does; and one call for each access whose
// number of lines depends on the addresses.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include <map>

using namespace llvm;

namespace triton_metal::engine {

namespace {
struct BlockTally {
  std::map<uint32_t, uint32_t> lane, simdgroup, threadgroup;
  void add(Counters::Index index, uint64_t amount = 1) { lane[index] += amount; }
  void addSimdgroup(Counters::Index index) { simdgroup[index] += 1; }
};
enum class Arithmetic { Add, Mul, Fma, Other };
} // namespace

static void tallyArithmetic(BlockTally &tally, Type *type, Arithmetic what) {
  unsigned amount = 1;
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    amount = vector->getNumElements();
    type = vector->getElementType();
  }
  Counters::Index base;
  if (type->isFloatTy())
    base = Counters::F32Add;
  else if (type->isHalfTy())
    base = Counters::F16Add;
  else if (type->isBFloatTy())
    base = Counters::Bf16Add;
  else if (type->isIntegerTy()) {
    tally.add(what == Arithmetic::Add   ? Counters::IntAdd
              : what == Arithmetic::Mul ? Counters::IntMul
                                        : Counters::IntOther,
              amount);
    return;
  } else {
    return;
  }
  tally.add(Counters::Index(base + unsigned(what)), amount);
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

static void tallyCall(BlockTally &tally, CallBase &call) {
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
    switch (intrinsic->getIntrinsicID()) {
    case Intrinsic::fma:
    case Intrinsic::fmuladd:
      return tallyArithmetic(tally, call.getType(), Arithmetic::Fma);
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
      if (!intrinsic->isAssumeLikeIntrinsic())
        tallyArithmetic(tally, call.getType(), Arithmetic::Other);
      return;
    }
  }
  const Builtin *builtin = builtinCalledBy(&call);
  if (!builtin || !builtin->tally)
    return;
  switch (builtin->tally->per) {
  case Tally::Per::Lane:
    tally.lane[builtin->tally->counter] += 1;
    return;
  case Tally::Per::Simdgroup:
    tally.simdgroup[builtin->tally->counter] += 1;
    return;
  case Tally::Per::Threadgroup:
    tally.threadgroup[builtin->tally->counter] += 1;
    return;
  }
}

static void tallyInstruction(BlockTally &tally, Instruction &inst) {
  if (auto access = memoryAccess(inst)) {
    tallyAccess(tally, *access);
    return;
  }
  if (auto *call = dyn_cast<CallBase>(&inst))
    return tallyCall(tally, *call);
  switch (inst.getOpcode()) {
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::Add:
  case Instruction::Sub:
    return tallyArithmetic(tally, inst.getType(), Arithmetic::Add);
  case Instruction::FMul:
  case Instruction::Mul:
    return tallyArithmetic(tally, inst.getType(), Arithmetic::Mul);
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
      tallyArithmetic(tally, inst.getType(), Arithmetic::Other);
    return;
  case Instruction::ICmp:
  case Instruction::FCmp:
    return tallyArithmetic(tally, inst.getOperand(0)->getType(), Arithmetic::Other);
  default:
    return;
  }
}

void insertCounting(Function &function, CodeFacts &facts) {
  Module &module = *function.getParent();
  IRBuilder<> b(module.getContext());
  facts.lineCounters = {Counters::DeviceLinesRead, Counters::DeviceLinesWritten,
                        Counters::ConstantLinesRead};
  auto countBlock = declareBuiltin(module, countBlockName, b.getVoidTy(), {b.getInt32Ty()});
  for (BasicBlock &block : function) {
    BlockTally tally;
    SmallVector<std::pair<Instruction *, MemoryAccess>> touching;
    for (Instruction &inst : block) {
      tallyInstruction(tally, inst);
      if (auto access = memoryAccess(inst); access && (access->space == AddressSpace::Device ||
                                                       access->space == AddressSpace::Constant))
        touching.push_back({&inst, *access});
    }
    for (auto &[inst, access] : touching) {
      b.SetInsertPoint(inst);
      Type *pointer = access.pointer->getType();
      auto callee = declareBuiltin(module, countLinesName, b.getVoidTy(),
                                   {pointer, b.getInt32Ty(), b.getInt32Ty()},
                                   pointer->getPointerAddressSpace());
      auto emit = [&](unsigned counter) {
        b.CreateCall(callee, {access.pointer, b.getInt32(access.bytes), b.getInt32(counter)});
      };
      if (access.space == AddressSpace::Constant) {
        emit(2);
        continue;
      }
      if (access.kind != AccessKind::Store)
        emit(0);
      if (access.kind != AccessKind::Load)
        emit(1);
    }
    if (tally.lane.empty() && tally.simdgroup.empty() && tally.threadgroup.empty() &&
        !block.isEntryBlock())
      continue;
    // Threads and SIMD-groups are counted in the entry block.
    if (block.isEntryBlock()) {
      tally.add(Counters::Threads);
      tally.addSimdgroup(Counters::Simdgroups);
    }
    b.SetInsertPoint(&*block.getFirstInsertionPt());
    b.CreateCall(countBlock, {b.getInt32(facts.blocks.size())});
    auto &counts = facts.blocks.emplace_back();
    counts.lane.assign(tally.lane.begin(), tally.lane.end());
    counts.simdgroup.assign(tally.simdgroup.begin(), tally.simdgroup.end());
    counts.threadgroup.assign(tally.threadgroup.begin(), tally.threadgroup.end());
  }
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

uint32_t estimateRegisters(Function &function) {
  const DataLayout &layout = function.getDataLayout();
  auto words = [&](const Value *value) -> uint32_t {
    Type *type = value->getType();
    if (type->isVoidTy() || !type->isSized() || isa<AllocaInst>(value))
      return 0;
    return (layout.getTypeStoreSize(type) + 3) / 4;
  };
  DenseMap<const BasicBlock *, DenseSet<const Value *>> liveIn;
  auto counted = [](const Value *value) {
    return isa<Instruction>(value) && !value->getType()->isVoidTy();
  };
  uint32_t most = 0;
  bool changed = true, last = false;
  while (changed || !last) {
    last = !changed;
    changed = false;
    for (BasicBlock *block : post_order(&function)) {
      DenseSet<const Value *> live;
      for (BasicBlock *successor : successors(block)) {
        live.insert(liveIn[successor].begin(), liveIn[successor].end());
        for (PHINode &phi : successor->phis()) {
          live.erase(&phi);
          if (Value *incoming = phi.getIncomingValueForBlock(block); counted(incoming))
            live.insert(incoming);
        }
      }
      uint32_t now = 0;
      for (const Value *value : live)
        now += words(value);
      most = std::max(most, now);
      for (Instruction &inst : reverse(*block)) {
        if (live.erase(&inst))
          now -= words(&inst);
        if (isa<PHINode>(inst))
          continue;
        for (Value *operand : inst.operands())
          if (counted(operand) && live.insert(operand).second)
            now += words(operand);
        most = std::max(most, now);
      }
      for (PHINode &phi : block->phis())
        live.insert(&phi);
      auto &in = liveIn[block];
      if (in.size() != live.size()) {
        in = std::move(live);
        changed = true;
      }
    }
  }
  // Private arrays that are indexed at run time are in memory and do not count as registers.
  return most;
}

} // namespace triton_metal::engine
