// Reductions: the registers of a thread, and the lanes of a SIMD-group.

#include "analysis/CombineRegion.h"
#include "conversion/CombineRegion.h"
#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

/// The SIMD-group function that does what the combiner does, for every number. What Metal's
/// simd_max and simd_min make of a NaN is not documented, so floats are compared lane by lane.
static std::optional<msl::SimdReduceKind> getSimdReduceKind(Operation *combiner) {
  if (!combiner || !msl::ScalarType::get(combiner->getResult(0).getType())->hasSimdReduction)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<msl::SimdReduceKind>>(combiner)
      .Case<arith::AddFOp, arith::AddIOp>([](Operation *) { return msl::SimdReduceKind::Sum; })
      .Case([](arith::AndIOp) { return msl::SimdReduceKind::And; })
      .Case([](arith::OrIOp) { return msl::SimdReduceKind::Or; })
      .Case([](arith::XOrIOp) { return msl::SimdReduceKind::Xor; })
      .Case([](arith::MaxSIOp) { return msl::SimdReduceKind::Max; })
      .Case([](arith::MinSIOp) { return msl::SimdReduceKind::Min; })
      .Case([](arith::MaxUIOp) { return msl::SimdReduceKind::UMax; })
      .Case([](arith::MinUIOp) { return msl::SimdReduceKind::UMin; })
      .Default(std::optional<msl::SimdReduceKind>());
}

namespace {

struct ReducePattern : RegisterPattern<ttm::ReduceOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::ReduceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LinearLayout layout = layoutOf(op.getSrcs()[0]);
    uint32_t inFlat = uint32_t(op.getBits()) << layout.dimShift(op.getAxis());
    auto bitsOf = [&](InDim part) {
      uint32_t bits = 0;
      for (auto [bit, base] : llvm::enumerate(layout.getBases(part)))
        bits |= base & inFlat ? 1u << bit : 0;
      return bits;
    };
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    if (uint32_t lanes = bitsOf(InDim::Lane)) {
      rewriter.replaceOp(op, reduceLanes(builder, op, adaptor.getSrcs(), lanes));
      return success();
    }
    uint32_t registers = bitsOf(InDim::Register);
    if (!isCommutative(op.getCombine().front())) {
      rewriter.replaceOp(op, reduceInOrder(builder, op, adaptor.getSrcs(), layout, inFlat));
      return success();
    }
    SmallVector<Type> types;
    if (failed(this->types().convertTypes(op.getResultTypes(), types)))
      return failure();
    auto reduced = msl::ReduceRegistersOp::create(builder, types, adaptor.getSrcs(), registers);
    rewriter.inlineRegionBefore(op.getCombine(), reduced.getCombine(), reduced.getCombine().end());
    rewriter.replaceOp(op, reduced);
    return success();
  }

private:
  static SmallVector<Value> reduceLanes(RegisterBuilder &builder, ttm::ReduceOp op,
                                        ValueRange sources, uint32_t lanes) {
    Block &block = op.getCombine().front();
    SmallVector<Value> values(sources);
    if (auto kind = getSimdReduceKind(getCommutativeCombiner(block)); kind && lanes == 31)
      return {msl::SimdReduceOp::create(builder, *kind, values[0])};
    LinearLayout layout = layoutOf(op.getSrcs()[0]);
    SmallVector<unsigned> order = inOrder(layout.getLaneBases(), lanes);
    if (isCommutative(block))
      llvm::sort(order);
    for (unsigned bit : order)
      values = combineLanes(builder, block, values, bit);
    return values;
  }

  static SmallVector<Value> reduceInOrder(RegisterBuilder &builder, ttm::ReduceOp op,
                                          ValueRange sources, const LinearLayout &layout,
                                          uint32_t inFlat) {
    SmallVector<Value> values(sources);
    uint32_t bits = 0, gone = 0;
    for (auto [bit, base] : llvm::enumerate(layout.getRegisterBases()))
      bits |= base & inFlat ? 1u << bit : 0;
    for (unsigned bit : inOrder(layout.getRegisterBases(), bits)) {
      // Registers that are gone have moved the others down.
      unsigned position = bit - llvm::popcount(gone & ((1u << bit) - 1));
      values = combineRegisters(builder, op.getCombine().front(), values, position);
      gone |= 1u << bit;
    }
    return values;
  }

  /// These bits, from the lowest base on.
  static SmallVector<unsigned> inOrder(ArrayRef<uint32_t> bases, uint32_t bits) {
    SmallVector<unsigned> order;
    for (unsigned bit = 0; bit < bases.size(); ++bit)
      if (bits >> bit & 1)
        order.push_back(bit);
    llvm::sort(order, [&](unsigned a, unsigned b) { return bases[a] < bases[b]; });
    return order;
  }
};

struct YieldPattern : RegisterPattern<ttm::YieldOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::YieldOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<msl::YieldOp>(op, adaptor.getOperands());
    return success();
  }
};

} // namespace

void populateReducePatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<ReducePattern, YieldPattern>(types, patterns.getContext());
}

} // namespace triton_metal
