#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLLEGALIZEOPERATIONS
#include "transforms/Passes.h.inc"

namespace {

using namespace msl;

/// Combines two numbers or vectors as the reduction over a SIMD-group does.
Value combine(OpBuilder &builder, Location loc, SimdReduceKind kind, Value a, Value b) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(a.getType()));
  switch (kind) {
  case SimdReduceKind::Sum:
    return isFloat ? arith::AddFOp::create(builder, loc, a, b).getResult()
                   : arith::AddIOp::create(builder, loc, a, b).getResult();
  case SimdReduceKind::Product:
    return isFloat ? arith::MulFOp::create(builder, loc, a, b).getResult()
                   : arith::MulIOp::create(builder, loc, a, b).getResult();
  case SimdReduceKind::Min:
    return isFloat ? arith::MinNumFOp::create(builder, loc, a, b).getResult()
                   : arith::MinSIOp::create(builder, loc, a, b).getResult();
  case SimdReduceKind::Max:
    return isFloat ? arith::MaxNumFOp::create(builder, loc, a, b).getResult()
                   : arith::MaxSIOp::create(builder, loc, a, b).getResult();
  case SimdReduceKind::UMin:
    return arith::MinUIOp::create(builder, loc, a, b);
  case SimdReduceKind::UMax:
    return arith::MaxUIOp::create(builder, loc, a, b);
  case SimdReduceKind::And:
    return arith::AndIOp::create(builder, loc, a, b);
  case SimdReduceKind::Or:
    return arith::OrIOp::create(builder, loc, a, b);
  case SimdReduceKind::Xor:
    return arith::XOrIOp::create(builder, loc, a, b);
  }
  llvm_unreachable("covered");
}

/// Each lane combines its value with that of the lane that differs in one bit of the index, for
/// each of the five bits.
struct ReduceByShuffles : OpRewritePattern<SimdReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SimdReduceOp op, PatternRewriter &rewriter) const override {
    Value value = op.getValue();
    for (int32_t mask = 1; mask < 32; mask *= 2) {
      Value other = SimdShuffleXorOp::create(rewriter, op.getLoc(), value.getType(), value,
                                             rewriter.getI32IntegerAttr(mask));
      value = combine(rewriter, op.getLoc(), op.getKind(), value, other);
    }
    rewriter.replaceOp(op, value);
    return success();
  }
};

struct MSLLegalizeOperationsPass : impl::MSLLegalizeOperationsBase<MSLLegalizeOperationsPass> {
  void runOnOperation() override {
    TargetAttr target = TargetAttr::get(getOperation());
    RewritePatternSet patterns(&getContext());
    if (!target.has(Feature::SimdReductions))
      patterns.add<ReduceByShuffles>(&getContext());
    if (patterns.getNativePatterns().empty())
      return markAllAnalysesPreserved();
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
} // namespace triton_metal
