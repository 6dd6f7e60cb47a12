// Loops that run at most once become branches: see Passes.td.

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

struct MSLSingleStepsPass : impl::MSLSingleStepsBase<MSLSingleStepsPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(msl::kAtMostOnceAttr))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      if (failed(rewrite(loop)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
