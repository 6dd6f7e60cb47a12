// Numbers that become shorter do so before their tile takes another shape.

#include "dialect/tt/TT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "transforms/FloatFormats.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTNARROWSHAPES
#include "transforms/Passes.h.inc"

namespace {

/// Whether two operations make the same shorter numbers of theirs.
bool narrowAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getAttrDictionary() == b->getAttrDictionary() &&
         getElementTypeOrSelf(a->getResult(0)) == getElementTypeOrSelf(b->getResult(0));
}

/// The operation that shortens all that is used of another one's results; null if there is none, or
/// if they are used otherwise.
Operation *getNarrowing(Operation *op) {
  Operation *found = nullptr;
  for (Operation *user : op->getUsers()) {
    if (!isa<arith::TruncFOp, arith::TruncIOp>(user) || (found && !narrowAlike(found, user)))
      return nullptr;
    found = user;
  }
  return found;
}

template <typename OpTy> struct NarrowFirst : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    Operation *narrowing = getNarrowing(op);
    if (!narrowing)
      return failure();
    Type element = getElementTypeOrSelf(narrowing->getResult(0));
    Location loc = narrowing->getLoc();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      Operation *narrowed = rewriter.create(
          OperationState(loc, narrowing->getName(), operand,
                         withElementType(operand.getType(), element), narrowing->getAttrs()));
      operands.push_back(narrowed->getResult(0));
    }
    Operation *shaped = rewriter.clone(*op);
    shaped->setOperands(operands);
    for (auto [result, old] : llvm::zip_equal(shaped->getResults(), op->getResults())) {
      result.setType(withElementType(old.getType(), element));
      for (Operation *user : llvm::make_early_inc_range(old.getUsers()))
        rewriter.replaceOp(user, result);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct TTNarrowShapesPass : impl::TTNarrowShapesBase<TTNarrowShapesPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<NarrowFirst<tt::ReshapeOp>, NarrowFirst<tt::TransOp>, NarrowFirst<tt::SplitOp>,
                 NarrowFirst<tt::JoinOp>>(&getContext());
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
