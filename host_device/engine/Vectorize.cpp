#include "host_device/engine/Vectorize.h"
#include "host_device/engine/LaneFunctions.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "llvm/Transforms/Utils/SSAUpdaterBulk.h"
#include <map>

using namespace llvm;

namespace triton_metal::engine {

SimdEmitter::SimdEmitter(Function &scalar, StringRef name, const CodeOptions &options,
                         const HostTraits &host, CodeFacts &facts, const LaneAnalysis &lanes,
                         const Linearization &plan, LoopInfo &loops)
    : source(scalar), module(*scalar.getParent()), context(scalar.getContext()),
      layout(module.getDataLayout()), options(options), host(host), facts(facts), lanes(lanes),
      plan(plan), loops(loops), b(context, InstSimplifyFolder(layout)) {
  auto *pointer = PointerType::get(context, 0);
  auto *i32 = Type::getInt32Ty(context);
  auto *type = FunctionType::get(Type::getVoidTy(context), {pointer, pointer, i32, i32}, false);
  result = Function::Create(type, GlobalValue::ExternalLinkage, name, module);
  for (unsigned argument : {0, 1}) {
    result->addParamAttr(argument, Attribute::NoAlias);
    result->addParamAttr(argument, Attribute::NonNull);
  }
  result->setDoesNotThrow();
}

void SimdEmitter::fail(Instruction *inst, const Twine &message) {
  if (!error.empty())
    return;
  error = message.str();
  if (inst && inst->getDebugLoc())
    error = "line " + std::to_string(inst->getDebugLoc().getLine()) + ": " + error;
}

BasicBlock *SimdEmitter::newBlock(const Twine &name) {
  return BasicBlock::Create(context, name, result);
}

AllocaInst *SimdEmitter::slot(Type *type, const Twine &name) {
  auto *alloca = new AllocaInst(type, 0, name, allocas->getTerminator()->getIterator());
  slots.push_back(alloca);
  return alloca;
}

void SimdEmitter::placeAnchor() {
  // A placeholder without effect, before which code can be inserted later.
  anchor = new FreezeInst(PoisonValue::get(b.getInt1Ty()));
  b.Insert(anchor);
  anchors.push_back(anchor);
}

Value *SimdEmitter::maskBits(Value *value) { return b.CreateBitCast(value, b.getInt32Ty()); }
Value *SimdEmitter::firstLane(IRBuilderBase &builder, Value *bits) {
  // With the bit of the last lane set, there always is a first lane, and it is at most the last
  // one.
  return builder.CreateBinaryIntrinsic(
      Intrinsic::cttz, builder.CreateOr(bits, builder.getInt32(1u << (simdWidth - 1))),
      builder.getTrue());
}
Value *SimdEmitter::lastLane(IRBuilderBase &builder, Value *bits) {
  return builder.CreateSub(
      builder.getInt32(simdWidth - 1),
      builder.CreateBinaryIntrinsic(Intrinsic::ctlz, builder.CreateOr(bits, builder.getInt32(1)),
                                    builder.getTrue()));
}
Value *SimdEmitter::anyLane(Value *value) { return b.CreateICmpNE(maskBits(value), b.getInt32(0)); }
Value *SimdEmitter::allLanes(Value *value) {
  return b.CreateICmpEQ(maskBits(value), b.getInt32(~0u));
}

void SimdEmitter::branch(Value *condition, function_ref<void()> then,
                         function_ref<void()> otherwise) {
  if (auto *constant = dyn_cast<ConstantInt>(condition))
    return constant->isOne() ? then() : otherwise();
  BasicBlock *yes = newBlock("fast"), *no = newBlock("slow"), *end = newBlock("join");
  b.CreateCondBr(condition, yes, no, MDBuilder(context).createBranchWeights(1000, 1));
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(end);
  b.SetInsertPoint(no);
  otherwise();
  b.CreateBr(end);
  b.SetInsertPoint(end);
}

void SimdEmitter::branchRarely(Value *condition, function_ref<void()> then) {
  branch(b.CreateNot(condition), [] {}, then);
}

void SimdEmitter::forEachActiveLane(function_ref<void(Value *)> body) {
  // The variables of these loops are slots and not phis, because the folding builder would see
  // incomplete phis.
  BasicBlock *head = newBlock("lanes"), *end = newBlock("lanes.end");
  Value *bits = maskBits(mask);
  AllocaInst *state = slot(b.getInt32Ty(), "lanes.left");
  if (options.seeded) {
    Value *order = groupField(b.getPtrTy(), offsetof(GroupState, laneOrder), "lane_order");
    b.CreateStore(b.getInt32(0), state);
    b.CreateBr(head);
    b.SetInsertPoint(head);
    Value *index = b.CreateLoad(b.getInt32Ty(), state);
    Value *lane = b.CreateZExt(
        b.CreateLoad(b.getInt8Ty(), b.CreateGEP(b.getInt8Ty(), order, index)), b.getInt32Ty());
    BasicBlock *active = newBlock("lane.active"), *latch = newBlock("lane.next");
    b.CreateCondBr(b.CreateTrunc(b.CreateLShr(bits, lane), b.getInt1Ty()), active, latch);
    b.SetInsertPoint(active);
    body(lane);
    b.CreateBr(latch);
    b.SetInsertPoint(latch);
    Value *next = b.CreateAdd(index, b.getInt32(1));
    b.CreateStore(next, state);
    b.CreateCondBr(b.CreateICmpULT(next, b.getInt32(simdWidth)), head, end);
    b.SetInsertPoint(end);
    return;
  }
  BasicBlock *work = newBlock("lane");
  b.CreateStore(bits, state);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  Value *left = b.CreateLoad(b.getInt32Ty(), state);
  b.CreateCondBr(b.CreateICmpNE(left, b.getInt32(0)), work, end);
  b.SetInsertPoint(work);
  Value *lane = firstLane(b, left);
  b.CreateStore(b.CreateAnd(left, b.CreateSub(left, b.getInt32(1))), state);
  body(lane);
  b.CreateBr(head);
  b.SetInsertPoint(end);
}

Value *SimdEmitter::launchField(Type *type, uint64_t offset, const Twine &name) {
  Value *&field = fields[{launch, offset}];
  if (!field) {
    IRBuilder<> at(allocas->getTerminator());
    auto *load = at.CreateLoad(type, at.CreatePtrAdd(launch, at.getInt64(offset)), name);
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(context, {}));
    field = load;
  }
  return field;
}

Value *SimdEmitter::groupField(Type *type, uint64_t offset, const Twine &name) {
  Value *&field = fields[{group, offset}];
  if (!field) {
    IRBuilder<> at(allocas->getTerminator());
    auto *load = at.CreateLoad(type, at.CreatePtrAdd(group, at.getInt64(offset)), name);
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(context, {}));
    field = load;
  }
  return field;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void SimdEmitter::emitPrologue() {
  launch = result->getArg(0);
  group = result->getArg(1);
  allocas = newBlock("entry");
  BasicBlock *loop = newBlock("simdgroup");
  bodyEnd = newBlock("simdgroup.end");
  BasicBlock *exit = newBlock("exit");
  bodyStart = loop;
  b.SetInsertPoint(allocas);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  PHINode *index = b.CreatePHI(b.getInt32Ty(), 2, "simdgroup_index");
  simdgroup = index;
  index->addIncoming(result->getArg(2), allocas);
  b.SetInsertPoint(bodyEnd);
  Value *next = b.CreateAdd(index, b.getInt32(1));
  index->addIncoming(next, bodyEnd);
  b.CreateCondBr(b.CreateICmpULT(next, result->getArg(3)), loop, exit);
  b.SetInsertPoint(exit);
  b.CreateRetVoid();

  b.SetInsertPoint(loop);
  existing = ConstantInt::getTrue(lanesOf(b.getInt1Ty()));
  if (isLaneFunction(source)) {
    existing = lanesOfFrame();
  } else if (options.partial) {
    Value *total = groupField(b.getInt32Ty(), offsetof(GroupState, totalThreads), "total_threads");
    SmallVector<uint32_t> numbers;
    for (unsigned lane = 0; lane != simdWidth; ++lane)
      numbers.push_back(lane);
    Value *left = b.CreateSub(total, b.CreateMul(simdgroup, b.getInt32(simdWidth)));
    existing = b.CreateICmpULT(ConstantDataVector::get(context, numbers), splat(left), "existing");
  }
}

void SimdEmitter::jump(unsigned place) { b.CreateBr(place == ~0u ? bodyEnd : blockEntries[place]); }

void SimdEmitter::emitPhis(BasicBlock &block) {
  for (PHINode &phi : block.phis()) {
    Entry &e = entry(&phi);
    e.eager = true;
    auto &homes = phiSlots[&phi];
    const LaneShape &s = shape(&phi);
    if (s.isUniform()) {
      for (auto [component, home] : enumerate(homes))
        e.components[component].lanes[0] =
            b.CreateLoad(home->getAllocatedType(), home, phi.getName());
    } else if (homes.size() == 1 && !homes[0]->getAllocatedType()->isVectorTy()) {
      e.components[0].lanes[0] =
          b.CreateLoad(homes[0]->getAllocatedType(), homes[0], phi.getName());
    } else {
      for (auto [component, home] : enumerate(homes))
        e.components[component].vector =
            b.CreateLoad(home->getAllocatedType(), home, phi.getName());
    }
  }
}

void SimdEmitter::emitEdge(BasicBlock *from, BasicBlock *to, Value *edgeMask, bool divergent) {
  const auto &fromPlan = plan.plans()[plan.place(from)];
  const auto &toPlan = plan.plans()[plan.place(to)];
  Loop *loop = loops.getLoopFor(from);
  bool leaves = loop && !loop->contains(to) && (divergent || !fromPlan.pending.empty());
  bool blend = lanes.isDivergentJoin(*to) || leaves;
  for (PHINode &phi : to->phis()) {
    llvm::Value *incoming = phi.getIncomingValueForBlock(from);
    if (isa<UndefValue>(incoming))
      continue;
    auto &homes = phiSlots[&phi];
    bool oneScalar = isUniform(&phi) || !homes[0]->getAllocatedType()->isVectorTy();
    for (auto [component, home] : enumerate(homes)) {
      Value *value = oneScalar ? scalar(incoming, component, 0) : vector(incoming, component);
      if (blend) {
        Value *old = b.CreateLoad(home->getAllocatedType(), home);
        value = b.CreateSelect(oneScalar ? anyLane(edgeMask) : edgeMask, value, old);
      }
      b.CreateStore(value, home);
    }
  }
  if (!toPlan.pending.empty()) {
    AllocaInst *pending = pendingSlots[plan.place(to)];
    b.CreateStore(b.CreateOr(b.CreateLoad(pending->getAllocatedType(), pending), edgeMask),
                  pending);
  }
}

void SimdEmitter::emitTerminator(const Linearization::BlockPlan &block) {
  BasicBlock *from = block.block;
  auto *branchInst = dyn_cast<BranchInst>(from->getTerminator());
  if (!branchInst) {
    jump(block.next[0]);
    return;
  }
  if (branchInst->isUnconditional()) {
    emitEdge(from, branchInst->getSuccessor(0), mask, false);
    jump(block.next[0]);
    return;
  }
  if (block.divergent) {
    Value *condition = vector(branchInst->getCondition());
    if (!isa<Constant>(condition))
      condition = b.CreateFreeze(condition); // lanes that take no part may hold anything
    emitEdge(from, branchInst->getSuccessor(0), b.CreateAnd(mask, condition), true);
    emitEdge(from, branchInst->getSuccessor(1), b.CreateAnd(mask, b.CreateNot(condition)), true);
    jump(block.next[0]);
    return;
  }
  Value *condition = uniform(branchInst->getCondition());
  BasicBlock *taken = newBlock("then"), *otherwise = newBlock("else");
  b.CreateCondBr(condition, taken, otherwise);
  for (unsigned way : {0u, 1u}) {
    b.SetInsertPoint(way ? otherwise : taken);
    emitEdge(from, branchInst->getSuccessor(way), mask, false);
    jump(block.next[way]);
  }
}

void SimdEmitter::emitBlock(const Linearization::BlockPlan &block) {
  unsigned place = plan.place(block.block);
  b.SetInsertPoint(blockEntries[place]);
  currentHasAll = block.pending.empty();
  if (currentHasAll) {
    mask = existing;
  } else {
    AllocaInst *pending = pendingSlots[place];
    mask = b.CreateLoad(pending->getAllocatedType(), pending, "mask");
    b.CreateStore(Constant::getNullValue(pending->getAllocatedType()), pending);
  }
  if (block.skip) {
    BasicBlock *body = newBlock(block.block->getName()), *empty = newBlock("empty");
    b.CreateCondBr(anyLane(mask), body, empty);
    b.SetInsertPoint(empty);
    jump(*block.skip);
    b.SetInsertPoint(body);
  }
  emitPhis(*block.block);
  placeAnchor();
  for (PHINode &phi : block.block->phis())
    entry(&phi).anchor = anchor;
  for (Instruction &inst : *block.block) {
    if (isa<PHINode>(inst) || inst.isTerminator())
      continue;
    emitInstruction(inst);
    if (!error.empty())
      return;
  }
  emitTerminator(block);
}

/// Values are built on demand together with their operands, recursively. A long chain is built in
/// pieces, so that the stack does not overflow.
void SimdEmitter::boundDepth(Instruction &inst) {
  constexpr unsigned deepest = 256;
  unsigned depth = 1;
  for (llvm::Value *operand : inst.operands())
    if (auto known = entries.find(operand); known != entries.end())
      depth = std::max(depth, known->second.depth + 1);
  if (depth >= deepest) {
    for (unsigned component = 0; component != entry(&inst).components.size(); ++component)
      vector(&inst, component);
    // Only now: nothing is built for a value that is there already.
    if (!shape(&inst).isUniform() && !shape(&inst).isOneClass())
      entry(&inst).eager = true;
    depth = 0;
  }
  entry(&inst).depth = depth;
}

void SimdEmitter::emitInstruction(Instruction &inst) {
  if (isOnDemand(inst)) {
    Entry &e = entry(&inst);
    if (!anchor || anchor->getParent() != b.GetInsertBlock() || anchor->getNextNode())
      placeAnchor();
    e.anchor = anchor;
    boundDepth(inst);
    return;
  }
  switch (inst.getOpcode()) {
  case Instruction::Load:
    emitLoad(cast<LoadInst>(inst));
    break;
  case Instruction::Store:
    emitStore(cast<StoreInst>(inst));
    break;
  case Instruction::Call:
    emitCall(cast<CallInst>(inst));
    break;
  case Instruction::AtomicRMW:
    emitAtomicRMW(cast<AtomicRMWInst>(inst));
    break;
  case Instruction::AtomicCmpXchg:
    emitCompareExchange(cast<AtomicCmpXchgInst>(inst));
    break;
  case Instruction::Fence:
    b.CreateFence(cast<FenceInst>(inst).getOrdering());
    break;
  case Instruction::Alloca: {
    auto [index, offset] = privatePlaces.lookup(cast<AllocaInst>(&inst));
    Entry &e = entry(&inst);
    e.eager = true;
    e.components[0].lanes[0] = b.getInt64(privateBase + offset);
    break;
  }
  default:
    fail(&inst, Twine("the device cannot execute '") + inst.getOpcodeName() + "'");
    return;
  }
  placeAnchor();
  if (!inst.getType()->isVoidTy())
    entry(&inst).anchor = anchor;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// Adds phis for values that no longer dominate their uses because lanes may skip a block.
void SimdEmitter::repair() {
  DominatorTree domTree(*result);
  SSAUpdaterBulk updater;
  bool any = false;
  for (Instruction &inst : instructions(*result)) {
    if (inst.getType()->isVoidTy() || inst.use_empty())
      continue;
    std::optional<unsigned> variable;
    for (Use &use : inst.uses()) {
      if (domTree.dominates(&inst, use))
        continue;
      if (!variable) {
        variable = updater.AddVariable(inst.getName(), inst.getType());
        updater.AddAvailableValue(*variable, inst.getParent(), &inst);
        if (inst.getParent() != bodyStart)
          updater.AddAvailableValue(*variable, bodyStart, UndefValue::get(inst.getType()));
      }
      updater.AddUse(*variable, &use);
      any = true;
    }
  }
  if (any)
    updater.RewriteAllUses(&domTree);
}

namespace {

/// The first store to a variable of a block: the mask of the lanes that wait for it, or the home of
/// one of its phis.
struct FirstValue {
  StoreInst *store;
  BasicBlock *block;
};

} // namespace

/// Moves the first store to each variable from the beginning of the function to where the others
/// begin. PromoteMemToReg takes time in proportion to the blocks between, for each variable.
///
/// No lane waits for a block, other than a header, at the end of an iteration of the loop that
/// contains it. The variable may therefore begin anew with each iteration, but not in a loop
/// inside.
static void delayFirstValues(DominatorTree &domTree, ArrayRef<FirstValue> firstValues) {
  LoopInfo loops(domTree);
  for (auto [store, block] : firstValues) {
    Loop *around = loops.getLoopFor(block);
    if (around && around->getHeader() == block)
      around = around->getParentLoop();
    BasicBlock *place = nullptr;
    for (User *user : store->getPointerOperand()->users()) {
      BasicBlock *other = cast<Instruction>(user)->getParent();
      if (user != store && domTree.isReachableFromEntry(other))
        place = place ? domTree.findNearestCommonDominator(place, other) : other;
    }
    if (!place)
      continue;
    Loop *inside = loops.getLoopFor(place);
    for (; inside && inside != around; inside = loops.getLoopFor(place))
      place = domTree.getNode(inside->getHeader())->getIDom()->getBlock();
    if (inside == around && place != store->getParent())
      store->moveBefore(place->getFirstInsertionPt());
  }
}

Expected<Function *> SimdEmitter::run() {
  emitPrologue();
  layOutPrivateMemory();
  // The threadgroup variables, by id.
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> variables;
  for (Instruction &inst : instructions(source))
    if (auto *call = dyn_cast<CallInst>(&inst);
        call && call->getCalledFunction() &&
        call->getCalledFunction()->getName() == threadgroupAllocName) {
      auto *id = dyn_cast<ConstantInt>(call->getArgOperand(0)),
           *size = dyn_cast<ConstantInt>(call->getArgOperand(1)),
           *alignment = dyn_cast<ConstantInt>(call->getArgOperand(2));
      if (!id || !size || !alignment)
        return createStringError("a threadgroup variable has no constant size");
      variables[id->getZExtValue()] = {size->getZExtValue(), alignment->getZExtValue()};
    }
  for (auto &[id, variable] : variables) {
    threadgroupEnd = alignTo(threadgroupEnd, std::max<uint64_t>(variable.second, 16));
    threadgroupPlaces[id] = {threadgroupEnd, variable.first};
    facts.threadgroupPlaces.resize(id + 1);
    facts.threadgroupPlaces[id] = threadgroupPlaces[id];
    threadgroupEnd += variable.first;
  }
  facts.threadgroupBytes = threadgroupEnd;

  SmallVector<FirstValue> firstValues;
  auto *maskType = lanesOf(b.getInt1Ty());
  for (const auto &block : plan.plans()) {
    blockEntries.push_back(newBlock(block.block->getName()));
    AllocaInst *pending = nullptr;
    if (!block.pending.empty()) {
      pending = slot(maskType, "pending");
      firstValues.push_back(
          {b.CreateStore(Constant::getNullValue(maskType), pending), blockEntries.back()});
    }
    pendingSlots.push_back(pending);
    for (PHINode &phi : block.block->phis()) {
      auto &homes = phiSlots[&phi];
      const LaneShape &s = shape(&phi);
      unsigned components = componentCount(phi.getType());
      bool oneScalar = isTracked(s, componentType(phi.getType(), 0), components);
      for (unsigned component = 0; component != components; ++component) {
        Type *type = componentType(phi.getType(), component);
        homes.push_back(slot(oneScalar ? type : lanesOf(type), phi.getName()));
        Value *nothing = UndefValue::get(homes.back()->getAllocatedType());
        firstValues.push_back({b.CreateStore(nothing, homes.back()), blockEntries.back()});
      }
    }
  }
  jump(0);
  for (const auto &block : plan.plans()) {
    emitBlock(block);
    if (!error.empty())
      return createStringError(error);
  }
  for (Instruction *placeholder : anchors)
    placeholder->eraseFromParent();
  repair();
  {
    DominatorTree domTree(*result);
    delayFirstValues(domTree, firstValues);
    SmallVector<AllocaInst *> promotable;
    for (AllocaInst *alloca : slots)
      if (isAllocaPromotable(alloca))
        promotable.push_back(alloca);
    PromoteMemToReg(promotable, domTree);
  }
  if (verifyFunction(*result, &errs())) {
    result->print(errs());
    return createStringError("internal error: the SIMD-group form of the kernel is not valid");
  }
  return result;
}

Expected<Function *> vectorizeKernel(Function &scalar, StringRef name, const CodeOptions &options,
                                     const HostTraits &host, CodeFacts &facts) {
  DominatorTree domTree(scalar);
  LoopInfo loops(domTree);
  LaneAnalysis lanes(scalar, options, domTree, loops);
  Linearization plan(scalar, lanes, loops);
  return SimdEmitter(scalar, name, options, host, facts, lanes, plan, loops).run();
}

} // namespace triton_metal::engine
