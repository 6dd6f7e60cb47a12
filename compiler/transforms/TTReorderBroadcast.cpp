#include "dialect/tt/TT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTREORDERBROADCAST
#include "transforms/Passes.h.inc"

namespace {

/// Whether an operation does the same to every element, and nothing else.
bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 &&
         op->getNumOperands() != 0 && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         isa<RankedTensorType>(op->getResult(0).getType()) &&
         !isa<tt::ElementwiseInlineAsmOp, tt::ExternElementwiseOp>(op);
}

/// The value of a constant that is the same everywhere; null for anything else.
TypedAttr splatConstant(Value value) {
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return {};
  auto splat = dyn_cast<SplatElementsAttr>(attr);
  return splat ? dyn_cast<TypedAttr>(splat.getSplatValue<Attribute>()) : TypedAttr();
}

/// Creates the operation with other operands. The result has their shape.
Value cloneOn(PatternRewriter &rewriter, Operation *op, ValueRange operands,
              ArrayRef<int64_t> shape, bool scalar) {
  Operation *made = rewriter.clone(*op);
  made->setOperands(operands);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (scalar)
    made->getResult(0).setType(type.getElementType());
  else
    made->getResult(0).setType(type.clone(shape));
  return made->getResult(0);
}

/// Arithmetic on splats becomes arithmetic on their scalars.
struct OnSplats : RewritePattern {
  explicit OnSplats(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    bool anySplat = false;
    for (Value operand : op->getOperands()) {
      bool splat = operand.getDefiningOp<tt::SplatOp>() != nullptr;
      anySplat |= splat;
      if (!splat && isa<RankedTensorType>(operand.getType()) && !splatConstant(operand))
        return failure();
    }
    if (!anySplat)
      return failure();
    SmallVector<Value> scalars;
    for (Value operand : op->getOperands()) {
      if (auto splat = operand.getDefiningOp<tt::SplatOp>())
        scalars.push_back(splat.getSrc());
      else if (TypedAttr constant = splatConstant(operand))
        scalars.push_back(arith::ConstantOp::create(rewriter, op->getLoc(), constant));
      else
        scalars.push_back(operand);
    }
    Value scalar = cloneOn(rewriter, op, scalars, {}, /*scalar=*/true);
    rewriter.replaceOpWithNewOp<tt::SplatOp>(op, op->getResult(0).getType(), scalar);
    return success();
  }
};

/// Arithmetic on broadcasts becomes arithmetic on the smaller tiles.
struct OnBroadcasts : RewritePattern {
  explicit OnBroadcasts(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    std::optional<ArrayRef<int64_t>> shape;
    for (Value operand : op->getOperands()) {
      if (auto broadcast = operand.getDefiningOp<tt::BroadcastOp>()) {
        if (shape && *shape != broadcast.getSrc().getType().getShape())
          return failure();
        shape = broadcast.getSrc().getType().getShape();
      } else if (isa<RankedTensorType>(operand.getType()) &&
                 !operand.getDefiningOp<tt::SplatOp>() && !splatConstant(operand)) {
        return failure();
      }
    }
    if (!shape)
      return failure();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (auto broadcast = operand.getDefiningOp<tt::BroadcastOp>()) {
        operands.push_back(broadcast.getSrc());
      } else if (!type) {
        operands.push_back(operand);
      } else if (auto splat = operand.getDefiningOp<tt::SplatOp>()) {
        operands.push_back(
            tt::SplatOp::create(rewriter, op->getLoc(), type.clone(*shape), splat.getSrc()));
      } else {
        auto value = SplatElementsAttr::get(cast<ShapedType>(type.clone(*shape)),
                                            ArrayRef<Attribute>(splatConstant(operand)));
        operands.push_back(arith::ConstantOp::create(rewriter, op->getLoc(), value));
      }
    }
    Value small = cloneOn(rewriter, op, operands, *shape, /*scalar=*/false);
    rewriter.replaceOpWithNewOp<tt::BroadcastOp>(op, op->getResult(0).getType(), small);
    return success();
  }
};

struct TTReorderBroadcastPass : impl::TTReorderBroadcastBase<TTReorderBroadcastPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<OnSplats, OnBroadcasts>(&getContext());
    tt::BroadcastOp::getCanonicalizationPatterns(patterns, &getContext());
    tt::ExpandDimsOp::getCanonicalizationPatterns(patterns, &getContext());
    // Each region has one block, so regions cannot be simplified.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
