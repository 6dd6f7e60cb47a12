// Loads and stores.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

namespace {

struct LoadPattern : RegisterPattern<ttm::LoadOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::LoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getRepeat() > 1) {
      rewriter.replaceOp(op, loadOnce(op, adaptor, rewriter));
      return success();
    }
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

private:
  /// Reads one element for each group of registers that have its address.
  Value loadOnce(ttm::LoadOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    auto type = cast<VectorType>(convert(op.getType()));
    unsigned inGroup = llvm::Log2_64(op.getRepeat()),
             groups = llvm::Log2_64(type.getNumElements()) - inGroup;
    // The first of each group; and for each register its group.
    SmallVector<int64_t> first, group(inGroup, 0);
    for (unsigned bit = 0; bit < groups; ++bit) {
      first.push_back(int64_t(1) << (inGroup + bit));
      group.push_back(int64_t(1) << bit);
    }
    auto once = [&](Value value) {
      return value && isa<VectorType>(value.getType()) ? builder.permute(value, first) : value;
    };
    auto narrow = VectorType::get(int64_t(1) << groups, type.getElementType());
    Value offsets = once(adaptor.getOffsets()), mask = once(adaptor.getMask()),
          other = once(adaptor.getOther()), loaded;
    if (Value base = adaptor.getBase())
      loaded = msl::LoadOp::create(builder, narrow, base, offsets, mask, other, adaptor.getFull(),
                                   1, 1, op.getIsVolatile(), 1, false);
    else
      loaded = msl::LoadAddressOp::create(builder, narrow, offsets, mask, other, adaptor.getFull(),
                                          1, 1, op.getIsVolatile(), 1, false);
    return builder.permute(loaded, group);
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
