#include "dialect/msl/MSL.h"
#include "dialect/msl/Simdgroup.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLEXPANDTHREADINDICES
#include "transforms/Passes.h.inc"

namespace {

/// What each bit of the position adds to an index: the lane's bits, then the SIMD-group's.
using Numbers = SmallVector<int32_t, 10>;

bool isZero(ArrayRef<int32_t> numbers) {
  return llvm::all_of(numbers, [](int32_t number) { return number == 0; });
}

/// A field of the position: adjacent bits whose numbers double, from `begin` to before `end`.
/// `isTop` says that no bits of the same number lie above.
struct Field {
  unsigned begin, end;
  bool isTop;
  int32_t factor;
};

/// SIMD-groups come first, and then lanes.
SmallVector<Field> getFields(ArrayRef<int32_t> numbers) {
  SmallVector<Field> fields;
  auto add = [&](unsigned first, unsigned last) {
    for (unsigned bit = first; bit < last;) {
      if (!numbers[bit]) {
        ++bit;
        continue;
      }
      unsigned end = bit + 1;
      while (end < last && numbers[end] == numbers[end - 1] * 2)
        ++end;
      fields.push_back({bit, end, end == last, numbers[bit]});
      bit = end;
    }
  };
  unsigned lanes = std::min<unsigned>(kLaneBits, numbers.size());
  add(lanes, numbers.size());
  add(0, lanes);
  return fields;
}

/// How many operations the sum of the fields takes.
unsigned getCost(ArrayRef<int32_t> numbers) {
  unsigned cost = 0;
  for (const Field &field : getFields(numbers))
    cost += (field.begin != 0 && field.begin != kLaneBits) + !field.isTop + (field.factor != 1) + 1;
  return cost ? cost - 1 : 0;
}

/// The thread indices of one kernel.
class Expansion {
public:
  explicit Expansion(msl::KernelOp kernel)
      : builder(OpBuilder::atBlockBegin(&kernel.getBody().front())),
        unnamed(builder.getUnknownLoc()), lane(msl::LaneOp::create(builder, unnamed)),
        simdgroup(msl::SimdgroupOp::create(builder, unnamed)) {}
  ~Expansion() {
    for (Value position : {lane, simdgroup})
      if (position.use_empty())
        position.getDefiningOp()->erase();
  }

  /// All indices are announced before the first is expanded: others may be made of it.
  void announce(msl::ThreadIndexOp op) {
    if (!numbers.insert({getKey(op), indices.size()}).second)
      return;
    Numbers all(op.getLanes());
    all.resize(kLaneBits);
    llvm::append_range(all, op.getSimdgroups());
    indices.push_back({op.getLoc(), all, getFields(all).size() > 1, Value()});
  }

  /// Parts that are a sum in one index, and a multiple of it in another one, become indices: a row
  /// of a fragment is part of a row of the tile, and times a pitch part of a place.
  void shareParts() {
    size_t count = indices.size();
    for (size_t a = 0; a < count; ++a)
      for (size_t b = 0; b < count; ++b)
        if (a != b)
          sharePart(a, b);
  }

  Value expand(msl::ThreadIndexOp op) { return expand(indices[numbers.at(getKey(op))]); }

  Value getLane() const { return lane; }
  Value getSimdgroup() const { return simdgroup; }

private:
  struct Index {
    Location loc;
    Numbers numbers;
    bool isSum;
    Value value;
  };

  static std::pair<Attribute, Attribute> getKey(msl::ThreadIndexOp op) {
    return {op.getLanesAttr(), op.getSimdgroupsAttr()};
  }

  void sharePart(size_t a, size_t b) {
    llvm::MapVector<int32_t, Numbers> parts;
    for (unsigned bit = 0; bit < indices[a].numbers.size(); ++bit) {
      int32_t number = indices[a].numbers[bit], other = indices[b].numbers[bit];
      if (number <= 0 || other <= 0 || other % number != 0)
        continue;
      Numbers &part = parts[other / number];
      part.resize(indices[a].numbers.size());
      part[bit] = number;
    }
    for (auto &[factor, part] : parts) {
      Numbers rest = indices[a].numbers;
      for (unsigned bit = 0; bit < rest.size(); ++bit)
        rest[bit] -= part[bit];
      // The index takes no more operations than before.
      if (getFields(part).size() > 1 && !isZero(rest) &&
          getCost(indices[a].numbers) == getCost(part) + 1 + getCost(rest) &&
          llvm::none_of(indices, [&](const Index &index) { return index.numbers == part; }))
        indices.push_back({unnamed, part, /*isSum=*/true, Value()});
    }
  }

  Value expand(Index &index) {
    if (index.value)
      return index.value;
    Value sum = build(index.numbers);
    // The sum has the name of the first index that needs it.
    if (Operation *defining = sum.getDefiningOp(); isa<NameLoc>(index.loc) && defining &&
                                                   sum != lane && sum != simdgroup &&
                                                   !isa<NameLoc>(defining->getLoc()))
      defining->setLoc(index.loc);
    return index.value = sum;
  }

  /// A sum as a multiple of another index that is needed anyway, and a rest, where that takes fewer
  /// operations: a place in memory is a multiple of a row, and a column.
  Value build(ArrayRef<int32_t> wanted) {
    if (isZero(wanted))
      return constant(0);
    Index *best = nullptr;
    unsigned leastCost = getCost(wanted);
    Numbers bestRest;
    int32_t bestFactor = 0;
    for (Index &index : indices) {
      Numbers rest;
      std::optional<int32_t> factor = divide(wanted, index, rest);
      if (!factor)
        continue;
      unsigned cost = (*factor != 1) + (isZero(rest) ? 0 : 1 + getCost(rest));
      if (cost >= leastCost)
        continue;
      best = &index;
      leastCost = cost;
      bestRest = rest;
      bestFactor = *factor;
    }
    Value sum;
    if (best) {
      sum = expand(*best);
      if (bestFactor != 1)
        sum = arith::MulIOp::create(builder, unnamed, sum, constant(bestFactor));
      if (!isZero(bestRest))
        sum = arith::AddIOp::create(builder, unnamed, sum, build(bestRest));
      return sum;
    }
    for (const Field &field : getFields(wanted)) {
      Value term = get(field);
      sum = sum ? arith::AddIOp::create(builder, unnamed, sum, term).getResult() : term;
    }
    return sum;
  }

  /// The number by which another sum is to be multiplied to be what its bits add to `wanted`, of
  /// which `rest` is left.
  static std::optional<int32_t> divide(ArrayRef<int32_t> wanted, const Index &index,
                                       Numbers &rest) {
    std::optional<int32_t> factor;
    if (!index.isSum || ArrayRef(index.numbers) == wanted)
      return std::nullopt;
    rest.assign(wanted.begin(), wanted.end());
    for (auto [bit, number] : llvm::enumerate(index.numbers)) {
      if (!number)
        continue;
      if (number < 0 || rest[bit] < number || rest[bit] % number != 0)
        return std::nullopt;
      int32_t times = rest[bit] / number;
      if (factor && *factor != times)
        return std::nullopt;
      factor = times;
      rest[bit] = 0;
    }
    return factor;
  }

  Value get(const Field &field) {
    bool isLane = field.begin < kLaneBits;
    unsigned shift = isLane ? field.begin : field.begin - kLaneBits;
    Value term = isLane ? lane : simdgroup;
    if (shift > 0)
      term = arith::ShRUIOp::create(builder, unnamed, term, constant(int32_t(shift)));
    if (!field.isTop)
      term = arith::AndIOp::create(builder, unnamed, term,
                                   constant((1 << (field.end - field.begin)) - 1));
    if (field.factor != 1)
      term = arith::MulIOp::create(builder, unnamed, term, constant(field.factor));
    return term;
  }

  Value constant(int32_t value) {
    return arith::ConstantOp::create(builder, unnamed, builder.getI32IntegerAttr(value));
  }

  OpBuilder builder;
  Location unnamed;
  /// The thread's positions, computed once.
  Value lane, simdgroup;
  DenseMap<std::pair<Attribute, Attribute>, unsigned> numbers;
  SmallVector<Index> indices;
};

struct MSLExpandThreadIndicesPass : impl::MSLExpandThreadIndicesBase<MSLExpandThreadIndicesPass> {
  void runOnOperation() override {
    for (msl::KernelOp kernel : getOperation().getOps<msl::KernelOp>()) {
      SmallVector<Operation *> positions;
      kernel.walk([&](Operation *op) {
        if (isa<msl::ThreadIndexOp, msl::LaneOp, msl::SimdgroupOp>(op))
          positions.push_back(op);
      });
      Expansion expansion(kernel);
      for (Operation *op : positions)
        if (auto index = dyn_cast<msl::ThreadIndexOp>(op))
          expansion.announce(index);
      expansion.shareParts();
      for (Operation *op : positions) {
        Value value = isa<msl::LaneOp>(op)        ? expansion.getLane()
                      : isa<msl::SimdgroupOp>(op) ? expansion.getSimdgroup()
                                                  : expansion.expand(cast<msl::ThreadIndexOp>(op));
        op->getResult(0).replaceAllUsesWith(value);
      }
      // They are erased last, because the insertion point may be at one of them.
      for (Operation *op : positions)
        op->erase();
    }
  }
};

} // namespace
} // namespace triton_metal
