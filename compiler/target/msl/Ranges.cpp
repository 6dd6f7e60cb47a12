#include "target/msl/Ranges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace triton_metal::msl;

using Interval = Ranges::Interval;

static unsigned getWidth(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<IndexType>(element) ? 64 : element.getIntOrFloatBitWidth();
}

static Interval getFull(Type type) {
  __int128 limit = __int128(1) << (getWidth(type) - 1);
  return {-limit, limit - 1};
}

static bool isInside(const Interval &inner, const Interval &outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

/// All ones up to the highest bit of a number that is not negative.
static __int128 fillBits(__int128 value) {
  __int128 result = 0;
  while (result < value)
    result = result * 2 + 1;
  return result;
}

std::optional<Interval> Ranges::getExact(Operation *op) {
  Interval a = get(op->getOperand(0)), b = get(op->getOperand(1));
  // Products of 64-bit limits leave 128 bits: such operands say nothing.
  auto huge = [](const Interval &range) {
    __int128 limit = __int128(1) << 62;
    return range.low < -limit || range.high > limit;
  };
  if (huge(a) || huge(b))
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return Interval{a.low + b.low, a.high + b.high};
  if (isa<arith::SubIOp>(op))
    return Interval{a.low - b.high, a.high - b.low};
  if (isa<arith::ShLIOp>(op)) {
    if (b.low < 0 || b.high > 31 || b.high >= getWidth(op->getResult(0).getType()))
      return std::nullopt;
    b = {__int128(1) << int(b.low), __int128(1) << int(b.high)};
  } else if (!isa<arith::MulIOp>(op)) {
    return std::nullopt;
  }
  __int128 products[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  Interval result{products[0], products[0]};
  for (__int128 product : products)
    result = {std::min(result.low, product), std::max(result.high, product)};
  return result;
}

bool Ranges::cannotOverflow(Operation *op) {
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
      flags && flags.hasNoSignedWrap())
    return true;
  std::optional<Interval> exact = getExact(op);
  return exact && isInside(*exact, getFull(op->getResult(0).getType()));
}

Interval Ranges::get(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  Interval full = getFull(value.getType());
  known[value] = full;
  Interval range = compute(value);
  // An empty or impossible answer is no answer.
  if (range.low > range.high || !isInside(range, full))
    range = full;
  return known[value] = range;
}

Interval Ranges::compute(Value value) {
  Interval full = getFull(value.getType());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto unroll = dyn_cast<UnrollOp>(parent))
      return {int64_t(unroll.getLower()), int64_t(unroll.getUpper()) - 1};
    if (auto loop = dyn_cast<scf::ForOp>(parent); loop && argument == loop.getInductionVar()) {
      Interval lower = get(loop.getLowerBound()), upper = get(loop.getUpperBound());
      if (loop.getUnsignedCmp() && !(lower.isNonNegative() && upper.isNonNegative()))
        return full;
      return {lower.low, std::max(lower.low, upper.high - 1)};
    }
    return full;
  }
  Operation *op = value.getDefiningOp();
  if (isa<LaneOp>(op))
    return {0, 31};
  if (isa<SimdgroupOp>(op))
    return {0, int64_t(op->getParentOfType<KernelOp>().getThreads()) / 32 - 1};
  if (isa<ProgramIdOp>(op))
    return {0, full.high - 1};
  if (isa<NumProgramsOp>(op))
    return {1, full.high};
  Attribute attr;
  if (matchPattern(value, m_Constant(&attr))) {
    if (auto integer = dyn_cast<IntegerAttr>(attr))
      return {integer.getValue().getSExtValue(), integer.getValue().getSExtValue()};
    if (auto dense = dyn_cast<DenseIntElementsAttr>(attr)) {
      Interval range{full.high, full.low};
      for (const APInt &element : dense.getValues<APInt>())
        range = {std::min<__int128>(range.low, element.getSExtValue()),
                 std::max<__int128>(range.high, element.getSExtValue())};
      return range;
    }
    return full;
  }
  if (isa<SplatOp>(op))
    return get(op->getOperand(0));
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp>(op)) {
    std::optional<Interval> exact = getExact(op);
    if (!exact)
      return full;
    if (isInside(*exact, full))
      return *exact;
    auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
    if (flags && flags.hasNoSignedWrap())
      return {std::max(exact->low, full.low), std::min(exact->high, full.high)};
    return full;
  }
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::RemUIOp, arith::RemSIOp, arith::ShRUIOp,
          arith::ShRSIOp>(op)) {
    Interval a = get(op->getOperand(0)), b = get(op->getOperand(1));
    bool shift = isa<arith::ShRUIOp, arith::ShRSIOp>(op);
    if (!a.isNonNegative() || b.low < (shift ? 0 : 1))
      return full;
    // An amount of the width or more may count as a smaller one.
    if (shift)
      return {0, b.high < getWidth(value.getType()) ? a.high >> int(b.low) : a.high};
    if (isa<arith::RemUIOp, arith::RemSIOp>(op))
      return {0, std::min(a.high, b.high - 1)};
    return {a.low / b.high, a.high / b.low};
  }
  if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op)) {
    Interval a = get(op->getOperand(0)), b = get(op->getOperand(1));
    if (isa<arith::AndIOp>(op) && (a.isNonNegative() || b.isNonNegative()))
      return {0, a.isNonNegative() && b.isNonNegative() ? std::min(a.high, b.high)
                                                        : (a.isNonNegative() ? a.high : b.high)};
    if (a.isNonNegative() && b.isNonNegative())
      return {0, fillBits(std::max(a.high, b.high))};
    return full;
  }
  if (isa<arith::MinSIOp>(op)) {
    Interval a = get(op->getOperand(0)), b = get(op->getOperand(1));
    return {std::min(a.low, b.low), std::min(a.high, b.high)};
  }
  if (isa<arith::MaxSIOp>(op)) {
    Interval a = get(op->getOperand(0)), b = get(op->getOperand(1));
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  }
  if (isa<arith::SelectOp>(op)) {
    Interval a = get(op->getOperand(1)), b = get(op->getOperand(2));
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  if (isa<arith::ExtSIOp>(op))
    return get(op->getOperand(0));
  if (isa<arith::ExtUIOp>(op)) {
    Interval a = get(op->getOperand(0));
    if (a.isNonNegative() && !getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1))
      return a;
    unsigned bits = getElementTypeOrSelf(op->getOperand(0).getType()).getIntOrFloatBitWidth();
    return {0, (__int128(1) << bits) - 1};
  }
  if (isa<arith::TruncIOp>(op)) {
    Interval a = get(op->getOperand(0));
    return isInside(a, full) ? a : full;
  }
  return full;
}
