// Loops of products that stay one: loads and choices of steps that may be cut stand in branches.
// See ttm-split-loops in TTMPasses.td.

#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"
#include "transforms/TTMLoopSplit.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace triton_metal {

using namespace ttm;

/// Whether nothing but tiles of products takes what an operation gives.
bool LoopSplit::feedsTiles(Operation *op) {
  if (isa<StoreTileOp>(op))
    return true;
  if (auto it = tileFeeds.find(op); it != tileFeeds.end())
    return it->second;
  bool feeds = isPure(op) && !op->use_empty() &&
               llvm::all_of(op->getUsers(), [&](Operation *user) { return feedsTiles(user); });
  tileFeeds[op] = feeds;
  return feeds;
}

/// Puts loads and choices into both sides of a branch: with the masks of a whole step, and as they
/// are. What goes from loads to the tiles of a product goes with them, so that sums of products
/// live in one loop.
void LoopSplit::branch() {
  // Loads of the next step stand in branches of their own.
  SmallVector<Block *> blocks{loop.getBody()};
  loop.getBody()->walk([&](scf::IfOp op) {
    for (Region *region : op.getRegions())
      if (!region->empty())
        blocks.push_back(&region->front());
  });
  for (Block *block : blocks)
    branch(*block);
  for (Block *block : blocks)
    sinkIntoCuts(*block);
}

/// The same in a block.
void LoopSplit::branch(Block &block) {
  SmallVector<SmallVector<Operation *>> groups(1), choices;
  DenseSet<Operation *> moved;
  tileFeeds.clear();
  auto endGroup = [&] {
    moved.clear();
    if (!groups.back().empty())
      groups.emplace_back();
  };
  for (Operation &op : block.without_terminator()) {
    SmallVector<const Comparison *> found;
    if (Value mask = isa<tt::LoadOp>(op) ? getMask(&op) : Value())
      findComparisons(mask, found);
    bool depends = llvm::any_of(
        op.getOperands(), [&](Value operand) { return moved.contains(operand.getDefiningOp()); });
    bool follows = depends && (isPure(&op) || isa<StoreTileOp>(op)) && op.getNumRegions() == 0 &&
                   (!chooses || feedsTiles(&op));
    if (!found.empty() || follows) {
      moved.insert(&op);
      groups.back().push_back(&op);
      continue;
    }
    // Accesses keep their order, and what takes a group's results comes behind it.
    if (depends || op.getNumRegions() || (!isPure(&op) && !isa<AllocTileOp>(op)))
      endGroup();
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      findComparisons(select.getCondition(), found);
      if (!found.empty())
        choices.push_back({select});
    }
  }
  groups.append(choices);
  for (ArrayRef<Operation *> group : groups)
    if (!group.empty())
      branch(group);
}

/// The same for a group of operations. Nothing else between them depends on them.
void LoopSplit::branch(ArrayRef<Operation *> group) {
  // Blocks that hold all keys may still have some that a query does not see: each group has a bound
  // of its own.
  DenseSet<Operation *> isTrue;
  Value bound = createGroupBound(group, isTrue);
  if (!bound)
    return;
  if (bound == loop.getUpperBound()) {
    for (Operation *op : group)
      dropMasks(op, isTrue);
    return;
  }
  SmallVector<Value> results;
  auto isOutside = [&](Operation *user) { return !llvm::is_contained(group, user); };
  for (Operation *op : group)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), isOutside))
        results.push_back(result);
  builder.setInsertionPointAfter(group.back());
  Value isWhole = arith::CmpIOp::create(builder, where, arith::CmpIPredicate::slt,
                                        loop.getInductionVar(), bound);
  auto choice = scf::IfOp::create(builder, where, ValueRange(results).getTypes(), isWhole,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  for (Region *side : {&choice.getThenRegion(), &choice.getElseRegion()}) {
    IRMapping mapping;
    builder.setInsertionPointToStart(&side->front());
    for (Operation *op : group)
      builder.clone(*op, mapping);
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(mapping.lookup(result));
    scf::YieldOp::create(builder, where, yielded);
  }
  for (auto [result, chosen] : llvm::zip(results, choice.getResults()))
    result.replaceUsesWithIf(chosen, [&](OpOperand &use) { return isOutside(use.getOwner()); });
  for (Operation *op : llvm::reverse(group))
    op->erase();
  for (Operation &op : choice.getThenRegion().front())
    dropMasks(&op, isTrue);
  IRRewriter rewriter(loop.getContext());
  (void)runRegionDCE(rewriter, choice.getThenRegion());
  choice.getElseRegion().walk([&](tt::LoadOp load) { markCut(load, /*isCut=*/true); });
  cuts.push_back(&choice.getElseRegion());
}

/// What is left of bounds is asked in the steps that they cut alone, and in each of their branches
/// again.
void LoopSplit::sinkIntoCuts(Block &block) {
  for (Operation *op = &block.back(); op;) {
    Operation *current = std::exchange(op, op->getPrevNode());
    if (!isPure(current) || current->getNumRegions() || current->use_empty())
      continue;
    llvm::SmallSetVector<Region *, 4> users;
    for (Operation *user : current->getUsers()) {
      auto *it = llvm::find_if(
          cuts, [&](Region *cut) { return cut->isAncestor(user->getParentRegion()); });
      users.insert(it == cuts.end() ? nullptr : *it);
    }
    if (users.contains(nullptr))
      continue;
    for (Region *cut : users) {
      builder.setInsertionPointToStart(&cut->front());
      Operation *copy = builder.clone(*current);
      for (auto [result, again] : llvm::zip(current->getResults(), copy->getResults()))
        result.replaceUsesWithIf(again, [&](OpOperand &use) {
          return use.getOwner() != copy && cut->isAncestor(use.getOwner()->getParentRegion());
        });
    }
    current->erase();
  }
}

/// The index before which the steps are whole for a group, in front of the loop, and the
/// comparisons that are true in them. It is the loop's end where all steps are whole, and null
/// where none is.
Value LoopSplit::createGroupBound(ArrayRef<Operation *> group, DenseSet<Operation *> &isTrue) {
  DenseSet<const Comparison *> asked;
  for (Operation *op : group) {
    SmallVector<const Comparison *> found;
    if (Value mask = getCondition(op))
      findComparisons(mask, found);
    asked.insert_range(found);
  }
  Comparisons own;
  for (auto &[op, comparison] : comparisons)
    if (asked.contains(&comparison)) {
      own.insert({op, comparison});
      isTrue.insert(op);
    }
  findConditions(own);
  builder.setInsertionPoint(loop);
  Operation *before = loop->getPrevNode();
  // No index reaches the upper bound, so that it is no part of this one, and nothing is rounded.
  Value bound;
  for (auto &[sum, factor] : limits) {
    Value limit = createLimit(sum, factor);
    bound = bound ? builder.createOrFold<arith::MinSIOp>(where, bound, limit) : limit;
  }
  if (!bound)
    bound = loop.getUpperBound();
  if (Value all = createConditions())
    bound = builder.createOrFold<arith::SelectOp>(where, all, bound, loop.getLowerBound());
  if (Operation *last = loop->getPrevNode(); last != before && last == bound.getDefiningOp())
    last->setLoc(getBoundName());
  APInt lower, end;
  bool never = matchPattern(bound, m_ConstantInt(&end)) &&
               matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) && end.sle(lower);
  return never ? Value() : bound;
}

} // namespace triton_metal
