// Loops that run at most once, and two of which one runs, become branches: see Passes.td.

#include "dialect/msl/MSL.h"
#include "transforms/Erase.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLSINGLESTEPS
#include "transforms/Passes.h.inc"

namespace {

LogicalResult rewrite(scf::ForOp loop) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  // Only what somebody reads is a result of the branch.
  SmallVector<Type> types;
  SmallVector<Value> kept, yielded;
  for (auto [result, init, last] :
       llvm::zip_equal(loop.getResults(), loop.getInitArgs(), loop.getYieldedValues()))
    if (!result.use_empty()) {
      types.push_back(result.getType());
      kept.push_back(init);
      yielded.push_back(last);
    }
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value runs =
      arith::CmpIOp::create(builder, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
  auto branch = scf::IfOp::create(builder, loc, types, runs, /*withElseRegion=*/!types.empty());
  if (!types.empty()) {
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, kept);
  }
  unsigned number = 0;
  for (Value result : loop.getResults())
    if (!result.use_empty())
      result.replaceAllUsesWith(branch.getResult(number++));
  Block *body = loop.getBody(), *then = branch.thenBlock();
  body->getTerminator()->setOperands(yielded);
  loop.getInductionVar().replaceAllUsesWith(loop.getLowerBound());
  for (auto [argument, init] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    argument.replaceAllUsesWith(init);
  if (!then->empty())
    then->back().erase();
  then->getOperations().splice(then->end(), body->getOperations());
  builder.setInsertionPointToEnd(body);
  scf::YieldOp::create(builder, loc, loop.getInitArgs());
  return eraseUnread(loop);
}

/// The loop that has all steps where the second one has none; null if something stands in the way.
scf::ForOp findOtherVersion(scf::ForOp second) {
  for (Operation *op = second->getPrevNode(); op; op = op->getPrevNode()) {
    if (auto first = dyn_cast<scf::ForOp>(op); first && first->hasAttr(msl::kVersionAttr)) {
      bool isOther = first.getUpperBound() == second.getLowerBound() &&
                     first.getStep() == second.getStep() &&
                     first.getUnsignedCmp() == second.getUnsignedCmp();
      // Nobody else may need what the first one gives.
      return isOther && llvm::all_of(first->getUsers(),
                                     [&](Operation *user) { return user == second; })
                 ? first
                 : scf::ForOp();
    }
    if (op->getNumRegions() || !(isMemoryEffectFree(op) || isa<msl::VarOp>(op)))
      return {};
  }
  return {};
}

/// Makes the two sides of a branch of two loops of which one runs.
LogicalResult choose(scf::ForOp second) {
  auto bound = second.getLowerBound().getDefiningOp<arith::SelectOp>();
  scf::ForOp first = bound ? findOtherVersion(second) : scf::ForOp();
  if (!first || bound.getTrueValue() != second.getUpperBound() ||
      bound.getFalseValue() != first.getLowerBound())
    return success();
  OpBuilder builder(second);
  Location loc = second.getLoc();
  SmallVector<unsigned> read;
  SmallVector<Type> types;
  for (OpResult result : second.getResults())
    if (!result.use_empty()) {
      read.push_back(result.getResultNumber());
      types.push_back(result.getType());
    }
  auto branch =
      scf::IfOp::create(builder, loc, types, bound.getCondition(), /*withElseRegion=*/true);
  for (auto [index, number] : llvm::enumerate(read))
    second.getResult(number).replaceAllUsesWith(branch.getResult(index));
  auto end = [&](Block *block, scf::ForOp loop, auto get) {
    SmallVector<Value> values = llvm::map_to_vector(read, get);
    if (!block->empty())
      block->back().erase();
    loop->moveBefore(block, block->end());
    builder.setInsertionPointToEnd(block);
    scf::YieldOp::create(builder, loc, values);
  };
  first.getUpperBoundMutable().assign(second.getUpperBound());
  second.getLowerBoundMutable().assign(first.getLowerBound());
  end(branch.thenBlock(), first, [&](unsigned number) { return second.getInitArgs()[number]; });
  for (OpOperand &init : second.getInitArgsMutable())
    if (init.get().getDefiningOp() == first)
      init.set(first.getInitArgs()[cast<OpResult>(init.get()).getResultNumber()]);
  end(branch.elseBlock(), second, [&](unsigned number) { return second.getResult(number); });
  return bound->use_empty() ? eraseUnread(bound) : success();
}

struct MSLSingleStepsPass : impl::MSLSingleStepsBase<MSLSingleStepsPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(msl::kAtMostOnceAttr) || loop->hasAttr(msl::kVersionAttr))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      if (failed(loop->hasAttr(msl::kVersionAttr) ? choose(loop) : rewrite(loop)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
