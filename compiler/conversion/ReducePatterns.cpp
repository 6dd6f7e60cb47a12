// Reductions: the registers of a thread, and the lanes of a SIMD-group. Scans over such lanes.

#include "analysis/CombineRegion.h"
#include "conversion/CombineRegion.h"
#include "conversion/TTMToMSL.h"
#include "dialect/msl/SimdReductions.h"

using namespace mlir;

namespace triton_metal {

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
  /// Whether only the first thread of all asks for the result: to store it.
  static bool isForFirstThread(Operation *op) {
    SmallVector<Operation *> work = {op};
    while (!work.empty()) {
      Operation *next = work.pop_back_val();
      for (Value result : next->getResults())
        for (OpOperand &use : result.getUses()) {
          Operation *user = use.getOwner();
          if (auto store = dyn_cast<ttm::StoreOp>(user)) {
            // A tile has owners of its own.
            if (isa<RankedTensorType>(store.getValue().getType()) ||
                use.getOperandNumber() != store.getValueMutable().getOperandNumber())
              return false;
          } else if (isa<tt::UnsplatOp, tt::BitcastOp>(user) ||
                     (isa<arith::ArithDialect, math::MathDialect>(user->getDialect()) &&
                      user->getNumRegions() == 0)) {
            work.push_back(user);
          } else {
            return false;
          }
        }
    }
    return true;
  }

  /// Whether nothing happens to memory between the operation and the builder's place.
  static bool changesNoMemoryAfter(Operation *op, OpBuilder &builder) {
    if (op->getBlock() != builder.getInsertionBlock())
      return false;
    auto place = builder.getInsertionPoint();
    for (auto next = std::next(op->getIterator()); next != place; ++next)
      if (next == op->getBlock()->end() || !isMemoryEffectFree(&*next))
        return false;
    return true;
  }

  /// What changes nothing in any number of the type.
  static Value getNeutral(RegisterBuilder &builder, msl::SimdReduceKind kind, Type type) {
    auto vector = cast<VectorType>(type);
    return arith::ConstantOp::create(
        builder, DenseElementsAttr::get(
                     vector, Attribute(msl::getNeutralElement(kind, vector.getElementType()))));
  }

  static Value getInfinity(RegisterBuilder &builder, Type type, bool isNegative) {
    auto vector = cast<VectorType>(type);
    auto element = cast<FloatType>(vector.getElementType());
    return arith::ConstantOp::create(
        builder,
        DenseElementsAttr::get(vector, APFloat::getInf(element.getFloatSemantics(), isNegative)));
  }

  /// A number as the threads have it that take part, and `neutral` in the others. Those need not
  /// read what was exchanged.
  static Value forThreads(RegisterBuilder &builder, Value value, Value takesPart, Value neutral) {
    auto load = value.getDefiningOp<msl::LoadOp>();
    if (!load || load.getBase().getType().getSpace() != msl::AddressSpace::Threadgroup ||
        load.getMask() || !changesNoMemoryAfter(load, builder))
      return arith::SelectOp::create(builder, takesPart, value, neutral);
    auto type = cast<VectorType>(value.getType());
    auto maskType = VectorType::get(type.getShape(), builder.getI1Type());
    Value mask = msl::SplatOp::create(builder, maskType, takesPart);
    return msl::LoadOp::create(builder, type, load.getBase(), load.getOffsets(), mask, neutral,
                               Value(), load.getWidth(), load.getWidth(), load.getIsVolatile());
  }

  /// Lanes that hold copies take part as well, with what changes nothing where a number may count
  /// only once. So do those whose result nobody asks for: they need not read the number.
  static Value reduceAllLanes(RegisterBuilder &builder, msl::SimdReduceKind kind, Value value,
                              uint32_t copies, bool isForFirstThread) {
    if (copies && (isForFirstThread || !msl::isIdempotent(kind))) {
      msl::ThreadSet threads{.laneMask = copies};
      if (isForFirstThread)
        threads.simdgroupMask = builder.getOwners(std::nullopt).simdgroupMask;
      Value takesPart = builder.isOneOf(threads);
      value = forThreads(builder, value, takesPart, getNeutral(builder, kind, value.getType()));
    }
    return msl::SimdReduceOp::create(builder, kind, value);
  }

  /// Whether integers of 32 bits compare as the numbers of the region do.
  static bool canCompareKeys(Block &block) {
    return ArgMinMax::get(block) &&
           isa<Float32Type, Float16Type, BFloat16Type, IntegerType>(
               block.getArgument(0).getType()) &&
           llvm::is_contained({8, 16, 32},
                              block.getArgument(0).getType().getIntOrFloatBitWidth()) &&
           block.getArgument(1).getType().isInteger(32) &&
           msl::TargetAttr::get(block.getParentOp()->getParentOfType<ModuleOp>())
               .has(msl::Feature::SimdReductions);
  }

  /// The bits of numbers of up to 32 bits in words, and their keys: integers that compare as they
  /// do. -0 and +0 have one key. A NaN compares with nothing: it is the best.
  static std::pair<Value, Value> getKeys(RegisterBuilder &builder, Value value,
                                         const ArgMinMax &search) {
    Type i32 = withElement(value.getType(), builder.getI32Type());
    if (!search.isFloat) {
      Value bits = value;
      if (bits.getType() != i32)
        bits = search.isUnsigned ? arith::ExtUIOp::create(builder, i32, value).getResult()
                                 : arith::ExtSIOp::create(builder, i32, value).getResult();
      return {bits, bits};
    }
    Type f32 = withElement(value.getType(), builder.getF32Type());
    if (value.getType() != f32)
      value = arith::ExtFOp::create(builder, f32, value);
    Value bits = arith::BitcastOp::create(builder, i32, value);
    Value isNegative =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, bits, builder.constant(i32, 0));
    Value negated = arith::SubIOp::create(builder, builder.constant(i32, INT32_MIN), bits);
    Value key = arith::SelectOp::create(builder, isNegative, negated, bits);
    Value isNan = arith::CmpFOp::create(builder, arith::CmpFPredicate::UNO, value, value);
    Value best = builder.constant(i32, search.isMax ? INT32_MAX : INT32_MIN);
    return {bits, arith::SelectOp::create(builder, isNan, best, key)};
  }

  /// The best key of all lanes, the first index that has it, and the number there.
  static SmallVector<Value> findAmongLanes(RegisterBuilder &builder, ttm::ReduceOp op,
                                           ValueRange values, uint32_t copies) {
    using Kind = msl::SimdReduceKind;
    ArgMinMax search = *ArgMinMax::get(op.getCombine().front());
    Kind keyKind = search.isUnsigned ? search.isMax ? Kind::UMax : Kind::UMin
                   : search.isMax    ? Kind::Max
                                     : Kind::Min;
    Kind indexKind = search.isIndexUnsigned ? search.hasLowerIndex ? Kind::UMin : Kind::UMax
                     : search.hasLowerIndex ? Kind::Min
                                            : Kind::Max;
    Value number = values[0], index = values[1];
    Value none = getNeutral(builder, indexKind, index.getType());
    if (copies && isForFirstThread(op)) {
      // A worst number with the index that counts least changes nothing.
      Value worst = search.isFloat ? getInfinity(builder, number.getType(), search.isMax)
                                   : getNeutral(builder, keyKind, number.getType());
      Value takesPart = builder.isOneOf(
          {.laneMask = copies, .simdgroupMask = builder.getOwners(std::nullopt).simdgroupMask});
      number = forThreads(builder, number, takesPart, worst);
      index = forThreads(builder, index, takesPart, none);
    }
    auto [bits, key] = getKeys(builder, number, search);
    Value best = msl::SimdReduceOp::create(builder, keyKind, key);
    Value isBest = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, key, best);
    Value candidate = arith::SelectOp::create(builder, isBest, index, none);
    Value found = msl::SimdReduceOp::create(builder, indexKind, candidate);
    if (op.getResult(0).use_empty())
      return {number, found};
    // The number itself, which a key does not tell of a zero and of a NaN.
    Value isFound = arith::AndIOp::create(
        builder, isBest, arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, index, found));
    number = msl::SimdReduceOp::create(
        builder, Kind::Or,
        arith::SelectOp::create(builder, isFound, bits, builder.constant(bits.getType(), 0)));
    if (!search.isFloat)
      return {builder.castIntegers(number, getElementTypeOrSelf(values[0].getType())), found};
    Type f32 = withElement(number.getType(), builder.getF32Type());
    number = arith::BitcastOp::create(builder, f32, number);
    if (number.getType() != values[0].getType())
      number = arith::TruncFOp::create(builder, values[0].getType(), number);
    return {number, found};
  }

  static SmallVector<Value> reduceLanes(RegisterBuilder &builder, ttm::ReduceOp op,
                                        ValueRange sources, uint32_t lanes) {
    Block &block = op.getCombine().front();
    SmallVector<Value> values(sources);
    LinearLayout layout = layoutOf(op.getSrcs()[0]);
    uint32_t copies = layout.freeMask(InDim::Lane);
    if ((lanes | copies) == 31) {
      if (auto kind = msl::getSimdReduceKind(getCommutativeCombiner(block)))
        return {reduceAllLanes(builder, *kind, values[0], copies, isForFirstThread(op))};
      if (canCompareKeys(op.getCombine().front()))
        return findAmongLanes(builder, op, values, copies);
    }
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

/// A scan along an axis that lies in lanes: by Metal's function over all lanes, or bit by bit of
/// the coordinate, where the half of each block of lanes that comes second is combined with the
/// last lane of the first half.
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
    bool isFromFirst = llvm::all_of(llvm::enumerate(lanes),
                                    [](auto each) { return each.value() == 1u << each.index(); });
    uint32_t scanned = (1u << lanes.size()) - 1, copies = layout.freeMask(InDim::Lane);
    if (auto kind = getPrefixKind(op);
        kind && isFromFirst && lanes.size() > 1 && (scanned | copies) == 31) {
      Value prefix = msl::SimdPrefixOp::create(builder, *kind, values[0]);
      // The first copies have their own sums, and the others theirs from them.
      if (copies) {
        Value source = lane(builder, scanned, 0);
        prefix = builder.shuffle(prefix, [&](Value bits) -> Value {
          return msl::SimdShuffleOp::create(builder, bits, source);
        });
      }
      rewriter.replaceOp(op, prefix);
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
