#include "analysis/CombineRegion.h"
#include "dialect/msl/ScalarTypes.h"
#include "dialect/msl/SimdReductions.h"
#include "dialect/ttm/LayoutUtils.h"
#include "dialect/ttm/LocationNames.h"
#include "transforms/Budget.h"
#include "transforms/Passes.h"
#include "transforms/TTMScratch.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMLOWERREDUCTIONS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// One reduction on its way: registers, lanes, and SIMD-groups through scratch tiles.
class ReductionLowering {
public:
  ReductionLowering(Scratch &scratch, tt::ReduceOp op)
      : scratch(scratch), op(op), builder(op), loc(op.getLoc()), axis(op.getAxis()),
        values(op.getSrcs()) {}

  void run();

private:
  LinearLayout layout() const { return *getLayout(values[0]); }
  /// The bits of the coordinate along the axis that the part of the layout holds.
  uint32_t bitsIn(InDim part) const;
  bool isInAnyOrder() { return isCommutative(op.getCombineOp().front()); }
  int64_t partialBytes();
  void layOutAnew();
  void reduceInAnyOrder();
  void reduceInOrder();
  /// Combines what differs in these bits, all in registers or all in lanes.
  void reduce(uint32_t bits);
  /// Moves these bits from SIMD-groups to registers, or to lanes that hold copies, through scratch
  /// tiles.
  void exchange(uint32_t bits, InDim to);
  /// Whether all of a SIMD-group's lanes hold parts of the same elements of the result, so that a
  /// function of the SIMD-group can reduce them.
  bool lanesAreAlike() const { return !(lanesBits() & ~layout().dimMask(axis)); }
  uint32_t lanesBits() const;
  void toKeys();
  void fromKeys();
  void finish();

  Scratch &scratch;
  tt::ReduceOp op;
  OpBuilder builder;
  Location loc;
  unsigned axis;
  SmallVector<Value> values;
  /// The combination of the floats whose keys are combined now; null for other values.
  Operation *keyed = nullptr;
  /// Whether the greatest of those floats is wanted, and not the least.
  bool isMaxOfKeys() const { return isa<arith::MaxNumFOp, arith::MaximumFOp>(keyed); }
};

uint32_t ReductionLowering::bitsIn(InDim part) const {
  LinearLayout current = layout();
  uint32_t bits = 0;
  for (uint32_t base : current.getBases(part))
    bits |= base & current.dimMask(axis);
  return bits >> current.dimShift(axis);
}

int64_t ReductionLowering::partialBytes() {
  LinearLayout current = layout();
  unsigned numSimdgroups = current.getNumSimdgroups();
  uint32_t simdgroupBits = current.bitsAlong(InDim::Simdgroup, axis);
  if (!simdgroupBits)
    return 0;
  int64_t bytes = 0;
  for (Value value : values)
    bytes += msl::getElementBytes(getElementTypeOrSelf(value.getType()));
  LinearLayout kept = *current.sliceDim(axis);
  int64_t threads = 1 << (llvm::popcount(31 & ~kept.freeMask(InDim::Lane)) +
                          llvm::popcount((numSimdgroups - 1) & ~kept.freeMask(InDim::Simdgroup)));
  bytes = bytes * kept.getNumRegisters() * threads << llvm::popcount(simdgroupBits);
  // In order, what a thread has behind the parts of other SIMD-groups waits for those.
  if (!isInAnyOrder()) {
    uint32_t groups = bitsIn(InDim::Simdgroup);
    bytes <<= llvm::popcount(bitsIn(InDim::Register) & -(groups & -groups));
  }
  return bytes;
}

void ReductionLowering::layOutAnew() {
  // The axis last: lanes and SIMD-groups are spread over the other dimensions first. A thread has
  // neighbours along the axis, which it combines before SIMD-groups give each other anything.
  LinearLayout current = layout();
  SmallVector<unsigned> order;
  for (unsigned dim = current.getRank(); dim-- > 0;)
    if (dim != axis)
      order.push_back(dim);
  order.push_back(axis);
  int64_t threads = current.getNumThreads();
  int64_t each = llvm::product_of(current.getShape()) / threads;
  SmallVector<int64_t> neighbours(current.getRank(), 1);
  neighbours[axis] = std::clamp<int64_t>(each, 1, current.getShape()[axis]);
  LinearLayout apart =
      LinearLayout::blocked(current.getShape(), neighbours, order, current.getNumSimdgroups());
  for (Value &value : values)
    value = convertLayout(builder, value, apart);
}

void ReductionLowering::reduce(uint32_t bits) {
  LinearLayout reduced = layout().reduceBits(axis, bits);
  SmallVector<Type> types;
  for (Value value : values)
    types.push_back(getTensorType(reduced, getElementTypeOrSelf(value.getType())));
  auto step = ReduceOp::create(builder, loc, types, values, axis, bits);
  values.assign(step.getResults().begin(), step.getResults().end());
  if (keyed) {
    OpBuilder::InsertionGuard guard(builder);
    Type key = builder.getI32Type();
    Block *block = builder.createBlock(&step.getCombine(), {}, {key, key}, {loc, loc});
    ValueRange both = block->getArguments();
    Value better = isMaxOfKeys()
                       ? arith::MaxSIOp::create(builder, loc, both[0], both[1]).getResult()
                       : arith::MinSIOp::create(builder, loc, both[0], both[1]).getResult();
    YieldOp::create(builder, loc, better);
    return;
  }
  IRMapping mapping;
  op.getCombineOp().cloneInto(&step.getCombine(), mapping);
  Operation *terminator = step.getCombine().front().getTerminator();
  OpBuilder inside(terminator);
  YieldOp::create(inside, terminator->getLoc(), terminator->getOperands());
  terminator->erase();
}

uint32_t ReductionLowering::lanesBits() const {
  uint32_t bits = 0;
  LinearLayout whole = layout(); // which has the bases
  for (uint32_t base : whole.getLaneBases())
    bits |= base;
  return bits;
}

//===----------------------------------------------------------------------===//
// Keys of floats
//===----------------------------------------------------------------------===//

/// Integers in the order of the floats: those of negative floats have all bits but the sign
/// exchanged. It is its own inverse.
static Value exchangeOrder(OpBuilder &builder, Location loc, Value bits) {
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(cast<ShapedType>(bits.getType()), APInt(32, value, true)));
  };
  Value isNegative =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, bits, constant(0));
  Value exchanged = arith::XOrIOp::create(builder, loc, bits, constant(INT32_MAX));
  return arith::SelectOp::create(builder, loc, isNegative, exchanged, bits);
}

/// What simd_max makes of a NaN is not promised, and neither is which of -0 and +0 is greater. The
/// numbers' keys are integers, so that one function of the SIMD-group compares them. NaN is the
/// greatest or the least key, whichever is the one that the combination wants, and both are NaN
/// again as floats.
void ReductionLowering::toKeys() {
  Location keys = named(builder.getContext(), "key");
  Type f32 = builder.getF32Type();
  for (Value &value : values) {
    if (getElementTypeOrSelf(value.getType()) != f32)
      value = arith::ExtFOp::create(builder, loc, getTensorType(layout(), f32), value);
    auto type = getTensorType(layout(), builder.getI32Type());
    Value key =
        exchangeOrder(builder, keys, tt::BitcastOp::create(builder, keys, type, value).getResult());
    bool isGreatest = isa<arith::MinNumFOp, arith::MaximumFOp>(keyed);
    Value nan = arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(type, APInt(32, isGreatest ? INT32_MAX : INT32_MIN, true)));
    Value isNan = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, value, value);
    value = arith::SelectOp::create(builder, keys, isNan, nan, key);
  }
}

void ReductionLowering::fromKeys() {
  Type element = keyed->getResult(0).getType();
  for (Value &value : values) {
    auto type = getTensorType(layout(), builder.getF32Type());
    Location where = nameOf(loc).empty()
                         ? named(builder.getContext(), isMaxOfKeys() ? "max" : "min")
                         : Location(loc);
    value = tt::BitcastOp::create(builder, where, type, exchangeOrder(builder, where, value));
    if (element != type.getElementType())
      value = arith::TruncFOp::create(builder, loc, getTensorType(layout(), element), value);
  }
  keyed = nullptr;
}

/// Runs of bits of the row-major index that lie in registers, in threads, or along the axis: as
/// dimensions of a tile of the same elements, and in the order in which the tile is stored.
struct StorageOrder {
  SmallVector<int64_t> shape;
  SmallVector<int32_t> order;

  StorageOrder(const LinearLayout &layout, unsigned axis) {
    enum { Register, Thread, Axis };
    uint32_t registers = 0, axisMask = layout.dimMask(axis);
    for (uint32_t base : layout.getRegisterBases())
      registers |= llvm::isPowerOf2_32(base) ? base : 0;
    SmallVector<int> kinds;
    for (uint32_t bit = layout.getNumElements() / 2; bit; bit /= 2) {
      int kind = axisMask & bit ? Axis : registers & bit ? Register : Thread;
      if (kinds.empty() || kinds.back() != kind) {
        kinds.push_back(kind);
        shape.push_back(1);
      }
      shape.back() *= 2;
    }
    // What is combined lies side by side, and what the lanes write at once comes next.
    for (int kind : {Register, Thread, Axis})
      for (auto [dim, other] : llvm::enumerate(kinds))
        if (other == kind)
          order.push_back(dim);
  }

  bool isRowMajor() const { return llvm::is_sorted(order); }
};

void ReductionLowering::exchange(uint32_t bits, InDim to) {
  StorageOrder storage(layout(), axis);
  SmallVector<int64_t> shape(layout().getShape());
  SmallVector<Value> sources, tiles;
  for (Value value : values) {
    value = toStorage(builder, loc, value);
    if (!storage.isRowMajor())
      value = transpose(builder, loc, reshape(builder, loc, value, storage.shape), storage.order);
    sources.push_back(value);
  }
  LinearLayout stored = *getLayout(sources[0]);
  for (Value value : sources)
    tiles.push_back(scratch.allocate(TileType::get(builder.getContext(), stored.getShape(),
                                                   getElementTypeOrSelf(value.getType()), 0, 1),
                                     "partial"));
  for (auto [source, tile] : llvm::zip(sources, tiles))
    StoreTileOp::create(builder, loc, source, tile, Value(), DenseI64ArrayAttr());

  // The axis is the last dimension, or there are only ones behind it.
  unsigned shift = storage.isRowMajor() ? layout().dimShift(axis) : 0;
  SmallVector<uint32_t> moved, registers, simdgroups, lanes(stored.getLaneBases());
  for (uint32_t bit = 1; bit <= bits; bit *= 2)
    if (bits & bit)
      moved.push_back(bit << shift);
  for (uint32_t base : stored.getSimdgroupBases())
    simdgroups.push_back(llvm::is_contained(moved, base) ? 0 : base);
  if (to == InDim::Lane) {
    auto *next = moved.begin();
    for (uint32_t &base : lanes)
      if (!base && next != moved.end())
        base = *next++;
    assert(next == moved.end() && "too few lanes hold copies");
  } else {
    registers = moved;
  }
  llvm::append_range(registers, stored.getRegisterBases());
  LinearLayout loaded(stored.getShape(), registers, lanes, simdgroups);
  for (auto [value, source, tile] : llvm::zip(values, sources, tiles)) {
    auto type = getTensorType(loaded, getElementTypeOrSelf(source.getType()));
    Value read = LoadTileOp::create(builder, loc, type, tile, Value());
    if (!storage.isRowMajor())
      read =
          reshape(builder, loc, transpose(builder, loc, read, invertOrder(storage.order)), shape);
    value = fromStorage(builder, loc, read, getElementTypeOrSelf(value.getType()));
  }
}

void ReductionLowering::reduceInAnyOrder() {
  if (uint32_t bits = bitsIn(InDim::Register))
    reduce(bits);
  Operation *combiner = getCommutativeCombiner(op.getCombineOp().front());
  bool isComparison =
      isa_and_nonnull<arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp, arith::MinimumFOp>(
          combiner) &&
      isa<Float32Type, Float16Type, BFloat16Type>(combiner->getResult(0).getType());
  bool isKnown = isComparison || msl::getSimdReduceKind(combiner);
  // All lanes at once, and then the partial results of the SIMD-groups, each in a lane. Where all
  // lanes have the same, few partial results are added up sooner by each of them; a comparison
  // needs keys for the other way.
  int groups = llvm::popcount(bitsIn(InDim::Simdgroup));
  bool isSooner = bitsIn(InDim::Lane) ? isKnown || ArgMinMax::get(op.getCombineOp().front())
                                      : isKnown && groups >= (isComparison ? 4 : 3);
  bool atOnce =
      msl::TargetAttr::get(op->getParentOfType<ModuleOp>()).has(msl::Feature::SimdReductions) &&
      lanesAreAlike() && isSooner;
  if (atOnce && isComparison) {
    keyed = combiner;
    toKeys();
  }
  if (uint32_t bits = bitsIn(InDim::Lane))
    reduce(bits);
  if (uint32_t bits = bitsIn(InDim::Simdgroup)) {
    exchange(bits, atOnce ? InDim::Lane : InDim::Register);
    reduce(bits);
  }
  if (keyed)
    fromKeys();
}

void ReductionLowering::reduceInOrder() {
  // Neighbours along the axis first, then pairs of pairs: bit by bit of the coordinate, wherever
  // the bit is.
  while (layout().getShape()[axis] > 1) {
    for (InDim part : {InDim::Register, InDim::Lane, InDim::Simdgroup}) {
      uint32_t bits = bitsIn(part);
      if (!(bits & 1))
        continue;
      // The lowest ones, up to the first bit that is elsewhere.
      bits = (1u << llvm::countr_one(bits)) - 1;
      if (part == InDim::Simdgroup)
        exchange(bits, InDim::Register);
      reduce(bits);
      break;
    }
  }
}

void ReductionLowering::finish() {
  for (auto [value, result] : llvm::zip(values, op.getResults())) {
    if (auto type = dyn_cast<RankedTensorType>(result.getType())) {
      value = reshape(builder, loc, value, type.getShape());
      if (value.getType() != type)
        value = ConvertLayoutOp::create(builder, loc, type, value);
    } else {
      value = tt::UnsplatOp::create(builder, loc, result.getType(), value);
    }
    result.replaceAllUsesWith(value);
  }
  op->erase();
}

void ReductionLowering::run() {
  if (!layout().isSeparable(axis) || !layout().isPermutationAlong(axis) ||
      partialBytes() > Budget::of(op).getPartialBytes())
    layOutAnew();
  if (isInAnyOrder())
    reduceInAnyOrder();
  else
    reduceInOrder();
  finish();
}

struct TTMLowerReductionsPass : impl::TTMLowerReductionsBase<TTMLowerReductionsPass> {
  void runOnOperation() override {
    bool changes = false;
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      SmallVector<tt::ReduceOp> reductions;
      func.walk([&](tt::ReduceOp op) { reductions.push_back(op); });
      if (reductions.empty() || !func.getBody().hasOneBlock())
        continue;
      Scratch scratch(func);
      for (tt::ReduceOp op : reductions)
        ReductionLowering(scratch, op).run();
      changes = true;
    }
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
