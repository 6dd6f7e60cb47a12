// Where accesses go: sums of uniform numbers, which cancel out between two places, and bounds of
// what threads add to them. Numbers of which nothing is known leave remainders by what they are
// multiplied by.

#include "analysis/AccessPlaces.h"

#include "dialect/msl/ScalarTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace triton_metal::msl {

namespace {

/// Bounds stay far from the ends of the 32 bits in which indices are computed: what wraps around
/// then cancels out too.
constexpr int64_t kLargest = int64_t(1) << 30;

/// All threads have this scalar in common: it is not computed from a thread's position.
bool isUniform(Value scalar) {
  SmallVector<Value> work{scalar};
  llvm::SmallPtrSet<void *, 16> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || isa<VectorType>(value.getType()) || !seen.insert(value.getAsOpaquePointer()).second)
      continue;
    if (isa<LaneOp, SimdgroupOp, InThreadsOp>(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

class Summation {
public:
  explicit Summation(Place &place) : place(place) {}

  /// Adds `value * factor`; false if nothing is known of the sum.
  bool add(Value value, int64_t factor, unsigned depth = 0) {
    return addKnown(value, factor, depth) || addMultiple(factor);
  }

private:
  /// Adds `value * factor`, or nothing if `value` itself is neither uniform, nor bounded, nor a
  /// sum.
  bool addKnown(Value value, int64_t factor, unsigned depth);
  /// Adds a number of which nothing is known, times `factor`. What wraps around at 32 bits remains
  /// a multiple of the power of two in it.
  bool addMultiple(int64_t factor) {
    int64_t power = factor & -factor;
    if (power <= 0 || power > kLargest)
      return false;
    place.modulus = place.modulus ? std::min(place.modulus, power) : power;
    return true;
  }
  bool addBounds(int64_t low, int64_t high, int64_t factor,
                 Place::Part::Kind kind = Place::Part::Kind::Other) {
    if (std::abs(low) > kLargest || std::abs(high) > kLargest || std::abs(factor) > kLargest)
      return false;
    int64_t lower = place.low + factor * (factor < 0 ? high : low);
    int64_t higher = place.high + factor * (factor < 0 ? low : high);
    if (std::abs(lower) > kLargest || std::abs(higher) > kLargest)
      return false;
    place.parts.push_back({lower - place.low, higher - place.high, factor, kind});
    place.low = lower;
    place.high = higher;
    return true;
  }
  bool addTerm(Value value, int64_t factor) {
    for (auto &[term, times] : place.terms)
      if (term == value) {
        times += factor;
        return true;
      }
    place.terms.push_back({value, factor});
    return true;
  }
  /// The bounds of a value that is no sum, if it has no uniform part.
  std::optional<std::pair<int64_t, int64_t>> boundsOf(Value value, unsigned depth) {
    Place alone;
    if (!Summation(alone).addKnown(value, 1, depth + 1) || !alone.terms.empty() || alone.modulus)
      return std::nullopt;
    return std::pair(alone.low, alone.high);
  }
  bool addBits(Operation *op, int64_t factor, unsigned depth);

  Place &place;
};

} // namespace

/// Bits of a number that is not negative: what is shifted, masked or joined from them.
bool Summation::addBits(Operation *op, int64_t factor, unsigned depth) {
  APInt number;
  bool isConstant =
      matchPattern(op->getOperand(1), m_ConstantInt(&number)) && number.getActiveBits() < 31;
  if (isa<arith::AndIOp>(op) && isConstant)
    return addBounds(0, number.getZExtValue(), factor);
  std::optional<std::pair<int64_t, int64_t>> lhs = boundsOf(op->getOperand(0), depth);
  if (!lhs || lhs->first < 0)
    return false;
  if (isa<arith::ShRUIOp>(op))
    return isConstant && number.ult(31) &&
           addBounds(lhs->first >> number.getZExtValue(), lhs->second >> number.getZExtValue(),
                     factor);
  std::optional<std::pair<int64_t, int64_t>> rhs = boundsOf(op->getOperand(1), depth);
  if (!rhs || rhs->first < 0)
    return false;
  return addBounds(0, int64_t(llvm::NextPowerOf2(uint64_t(lhs->second | rhs->second))) - 1, factor);
}

bool Summation::addKnown(Value value, int64_t factor, unsigned depth) {
  if (depth > 24 || std::abs(factor) > kLargest)
    return false;
  DenseElementsAttr dense;
  if (matchPattern(value, m_Constant(&dense))) {
    if (!dense.getElementType().isInteger())
      return false;
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (const APInt &number : dense.getValues<APInt>()) {
      low = std::min(low, number.getSExtValue());
      high = std::max(high, number.getSExtValue());
    }
    return addBounds(low, high, factor);
  }
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getSignificantBits() <= 32 &&
           addBounds(number.getSExtValue(), number.getSExtValue(), factor);
  Operation *op = value.getDefiningOp();
  if (!isa<VectorType>(value.getType()) && (!op || isUniform(value))) {
    // A sum of uniform numbers is taken apart, so that two places have the same terms.
    if (!isa_and_present<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ExtSIOp>(op))
      return addTerm(value, factor);
  }
  if (!op)
    return false;
  if (isa<LaneOp>(op))
    return addBounds(0, 31, factor, Place::Part::Kind::Lane);
  if (isa<SimdgroupOp>(op))
    return addBounds(0, op->getParentOfType<KernelOp>().getThreads() / 32 - 1, factor,
                     Place::Part::Kind::Simdgroup);
  if (isa<SplatOp, PermuteRegistersOp, arith::ExtSIOp>(op))
    return add(op->getOperand(0), factor, depth + 1);
  if (isa<arith::AddIOp>(op))
    return add(op->getOperand(0), factor, depth + 1) && add(op->getOperand(1), factor, depth + 1);
  if (isa<arith::SubIOp>(op))
    return add(op->getOperand(0), factor, depth + 1) && add(op->getOperand(1), -factor, depth + 1);
  if (isa<arith::MulIOp>(op)) {
    for (unsigned side : {1u, 0u})
      if (matchPattern(op->getOperand(side), m_ConstantInt(&number)) &&
          number.getSignificantBits() <= 31)
        return add(op->getOperand(1 - side), factor * number.getSExtValue(), depth + 1);
    return !isa<VectorType>(value.getType()) && isUniform(value) && addTerm(value, factor);
  }
  if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::ShRUIOp>(op))
    return addBits(op, factor, depth);
  return false;
}

std::optional<Place> Place::get(Value base, Value offsets) {
  auto bytesOf = [](Value pointer) {
    return getElementBytes(cast<PtrType>(pointer.getType()).getElementType());
  };
  Place place;
  Summation sum(place);
  int64_t bytes = bytesOf(base);
  if (offsets && !sum.add(offsets, bytes))
    return std::nullopt;
  while (Operation *op = base.getDefiningOp()) {
    if (auto add = dyn_cast<PtrAddOp>(op)) {
      if (!sum.add(add.getOffset(), bytesOf(base)))
        return std::nullopt;
    } else if (!isa<PtrCastOp>(op)) {
      break;
    }
    base = op->getOperand(0);
  }
  place.root = base;
  place.high += bytes;
  llvm::erase_if(place.terms, [](auto &term) { return term.second == 0; });
  llvm::sort(place.terms, [](auto &a, auto &b) {
    return a.first.getAsOpaquePointer() < b.first.getAsOpaquePointer();
  });
  return place;
}

std::pair<int64_t, int64_t> Place::remainders(int64_t divisor) const {
  std::pair<int64_t, int64_t> result(low, high);
  for (const Part &part : parts)
    if (part.factor % divisor == 0) {
      result.first -= part.low;
      result.second -= part.high;
    }
  return result;
}

/// Whether a value may have another number in each iteration.
static bool isOfLoop(Value value, scf::ForOp loop) {
  return loop && loop.getRegion().isAncestor(value.getParentRegion());
}

int64_t Place::getDivisor(const Place &other, scf::ForOp loop) const {
  llvm::SmallDenseMap<Value, int64_t> differences;
  for (auto &[term, times] : terms)
    differences[term] += times;
  for (auto &[term, times] : other.terms)
    differences[term] -= times;
  // The lowest bit of all of them.
  int64_t bits = modulus | other.modulus;
  for (auto &[term, times] : differences)
    bits |= times;
  for (const Place *place : {this, &other})
    for (auto &[term, times] : place->terms)
      if (isOfLoop(term, loop))
        bits |= times;
  return bits & -bits;
}

bool Place::isDisjointFrom(const Place &other, scf::ForOp loop) const {
  if (root != other.root || isOfLoop(root, loop))
    return false;
  if (loop && isMovedApart(other, loop))
    return true;
  int64_t divisor = getDivisor(other, loop);
  if (!divisor)
    return high <= other.low || other.high <= low;
  // Remainders by a power of two that divides both.
  auto [begin, end] = remainders(divisor);
  auto [otherBegin, otherEnd] = other.remainders(divisor);
  int64_t distance = ((otherBegin - begin) % divisor + divisor) % divisor;
  return end - begin <= distance && otherEnd - otherBegin <= divisor - distance;
}

bool Place::meetsOnlyItself(const Place &other, int64_t numSimdgroups, scf::ForOp loop) const {
  if (root != other.root || isOfLoop(root, loop))
    return false;
  // What lanes and SIMD-groups add, and from where to where one thread's accesses go.
  struct Split {
    int64_t lane = 0, simdgroup = 0, low, high;
    explicit Split(const Place &place) : low(place.low), high(place.high) {
      for (const Part &part : place.parts) {
        if (part.kind == Part::Kind::Other)
          continue;
        (part.kind == Part::Kind::Lane ? lane : simdgroup) += part.factor;
        low -= part.low;
        high -= part.high;
      }
    }
  };
  Split own(*this), theirs(other);
  if (own.lane != theirs.lane || own.simdgroup != theirs.simdgroup)
    return false;
  SmallVector<std::pair<int64_t, int64_t>, 2> steps{{own.lane, 32}};
  if (numSimdgroups > 1)
    steps.push_back({own.simdgroup, numSimdgroups});
  llvm::sort(steps);
  // Each step is at least as long as all that is inside of it.
  int64_t length = std::max(own.high, theirs.high) - std::min(own.low, theirs.low);
  for (auto [step, count] : steps) {
    if (step < length)
      return false;
    length = step * count;
  }
  int64_t divisor = getDivisor(other, loop);
  return !divisor || length <= divisor;
}

bool Place::isMovedApart(const Place &later, scf::ForOp loop) const {
  if (terms != later.terms || modulus || later.modulus)
    return false;
  int64_t factor = 0;
  for (auto &[value, times] : terms) {
    Value term = value;
    if (term == loop.getInductionVar())
      factor = times;
    else if (isOfLoop(term, loop))
      return false;
  }
  APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || step.getSignificantBits() > 31)
    return false;
  int64_t stride = 0;
  if (llvm::MulOverflow(factor, step.getSExtValue(), stride))
    return false;
  return (stride > 0 && high <= later.low + stride) || (stride < 0 && later.high + stride <= low);
}

} // namespace triton_metal::msl
