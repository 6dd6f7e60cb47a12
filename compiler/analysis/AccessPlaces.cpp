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

/// Takes a sum of registers apart: numbers that differ between threads or registers, and the sum of
/// the others. False if something else than sums is in the way.
static bool takeApart(Value value, int64_t sign, SmallVectorImpl<std::pair<Value, int64_t>> &apart,
                      Place &uniform, unsigned depth = 0) {
  if (depth > 16)
    return false;
  Operation *op = value.getDefiningOp();
  if (isa_and_present<SplatOp, arith::ExtSIOp>(op))
    return takeApart(op->getOperand(0), sign, apart, uniform, depth + 1);
  if (isa_and_present<arith::AddIOp, arith::SubIOp>(op))
    return takeApart(op->getOperand(0), sign, apart, uniform, depth + 1) &&
           takeApart(op->getOperand(1), isa<arith::AddIOp>(op) ? sign : -sign, apart, uniform,
                     depth + 1);
  if (isa<VectorType>(value.getType()) || !isUniform(value)) {
    apart.push_back({value, sign});
    return true;
  }
  return Summation(uniform).add(value, sign);
}

/// The bounds that comparisons in a mask give for offsets, in elements.
static void findBounds(Value mask, Value offsets, SmallVectorImpl<Place::Bound> &bounds) {
  Operation *op = mask.getDefiningOp();
  if (isa_and_present<arith::AndIOp>(op)) {
    findBounds(op->getOperand(0), offsets, bounds);
    findBounds(op->getOperand(1), offsets, bounds);
  }
  auto cmp = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!cmp || !getElementTypeOrSelf(cmp.getLhs().getType()).isInteger(32))
    return;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = cmp.getPredicate();
  bool swapped = predicate == Predicate::sgt || predicate == Predicate::sge;
  if (!swapped && predicate != Predicate::slt && predicate != Predicate::sle)
    return;
  // Smaller + what the offsets have more of < larger + that.
  Value small = cmp.getOperand(swapped), large = cmp.getOperand(!swapped);
  // A number far below 0 could wrap around on its way to the other access.
  Place bounded;
  if (!Summation(bounded).add(small, 1) || !bounded.terms.empty() || bounded.modulus)
    return;
  SmallVector<std::pair<Value, int64_t>> own, smaller, larger;
  Place place;
  if (!takeApart(offsets, 1, own, place) || !takeApart(small, -1, smaller, place) ||
      !takeApart(large, 1, larger, place) || !larger.empty() || place.modulus)
    return;
  for (auto &[value, sign] : smaller)
    sign = -sign;
  auto inOrder = [](auto &a, auto &b) {
    return std::pair(a.first.getAsOpaquePointer(), a.second) <
           std::pair(b.first.getAsOpaquePointer(), b.second);
  };
  llvm::sort(own, inOrder);
  llvm::sort(smaller, inOrder);
  if (own != smaller)
    return;
  bool orEqual = predicate == Predicate::sle || predicate == Predicate::sge;
  bounds.push_back({place.terms, place.high + (orEqual ? 1 : 0)});
}

/// Terms that cancel out are left out; the others are in the order of their values.
static void tidy(SmallVectorImpl<std::pair<Value, int64_t>> &terms) {
  llvm::erase_if(terms, [](auto &term) { return term.second == 0; });
  llvm::sort(terms, [](auto &a, auto &b) {
    return a.first.getAsOpaquePointer() < b.first.getAsOpaquePointer();
  });
}

std::optional<Place> Place::get(Value base, Value offsets, Value mask) {
  auto bytesOf = [](Value pointer) {
    return getElementBytes(cast<PtrType>(pointer.getType()).getElementType());
  };
  Place place;
  Summation sum(place);
  int64_t bytes = bytesOf(base);
  if (offsets && !sum.add(offsets, bytes))
    return std::nullopt;
  if (offsets && mask)
    findBounds(mask, offsets, place.bounds);
  Place before;
  while (Operation *op = base.getDefiningOp()) {
    if (auto add = dyn_cast<PtrAddOp>(op)) {
      if (!sum.add(add.getOffset(), bytesOf(base)))
        return std::nullopt;
      if (!Summation(before).add(add.getOffset(), bytesOf(base)))
        place.bounds.clear();
    } else if (!isa<PtrCastOp>(op)) {
      break;
    }
    base = op->getOperand(0);
  }
  place.root = base;
  place.high += bytes;
  tidy(place.terms);
  // The bounds are those of elements; the base is where the numbers of the pointer are.
  if (before.modulus)
    place.bounds.clear();
  for (Bound &bound : place.bounds) {
    Place whole = before;
    Summation end(whole);
    bool known = true;
    for (auto &[term, times] : bound.terms)
      known &= end.add(term, times * bytes);
    whole.high += bound.high * bytes;
    tidy(whole.terms);
    bound = {known && !whole.modulus ? whole.terms : SmallVector<std::pair<Value, int64_t>>(),
             known && !whole.modulus ? whole.high : INT64_MAX};
  }
  return place;
}

bool Place::isBelow(const Place &other) const {
  return root == other.root && !other.modulus && llvm::any_of(bounds, [&](const Bound &bound) {
           return bound.terms == other.terms && bound.high <= other.low;
         });
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
  if (loop ? isMovedApart(other, loop) : isBelow(other) || other.isBelow(*this))
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

/// The bytes from one step of a loop to the next where its index is multiplied by `factor`; 0 if
/// they are not known.
static int64_t getStride(scf::ForOp loop, int64_t factor) {
  APInt step;
  int64_t stride = 0;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || step.getSignificantBits() > 31 ||
      llvm::MulOverflow(factor, step.getSExtValue(), stride))
    return 0;
  return stride;
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
  int64_t stride = getStride(loop, factor);
  return (stride > 0 && high <= later.low + stride) || (stride < 0 && later.high + stride <= low);
}

bool Place::isDisjointBehind(const Place &later, scf::ForOp loop) const {
  if (root != later.root || modulus || later.modulus)
    return false;
  // The index of the loop, and an index that is no smaller than its upper bound, cancel out but for
  // a step; all else is the same.
  llvm::SmallDenseMap<Value, int64_t> differences;
  int64_t factor = 0, laterFactor = 0;
  for (auto &[value, times] : terms) {
    if (value == loop.getInductionVar())
      factor = times;
    else
      differences[value] += times;
  }
  for (auto &[value, times] : later.terms) {
    auto argument = dyn_cast<BlockArgument>(value);
    auto next =
        argument ? dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
    bool goesOn =
        next && argument == next.getInductionVar() && next.getLowerBound() == loop.getUpperBound();
    if (value == loop.getUpperBound() || goesOn)
      laterFactor += times;
    else
      differences[value] -= times;
  }
  if (factor != laterFactor ||
      llvm::any_of(differences, [](auto &each) { return each.second != 0; }))
    return false;
  int64_t stride = getStride(loop, factor);
  return (stride > 0 && high <= later.low + stride) || (stride < 0 && later.high + stride <= low);
}

} // namespace triton_metal::msl
