// Scans in steps: see Passes.td.

#include "dialect/ttm/LayoutUtils.h"
#include "transforms/InlineCombine.h"
#include "transforms/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMLOWERSCANS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// What a scan knows of each place along the axis, which is the last dimension of all tiles.
struct Prefix {
  /// The elements up to the place, combined, and those up to its neighbour. The latter is anything
  /// where `hasNeighbour`, a tile of i1, is false.
  SmallVector<Value> inclusive, exclusive;
  Value hasNeighbour;
};

/// The layout in which a scan along the last dimension moves least: the other dimensions take lanes
/// and SIMD-groups first, and along the last one neighbours are in registers, then in lanes.
LinearLayout layOutForScan(const LinearLayout &layout) {
  SmallVector<int64_t> others(layout.getShape());
  int64_t extent = std::exchange(others.back(), 1);
  LinearLayout spread = LinearLayout::defaultBlocked(others, layout.getNumSimdgroups());
  LinearLayout::Bases registers, lanes, simdgroups;
  for (auto [from, to] : {std::pair(InDim::Register, &registers), std::pair(InDim::Lane, &lanes),
                          std::pair(InDim::Simdgroup, &simdgroups)})
    for (uint32_t base : spread.getBases(from))
      to->push_back(base * extent);
  int64_t threads = 1;
  for (LinearLayout::Bases *bases : {&lanes, &simdgroups})
    threads <<= llvm::count(*bases, 0u);
  uint32_t place = 1;
  for (; place < extent / threads; place *= 2)
    registers.insert(registers.begin() + llvm::Log2_32(place), place);
  for (LinearLayout::Bases *bases : {&lanes, &simdgroups})
    for (uint32_t &base : *bases)
      if (!base && place < extent) {
        base = place;
        place *= 2;
      }
  return LinearLayout(layout.getShape(), registers, lanes, simdgroups);
}

/// The registers of a thread in which it would hold what all SIMD-groups have of the last
/// dimension.
int64_t registersOfAll(const LinearLayout &layout) {
  uint32_t along = layout.dimMask(layout.getRank() - 1), simdgroups = 0;
  for (uint32_t base : layout.getSimdgroupBases())
    simdgroups |= base & along;
  if (!simdgroups)
    return 0;
  // Lower bits have been combined by then.
  uint32_t lower = (simdgroups & -simdgroups) - 1;
  auto remains = [&](uint32_t base) { return base & ~lower; };
  int bits = llvm::count_if(layout.getRegisterBases(), remains);
  int freeLanes = llvm::count_if(layout.getLaneBases(), std::not_fn(remains));
  return int64_t(1) << (bits + std::max(0, llvm::popcount(simdgroups) - freeLanes));
}

/// One scan. With `reverse` it goes from the last place to the first; a place's neighbour is the
/// one that it comes from.
class ScanLowering {
public:
  explicit ScanLowering(tt::ScanOp op)
      : op(op), builder(op), loc(op.getLoc()), reverse(op.getReverse()) {}

  void run();

private:
  /// The lowest bits of the coordinate are where they are: each step takes those that are in one
  /// place, and leaves a tile of what they combine to, on which the scan goes on.
  Prefix scan(ArrayRef<Value> values, bool needsExclusive);
  Prefix scanRegister(ArrayRef<Value> values, bool needsExclusive);
  Prefix scanLanes(ArrayRef<Value> values, int64_t extent, bool needsExclusive);
  Prefix scanSimdgroups(ArrayRef<Value> values, int64_t extent, bool needsExclusive);

  /// The region on tiles, element by element. `first` is what comes first in the order of the scan.
  SmallVector<Value> combine(ValueRange first, ValueRange second);
  /// `combine(first, second)` where there is a first, else `second`.
  SmallVector<Value> combineWhere(Value hasFirst, ValueRange first, ValueRange second);
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }

  RankedTensorType typeLike(Value value, Type element) const {
    return cast<RankedTensorType>(value.getType()).clone(element);
  }
  Value splat(Value like, Type element, TypedAttr number) {
    return arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(typeLike(like, element), Attribute(number)));
  }
  Value splatBool(Value like, bool value) {
    return splat(like, builder.getI1Type(), builder.getBoolAttr(value));
  }
  Value number(Value like, int64_t value) {
    return splat(like, builder.getI32Type(), builder.getI32IntegerAttr(value));
  }
  /// The coordinates along the last dimension; the other dimensions have one element.
  Value placesAlong(const LinearLayout &layout);
  Value isNotFirst(Value places);
  Value broadcastTo(const LinearLayout &layout, Value value);
  /// The last dimension in two, of which the second has `extent` elements; and the inverse.
  Value divide(Value value, int64_t extent);
  Value merge(Value value);
  /// The other dimension's elements at every place along a last dimension as in `like`.
  Value repeat(Value value, Value like);

  tt::ScanOp op;
  OpBuilder builder;
  Location loc;
  bool reverse;
};

int64_t lastExtent(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// The lowest bits of the last coordinate that all lie in this part of the layout.
int64_t extentIn(const LinearLayout &layout, InDim part) {
  uint32_t bits = 0;
  for (uint32_t base : layout.getBases(part))
    bits |= base & layout.dimMask(layout.getRank() - 1);
  return int64_t(1) << llvm::countr_one(bits);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

SmallVector<Value> ScanLowering::combine(ValueRange first, ValueRange second) {
  auto repeat = [&](Value scalar) -> Value {
    return tt::SplatOp::create(builder, loc, typeLike(first[0], scalar.getType()), scalar);
  };
  return inlineCombine(builder, loc, op.getCombineOp().front(), first, second, repeat);
}

SmallVector<Value> ScanLowering::combineWhere(Value hasFirst, ValueRange first, ValueRange second) {
  SmallVector<Value> combined = combine(first, second);
  for (auto [value, alone] : llvm::zip(combined, second))
    value = select(hasFirst, value, alone);
  return combined;
}

Value ScanLowering::placesAlong(const LinearLayout &layout) {
  SmallVector<int64_t> shape(layout.getRank(), 1);
  shape.back() = layout.getShape().back();
  LinearLayout row = *layout.broadcastSource(shape);
  auto type = getTensorType(row.reshape({shape.back()}), builder.getI32Type());
  Value range = tt::MakeRangeOp::create(builder, loc, type, 0, uint32_t(shape.back()));
  return reshape(builder, loc, range, shape);
}

Value ScanLowering::isNotFirst(Value places) {
  int64_t first = reverse ? lastExtent(places) - 1 : 0;
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, places,
                               number(places, first));
}

Value ScanLowering::broadcastTo(const LinearLayout &layout, Value value) {
  auto type = getTensorType(layout, getElementTypeOrSelf(value.getType()));
  return tt::BroadcastOp::create(builder, loc, type, value);
}

Value ScanLowering::divide(Value value, int64_t extent) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  shape.back() /= extent;
  shape.push_back(extent);
  return reshape(builder, loc, value, shape);
}

Value ScanLowering::merge(Value value) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  int64_t extent = shape.pop_back_val();
  shape.back() *= extent;
  return reshape(builder, loc, value, shape);
}

Value ScanLowering::repeat(Value value, Value like) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(1);
  LinearLayout layout = *getLayout(like);
  value =
      convertLayout(builder, reshape(builder, loc, value, shape), *layout.broadcastSource(shape));
  return broadcastTo(layout, value);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Prefix ScanLowering::scan(ArrayRef<Value> values, bool needsExclusive) {
  if (lastExtent(values[0]) == 1)
    return {SmallVector<Value>(values), SmallVector<Value>(values), splatBool(values[0], false)};
  LinearLayout layout = *getLayout(values[0]);
  if (extentIn(layout, InDim::Register) > 1)
    return scanRegister(values, needsExclusive);
  if (int64_t extent = extentIn(layout, InDim::Lane); extent > 1)
    return scanLanes(values, extent, needsExclusive);
  return scanSimdgroups(values, extentIn(layout, InDim::Simdgroup), needsExclusive);
}

Prefix ScanLowering::scanRegister(ArrayRef<Value> values, bool needsExclusive) {
  // Neighbours in pairs: the scan goes on with what they combine to.
  SmallVector<Value> first, second;
  for (Value value : values) {
    value = divide(value, 2);
    auto type = getTensorType(*getLayout(value)->split(), getElementTypeOrSelf(value.getType()));
    auto split = tt::SplitOp::create(builder, loc, type, type, value);
    first.push_back(split.getResult(reverse ? 1 : 0));
    second.push_back(split.getResult(reverse ? 0 : 1));
  }
  Prefix pairs = scan(combine(first, second), /*needsExclusive=*/true);

  // A pair's last element has what the pair has.
  SmallVector<Value> upToFirst = combineWhere(pairs.hasNeighbour, pairs.exclusive, first);
  auto join = [&](Value ofFirst, Value ofSecond, Value like) -> Value {
    auto type = getTensorType(getLayout(ofFirst)->join(), getElementTypeOrSelf(ofFirst.getType()));
    Value both = tt::JoinOp::create(builder, loc, type, reverse ? ofSecond : ofFirst,
                                    reverse ? ofFirst : ofSecond);
    return convertLayout(builder, merge(both), *getLayout(like));
  };
  Prefix result;
  for (unsigned i = 0; i < values.size(); ++i) {
    result.inclusive.push_back(join(upToFirst[i], pairs.inclusive[i], values[i]));
    if (needsExclusive)
      result.exclusive.push_back(join(pairs.exclusive[i], upToFirst[i], values[i]));
  }
  if (needsExclusive)
    result.hasNeighbour = join(pairs.hasNeighbour, splatBool(pairs.hasNeighbour, true), values[0]);
  return result;
}

Prefix ScanLowering::scanLanes(ArrayRef<Value> values, int64_t extent, bool needsExclusive) {
  // The lanes by themselves.
  bool isWhole = lastExtent(values[0]) == extent;
  SmallVector<Value> rows = llvm::map_to_vector(
      values, [&](Value value) { return isWhole ? value : divide(value, extent); });
  unsigned axis = getLayout(rows[0])->getRank() - 1;
  auto inLanes = tt::ScanOp::create(builder, loc, rows, axis, reverse);
  IRMapping mapping;
  op.getCombineOp().cloneInto(&inLanes.getCombineOp(), mapping);
  SmallVector<Value> inclusive(inLanes.getResults());
  LinearLayout layout = *getLayout(rows[0]);

  // Between one row of lanes and the next.
  Prefix before;
  if (!isWhole) {
    LinearLayout ofTotals = layout.reduceBits(axis, extent - 1);
    Value last = arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(getTensorType(ofTotals, builder.getI32Type()),
                               builder.getI32IntegerAttr(reverse ? 0 : extent - 1)));
    SmallVector<Value> totals;
    for (Value value : inclusive)
      totals.push_back(merge(tt::GatherOp::create(
          builder, loc, getTensorType(ofTotals, getElementTypeOrSelf(value.getType())), value, last,
          axis,
          /*efficient_layout=*/false)));
    before = scan(totals, /*needsExclusive=*/true);
    for (Value &value : before.exclusive)
      value = repeat(value, inclusive[0]);
    inclusive =
        combineWhere(repeat(before.hasNeighbour, inclusive[0]), before.exclusive, inclusive);
  }

  Prefix result;
  for (Value value : inclusive)
    result.inclusive.push_back(isWhole ? value : merge(value));
  if (!needsExclusive)
    return result;
  // What the neighbour has; the first lane's is in the row before.
  Value place = placesAlong(layout), hasLane = isNotFirst(place), neighbour;
  if (reverse)
    neighbour = arith::AddIOp::create(builder, loc, place, number(place, 1));
  else
    neighbour = arith::SubIOp::create(builder, loc, place, number(place, 1));
  neighbour = broadcastTo(layout, select(hasLane, neighbour, place));
  hasLane = broadcastTo(layout, hasLane);
  for (auto [i, value] : llvm::enumerate(inclusive)) {
    Value exclusive = tt::GatherOp::create(builder, loc, value.getType(), value, neighbour, axis,
                                           /*efficient_layout=*/false);
    if (!isWhole)
      exclusive = merge(select(hasLane, exclusive, before.exclusive[i]));
    result.exclusive.push_back(exclusive);
  }
  result.hasNeighbour = hasLane;
  if (!isWhole)
    result.hasNeighbour = merge(
        arith::OrIOp::create(builder, loc, hasLane, repeat(before.hasNeighbour, inclusive[0])));
  return result;
}

Prefix ScanLowering::scanSimdgroups(ArrayRef<Value> values, int64_t extent, bool needsExclusive) {
  // All SIMD-groups get what each has, in lanes that hold copies of each other, or else in
  // registers.
  LinearLayout layout = *getLayout(values[0]);
  LinearLayout::Bases registers(layout.getRegisterBases()), lanes(layout.getLaneBases()),
      simdgroups(layout.getSimdgroupBases());
  for (uint32_t base = 1; base < extent; base *= 2) {
    *llvm::find(simdgroups, base) = 0;
    auto *lane = llvm::find(lanes, 0u);
    if (lane != lanes.end())
      *lane = base;
    else
      registers.push_back(base);
  }
  LinearLayout together(layout.getShape(), registers, lanes, simdgroups);
  SmallVector<Value> moved;
  for (Value value : values)
    moved.push_back(convertLayout(builder, value, together));
  Prefix result = scan(moved, needsExclusive);
  auto moveBack = [&](Value &value) { value = convertLayout(builder, value, layout); };
  llvm::for_each(result.inclusive, moveBack);
  if (needsExclusive) {
    llvm::for_each(result.exclusive, moveBack);
    result.hasNeighbour = broadcastTo(layout, isNotFirst(placesAlong(layout)));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

void ScanLowering::run() {
  SmallVector<Value> values(op.getSrcs());
  unsigned axis = op.getAxis(), last = getLayout(values[0])->getRank() - 1;
  SmallVector<int32_t> order;
  for (unsigned dim = 0; dim <= last; ++dim)
    if (dim != axis)
      order.push_back(dim);
  order.push_back(axis);
  if (axis != last)
    for (Value &value : values)
      value = transpose(builder, loc, value, order);

  LinearLayout layout = *getLayout(values[0]);
  if (!layout.isSeparable(last) || !layout.isPermutationAlong(last) ||
      registersOfAll(layout) > layout.getNumRegisters()) {
    layout = layOutForScan(layout);
    for (Value &value : values)
      value = convertLayout(builder, value, layout);
  }
  SmallVector<Value> results = scan(values, /*needsExclusive=*/false).inclusive;
  for (auto [result, value] : llvm::zip(op.getResults(), results)) {
    LinearLayout wanted = *getLayout(result);
    value = convertLayout(builder, value, axis == last ? wanted : wanted.transpose(order));
    if (axis != last)
      value = transpose(builder, loc, value, invertOrder(order));
    result.replaceAllUsesWith(value);
  }
  op->erase();
}

struct TTMLowerScansPass : impl::TTMLowerScansBase<TTMLowerScansPass> {
  void runOnOperation() override {
    SmallVector<tt::ScanOp> scans;
    getOperation().walk([&](tt::ScanOp op) { scans.push_back(op); });
    for (tt::ScanOp op : scans)
      ScanLowering(op).run();
    if (scans.empty())
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
