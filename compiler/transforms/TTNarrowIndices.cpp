#include "dialect/tt/TT.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTNARROWINDICES
#include "transforms/Passes.h.inc"

namespace {

/// An operation that only moves elements moves the narrow ones, and the result is extended.
template <typename Shape, typename Extend> struct ExtendLast : OpRewritePattern<Shape> {
  using OpRewritePattern<Shape>::OpRewritePattern;
  LogicalResult matchAndRewrite(Shape op, PatternRewriter &rewriter) const override {
    auto extend = op->getOperand(0).template getDefiningOp<Extend>();
    if (!extend)
      return failure();
    Operation *moved = rewriter.clone(*op);
    moved->setOperand(0, extend.getIn());
    auto type = cast<RankedTensorType>(op.getType());
    moved->getResult(0).setType(type.clone(getElementTypeOrSelf(extend.getIn().getType())));
    rewriter.replaceOpWithNewOp<Extend>(op, type, moved->getResult(0));
    return success();
  }
};

/// Offsets are signed: a sign extension of one changes nothing.
struct AddPtrOfExtension : OpRewritePattern<tt::AddPtrOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tt::AddPtrOp op, PatternRewriter &rewriter) const override {
    auto extend = op.getOffset().getDefiningOp<arith::ExtSIOp>();
    if (!extend || tt::getBitWidth(extend.getIn().getType()) < 32)
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getOffsetMutable().assign(extend.getIn()); });
    return success();
  }
};

/// The range of a value, where the solver has one.
std::optional<ConstantIntRanges> rangeOf(DataFlowSolver &solver, Value value) {
  auto *state = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
  if (!state || state->getValue().isUninitialized())
    return std::nullopt;
  return state->getValue().getValue();
}

/// A zero extension of what is never negative is a sign extension.
struct SignExtension : OpRewritePattern<arith::ExtUIOp> {
  SignExtension(MLIRContext *context, DataFlowSolver &solver)
      : OpRewritePattern(context), solver(solver) {}
  LogicalResult matchAndRewrite(arith::ExtUIOp op, PatternRewriter &rewriter) const override {
    std::optional<ConstantIntRanges> range = rangeOf(solver, op.getIn());
    if (!range || range->smin().isNegative() || tt::getBitWidth(op.getIn().getType()) < 32)
      return failure();
    rewriter.replaceOpWithNewOp<arith::ExtSIOp>(op, op.getType(), op.getIn());
    return success();
  }
  DataFlowSolver &solver;
};

/// 64-bit offsets whose range fits in 32 bits are cut to them right where they are used.
struct NarrowOffset : OpRewritePattern<tt::AddPtrOp> {
  NarrowOffset(MLIRContext *context, DataFlowSolver &solver)
      : OpRewritePattern(context), solver(solver) {}
  LogicalResult matchAndRewrite(tt::AddPtrOp op, PatternRewriter &rewriter) const override {
    Value offset = op.getOffset();
    if (tt::getBitWidth(offset.getType()) <= 32)
      return failure();
    std::optional<ConstantIntRanges> range = rangeOf(solver, offset);
    if (!range || !range->smin().isSignedIntN(32) || !range->smax().isSignedIntN(32))
      return failure();
    Type i32 = rewriter.getI32Type();
    Type type = i32;
    if (auto tensor = dyn_cast<RankedTensorType>(offset.getType()))
      type = tensor.clone(i32);
    Value narrow = arith::TruncIOp::create(rewriter, op.getLoc(), type, offset);
    rewriter.modifyOpInPlace(op, [&] { op.getOffsetMutable().assign(narrow); });
    return success();
  }
  DataFlowSolver &solver;
};

/// Keeps the solver from answering for values that are gone: a new one may lie at the same address.
struct ForgetErased : RewriterBase::Listener {
  explicit ForgetErased(DataFlowSolver &solver) : solver(solver) {}
  void notifyOperationErased(Operation *op) override {
    solver.eraseState(solver.getProgramPointAfter(op));
    for (Value result : op->getResults())
      solver.eraseState(result);
  }
  DataFlowSolver &solver;
};

struct TTNarrowIndicesPass : impl::TTNarrowIndicesBase<TTNarrowIndicesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<tt::FuncOp>())
      if (!function.isExternal() && failed(narrow(function)))
        return signalPassFailure();
  }

  LogicalResult narrow(tt::FuncOp function) {
    DataFlowSolver solver;
    dataflow::loadBaselineAnalyses(solver);
    solver.load<dataflow::IntegerRangeAnalysis>();
    if (failed(solver.initializeAndRun(function)))
      return failure();

    MLIRContext *context = &getContext();
    ForgetErased listener(solver);
    RewritePatternSet patterns(context);
    arith::populateIntRangeNarrowingPatterns(patterns, solver, {32});
    patterns.add<SignExtension, NarrowOffset>(context, solver);
    patterns.add<AddPtrOfExtension>(context);
    patterns
        .add<ExtendLast<tt::SplatOp, arith::ExtSIOp>, ExtendLast<tt::BroadcastOp, arith::ExtSIOp>,
             ExtendLast<tt::ExpandDimsOp, arith::ExtSIOp>,
             ExtendLast<tt::ReshapeOp, arith::ExtSIOp>, ExtendLast<tt::TransOp, arith::ExtSIOp>>(
            context);
    GreedyRewriteConfig config;
    config.enableFolding(false);
    config.setListener(&listener);
    return applyPatternsGreedily(function, std::move(patterns), config);
  }
};

} // namespace
} // namespace triton_metal
