// Finds loops that only another thread can end, when they run.
//
// A loop waits if it comes to the same state again and again: all that decides about its branches,
// which is values from the previous iteration and from memory, has not changed since. The threads
// that are in the loop then repeat that iteration for ever, as no other thread is running.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "host_device/msl/Frontend.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace triton_metal::engine {

namespace {

/// Iterations without a change. Other SIMD-groups run at barriers, and may do much until they
/// change something.
constexpr uint32_t mostRepeated = 4096, mostRepeatedWithBarrier = 1 << 22;

/// What decides about the branches of a loop.
struct Decisions {
  SmallSetVector<PHINode *, 8> carried;
  SmallVector<Instruction *> read;
  /// Whether other threads can change any of the memory that is read.
  bool isShared = false;
  bool hasBarrier = false;
  AddressSpace space = AddressSpace::Threadgroup;
};

/// Whether the hash below can take values of this type.
bool isHashable(Type *type) {
  Type *scalar = type->getScalarType();
  return scalar->isIntegerTy() || scalar->isFloatingPointTy() || scalar->isPointerTy();
}

std::optional<Decisions> findDecisions(Loop &loop) {
  Decisions result;
  SmallVector<Value *> work;
  SmallPtrSet<Value *, 32> seen;
  for (BasicBlock *block : loop.blocks()) {
    Instruction *end = block->getTerminator();
    if (auto *branch = dyn_cast<BranchInst>(end); branch && branch->isConditional())
      work.push_back(branch->getCondition());
    else if (auto *choice = dyn_cast<SwitchInst>(end))
      work.push_back(choice->getCondition());
    for (Instruction &inst : *block)
      result.hasBarrier |= isCallOf(&inst, "__tm_threadgroup_barrier");
  }
  while (!work.empty()) {
    auto *inst = dyn_cast<Instruction>(work.pop_back_val());
    if (!inst || !loop.contains(inst) || !seen.insert(inst).second)
      continue;
    for (Value *operand : inst->operands())
      work.push_back(operand);
    if (auto *phi = dyn_cast<PHINode>(inst); phi && phi->getParent() == loop.getHeader())
      result.carried.insert(phi);
    auto access = memoryAccess(*inst);
    if (!access)
      continue;
    result.read.push_back(inst);
    if (access->space == AddressSpace::Device || access->space == AddressSpace::Threadgroup)
      result.isShared = true;
    if (access->space == AddressSpace::Device)
      result.space = AddressSpace::Device;
  }
  if (!result.isShared ||
      any_of(result.carried, [](PHINode *phi) { return !isHashable(phi->getType()); }))
    return std::nullopt;
  return result;
}

Value *toBits(IRBuilder<> &b, Value *value) {
  Type *type = value->getType();
  if (type->isPointerTy())
    value = b.CreatePtrToInt(value, b.getInt64Ty());
  else if (type->isFloatingPointTy())
    value = b.CreateBitCast(value, b.getIntNTy(type->getPrimitiveSizeInBits()));
  return b.CreateZExtOrTrunc(value, b.getInt64Ty());
}

/// Adds a value to the hash of an iteration.
Value *mix(IRBuilder<> &b, Value *hash, Value *value) {
  if (auto *pair = dyn_cast<StructType>(value->getType())) { // of a compare-exchange
    for (unsigned i = 0; i != pair->getNumElements(); ++i)
      hash = mix(b, hash, b.CreateExtractValue(value, i));
    return hash;
  }
  if (auto *vector = dyn_cast<FixedVectorType>(value->getType())) {
    for (unsigned i = 0; i != vector->getNumElements(); ++i)
      hash = mix(b, hash, b.CreateExtractElement(value, i));
    return hash;
  }
  hash = b.CreateMul(b.CreateXor(hash, toBits(b, value)), b.getInt64(0x9e3779b97f4a7c15));
  return b.CreateXor(hash, b.CreateLShr(hash, 29));
}

/// Where the text has the loop: the innermost one around the branch that leaves it. Optimised loops
/// have lost their own location.
Site placeOf(Loop &loop, const Decisions &decisions) {
  Site site;
  // Instructions that have been merged have no line.
  auto consider = [&](const Value *value) {
    if (auto *inst = dyn_cast<Instruction>(value); inst && !site.line)
      fillLocation(site, inst->getDebugLoc().get());
  };
  SmallVector<BasicBlock *> leaving;
  loop.getExitingBlocks(leaving);
  for (BasicBlock *block : leaving)
    consider(block->getTerminator());
  for (BasicBlock *block : leaving)
    if (auto *branch = dyn_cast<BranchInst>(block->getTerminator()))
      consider(branch->getCondition());
  for (Instruction *read : decisions.read)
    consider(read);
  placeAtLoop(site, *loop.getHeader()->getModule());
  return site;
}

} // namespace

static void watch(Function &function, Loop &loop, const Decisions &decisions, CodeFacts &facts) {
  Module &module = *function.getParent();
  IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
  Type *i64 = b.getInt64Ty(), *i32 = b.getInt32Ty();
  AllocaInst *hash = b.CreateAlloca(i64), *before = b.CreateAlloca(i64),
             *repeated = b.CreateAlloca(i32);
  BasicBlock *header = loop.getHeader();
  for (BasicBlock *from : predecessors(header)) {
    b.SetInsertPoint(from->getTerminator());
    if (!loop.contains(from)) {
      b.CreateStore(b.getInt64(1), hash);
      b.CreateStore(b.getInt64(0), before);
      b.CreateStore(b.getInt32(0), repeated);
      continue;
    }
    Value *state = b.CreateLoad(i64, hash);
    for (PHINode *phi : decisions.carried)
      state = mix(b, state, phi);
    Value *same = b.CreateICmpEQ(state, b.CreateLoad(i64, before));
    Value *count = b.CreateSelect(same, b.CreateAdd(b.CreateLoad(i32, repeated), b.getInt32(1)),
                                  b.getInt32(0));
    b.CreateStore(count, repeated);
    b.CreateStore(state, before);
    b.CreateStore(b.getInt64(1), hash);
    Site site = placeOf(loop, decisions);
    site.kind = AccessKind::Load;
    site.space = decisions.space;
    auto callee = declareBuiltin(module, waitsName, b.getVoidTy(), {b.getInt1Ty(), b.getInt32Ty()});
    uint32_t most = decisions.hasBarrier ? mostRepeatedWithBarrier : mostRepeated;
    b.CreateCall(callee,
                 {b.CreateICmpUGT(count, b.getInt32(most)), b.getInt32(facts.sites.size())});
    facts.sites.push_back(site);
  }
  for (Instruction *read : decisions.read) {
    b.SetInsertPoint(read->getNextNode());
    b.CreateStore(mix(b, b.CreateLoad(i64, hash), read), hash);
  }
}

void insertWaits(Function &function, CodeFacts &facts) {
  DominatorTree dominators(function);
  LoopInfo loops(dominators);
  SmallVector<std::pair<Loop *, Decisions>> found;
  for (Loop *loop : loops.getLoopsInPreorder())
    if (std::optional<Decisions> decisions = findDecisions(*loop))
      found.push_back({loop, std::move(*decisions)});
  for (auto &[loop, decisions] : found) {
    facts.mayWait |= decisions.space == AddressSpace::Device;
    watch(function, *loop, decisions, facts);
  }
}

} // namespace triton_metal::engine
