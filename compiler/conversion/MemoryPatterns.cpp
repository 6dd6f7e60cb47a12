// Loads and stores.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

namespace {

struct LoadPattern : RegisterPattern<ttm::LoadOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::LoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Type type = convert(op.getType());
    Value offsets = adaptor.getOffsets(), mask = adaptor.getMask(), other = adaptor.getOther();
    // The first register of each group that has one address; and for each register its group.
    SmallVector<int64_t> first, group(llvm::Log2_64(op.getRepeat()), 0);
    if (op.getRepeat() > 1) {
      int64_t groups = cast<VectorType>(type).getNumElements() / op.getRepeat();
      for (int64_t bit = 1; bit < groups; bit <<= 1) {
        first.push_back(bit * op.getRepeat());
        group.push_back(bit);
      }
      type = VectorType::get(groups, getElementTypeOrSelf(type));
      for (Value *value : {&offsets, &mask, &other})
        if (*value)
          *value = builder.permute(*value, first);
    }
    Value loaded;
    if (Value base = adaptor.getBase())
      loaded = msl::LoadOp::create(builder, type, base, offsets, mask, other, adaptor.getFull(),
                                   op.getWidth(), op.getMaskWidth(), op.getIsVolatile(),
                                   op.getMaskRun(), op.getUnaligned());
    else
      loaded = msl::LoadAddressOp::create(builder, type, offsets, mask, other, adaptor.getFull(),
                                          op.getWidth(), op.getMaskWidth(), op.getIsVolatile(),
                                          op.getMaskRun(), op.getUnaligned());
    rewriter.replaceOp(op, op.getRepeat() > 1 ? builder.permute(loaded, group) : loaded);
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
