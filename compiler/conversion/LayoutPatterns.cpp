// Layout conversions within a thread and within a SIMD-group, and gathers.

#include "conversion/TTMToMSL.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

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

/// A lane: the exclusive or of these numbers over the set bits of the thread's position.
Value sourceLane(RegisterBuilder &builder, ArrayRef<uint32_t> lanes,
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
      Value isZero = builder.isOneOf(
          {.laneMask = isLane ? 1u << bit : 0, .simdgroupMask = isLane ? 0 : 1u << bit});
      wide = arith::SelectOp::create(builder, isZero, builder.permute(wide, lower),
                                     builder.permute(wide, lower, half));
    }
    rewriter.replaceOp(op, wide);
    return success();
  }
};

/// A gather along an axis that lies in the lanes of each SIMD-group: the index is bits of a lane.
struct GatherPattern : RegisterPattern<tt::GatherOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::GatherOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LinearLayout source = layoutOf(op.getSrc()), result = layoutOf(op.getResult());
    unsigned axis = op.getAxis();
    auto others = getGatherFromLanes(source, result, axis);
    if (!others || !getElementTypeOrSelf(op.getIndices().getType()).isInteger(32))
      return op.emitOpError(
          "is not by i32 among lanes; ttm-lower-layout-conversions makes tiles and "
          "other indices of such");
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    // The other coordinates say which register it is, and the other bits of the lane.
    uint32_t inLane = source.bitsAlong(InDim::Lane, axis);
    auto ownBits = [&](const HardwareIndex &place) { return place.lane & ~inLane; };
    Value lane = sourceLane(builder, llvm::map_to_vector(others->lane, ownBits),
                            llvm::map_to_vector(others->simdgroup, ownBits));
    // A register along another dimension may come from a lane of its own.
    SmallVector<int64_t> bases;
    SmallVector<int32_t> laneOfRegister{0};
    unsigned next = 0;
    for (uint32_t base : result.getRegisterBases()) {
      HardwareIndex place = base & result.dimMask(axis) ? HardwareIndex() : others->reg[next++];
      bases.push_back(place.reg);
      for (size_t i = 0, size = laneOfRegister.size(); i != size; ++i)
        laneOfRegister.push_back(laneOfRegister[i] ^ int32_t(ownBits(place)));
    }
    bool hasOneLane = llvm::all_equal(laneOfRegister);
    Value index = firstOfEqual(builder, adaptor.getIndices());
    if (isa<VectorType>(index.getType()) || !hasOneLane) {
      lane = builder.splat(lane, result.getNumRegisters());
      if (!isa<VectorType>(index.getType()))
        index = builder.splat(index, result.getNumRegisters());
    }
    if (!hasOneLane)
      lane = arith::XOrIOp::create(builder, lane, builder.dense(laneOfRegister));
    lane = arith::AddIOp::create(builder, lane, indexInLane(builder, source, axis, index));
    Value value = builder.permute(adaptor.getSrc(), bases);
    rewriter.replaceOp(op, builder.shuffle(value, [&](Value bits) -> Value {
      return msl::SimdShuffleOp::create(builder, bits, lane);
    }));
    return success();
  }

private:
  /// A number where all registers have it, else the registers.
  static Value firstOfEqual(RegisterBuilder &builder, Value index) {
    if (auto splat = index.getDefiningOp<msl::SplatOp>())
      return splat.getValue();
    DenseElementsAttr constant;
    if (matchPattern(index, m_Constant(&constant)) && constant.isSplat())
      return arith::ConstantOp::create(builder, constant.getSplatValue<TypedAttr>());
    auto permute = index.getDefiningOp<msl::PermuteRegistersOp>();
    auto isZero = [](int64_t base) { return base == 0; };
    if (!permute || !llvm::all_of(permute.getBases(), isZero))
      return index;
    Value first = builder.permute(permute.getValue(), {}, permute.getOffset());
    return vector::ExtractOp::create(builder, first, ArrayRef<int64_t>{0});
  }

  /// The bits of the index where the lane has them. Neighbours move together.
  static Value indexInLane(RegisterBuilder &builder, const LinearLayout &layout, unsigned axis,
                           Value index) {
    unsigned shift = layout.dimShift(axis), count = llvm::Log2_64(layout.getShape()[axis]);
    SmallVector<unsigned> laneBits(count);
    for (auto [bit, base] : llvm::enumerate(layout.getLaneBases()))
      if (base & layout.dimMask(axis))
        laneBits[llvm::countr_zero(base) - shift] = bit;
    Value lane = builder.zero(index.getType());
    for (unsigned first = 0; first < count;) {
      unsigned end = first + 1;
      while (end < count && laneBits[end] == laneBits[end - 1] + 1)
        ++end;
      Value field = index;
      auto constant = [&](int64_t number) { return builder.constant(index.getType(), number); };
      if (first)
        field = arith::ShRUIOp::create(builder, field, constant(first));
      // The last bits stay unmasked: an index that is too large leaves the SIMD-group.
      if (end < count)
        field = arith::AndIOp::create(builder, field, constant((1 << (end - first)) - 1));
      if (laneBits[first])
        field = arith::ShLIOp::create(builder, field, constant(laneBits[first]));
      lane = first ? arith::AddIOp::create(builder, lane, field).getResult() : field;
      first = end;
    }
    return lane;
  }
};

struct GatherTilePattern : RegisterPattern<ttm::GatherTileOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::GatherTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    ttm::TileType tile = op.getTile().getType();
    if (tile.getRowPad() || tile.getSlots() != 1)
      return op.emitOpError("gathers from a tile with padded rows or several slots");
    LinearLayout layout = layoutOf(op.getResult());
    unsigned axis = op.getAxis();
    int64_t stride = 1;
    for (unsigned dim = axis + 1; dim < tile.getShape().size(); ++dim)
      stride *= tile.getShape()[dim];
    // Where the row along the axis begins: the coordinates before it, and those behind it.
    int64_t extent = layout.getShape()[axis], rows = tile.getShape()[axis];
    Value start = builder.registerIndices(
        layout,
        [&](uint32_t flat) { return flat / (stride * extent) * (stride * rows) + flat % stride; },
        [&](Value flat) -> Value {
          auto constant = [&](int64_t number) { return builder.constant(flat.getType(), number); };
          Value before =
              arith::ShRUIOp::create(builder, flat, constant(llvm::Log2_64(stride * extent)));
          before = arith::MulIOp::create(builder, before, constant(stride * rows));
          Value behind = arith::AndIOp::create(builder, flat, constant(stride - 1));
          return arith::AddIOp::create(builder, before, behind);
        },
        "place");
    Value index = adaptor.getIndices();
    index = arith::MulIOp::create(builder, index, builder.constant(index.getType(), stride));
    Value offsets = arith::AddIOp::create(builder, start, index);
    rewriter.replaceOpWithNewOp<msl::LoadOp>(op, convert(op.getType()), adaptor.getTile(), offsets,
                                             Value(), Value(), Value(), /*width=*/1,
                                             /*mask_width=*/1, /*is_volatile=*/false);
    return success();
  }
};

} // namespace

void populateLayoutPatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<ConvertLayoutPattern, ShufflePattern, GatherPattern, GatherTilePattern>(
      types, patterns.getContext());
}

} // namespace triton_metal
