#include "dialect/tt/TT.h"
#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTLIFTCONTROLFLOW
#include "transforms/Passes.h.inc"

namespace {

/// Lifts functions as MLIR does, but ends them with tt.return.
struct LiftTT : ControlFlowToSCFTransformation {
  FailureOr<Operation *> createUnreachableTerminator(Location loc, OpBuilder &builder,
                                                     Region &region) override {
    auto function = dyn_cast<tt::FuncOp>(region.getParentOp());
    if (!function)
      return emitError(loc) << "a loop that never ends stands where it cannot be lifted";
    SmallVector<Value> results;
    for (Type type : function.getResultTypes())
      results.push_back(getUndefValue(loc, builder, type));
    return tt::ReturnOp::create(builder, loc, results).getOperation();
  }
};

/// Lifting leaves a switch on a small number. It becomes a chain of ifs, so that later passes need
/// not support switches.
void switchToIfs(scf::IndexSwitchOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  // The `else` region of each `if` holds the rest of the switch.
  Value selector = op.getArg();
  if (auto cast = selector.getDefiningOp<arith::IndexCastUIOp>())
    selector = cast.getIn();
  scf::IfOp outer, inner;
  for (auto [value, region] : llvm::zip_equal(op.getCases(), op.getCaseRegions())) {
    if (inner)
      builder.setInsertionPointToStart(inner.elseBlock());
    Value number =
        arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(selector.getType(), value));
    Value equal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, selector, number);
    auto branch =
        scf::IfOp::create(builder, loc, op.getResultTypes(), equal, /*addThenBlock=*/false,
                          /*addElseBlock=*/false);
    branch.getThenRegion().takeBody(region);
    branch.getElseRegion().emplaceBlock();
    if (inner)
      scf::YieldOp::create(builder, loc, branch.getResults());
    else
      outer = branch;
    inner = branch;
  }
  if (!inner)
    return;
  inner.getElseRegion().takeBody(op.getDefaultRegion());
  op.replaceAllUsesWith(outer.getResults());
  op.erase();
}

/// An early return leaves an `if` that is empty if its condition holds. With the opposite
/// condition, it reads better.
void turnRound(scf::IfOp op) {
  if (op.getNumResults() != 0 || op.getElseRegion().empty() ||
      !llvm::hasSingleElement(*op.thenBlock()))
    return;
  OpBuilder builder(op);
  Value truth = arith::ConstantOp::create(builder, op.getLoc(), builder.getBoolAttr(true));
  op.getConditionMutable().assign(
      arith::XOrIOp::create(builder, op.getLoc(), op.getCondition(), truth));
  op.getThenRegion().takeBody(op.getElseRegion());
}

struct TTLiftControlFlowPass : impl::TTLiftControlFlowBase<TTLiftControlFlowPass> {
  void runOnOperation() override {
    LiftTT lift;
    bool changed = false;
    WalkResult walk = getOperation().walk([&](tt::FuncOp function) {
      if (function.isExternal())
        return WalkResult::advance();
      // Unreachable blocks would be lifted only in part.
      IRRewriter rewriter(&getContext());
      changed |= succeeded(eraseUnreachableBlocks(rewriter, function->getRegions()));
      DominanceInfo dominance(function);
      // Inner regions come first. scf.execute_region and map_elementwise may have several blocks,
      // too.
      WalkResult inner = function.walk<WalkOrder::PostOrder>([&](Operation *op) {
        for (Region &region : op->getRegions()) {
          if (region.empty() || region.hasOneBlock())
            continue;
          FailureOr<bool> lifted = transformCFGToSCF(region, lift, dominance);
          if (failed(lifted)) {
            op->emitOpError() << "has branches that cannot be made structured control flow";
            return WalkResult::interrupt();
          }
          changed |= *lifted;
        }
        return WalkResult::advance();
      });
      return inner;
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    getOperation().walk([](scf::IndexSwitchOp op) { switchToIfs(op); });
    if (changed)
      getOperation().walk([](scf::IfOp op) { turnRound(op); });
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
