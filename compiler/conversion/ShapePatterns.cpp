// What makes tiles of scalars and scalars of tiles, and what only renames registers.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

namespace {

struct MakeRangePattern : RegisterPattern<tt::MakeRangeOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::MakeRangeOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value index = builder.registerIndices(
        layoutOf(op), [](uint32_t flat) { return flat; }, [](Value flat) { return flat; },
        "thread_" + nameOf(op.getLoc(), "index"));
    if (op.getStart())
      index = arith::AddIOp::create(builder, index,
                                    builder.constant(index.getType(), int32_t(op.getStart())));
    rewriter.replaceOp(op, index);
    return success();
  }
};

struct SplatPattern : RegisterPattern<tt::SplatOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::SplatOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<msl::SplatOp>(op, convert(op.getType()), adaptor.getSrc());
    return success();
  }
};

struct UnsplatPattern : RegisterPattern<tt::UnsplatOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::UnsplatOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, buildAt(op.getLoc(), rewriter).extractScalar(adaptor.getSrc()));
    return success();
  }
};

/// Which flat element of the operand an element of the result is.
uint32_t getSource(tt::BroadcastOp, const LinearLayout &from, const LinearLayout &to,
                   uint32_t flat) {
  auto coordinates = to.toCoordinates(flat);
  for (auto [coordinate, extent] : llvm::zip(coordinates, from.getShape()))
    if (extent == 1)
      coordinate = 0;
  return from.toFlat(coordinates);
}
uint32_t getSource(tt::TransOp op, const LinearLayout &from, const LinearLayout &to,
                   uint32_t flat) {
  auto coordinates = to.toCoordinates(flat);
  LinearLayout::Shape sourceCoordinates(coordinates.size());
  for (auto [dim, sourceDim] : llvm::enumerate(op.getOrder()))
    sourceCoordinates[sourceDim] = coordinates[dim];
  return from.toFlat(sourceCoordinates);
}
uint32_t getSource(Operation *, const LinearLayout &, const LinearLayout &, uint32_t flat) {
  return flat;
}

template <typename Op> struct RenamingPattern : RegisterPattern<Op> {
  using RegisterPattern<Op>::RegisterPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LinearLayout from = layoutOf(op.getSrc()), to = layoutOf(op.getResult());
    auto registers = LinearLayout::registerMap(
        from, to, [&](uint32_t flat) { return getSource(op, from, to, flat); });
    if (!registers)
      return op.emitOpError(
          "moves data between threads; layouts should have been assigned so that it does not");
    SmallVector<int64_t> bases(registers->begin(), registers->end());
    rewriter.replaceOp(op, this->buildAt(op.getLoc(), rewriter).permute(adaptor.getSrc(), bases));
    return success();
  }
};

} // namespace

void populateShapePatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<MakeRangePattern, SplatPattern, UnsplatPattern, RenamingPattern<tt::BroadcastOp>,
               RenamingPattern<tt::ExpandDimsOp>, RenamingPattern<tt::ReshapeOp>,
               RenamingPattern<tt::TransOp>>(types, patterns.getContext());
}

} // namespace triton_metal
