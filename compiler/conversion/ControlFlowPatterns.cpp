// Structured control flow that carries tiles. Conditions and bounds are scalars of the program, and
// therefore the same in all of its threads.

#include "conversion/TTMToMSL.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal {

namespace {

/// Creates the operation again with converted operands and results, and moves its regions there.
FailureOr<Operation *> convertInPlace(Operation *op, ValueRange operands,
                                      const TTMToMSLTypes &types,
                                      ConversionPatternRewriter &rewriter) {
  SmallVector<Type> results;
  if (failed(types.convertTypes(op->getResultTypes(), results)))
    return failure();
  OperationState state(op->getLoc(), op->getName(), operands, results, {}, op->getSuccessors());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  for (unsigned index = 0; index < op->getNumRegions(); ++index)
    state.addRegion();
  Operation *converted = rewriter.create(state);
  for (auto [from, to] : llvm::zip(op->getRegions(), converted->getRegions())) {
    rewriter.inlineRegionBefore(from, to, to.end());
    if (failed(rewriter.convertRegionTypes(&to, types)))
      return failure();
  }
  return converted;
}

template <typename Op> struct CarryPattern : RegisterPattern<Op> {
  using RegisterPattern<Op>::RegisterPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<Operation *> converted =
        convertInPlace(op, adaptor.getOperands(), this->types(), rewriter);
    if (failed(converted))
      return failure();
    rewriter.replaceOp(op, *converted);
    return success();
  }
};

/// Inlines the only block of the region into the block around it.
struct ExecuteRegionPattern : RegisterPattern<scf::ExecuteRegionOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(scf::ExecuteRegionOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getRegion().hasOneBlock())
      return failure();
    Block &block = op.getRegion().front();
    Operation *yield = block.getTerminator();
    SmallVector<Value> yielded(yield->getOperands());
    rewriter.inlineBlockBefore(&block, op);
    rewriter.eraseOp(yield);
    rewriter.replaceOp(op, yielded);
    return success();
  }
};

/// Creates a chain of `scf.if`s. Lifted control flow has few cases.
struct IndexSwitchPattern : RegisterPattern<scf::IndexSwitchOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(scf::IndexSwitchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> results;
    if (failed(types().convertTypes(op.getResultTypes(), results)))
      return failure();
    if (op.getCases().empty()) {
      Operation *yield = op.getDefaultBlock().getTerminator();
      SmallVector<Value> yielded(yield->getOperands());
      rewriter.inlineBlockBefore(&op.getDefaultBlock(), op);
      rewriter.eraseOp(yield);
      rewriter.replaceOp(op, yielded);
      return success();
    }
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value argument = adaptor.getArg();
    scf::IfOp outer;
    OpBuilder::InsertionGuard guard(rewriter);
    for (auto [index, value] : llvm::enumerate(op.getCases())) {
      Value isCase = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, argument,
                                           builder.constant(argument.getType(), value));
      auto ifOp = scf::IfOp::create(builder, results, isCase, /*addThenBlock=*/false,
                                    /*addElseBlock=*/false);
      if (outer)
        scf::YieldOp::create(builder, ifOp.getResults());
      else
        outer = ifOp;
      Region &then = ifOp.getThenRegion(), &otherwise = ifOp.getElseRegion();
      rewriter.inlineRegionBefore(op.getCaseRegions()[index], then, then.end());
      if (index + 1 < op.getCases().size())
        builder.createBlock(&otherwise);
      else
        rewriter.inlineRegionBefore(op.getDefaultRegion(), otherwise, otherwise.end());
    }
    rewriter.replaceOp(op, outer);
    return success();
  }
};

} // namespace

void populateControlFlowPatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<CarryPattern<scf::ForOp>, CarryPattern<scf::IfOp>, CarryPattern<scf::WhileOp>,
               CarryPattern<scf::YieldOp>, CarryPattern<scf::ConditionOp>, ExecuteRegionPattern,
               IndexSwitchPattern>(types, patterns.getContext());
}

} // namespace triton_metal
