// Shuffles of shuffles as one: see MSLPasses.td.

#include "dialect/msl/MSL.h"
#include "dialect/msl/Simdgroup.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <array>

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLFOLDSHUFFLES
#include "transforms/Passes.h.inc"

namespace {

/// A lane as a function of the thread's position: the exclusive or of a constant and of a number
/// for each bit of the lane and of the SIMD-group that is set.
struct LaneMap {
  std::array<uint32_t, kLaneBits> lanes = {};
  SmallVector<uint32_t> simdgroups;
  uint32_t constant = 0;

  static std::optional<LaneMap> get(Value lane);

  /// The lane that `lane` names, where all SIMD-groups' bits are 0.
  uint32_t at(uint32_t lane) const {
    uint32_t result = 0;
    for (auto [bit, base] : llvm::enumerate(lanes))
      if (lane & (1u << bit))
        result ^= base;
    return result;
  }

  /// Whether no two of the numbers have a bit in common: their sum is then their exclusive or.
  bool isSum() const {
    uint32_t seen = constant;
    for (ArrayRef<uint32_t> bases : {ArrayRef(lanes), ArrayRef(simdgroups)})
      for (uint32_t base : bases) {
        if (seen & base)
          return false;
        seen |= base;
      }
    return seen < kSimdWidth;
  }
};

std::optional<LaneMap> LaneMap::get(Value lane) {
  LaneMap map;
  // A chain of sums: at most one index, and constants.
  while (auto add = lane.getDefiningOp<arith::AddIOp>()) {
    APInt number;
    if (!matchPattern(add.getRhs(), m_ConstantInt(&number)) || map.constant ||
        number.uge(kSimdWidth))
      return std::nullopt;
    map.constant = number.getZExtValue();
    lane = add.getLhs();
  }
  APInt number;
  if (matchPattern(lane, m_ConstantInt(&number))) {
    if (map.constant || number.uge(kSimdWidth))
      return std::nullopt;
    map.constant = number.getZExtValue();
    return map;
  }
  if (isa_and_nonnull<msl::LaneOp>(lane.getDefiningOp())) {
    for (unsigned bit = 0; bit < kLaneBits; ++bit)
      map.lanes[bit] = 1u << bit;
  } else if (auto index = lane.getDefiningOp<msl::ThreadIndexOp>()) {
    for (auto [bit, base] : llvm::enumerate(index.getLanes()))
      map.lanes[bit] = base;
    llvm::append_range(map.simdgroups, index.getSimdgroups());
  } else {
    return std::nullopt;
  }
  if (!map.isSum())
    return std::nullopt;
  return map;
}

/// The lane of `first` from which the lane that `second` names takes its value.
std::optional<LaneMap> compose(const LaneMap &first, const LaneMap &second) {
  LaneMap map;
  for (auto [base, composed] : llvm::zip(second.lanes, map.lanes))
    composed = first.at(base);
  // Lanes are shuffled within a SIMD-group: both maps read the same one.
  map.simdgroups.resize(std::max(first.simdgroups.size(), second.simdgroups.size()));
  for (auto [bit, composed] : llvm::enumerate(map.simdgroups)) {
    if (bit < second.simdgroups.size())
      composed = first.at(second.simdgroups[bit]);
    if (bit < first.simdgroups.size())
      composed ^= first.simdgroups[bit];
  }
  map.constant = first.constant ^ first.at(second.constant);
  if (!map.isSum())
    return std::nullopt;
  return map;
}

Value build(OpBuilder &builder, Location loc, const LaneMap &map) {
  auto constant = [&]() -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(map.constant));
  };
  auto isNone = [](uint32_t base) { return base == 0; };
  if (llvm::all_of(map.lanes, isNone) && llvm::all_of(map.simdgroups, isNone))
    return constant();
  SmallVector<int32_t> lanes(map.lanes.begin(), map.lanes.end());
  SmallVector<int32_t> simdgroups(map.simdgroups.begin(), map.simdgroups.end());
  Value index = msl::ThreadIndexOp::create(builder, loc, builder.getI32Type(), lanes, simdgroups);
  return map.constant ? arith::AddIOp::create(builder, loc, index, constant()).getResult() : index;
}

bool fold(msl::SimdShuffleOp op) {
  auto inner = op.getValue().getDefiningOp<msl::SimdShuffleOp>();
  // Lanes that leave a branch out cannot be asked in it.
  if (!inner || inner->getBlock() != op->getBlock() || !op.getLane().getType().isInteger(32) ||
      !inner.getLane().getType().isInteger(32))
    return false;
  std::optional<LaneMap> first = LaneMap::get(inner.getLane()), second = LaneMap::get(op.getLane());
  if (!first || !second)
    return false;
  std::optional<LaneMap> both = compose(*first, *second);
  if (!both)
    return false;
  OpBuilder builder(op);
  op.getLaneMutable().assign(build(builder, op.getLoc(), *both));
  op.getValueMutable().assign(inner.getValue());
  if (inner->use_empty())
    inner->erase();
  return true;
}

struct MSLFoldShufflesPass : impl::MSLFoldShufflesBase<MSLFoldShufflesPass> {
  void runOnOperation() override {
    bool changes = false;
    // Operands come first: a chain of shuffles becomes one.
    getOperation().walk([&](msl::SimdShuffleOp op) { changes |= fold(op); });
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
