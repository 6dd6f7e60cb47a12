// Reductions: the registers of a thread, and the lanes of a SIMD-group. Scans over such lanes.

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

/// A scan along an axis that lies in lanes: bit by bit of the coordinate, the half of each block of
/// lanes that comes second is combined with the last lane of the first half.
struct ScanPattern : RegisterPattern<tt::ScanOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::ScanOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LinearLayout layout = layoutOf(op.getSrcs()[0]);
    unsigned axis = op.getAxis(), shift = layout.dimShift(axis);
    SmallVector<uint32_t> lanes(llvm::Log2_64(layout.getShape()[axis]));
    if (layout.bitsAlong(InDim::Register, axis) || layout.bitsAlong(InDim::Simdgroup, axis) ||
        !layout.isPermutationAlong(axis))
      return op.emitOpError("goes over registers or SIMD-groups; ttm-lower-scans takes it apart");
    for (auto [bit, base] : llvm::enumerate(layout.getLaneBases()))
      if (base & layout.dimMask(axis))
        lanes[llvm::countr_zero(base) - shift] = 1u << bit;

    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    SmallVector<Value> values(adaptor.getSrcs());
    if (auto kind = getPrefixKind(op); kind && lanes == ArrayRef<uint32_t>{1, 2, 4, 8, 16}) {
      rewriter.replaceOp(op, msl::SimdPrefixOp::create(builder, *kind, values[0]));
      return success();
    }
    uint32_t lower = 0;
    for (uint32_t half : lanes) {
      Value source = lane(builder, ~(lower | half), op.getReverse() ? half : lower);
      SmallVector<Value> others = llvm::map_to_vector(values, [&](Value value) {
        return builder.shuffle(value, [&](Value bits) -> Value {
          return msl::SimdShuffleOp::create(builder, bits, source);
        });
      });
      SmallVector<Value> combined = combine(builder, op.getCombineOp().front(), others, values);
      Value isLower = builder.isOneOf({.laneMask = half});
      for (auto [value, both] : llvm::zip(values, combined))
        value = op.getReverse() ? arith::SelectOp::create(builder, isLower, both, value)
                                : arith::SelectOp::create(builder, isLower, value, both);
      lower |= half;
    }
    rewriter.replaceOp(op, values);
    return success();
  }

private:
  /// The function that does the scan over all lanes.
  static std::optional<msl::SimdReduceKind> getPrefixKind(tt::ScanOp op) {
    Operation *combiner = getCommutativeCombiner(op.getCombineOp().front());
    if (!combiner || op.getReverse() ||
        !msl::TargetAttr::get(op->getParentOfType<ModuleOp>()).has(msl::Feature::SimdReductions) ||
        !msl::ScalarType::get(combiner->getResult(0).getType())->hasSimdReduction)
      return std::nullopt;
    if (isa<arith::AddFOp, arith::AddIOp>(combiner))
      return msl::SimdReduceKind::Sum;
    if (isa<arith::MulFOp, arith::MulIOp>(combiner))
      return msl::SimdReduceKind::Product;
    return std::nullopt;
  }

  /// The bits of the own lane in `mask`, with other bits that are set.
  Value lane(RegisterBuilder &builder, uint32_t mask, uint32_t set) const {
    SmallVector<uint32_t> own;
    for (unsigned bit = 0; bit < kLaneBits; ++bit)
      own.push_back(mask & (1u << bit));
    SmallVector<uint32_t> simdgroups(llvm::Log2_32(types().getNumSimdgroups()), 0);
    Value lane = builder.threadIndex(own, simdgroups);
    if (!set)
      return lane;
    return arith::AddIOp::create(builder, lane, builder.constant(lane.getType(), set));
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
  patterns.add<ReducePattern, ScanPattern, YieldPattern>(types, patterns.getContext());
}

} // namespace triton_metal
