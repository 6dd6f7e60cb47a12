// Layout conversions within a thread and within a SIMD-group.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

namespace {

struct ConvertLayoutPattern : RegisterPattern<ttm::ConvertLayoutOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::ConvertLayoutOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LayoutConversion conversion(layoutOf(op.getSrc()), layoutOf(op.getResult()));
    if (conversion.kind != LayoutConversion::Kind::Identity &&
        conversion.kind != LayoutConversion::Kind::Registers)
      return op.emitOpError("moves data between threads; ttm-lower-layout-conversions makes "
                            "shuffles and tiles of it");
    SmallVector<int64_t> bases;
    for (const HardwareIndex &place : conversion.reg)
      bases.push_back(place.reg);
    rewriter.replaceOp(op, buildAt(op.getLoc(), rewriter).permute(adaptor.getSrc(), bases));
    return success();
  }
};

/// Result register r of lane l is source register A(r) ^ B(l) of lane F(l).
struct ShufflePattern : RegisterPattern<ttm::ShuffleOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::ShuffleOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    LayoutConversion conversion(layoutOf(op.getSrc()), layoutOf(op.getResult()));
    // Which bits of the thread's position choose among registers, and by what. Extra result bits,
    // one for each choice, hold both alternatives until a select decides.
    struct Choice {
      bool isLane;
      unsigned bit;
    };
    SmallVector<Choice> choices;
    SmallVector<int64_t> bases;
    for (const HardwareIndex &place : conversion.reg)
      bases.push_back(place.reg);
    int64_t numRegisters = int64_t(1) << bases.size();
    SmallVector<uint32_t> lanes, simdgroups;
    bool isIdentity = true;
    for (auto [bit, place] : llvm::enumerate(conversion.lane)) {
      lanes.push_back(place.lane);
      isIdentity &= place.lane == 1u << bit;
      if (place.reg) {
        choices.push_back({true, unsigned(bit)});
        bases.push_back(place.reg);
      }
    }
    for (auto [bit, place] : llvm::enumerate(conversion.simdgroup)) {
      simdgroups.push_back(place.lane);
      isIdentity &= place.lane == 0;
      if (place.reg) {
        choices.push_back({false, unsigned(bit)});
        bases.push_back(place.reg);
      }
    }
    Value wide = builder.permute(adaptor.getSrc(), bases);
    if (!isIdentity) {
      Value source = sourceLane(builder, lanes, simdgroups);
      wide = builder.shuffle(wide, [&](Value bits) -> Value {
        return msl::SimdShuffleOp::create(builder, bits, source);
      });
    }
    // The last choice is the highest register bit.
    for (size_t left = choices.size(); left > 0; --left) {
      auto [isLane, bit] = choices[left - 1];
      int64_t half = numRegisters << (left - 1);
      SmallVector<int64_t> lower;
      for (int64_t base = 1; base < half; base *= 2)
        lower.push_back(base);
      Value isZero = builder.threadBitsAre(isLane ? 1u << bit : 0, 0, isLane ? 0 : 1u << bit, 0);
      wide = arith::SelectOp::create(builder, isZero, builder.permute(wide, lower),
                                     builder.permute(wide, lower, half));
    }
    rewriter.replaceOp(op, wide);
    return success();
  }

private:
  static Value sourceLane(RegisterBuilder &builder, ArrayRef<uint32_t> lanes,
                          ArrayRef<uint32_t> simdgroups) {
    uint32_t seen = 0;
    bool isSum = true;
    for (ArrayRef<uint32_t> values : {lanes, simdgroups})
      for (uint32_t value : values) {
        isSum &= llvm::popcount(value) <= 1 && !(seen & value);
        seen |= value;
      }
    if (isSum)
      return builder.threadIndex(lanes, simdgroups);
    // Bits that several positions contribute to: an exclusive or.
    Value source = builder.zero(builder.getI32Type());
    auto addBits = [&](ArrayRef<uint32_t> values, bool isLane) {
      for (auto [bit, value] : llvm::enumerate(values)) {
        if (!value)
          continue;
        SmallVector<uint32_t> lane(kLaneBits, 0), simdgroup(simdgroups.size(), 0);
        (isLane ? lane : simdgroup)[bit] = value;
        source = arith::XOrIOp::create(builder, source, builder.threadIndex(lane, simdgroup));
      }
    };
    addBits(lanes, true);
    addBits(simdgroups, false);
    return source;
  }
};

} // namespace

void populateLayoutPatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<ConvertLayoutPattern, ShufflePattern>(types, patterns.getContext());
}

} // namespace triton_metal
