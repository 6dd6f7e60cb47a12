// Conversions between scalars and tiles, and operations that only rename registers.

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

/// The flat index of the operand's element that becomes this element of the result.
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

/// Combines two tiles into one. Each register of the result is a register of one of them:
/// `isSecond(flat)` says of which tile, and `source(flat)` which of its elements.
template <typename Op>
LogicalResult interleave(const RegisterPattern<Op> &, Op op, ValueRange tiles,
                         RegisterBuilder builder, ConversionPatternRewriter &rewriter,
                         function_ref<bool(uint32_t)> isSecond,
                         function_ref<uint32_t(uint32_t)> source) {
  LinearLayout from = layoutOf(op.getLhs()), to = layoutOf(op.getResult());
  auto registers = LinearLayout::registerMap(from, to, source);
  auto isInThread = [&](uint32_t base) { return !isSecond(base); };
  if (!registers || !llvm::all_of(to.getLaneBases(), isInThread) ||
      !llvm::all_of(to.getSimdgroupBases(), isInThread))
    return op.emitOpError(
        "moves data between threads; layouts should have been assigned so that it does not");
  SmallVector<int64_t> bases(registers->begin(), registers->end());
  SmallVector<bool> second;
  for (unsigned reg = 0; reg < to.getNumRegisters(); ++reg)
    second.push_back(isSecond(to.apply(reg, 0, 0)));
  Value choice = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(VectorType::get(second.size(), builder.getI1Type()), second));
  rewriter.replaceOp(op, arith::SelectOp::create(builder, choice, builder.permute(tiles[1], bases),
                                                 builder.permute(tiles[0], bases)));
  return success();
}

struct JoinPattern : RegisterPattern<tt::JoinOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::JoinOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    return interleave(
        *this, op, adaptor.getOperands(), buildAt(op.getLoc(), rewriter), rewriter,
        [](uint32_t flat) { return flat & 1; }, [](uint32_t flat) { return flat >> 1; });
  }
};

struct CatPattern : RegisterPattern<tt::CatOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::CatOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    uint32_t half = layoutOf(op.getLhs()).getNumElements();
    return interleave(
        *this, op, adaptor.getOperands(), buildAt(op.getLoc(), rewriter), rewriter,
        [=](uint32_t flat) { return flat & half; },
        [=](uint32_t flat) { return flat & (half - 1); });
  }
};

struct SplitPattern : RegisterPattern<tt::SplitOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::SplitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LinearLayout from = layoutOf(op.getSrc()), to = layoutOf(op.getOutLHS());
    auto registers = LinearLayout::registerMap(from, to, [](uint32_t flat) { return flat << 1; });
    unsigned pair = 0;
    if (!registers || !from.split(&pair))
      return op.emitOpError(
          "moves data between threads; layouts should have been assigned so that it does not");
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    SmallVector<int64_t> bases(registers->begin(), registers->end());
    rewriter.replaceOp(op, {builder.permute(adaptor.getSrc(), bases),
                            builder.permute(adaptor.getSrc(), bases, int64_t(1) << pair)});
    return success();
  }
};

} // namespace

void populateShapePatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<MakeRangePattern, SplatPattern, UnsplatPattern, RenamingPattern<tt::BroadcastOp>,
               RenamingPattern<tt::ExpandDimsOp>, RenamingPattern<tt::ReshapeOp>,
               RenamingPattern<tt::TransOp>, JoinPattern, CatPattern, SplitPattern>(
      types, patterns.getContext());
}

} // namespace triton_metal
