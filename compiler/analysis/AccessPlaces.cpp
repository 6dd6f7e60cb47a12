// Where accesses go: sums of uniform numbers, which cancel out between two places, and bounds of
// what threads add to them. Numbers of which nothing is known leave remainders by what they are
// multiplied by.

#include "analysis/AccessPlaces.h"

#include "dialect/msl/ScalarTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>

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
    if (narrow > 0 && isNarrowUniform)
      place.wrapping.push_back(value);
    place.wraps |= narrow > 0 && !isNarrowUniform;
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
  /// How many operations on numbers of 32 bits or less are around the present one, and whether all
  /// threads have the result of the outermost one in common.
  unsigned narrow = 0;
  bool isNarrowUniform = false;
};

/// Bits of a thread's index, as a number: the index shifted right, and masked.
struct IndexBits {
  Place::Part::Kind kind;
  uint64_t bits;
  unsigned shift = 0;
};

} // namespace

static std::optional<IndexBits> getIndexBits(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<LaneOp>(op))
    return IndexBits{Place::Part::Kind::Lane, 31};
  if (isa_and_present<SimdgroupOp>(op)) {
    uint64_t count = op->getParentOfType<KernelOp>().getThreads() / 32;
    return IndexBits{Place::Part::Kind::Simdgroup, llvm::NextPowerOf2(count - 1) - 1};
  }
  APInt number;
  if (!isa_and_present<arith::AndIOp, arith::ShRUIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&number)) || number.getActiveBits() > 31)
    return std::nullopt;
  std::optional<IndexBits> of = getIndexBits(op->getOperand(0));
  if (!of)
    return std::nullopt;
  uint64_t constant = number.getZExtValue();
  if (isa<arith::AndIOp>(op)) {
    of->bits &= constant << of->shift;
  } else {
    of->shift = std::min<uint64_t>(of->shift + constant, 32);
    of->bits = of->bits >> of->shift << of->shift;
  }
  return of;
}

/// Bits of a number that is not negative: what is shifted, masked or joined from them.
bool Summation::addBits(Operation *op, int64_t factor, unsigned depth) {
  if (std::optional<IndexBits> of = getIndexBits(op->getResult(0))) {
    if (!addBounds(0, of->bits >> of->shift, factor))
      return false;
    bool isLane = of->kind == Place::Part::Kind::Lane;
    (isLane ? place.parts.back().laneBits : place.parts.back().simdgroupBits) = of->bits;
    return true;
  }
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
  bool isNarrow =
      isa_and_present<arith::AddIOp, arith::SubIOp, arith::MulIOp>(value.getDefiningOp()) &&
      getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth() < 64;
  if (isNarrow && narrow == 0)
    isNarrowUniform = !isa<VectorType>(value.getType()) && isUniform(value);
  narrow += isNarrow;
  llvm::scope_exit done([&] { narrow -= isNarrow; });
  if (depth > 24 || std::abs(factor) > kLargest)
    return false;
  DenseElementsAttr dense;
  if (matchPattern(value, m_Constant(&dense))) {
    if (!dense.getElementType().isInteger())
      return false;
    int64_t low = INT64_MAX, high = INT64_MIN, unit = 0;
    for (const APInt &number : dense.getValues<APInt>()) {
      low = std::min(low, number.getSExtValue());
      high = std::max(high, number.getSExtValue());
      unit = std::gcd(unit, number.getSExtValue());
    }
    unit = std::max<int64_t>(unit, 1);
    return addBounds(low / unit, high / unit, factor * unit);
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

namespace {

/// Numbers that differ between threads or registers, and what each is multiplied by in a sum. Those
/// that a mask's registers were made of, by the same choice of registers, stand for them.
class Parts {
public:
  using Key = llvm::PointerIntPair<Value, 1, bool>;

  /// `choice` is how the registers of the mask were chosen, if they were.
  explicit Parts(PermuteRegistersOp choice) : choice(choice) {}

  /// Takes a sum apart, `factor` times it. What all threads have in common goes to `uniform`. False
  /// if something else than sums is in the way.
  bool add(Value value, int64_t factor, Place &uniform, bool isChosen, unsigned depth = 0);

  llvm::MapVector<Key, int64_t> factors;

private:
  PermuteRegistersOp choice;
};

} // namespace

bool Parts::add(Value value, int64_t factor, Place &uniform, bool isChosen, unsigned depth) {
  if (depth > 16 || std::abs(factor) > kLargest)
    return false;
  Operation *op = value.getDefiningOp();
  if (isa_and_present<SplatOp, arith::ExtSIOp>(op))
    return add(op->getOperand(0), factor, uniform, isChosen, depth + 1);
  if (isa_and_present<arith::AddIOp, arith::SubIOp>(op))
    return add(op->getOperand(0), factor, uniform, isChosen, depth + 1) &&
           add(op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor, uniform, isChosen,
               depth + 1);
  APInt number;
  if (isa_and_present<arith::MulIOp>(op) && isa<VectorType>(value.getType()) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&number)) && number.getSignificantBits() <= 31)
    return add(op->getOperand(0), factor * number.getSExtValue(), uniform, isChosen, depth + 1);
  // The same in all threads and registers.
  if (matchPattern(value, m_ConstantInt(&number)))
    return Summation(uniform).add(value, factor);
  auto chosen = dyn_cast_or_null<PermuteRegistersOp>(op);
  if (chosen && choice && !isChosen && chosen.getBases() == choice.getBases() &&
      chosen.getOffset() == choice.getOffset())
    return add(chosen.getValue(), factor, uniform, true, depth + 1);
  if (isa<VectorType>(value.getType()) || !isUniform(value)) {
    // A number of the thread is the same in all registers.
    bool isVector = isa<VectorType>(value.getType());
    factors[Key(value, isVector && isChosen)] += factor;
    return true;
  }
  return Summation(uniform).add(value, factor);
}

/// The bounds that comparisons in a mask give for offsets, in elements.
static void findBounds(Value mask, Value offsets, SmallVectorImpl<Place::Bound> &bounds,
                       PermuteRegistersOp choice = {}) {
  Operation *op = mask.getDefiningOp();
  if (isa_and_present<arith::AndIOp>(op)) {
    findBounds(op->getOperand(0), offsets, bounds, choice);
    findBounds(op->getOperand(1), offsets, bounds, choice);
  }
  if (auto chosen = dyn_cast_or_null<PermuteRegistersOp>(op); chosen && !choice)
    return findBounds(chosen.getValue(), offsets, bounds, chosen);
  auto cmp = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!cmp || !getElementTypeOrSelf(cmp.getLhs().getType()).isInteger(32))
    return;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = cmp.getPredicate();
  bool swapped = predicate == Predicate::sgt || predicate == Predicate::sge;
  if (!swapped && predicate != Predicate::slt && predicate != Predicate::sle)
    return;
  Value small = cmp.getOperand(swapped), large = cmp.getOperand(!swapped);
  // The offsets are a number of times the smaller number, and something more.
  Parts own(choice), smaller(choice), larger(choice), taken(choice);
  Place place, alone;
  bool isChosen(choice);
  if (!own.add(offsets, 1, place, false) || !smaller.add(small, 1, alone, isChosen) ||
      smaller.factors.empty())
    return;
  auto [first, each] = smaller.factors.front();
  int64_t times = each ? own.factors.lookup(first) / each : 0;
  if (times <= 0)
    return;
  // A number far below 0 could wrap around on its way to the other access.
  Place bounded;
  if (!Summation(bounded).add(small, times) || !bounded.terms.empty() || bounded.modulus)
    return;
  if (!taken.add(small, -times, place, isChosen) || !larger.add(large, times, place, isChosen) ||
      !larger.factors.empty() || place.modulus)
    return;
  for (auto &[value, factor] : taken.factors)
    own.factors[value] += factor;
  bool orEqual = predicate == Predicate::sle || predicate == Predicate::sge;
  int64_t high = place.high + (orEqual ? 1 : 1 - times);
  for (auto &[value, factor] : own.factors) {
    DenseElementsAttr constants;
    if (factor == 0)
      continue;
    if (!matchPattern(value.getPointer(), m_Constant(&constants)))
      return;
    Place some;
    if (!Summation(some).add(value.getPointer(), factor))
      return;
    high += some.high;
  }
  bounds.push_back({place.terms, high});
}

/// Terms that cancel out are left out; the others are in the order of their values.
static void tidy(SmallVectorImpl<std::pair<Value, int64_t>> &terms) {
  llvm::erase_if(terms, [](auto &term) { return term.second == 0; });
  llvm::sort(terms, [](auto &a, auto &b) {
    return a.first.getAsOpaquePointer() < b.first.getAsOpaquePointer();
  });
}

/// The loop that carries a pointer and moves it on by the same number of elements in each step, and
/// that number.
static std::optional<std::pair<scf::ForOp, int64_t>> getMove(Value pointer) {
  auto argument = dyn_cast<BlockArgument>(pointer);
  auto loop =
      argument ? dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || argument == loop.getInductionVar())
    return std::nullopt;
  auto next = loop.getTiedLoopYieldedValue(argument)->get().getDefiningOp<PtrAddOp>();
  APInt number;
  if (!next || next.getBase() != argument ||
      !matchPattern(next.getOffset(), m_ConstantInt(&number)) || number.getSignificantBits() > 31)
    return std::nullopt;
  return std::pair(loop, number.getSExtValue());
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
  for (;;) {
    // The pointer that a loop begins with, moved on as often as the loop has gone on.
    if (auto move = getMove(base)) {
      int64_t bytes = bytesOf(base) * move->second;
      place.terms.push_back({base, bytes});
      before.terms.push_back({base, bytes});
      base = move->first.getTiedLoopInit(cast<BlockArgument>(base))->get();
      continue;
    }
    Operation *op = base.getDefiningOp();
    if (!op)
      break;
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

/// How far numbers of a loop's counter are apart at most: `begin` to below `min(begin + n, …)`.
static double getReach(scf::ForOp loop) {
  constexpr double most = 4294967296.0;
  if (loop.getUnsignedCmp())
    return most;
  APInt number, begin;
  SmallVector<Value, 4> ends{loop.getUpperBound()};
  while (!ends.empty()) {
    Operation *op = ends.pop_back_val().getDefiningOp();
    if (isa_and_present<arith::MinSIOp>(op)) {
      llvm::append_range(ends, op->getOperands());
    } else if (isa_and_present<arith::AddIOp>(op) && op->getOperand(0) == loop.getLowerBound() &&
               matchPattern(op->getOperand(1), m_ConstantInt(&number)) &&
               number.isStrictlyPositive()) {
      // A sum that wraps around is below the begin: such a loop has no steps.
      return number.roundToDouble();
    } else if (op && matchPattern(op->getResult(0), m_ConstantInt(&number)) &&
               matchPattern(loop.getLowerBound(), m_ConstantInt(&begin))) {
      return std::max(0.0, number.signedRoundToDouble() - begin.signedRoundToDouble());
    }
  }
  return most;
}

/// The largest magnitude of a number. A pointer stands for how often a loop has moved it.
static double getMagnitude(Value value) {
  if (isa<PtrType>(value.getType())) {
    auto loop = cast<scf::ForOp>(value.getParentBlock()->getParentOp());
    bool isShort = loop.getInductionVar().getType().isInteger(32);
    return isShort ? 4294967296.0 : HUGE_VAL;
  }
  if (auto wide = value.getDefiningOp<arith::ExtSIOp>())
    return getMagnitude(wide.getIn());
  if (value.getType().isInteger() && value.getType().getIntOrFloatBitWidth() <= 32)
    return 2147483648.0;
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    return getMagnitude(product.getLhs()) * getMagnitude(product.getRhs());
  return HUGE_VAL;
}

/// How far a number is apart at most in two steps of a loop.
static double getReach(Value value, scf::ForOp loop) {
  auto narrow = [](Value operand) {
    auto wide = operand.getDefiningOp<arith::ExtSIOp>();
    return wide ? wide.getIn() : operand;
  };
  if (narrow(value) == loop.getInductionVar())
    return getReach(loop);
  if (auto product = value.getDefiningOp<arith::MulIOp>();
      product && product.getType().isInteger(64))
    for (auto [counter, other] : {std::pair(product.getLhs(), product.getRhs()),
                                  std::pair(product.getRhs(), product.getLhs())})
      if (narrow(counter) == loop.getInductionVar() && !isOfLoop(other, loop))
        return getReach(loop) * getMagnitude(other);
  return 2 * getMagnitude(value);
}

int64_t Place::getDivisor(const Place &other, scf::ForOp loop) const {
  llvm::SmallMapVector<Value, int64_t, 4> differences;
  for (auto &[term, times] : terms)
    differences[term] += times;
  for (auto &[term, times] : other.terms)
    differences[term] -= times;
  // The lowest bit of all of them, and what divides them all. The latter is lost where numbers wrap
  // around.
  int64_t bits = modulus | other.modulus, common = 0;
  double distance = wraps || other.wraps || bits ? HUGE_VAL : 0;
  auto add = [&](Value term, int64_t times, double reach) {
    if (times == 0)
      return;
    bits |= times;
    common = std::gcd(common, times);
    bool mayWrap = llvm::is_contained(wrapping, term) || llvm::is_contained(other.wrapping, term);
    distance += mayWrap ? HUGE_VAL : std::abs(double(times)) * reach;
  };
  for (auto &[term, times] : differences)
    add(term, times, getMagnitude(term));
  for (const Place *place : {this, &other})
    for (auto &[term, times] : place->terms)
      if (isOfLoop(term, loop))
        add(term, times, getReach(term, loop));
  constexpr double most = 4611686018427387904.0;
  return distance < most ? common : bits & -bits;
}

std::pair<int64_t, int64_t> Place::range() const {
  std::pair<int64_t, int64_t> result(low, high);
  for (const Bound &bound : bounds)
    if (bound.terms == terms)
      result.second = std::min(result.second, std::max(bound.high, low));
  return result;
}

bool Place::isDisjointFrom(const Place &other, scf::ForOp loop) const {
  if (root != other.root || isOfLoop(root, loop))
    return false;
  if (loop ? isMovedApart(other, loop) : isBelow(other) || other.isBelow(*this))
    return true;
  int64_t divisor = getDivisor(other, loop);
  if (!divisor && (high <= other.low || other.high <= low))
    return true;
  // Remainders by a number that divides what the two are apart.
  auto areApart = [](int64_t divisor, std::pair<int64_t, int64_t> own,
                     std::pair<int64_t, int64_t> others) {
    int64_t distance = ((others.first - own.first) % divisor + divisor) % divisor;
    return own.second - own.first <= distance && others.second - others.first <= divisor - distance;
  };
  if (divisor && areApart(divisor, range(), other.range()))
    return true;
  // What threads add may be rows, too: places with other remainders by a row's length differ.
  SmallVector<int64_t> lengths{divisor};
  for (const Place *place : {this, &other})
    for (const Part &part : place->parts)
      lengths.push_back(std::gcd(divisor, part.factor));
  return llvm::any_of(lengths, [&](int64_t length) {
    return length != 0 && areApart(length, remainders(length), other.remainders(length));
  });
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
  // What lanes and SIMD-groups add, and from where to where one thread's accesses go. Where both
  // are sums of the same parts, each part is a digit of the place.
  bool areAlike = parts == other.parts;
  struct Split {
    int64_t lane = 0, simdgroup = 0, low, high;
    uint64_t laneBits = 0, simdgroupBits = 0;
    SmallVector<std::pair<int64_t, int64_t>> digits;
    Split(const Place &place, bool hasDigits) : low(place.low), high(place.high) {
      for (const Part &part : place.parts) {
        if (part.kind != Part::Kind::Other)
          (part.kind == Part::Kind::Lane ? lane : simdgroup) += part.factor;
        else if (hasDigits && part.factor > 0 && part.high > part.low)
          digits.push_back({part.factor, (part.high - part.low) / part.factor + 1});
        else
          continue;
        laneBits |= part.laneBits;
        simdgroupBits |= part.simdgroupBits;
        low -= part.low;
        high -= part.high;
      }
    }
  };
  auto lengthOfAll = [&](bool hasDigits) {
    Split own(*this, hasDigits), theirs(other, hasDigits);
    if (own.lane != theirs.lane || own.simdgroup != theirs.simdgroup)
      return int64_t(0);
    SmallVector<std::pair<int64_t, int64_t>> steps = own.digits;
    // An index is a digit itself, or its bits are among the digits.
    if (own.lane || own.laneBits != 31)
      steps.push_back({own.lane, 32});
    if (numSimdgroups > 1 && (own.simdgroup || own.simdgroupBits != uint64_t(numSimdgroups - 1)))
      steps.push_back({own.simdgroup, numSimdgroups});
    llvm::sort(steps);
    // Each step is at least as long as all that is inside of it.
    int64_t length = std::max(own.high, theirs.high) - std::min(own.low, theirs.low);
    for (auto [step, count] : steps) {
      if (step < length)
        return int64_t(0);
      length = step * count;
    }
    return length;
  };
  int64_t length = lengthOfAll(false);
  if (!length && areAlike)
    length = lengthOfAll(true);
  if (!length)
    return false;
  int64_t divisor = getDivisor(other, loop);
  if (!divisor)
    return true;
  auto [begin, end] = range();
  auto [otherBegin, otherEnd] = other.range();
  return std::min(length, std::max(end, otherEnd) - std::min(begin, otherBegin)) <= divisor;
}

bool Place::isMovedApart(const Place &later, scf::ForOp loop) const {
  if (terms != later.terms || modulus || later.modulus)
    return false;
  int64_t stride = 0;
  for (auto &[value, times] : terms) {
    Value term = value;
    if (!isOfLoop(term, loop))
      continue;
    int64_t own = 0;
    if (term == loop.getInductionVar())
      own = getStride(loop, times);
    else if (isa<PtrType>(term.getType()) && term.getParentBlock() == loop.getBody())
      own = times;
    if (!own)
      return false;
    stride += own;
  }
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
