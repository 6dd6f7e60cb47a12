#include "host_device/engine/Linearize.h"
#include "host_device/engine/Shape.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace triton_metal::engine {

/// Appends the blocks of `within` (null: the function) in reverse post order. Each inner loop
/// counts as one node and is replaced by its blocks.
static void appendOrder(BasicBlock *entry, Loop *within, LoopInfo &loops,
                        SmallVectorImpl<BasicBlock *> &out) {
  // The node of a block at this level: the block itself, or the header of the loop directly inside
  // `within` that contains it.
  auto nodeOf = [&](BasicBlock *block) -> BasicBlock * {
    Loop *loop = loops.getLoopFor(block);
    if (loop == within)
      return block;
    while (loop->getParentLoop() != within)
      loop = loop->getParentLoop();
    return loop->getHeader();
  };
  auto innerLoop = [&](BasicBlock *node) -> Loop * {
    Loop *loop = loops.getLoopFor(node);
    return loop != within ? loop : nullptr;
  };
  SmallVector<BasicBlock *> postOrder;
  DenseSet<BasicBlock *> seen;
  struct Frame {
    BasicBlock *node;
    SmallVector<BasicBlock *> successors;
    unsigned next = 0;
  };
  auto successorsOf = [&](BasicBlock *node) {
    SmallVector<BasicBlock *> result;
    auto add = [&](BasicBlock *target) {
      if (within && (!within->contains(target) || target == within->getHeader()))
        return;
      result.push_back(nodeOf(target));
    };
    if (Loop *loop = innerLoop(node)) {
      while (loop->getParentLoop() != within)
        loop = loop->getParentLoop();
      SmallVector<BasicBlock *> exits;
      loop->getExitBlocks(exits);
      for (BasicBlock *exit : exits)
        add(exit);
    } else {
      for (BasicBlock *successor : successors(node))
        add(successor);
    }
    return result;
  };
  std::vector<Frame> stack;
  seen.insert(entry);
  stack.push_back({entry, successorsOf(entry)});
  while (!stack.empty()) {
    Frame &frame = stack.back();
    if (frame.next < frame.successors.size()) {
      BasicBlock *successor = frame.successors[frame.next++];
      if (seen.insert(successor).second)
        stack.push_back({successor, successorsOf(successor)});
      continue;
    }
    postOrder.push_back(frame.node);
    stack.pop_back();
  }
  for (BasicBlock *node : reverse(postOrder)) {
    Loop *loop = innerLoop(node);
    if (!loop) {
      out.push_back(node);
      continue;
    }
    while (loop->getParentLoop() != within)
      loop = loop->getParentLoop();
    appendOrder(loop->getHeader(), loop, loops, out);
  }
}

void Linearization::orderBlocks(Function &function, LoopInfo &loops) {
  SmallVector<BasicBlock *> blocks;
  Loop *outer = nullptr;
  BasicBlock *entry = &function.getEntryBlock();
  if (loops.getLoopFor(entry))
    report_fatal_error("the entry block is in a loop");
  appendOrder(entry, outer, loops, blocks);
  for (BasicBlock *block : blocks) {
    places[block] = order.size();
    order.emplace_back().block = block;
  }
}

Linearization::Linearization(Function &function, const LaneAnalysis &lanes, LoopInfo &loops) {
  orderBlocks(function, loops);
  auto isTrivial = [&](const BlockPlan &plan) {
    // Running the block without an active lane is cheaper than a test: it has no side effects, and
    // its successors do not depend on a uniform value.
    auto *branch = dyn_cast<BranchInst>(plan.block->getTerminator());
    if (!branch || (branch->isConditional() && !plan.divergent))
      return false;
    if (loops.isLoopHeader(plan.block))
      return false;
    for (BasicBlock *successor : successors(plan.block))
      if (loops.isLoopHeader(successor))
        return false;
    unsigned size = 0;
    for (Instruction &inst : *plan.block) {
      if (inst.isTerminator() || isa<PHINode>(inst))
        continue;
      if (inst.mayReadOrWriteMemory() || isa<CallBase>(inst) || isa<AllocaInst>(inst) ||
          ++size > 12)
        return false;
      if (inst.getOpcode() == Instruction::UDiv || inst.getOpcode() == Instruction::SDiv ||
          inst.getOpcode() == Instruction::URem || inst.getOpcode() == Instruction::SRem)
        return false;
    }
    return true;
  };
  for (BlockPlan &plan : order)
    plan.divergent = lanes.hasDivergentBranch(*plan.block);

  bool changed = true;
  while (changed) {
    changed = false;
    for (BlockPlan &plan : order) {
      plan.next.clear();
      plan.skip.reset();
      auto flow = [&](std::set<unsigned> targets, bool certain) {
        // Control goes to the earliest target. Lanes for the other targets wait there.
        if (targets.empty())
          return ~0u;
        unsigned first = *targets.begin();
        bool alone = targets.size() == 1;
        targets.erase(targets.begin());
        BlockPlan &to = order[first];
        for (unsigned target : targets)
          changed |= to.pending.insert(target).second;
        if (!alone && !certain && !to.maybeEmpty) {
          to.maybeEmpty = true;
          changed = true;
        }
        return first;
      };
      bool tested = plan.maybeEmpty && !isTrivial(plan);
      bool nonEmpty = !plan.maybeEmpty || tested;
      if (tested)
        plan.skip = flow(plan.pending, false);
      Instruction *terminator = plan.block->getTerminator();
      if (isa<ReturnInst>(terminator)) {
        plan.next.push_back(flow(plan.pending, false));
        continue;
      }
      if (plan.divergent) {
        std::set<unsigned> targets = plan.pending;
        for (BasicBlock *successor : successors(plan.block))
          targets.insert(places[successor]);
        plan.next.push_back(flow(targets, false));
        continue;
      }
      for (BasicBlock *successor : successors(plan.block)) {
        unsigned target = places[successor];
        std::set<unsigned> targets = plan.pending;
        targets.insert(target);
        unsigned first = *targets.begin();
        plan.next.push_back(flow(targets, nonEmpty && first == target));
      }
    }
  }
}

} // namespace triton_metal::engine
