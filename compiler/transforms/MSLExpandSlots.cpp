#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLEXPANDSLOTS
#include "transforms/Passes.h.inc"

namespace {

using namespace msl;

Value constantOf(OpBuilder &builder, Location loc, int64_t number) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
}

/// A slot begins at its number times the elements of a slot.
struct SlotAsOffset : OpRewritePattern<SlotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SlotOp op, PatternRewriter &rewriter) const override {
    auto alloc = op.getMemory().getDefiningOp<AllocOp>();
    Location loc = op.getLoc();
    // The pointer keeps its name. Its distance from the first slot has another one.
    Location begin = NameLoc::get(rewriter.getStringAttr("slot_begin"));
    Value offset = rewriter.createOrFold<arith::MulIOp>(
        begin, op.getSlot(), constantOf(rewriter, loc, alloc.getCount()));
    rewriter.replaceOp(op, rewriter.createOrFold<PtrAddOp>(loc, op.getMemory(), offset));
    return success();
  }
};

/// Of two slots, the next is the other one. Of more, the one after the last is the first.
struct NextSlotAsNumber : OpRewritePattern<NextSlotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(NextSlotOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value one = constantOf(rewriter, loc, 1);
    if (op.getSlots() == 2) {
      rewriter.replaceOpWithNewOp<arith::XOrIOp>(op, op.getSlot(), one);
      return success();
    }
    Value next = arith::AddIOp::create(rewriter, loc, op.getSlot(), one);
    Value isBehind = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, next,
                                           constantOf(rewriter, loc, op.getSlots()));
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isBehind, constantOf(rewriter, loc, 0), next);
    return success();
  }
};

struct MSLExpandSlotsPass : impl::MSLExpandSlotsBase<MSLExpandSlotsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SlotAsOffset, NextSlotAsNumber>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation().walk([](AllocOp alloc) {
      alloc.setCount(alloc.getCount() * alloc.getSlots());
      alloc.setSlots(1);
    });
  }
};

} // namespace
} // namespace triton_metal
