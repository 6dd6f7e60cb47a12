// Loads and stores.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

namespace {

struct LoadPattern : RegisterPattern<ttm::LoadOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::LoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = convert(op.getType());
    if (Value base = adaptor.getBase())
      rewriter.replaceOpWithNewOp<msl::LoadOp>(
          op, type, base, adaptor.getOffsets(), adaptor.getMask(), adaptor.getOther(),
          adaptor.getFull(), op.getWidth(), op.getMaskWidth(), op.getIsVolatile(), op.getMaskRun(),
          op.getUnaligned());
    else
      rewriter.replaceOpWithNewOp<msl::LoadAddressOp>(
          op, type, adaptor.getOffsets(), adaptor.getMask(), adaptor.getOther(), adaptor.getFull(),
          op.getWidth(), op.getMaskWidth(), op.getIsVolatile(), op.getMaskRun(), op.getUnaligned());
    return success();
  }
};

struct StorePattern : RegisterPattern<ttm::StoreOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    // Of the threads that hold the same, one stores it.
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    builder.inThreads(builder.getOwners(ttm::getLayout(op.getValue())), [&] {
      if (Value base = adaptor.getBase())
        msl::StoreOp::create(builder, adaptor.getValue(), base, adaptor.getOffsets(),
                             adaptor.getMask(), adaptor.getFull(), op.getWidth(), op.getMaskWidth(),
                             op.getMaskRun(), op.getUnaligned());
      else
        msl::StoreAddressOp::create(builder, adaptor.getValue(), adaptor.getOffsets(),
                                    adaptor.getMask(), adaptor.getFull(), op.getWidth(),
                                    op.getMaskWidth(), op.getMaskRun(), op.getUnaligned());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateMemoryPatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<LoadPattern, StorePattern>(types, patterns.getContext());
}

} // namespace triton_metal
