// Loops whose masks are true up to some step become two: see Passes.td.

#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LocationNames.h"
#include "dialect/ttm/TTM.h"
#include "transforms/AffineSteps.h"
#include "transforms/IntegerRanges.h"
#include "transforms/Passes.h"
#include "transforms/TTMMasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMSPLITLOOPS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

constexpr int64_t kLeast = INT32_MIN, kMost = INT32_MAX;

constexpr llvm::StringLiteral kDivisibility = "tt.divisibility";

/// A loop with more operations than this has a long text already.
constexpr int64_t kMostOperations = 400;

/// A comparison `a < b` of which it can be known, before the loop, in which steps it is true for
/// all elements: if the exact `margin`, the least of b minus the greatest of a, is positive, and
/// neither the least of a nor the greatest of b wraps around.
struct Comparison {
  Affine margin, least, greatest;
};

/// The comparisons of the masks of one loop, and the step up to which they are true.
class LoopSplit {
public:
  LoopSplit(scf::ForOp loop, int64_t step) : loop(loop), step(step), affine(loop, step) {}

  /// Whether there is something to gain; changes nothing.
  bool analyse();
  void rewrite();

private:
  void addMask(Value mask, bool onlyKnown = false);
  std::optional<Comparison> compare(arith::CmpIOp op);
  bool isKnown(const Affine &number, bool isLeast);
  int64_t getMostLeft(const Affine &limit);
  bool isLikelyWhole(const Affine &limit);
  void addUpperBounds(Value value);
  void findConditions();
  void keepSameMasks();
  void clearConditions();
  Value createLimit(Affine limit, int64_t factor);
  Value createPositive(const Affine &number);
  Value createSum(const Affine &number);
  Value createConditions();
  Location getBoundName();
  Value createBound();
  Value createVersionBound();
  void continueLoop(Value bound, ValueRange carried);
  void branch();
  void branch(Block &block);
  void branch(ArrayRef<Operation *> group);
  Value createGroupBound(ArrayRef<Operation *> group, DenseSet<Operation *> &isTrue);
  bool feedsTiles(Operation *op);
  void sinkIntoCuts(Block &block);
  void markCut(Operation *root, bool isCut);
  void findComparisons(Value mask, SmallVectorImpl<const Comparison *> &found);
  bool areAll(ArrayRef<const Comparison *> some);

  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(builder, where, builder.getIntegerAttr(type, value));
  }
  Value constant(int64_t value) { return constant(builder.getI32Type(), value); }

  scf::ForOp loop;
  int64_t step;
  AffineSteps affine;
  ValueRanges ranges;
  llvm::MapVector<Operation *, Comparison> comparisons;
  /// Sums that must be positive, or the first loop has no steps.
  SmallVector<Affine> conditions;
  /// Each index of the first loop, times a power of two, is below all of these.
  SmallVector<std::pair<Affine, int64_t>> limits;
  /// Comparisons that are true for every element of every step.
  DenseSet<Operation *> alwaysTrue;
  /// What is not below the loop's upper bound, unless that is negative.
  SmallVector<Affine> upperBounds;
  /// Whether one of two loops is to take all steps.
  bool isVersioned = false;
  /// Whether the loop stays one, and its loads and choices stand in both sides of a branch.
  bool isBranched = false;
  /// Whether choices of tiles have masks, too.
  bool chooses = false;
  /// What is known of `feedsTiles`.
  DenseMap<Operation *, bool> tileFeeds;
  /// The sides of branches for steps that are not whole.
  SmallVector<Region *> cuts;
  OpBuilder builder{loop};
  Location where = UnknownLoc::get(loop.getContext());
};

/// Whether two functions are the same.
bool isSame(const Affine &a, const Affine &b) {
  return a.terms == b.terms && a.perIndex == b.perIndex && a.low == b.low && a.high == b.high;
}

/// The number of elements that a thread holds.
int64_t getRegisters(Value tile) {
  auto layout = ttm::getLayout(tile);
  return layout ? layout->getNumRegisters() : 1;
}

/// The mask of a load or store; null where it has none.
Value getMask(Operation *op) {
  if (auto load = dyn_cast<tt::LoadOp>(op))
    return load.getMask();
  auto store = dyn_cast<tt::StoreOp>(op);
  return store ? store.getMask() : Value();
}

/// What a load, store or choice asks; null where it asks nothing.
Value getCondition(Operation *op) {
  auto select = dyn_cast<arith::SelectOp>(op);
  return select ? select.getCondition() : getMask(op);
}

bool LoopSplit::analyse() {
  int64_t operations = 0;
  bool multiplies = false;
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    if (isa<LoopLikeOpInterface>(op) || ++operations > kMostOperations)
      return WalkResult::interrupt();
    if (auto mma = dyn_cast<MMAOp>(op)) {
      multiplies = true;
      // Where fragments are arrays of a thread, each multiply is a call on a part of them: twice as
      // many make a long text, which compilers leave in memory.
      const auto *instruction = msl::MatrixInstruction::get(mma.getInstruction());
      if (instruction && instruction->inRegisters)
        return WalkResult::interrupt();
    }
    Value mask = getCondition(op);
    if (mask && getRegisters(mask) > 1) {
      size_t before = comparisons.size();
      addMask(mask);
      chooses |= isa<arith::SelectOp>(op) && comparisons.size() > before;
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || comparisons.empty())
    return false;
  // A mask of one register alone is not worth another loop, but the one there is knows of it.
  loop.getBody()->walk([&](Operation *op) {
    if (Value mask = getMask(op); mask && getRegisters(mask) == 1)
      addMask(mask, /*onlyKnown=*/true);
  });
  findConditions();
  // Sums of products that live through two loops, one after the other, take registers. Where all
  // steps are whole in most programs, one of two loops takes all of them.
  isVersioned = multiplies && !chooses &&
                llvm::all_of(limits, [&](auto &limit) { return isLikelyWhole(limit.first); });
  isBranched = multiplies && !isVersioned;
  if (isBranched)
    keepSameMasks();
  return true;
}

/// Leaves masks that are the same in all steps to whole steps, too: they are computed once, also in
/// programs whose rows or columns are cut.
void LoopSplit::keepSameMasks() {
  comparisons.remove_if([](auto &entry) { return entry.second.margin.perIndex == 0; });
  clearConditions();
  alwaysTrue.clear();
  findConditions();
}

/// Forgets what decides which steps are whole.
void LoopSplit::clearConditions() {
  conditions.clear();
  limits.clear();
  upperBounds.clear();
}

/// Collects the comparisons of a mask; only those that ask what others have asked if `onlyKnown`.
void LoopSplit::addMask(Value mask, bool onlyKnown) {
  Operation *op = mask.getDefiningOp();
  if (!op || comparisons.contains(op))
    return;
  if (onlyMoves(op))
    return addMask(op->getOperand(0), onlyKnown);
  if (isa<arith::AndIOp>(op)) {
    addMask(op->getOperand(0), onlyKnown);
    return addMask(op->getOperand(1), onlyKnown);
  }
  auto cmp = dyn_cast<arith::CmpIOp>(op);
  if (!cmp || !isa<RankedTensorType>(mask.getType()))
    return;
  std::optional<Comparison> comparison = compare(cmp);
  if (!comparison || (onlyKnown && llvm::none_of(comparisons, [&](auto &known) {
                        return isSame(known.second.margin, comparison->margin) &&
                               isSame(known.second.least, comparison->least) &&
                               isSame(known.second.greatest, comparison->greatest);
                      })))
    return;
  comparisons.insert({op, *comparison});
}

std::optional<Comparison> LoopSplit::compare(arith::CmpIOp op) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  bool swapped = predicate == Predicate::sgt || predicate == Predicate::sge;
  if (!swapped && predicate != Predicate::slt && predicate != Predicate::sle)
    return std::nullopt;
  std::optional<Affine> a = affine.get(swapped ? op.getRhs() : op.getLhs());
  std::optional<Affine> b = a ? affine.get(swapped ? op.getLhs() : op.getRhs()) : std::nullopt;
  if (!b)
    return std::nullopt;
  Affine margin = *b;
  margin.add(*a, -1);
  // `low` is what is least: the least of b less the greatest of a.
  if (predicate == Predicate::sle || predicate == Predicate::sge)
    ++margin.low;
  if (!margin.isSmall())
    return std::nullopt;
  bool endsEarly = margin.perIndex < 0;
  if (endsEarly && !llvm::isPowerOf2_64(-margin.perIndex))
    return std::nullopt;
  // Where nothing differs between steps or programs, one test before the loop is as good, and
  // programs in which it fails still learn of the others up to which step they are true.
  if (margin.perIndex == 0 &&
      llvm::none_of(margin.terms, [](auto &term) { return varies(term.first); }))
    return std::nullopt;
  // The greatest of a is below the least of b, so only the other ends may be out of range.
  Affine first = affine.first(), last = affine.last();
  Affine least = a->at(a->perIndex < 0 ? last : first);
  Affine greatest = b->at(b->perIndex > 0 ? last : first);
  return Comparison{margin, least, greatest};
}

/// Whether the least (greatest) of what the numbers can be fits into 32 bits.
bool LoopSplit::isKnown(const Affine &number, bool isLeast) {
  // A scalar itself is a number of 32 bits.
  int64_t end = isLeast ? number.low : number.high;
  for (auto [scalar, factor] : number.terms) {
    ConstantIntRanges range = ranges.get(scalar);
    bool isLow = (factor > 0) == isLeast;
    int64_t extreme = (isLow ? range.smin() : range.smax()).getSExtValue();
    int64_t divisor = getDivisor(scalar);
    end += factor * ((isLow ? extreme + divisor - 1 : extreme) & -divisor);
  }
  return isLeast ? end >= kLeast : end <= kMost;
}

/// The exact sum with `low`, in 64 bits.
Value LoopSplit::createSum(const Affine &number) {
  Type i64 = builder.getI64Type();
  Value sum;
  auto add = [&](Value value) {
    sum = sum ? builder.createOrFold<arith::AddIOp>(where, sum, value) : value;
  };
  for (auto [scalar, factor] : number.terms) {
    Value wide = builder.createOrFold<arith::ExtSIOp>(where, i64, scalar);
    if (factor != 1)
      wide = builder.createOrFold<arith::MulIOp>(where, wide, constant(i64, factor));
    add(wide);
  }
  if (number.low || !sum)
    add(constant(i64, number.low));
  return sum;
}

/// Whether the exact sum with `low` is positive.
Value LoopSplit::createPositive(const Affine &number) {
  auto compare = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) -> Value {
    return builder.createOrFold<arith::CmpIOp>(where, predicate, lhs, rhs);
  };
  ArrayRef terms = number.terms;
  if (terms.empty())
    return constant(builder.getI1Type(), number.low > 0);
  if (terms.size() == 1 && terms[0].second == 1 && -number.low >= kLeast && -number.low <= kMost)
    return compare(arith::CmpIPredicate::sgt, terms[0].first, constant(-number.low));
  if (terms.size() == 1 && terms[0].second == -1 && number.low >= kLeast && number.low <= kMost)
    return compare(arith::CmpIPredicate::slt, terms[0].first, constant(number.low));
  // One number and a constant above another number. The constant goes to the side that it makes
  // smaller; a sum that would wrap around stops at the least number, which is above none.
  if (terms.size() == 2 && terms[0].second + terms[1].second == 0 &&
      std::abs(terms[0].second) == 1 && number.low >= kLeast && number.low <= kMost) {
    bool inOrder = terms[0].second == 1;
    Value large = terms[inOrder ? 0 : 1].first, small = terms[inOrder ? 1 : 0].first;
    // A multiple of 64 plus 63 does not wrap around.
    if (number.low < 0 && -number.low < getDivisor(small))
      return compare(arith::CmpIPredicate::slt,
                     arith::AddIOp::create(builder, where, small, constant(-number.low),
                                           arith::IntegerOverflowFlags::nsw),
                     large);
    auto lower = [&](Value value, int64_t by) -> Value {
      if (by == 0)
        return value;
      if (ranges.get(value).smin().getSExtValue() < kLeast + by)
        value = builder.createOrFold<arith::MaxSIOp>(where, value, constant(kLeast + by));
      return builder.createOrFold<arith::AddIOp>(where, value, constant(-by));
    };
    return number.low <= 0 ? compare(arith::CmpIPredicate::sgt, lower(large, -number.low), small)
                           : compare(arith::CmpIPredicate::sgt, large, lower(small, number.low));
  }
  return compare(arith::CmpIPredicate::sgt, createSum(number), constant(builder.getI64Type(), 0));
}

/// Collects what decides which steps are whole.
void LoopSplit::findConditions() {
  auto require = [&](const Affine &positive) {
    if (llvm::none_of(conditions, [&](const Affine &known) {
          return known.terms == positive.terms && known.low == positive.low;
        }))
      conditions.push_back(positive);
  };
  auto requireBelow = [&](const Affine &smaller, const Affine &larger) {
    Affine difference = larger;
    difference.add(smaller, -1);
    require(difference);
  };
  Affine first = affine.first();
  // The distance between two indices is then a number of 32 bits.
  if (!first.terms.empty() ? !ranges.isNonNegative(loop.getLowerBound()) : first.low < 0)
    requireBelow(Affine::constant(-1), first);
  bool isCounted = conditions.empty();
  addUpperBounds(loop.getUpperBound());
  for (auto &[op, comparison] : comparisons) {
    Affine limit = comparison.margin;
    int64_t factor = -std::exchange(limit.perIndex, 0);
    if (factor == 1 && isCounted && getMostLeft(limit) <= 0 &&
        isKnown(comparison.least, /*isLeast=*/true) &&
        isKnown(comparison.greatest, /*isLeast=*/false)) {
      alwaysTrue.insert(op);
      continue;
    }
    if (factor <= 0)
      require(comparison.margin.at(first));
    else if (llvm::none_of(limits, [&](auto &known) {
               return known.second == factor && known.first.terms == limit.terms &&
                      known.first.low == limit.low;
             }))
      limits.push_back({limit, factor});
    if (!isKnown(comparison.least, /*isLeast=*/true))
      requireBelow(Affine::constant(kLeast - 1), comparison.least);
    if (!isKnown(comparison.greatest, /*isLeast=*/false))
      requireBelow(comparison.greatest, Affine::constant(kMost + 1));
  }
  // Limits that no step reaches.
  llvm::erase_if(limits,
                 [&](auto &limit) { return limit.second == 1 && getMostLeft(limit.first) <= 0; });
}

/// The index before which a comparison is true that is false from some step on, or a number on the
/// same side of every index.
Value LoopSplit::createLimit(Affine limit, int64_t factor) {
  if (factor == 1 && limit.terms.size() == 1 && limit.terms[0].second == 1 && limit.low >= kLeast &&
      limit.low <= 0) {
    Value scalar = limit.terms[0].first;
    if (limit.low == 0)
      return scalar;
    // The sum is exact where the scalar is no less than what makes it the least number.
    if (ranges.get(scalar).smin().getSExtValue() < kLeast - limit.low)
      scalar = builder.createOrFold<arith::MaxSIOp>(where, scalar, constant(kLeast - limit.low));
    return builder.createOrFold<arith::AddIOp>(where, scalar, constant(limit.low));
  }
  // An index is below a quotient if it is at most what is less than the dividend by one, divided
  // and rounded down.
  Type i64 = builder.getI64Type();
  if (factor != 1)
    limit.add(Affine::constant(1), -1);
  Value sum = createSum(limit);
  if (factor != 1) {
    sum = builder.createOrFold<arith::ShRSIOp>(where, sum, constant(i64, llvm::Log2_64(factor)));
    sum = builder.createOrFold<arith::AddIOp>(where, sum, constant(i64, 1));
  }
  sum = builder.createOrFold<arith::MaxSIOp>(where, sum, constant(i64, kLeast));
  sum = builder.createOrFold<arith::MinSIOp>(where, sum, constant(i64, kMost));
  return builder.createOrFold<arith::TruncIOp>(where, builder.getI32Type(), sum);
}

/// What must be true, or the first loop has no steps; null if nothing.
Value LoopSplit::createConditions() {
  Value all;
  for (const Affine &condition : conditions) {
    Value one = createPositive(condition);
    all = all ? builder.createOrFold<arith::AndIOp>(where, all, one) : one;
  }
  return all;
}

/// What a text calls the index before which steps are whole.
Location LoopSplit::getBoundName() {
  return named(loop.getContext(), nameOf(loop.getInductionVar().getLoc(), "index") + "_whole");
}

/// The index of the first step in which a comparison may be false.
Value LoopSplit::createBound() {
  Location name = getBoundName();
  Value lower = loop.getLowerBound(), limit = loop.getUpperBound();
  for (auto &[sum, factor] : limits) {
    Value least = createLimit(sum, factor);
    // The upper bound less a number, which stops at the least one, is not above it.
    bool isBelow = factor == 1 && sum.low <= 0 && sum.terms.size() == 1 &&
                   sum.terms[0] == std::pair(loop.getUpperBound(), int64_t(1));
    limit = isBelow && limit == loop.getUpperBound()
                ? least
                : builder.createOrFold<arith::MinSIOp>(where, limit, least);
  }
  // The index behind the last of these steps must be a number of 32 bits.
  int64_t most = kMost - step + 1;
  if (ranges.get(limit).smax().sgt(most))
    limit = builder.createOrFold<arith::MinSIOp>(where, limit, constant(most));
  if (Value all = createConditions())
    limit = builder.createOrFold<arith::SelectOp>(where, all, limit, lower);
  limit = builder.createOrFold<arith::MaxSIOp>(step == 1 ? name : where, limit, lower);
  if (step == 1)
    return limit;
  // The distance from the lower bound, rounded up to whole steps; or the index itself where both
  // are multiples of the step.
  APInt start;
  bool fromZero = matchPattern(lower, m_ConstantInt(&start)) &&
                  (start.isZero() || (llvm::isPowerOf2_64(step) && start.srem(step) == 0));
  Value distance = fromZero ? limit : builder.createOrFold<arith::SubIOp>(where, limit, lower);
  distance = builder.createOrFold<arith::AddIOp>(where, distance, constant(step - 1));
  Location last = fromZero ? name : where;
  if (llvm::isPowerOf2_64(step)) {
    distance = builder.createOrFold<arith::AndIOp>(last, distance, constant(-step));
  } else {
    distance = builder.createOrFold<arith::DivUIOp>(where, distance, constant(step));
    distance = builder.createOrFold<arith::MulIOp>(last, distance, constant(step));
  }
  // Accesses behind this step are as wide as those before it.
  if (Operation *op = distance.getDefiningOp(); isa_and_present<arith::AndIOp, arith::MulIOp>(op))
    op->setAttr(kDivisibility, builder.getI32IntegerAttr(step));
  return fromZero ? distance : builder.createOrFold<arith::AddIOp>(name, distance, lower);
}

/// The upper bound if all steps are whole, otherwise the lower bound.
Value LoopSplit::createVersionBound() {
  Value all, upper = loop.getUpperBound();
  if (limits.empty() && conditions.empty())
    return upper;
  if (limits.empty())
    all = createConditions();
  else
    all =
        builder.createOrFold<arith::CmpIOp>(where, arith::CmpIPredicate::sge, createBound(), upper);
  if (Operation *op = all.getDefiningOp(); isa_and_present<arith::AndIOp, arith::CmpIOp>(op))
    op->setLoc(named(loop.getContext(), "all_whole"));
  return builder.createOrFold<arith::SelectOp>(where, all, upper, loop.getLowerBound());
}

/// The numbers of which `value` is the least. Where one of them wraps around, the value is
/// negative.
void LoopSplit::addUpperBounds(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MinSIOp>(op)) {
    addUpperBounds(op->getOperand(0));
    return addUpperBounds(op->getOperand(1));
  }
  APInt more;
  if (isa_and_nonnull<arith::AddIOp>(op) && matchPattern(op->getOperand(1), m_ConstantInt(&more)) &&
      more.isNonNegative()) {
    Affine sum = Affine::of(op->getOperand(0));
    sum.add(Affine::constant(more.getSExtValue()), 1);
    upperBounds.push_back(sum);
  }
  upperBounds.push_back(matchPattern(value, m_ConstantInt(&more))
                            ? Affine::constant(more.getSExtValue())
                            : Affine::of(value));
}

/// How far the upper bound is at most from where the first loop ends, if this is what ends it.
int64_t LoopSplit::getMostLeft(const Affine &limit) {
  int64_t most = INT64_MAX;
  for (const Affine &upper : upperBounds) {
    Affine distance = upper;
    distance.add(limit, -1);
    if (!distance.terms.empty())
      continue;
    // The first loop ends at a multiple of the step behind the limit, if it begins at one.
    int64_t low = limit.low;
    if (getDivisor(loop.getLowerBound()) % step == 0 && llvm::all_of(limit.terms, [&](auto &term) {
          return term.second * getDivisor(term.first) % step == 0;
        }))
      low = llvm::alignTo(low + (int64_t(1) << 40) * step, step) - (int64_t(1) << 40) * step;
    most = std::min(most, upper.low - low);
  }
  return most;
}

/// Whether the numbers of a limit are known as multiples of 16, as launches know them.
bool LoopSplit::isLikelyWhole(const Affine &limit) {
  return llvm::all_of(limit.terms, [](auto &term) { return getDivisor(term.first) >= 16; });
}

/// Makes the loop go on behind the first one.
void LoopSplit::continueLoop(Value bound, ValueRange carried) {
  bool isCut =
      isVersioned ? limits.empty() : conditions.empty() && llvm::all_of(limits, [&](auto &limit) {
                                       return limit.second == 1 && getMostLeft(limit.first) <= step;
                                     });
  loop.getLowerBoundMutable().assign(bound);
  loop.getInitArgsMutable().assign(carried);
  if (isVersioned) {
    loop->setAttr(msl::kVersionAttr, builder.getUnitAttr());
    // Some of its steps may be whole, if not all are.
    if (!isCut)
      return;
  } else if (isCut) {
    loop->setAttr(msl::kAtMostOnceAttr, builder.getUnitAttr());
    loop.getInductionVar().replaceAllUsesWith(bound);
  }
  markCut(loop, isCut);
}

/// Marks accesses of steps that are not whole. Each step is here because one of the comparisons is
/// false for some element: a mask that has all of them is never all true. In a single step, and in
/// a version whose steps are alike, others hardly are, and no second body for whole blocks is worth
/// its length.
void LoopSplit::markCut(Operation *root, bool isCut) {
  root->walk([&](Operation *op) {
    SmallVector<const Comparison *> found;
    if (Value mask = getMask(op))
      findComparisons(mask, found);
    if (!found.empty() && (isCut || areAll(found)))
      op->setAttr(TTMDialect::getCutAttrName(), builder.getUnitAttr());
  });
}

/// The rest of a mask whose comparisons in `isTrue` are true; null if that is all of it.
Value getRest(OpBuilder &builder, Value mask, const DenseSet<Operation *> &isTrue) {
  Operation *op = mask.getDefiningOp();
  if (!op)
    return mask;
  if (isTrue.contains(op))
    return {};
  bool moves = onlyMoves(op);
  if (!moves && !isa<arith::AndIOp>(op))
    return mask;
  Value lhs = getRest(builder, op->getOperand(0), isTrue);
  if (moves) {
    if (!lhs || lhs == op->getOperand(0))
      return lhs ? mask : Value();
    IRMapping mapping;
    mapping.map(op->getOperand(0), lhs);
    return builder.clone(*op, mapping)->getResult(0);
  }
  Value rhs = getRest(builder, op->getOperand(1), isTrue);
  if (lhs == op->getOperand(0) && rhs == op->getOperand(1))
    return mask;
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return builder.createOrFold<arith::AndIOp>(op->getLoc(), lhs, rhs);
}

/// Leaves out what is true of masks and choices.
void dropMasks(Operation *root, const DenseSet<Operation *> &isTrue) {
  root->walk([&](Operation *op) {
    OpBuilder builder(op);
    if (auto load = dyn_cast<tt::LoadOp>(op); load && load.getMask()) {
      if (Value rest = getRest(builder, load.getMask(), isTrue)) {
        load.getMaskMutable().assign(rest);
      } else {
        load.getMaskMutable().clear();
        load.getOtherMutable().clear();
      }
    } else if (auto store = dyn_cast<tt::StoreOp>(op); store && store.getMask()) {
      if (Value rest = getRest(builder, store.getMask(), isTrue))
        store.getMaskMutable().assign(rest);
      else
        store.getMaskMutable().clear();
    } else if (auto select = dyn_cast<arith::SelectOp>(op);
               select && isa<RankedTensorType>(select.getCondition().getType())) {
      if (Value rest = getRest(builder, select.getCondition(), isTrue))
        select.getConditionMutable().assign(rest);
      else
        select.replaceAllUsesWith(select.getTrueValue());
    }
  });
}

/// Whether nothing but tiles of products takes what an operation gives.
bool LoopSplit::feedsTiles(Operation *op) {
  if (isa<StoreTileOp>(op))
    return true;
  if (auto it = tileFeeds.find(op); it != tileFeeds.end())
    return it->second;
  bool feeds = isPure(op) && !op->use_empty() &&
               llvm::all_of(op->getUsers(), [&](Operation *user) { return feedsTiles(user); });
  tileFeeds[op] = feeds;
  return feeds;
}

/// Puts loads and choices into both sides of a branch: with the masks of a whole step, and as they
/// are. What goes from loads to the tiles of a product goes with them, so that sums of products
/// live in one loop.
void LoopSplit::branch() {
  // Loads of the next step stand in branches of their own.
  SmallVector<Block *> blocks{loop.getBody()};
  loop.getBody()->walk([&](scf::IfOp op) {
    for (Region *region : op.getRegions())
      if (!region->empty())
        blocks.push_back(&region->front());
  });
  for (Block *block : blocks)
    branch(*block);
  for (Block *block : blocks)
    sinkIntoCuts(*block);
}

/// The same in a block.
void LoopSplit::branch(Block &block) {
  SmallVector<SmallVector<Operation *>> groups(1), choices;
  DenseSet<Operation *> moved;
  tileFeeds.clear();
  auto endGroup = [&] {
    moved.clear();
    if (!groups.back().empty())
      groups.emplace_back();
  };
  for (Operation &op : block.without_terminator()) {
    SmallVector<const Comparison *> found;
    if (Value mask = isa<tt::LoadOp>(op) ? getMask(&op) : Value())
      findComparisons(mask, found);
    bool depends = llvm::any_of(
        op.getOperands(), [&](Value operand) { return moved.contains(operand.getDefiningOp()); });
    bool follows = depends && (isPure(&op) || isa<StoreTileOp>(op)) && op.getNumRegions() == 0 &&
                   (!chooses || feedsTiles(&op));
    if (!found.empty() || follows) {
      moved.insert(&op);
      groups.back().push_back(&op);
      continue;
    }
    // Accesses keep their order, and what takes a group's results comes behind it.
    if (depends || op.getNumRegions() || (!isPure(&op) && !isa<AllocTileOp>(op)))
      endGroup();
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      findComparisons(select.getCondition(), found);
      if (!found.empty())
        choices.push_back({select});
    }
  }
  groups.append(choices);
  for (ArrayRef<Operation *> group : groups)
    if (!group.empty())
      branch(group);
}

/// The same for a group of operations. Nothing else between them depends on them.
void LoopSplit::branch(ArrayRef<Operation *> group) {
  // Blocks that hold all keys may still have some that a query does not see: each group has a bound
  // of its own.
  DenseSet<Operation *> isTrue;
  Value bound = createGroupBound(group, isTrue);
  if (!bound)
    return;
  if (bound == loop.getUpperBound()) {
    for (Operation *op : group)
      dropMasks(op, isTrue);
    return;
  }
  SmallVector<Value> results;
  auto isOutside = [&](Operation *user) { return !llvm::is_contained(group, user); };
  for (Operation *op : group)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), isOutside))
        results.push_back(result);
  builder.setInsertionPointAfter(group.back());
  Value isWhole = arith::CmpIOp::create(builder, where, arith::CmpIPredicate::slt,
                                        loop.getInductionVar(), bound);
  auto choice = scf::IfOp::create(builder, where, ValueRange(results).getTypes(), isWhole,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  for (Region *side : {&choice.getThenRegion(), &choice.getElseRegion()}) {
    IRMapping mapping;
    builder.setInsertionPointToStart(&side->front());
    for (Operation *op : group)
      builder.clone(*op, mapping);
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(mapping.lookup(result));
    scf::YieldOp::create(builder, where, yielded);
  }
  for (auto [result, chosen] : llvm::zip(results, choice.getResults()))
    result.replaceUsesWithIf(chosen, [&](OpOperand &use) { return isOutside(use.getOwner()); });
  for (Operation *op : llvm::reverse(group))
    op->erase();
  for (Operation &op : choice.getThenRegion().front())
    dropMasks(&op, isTrue);
  IRRewriter rewriter(loop.getContext());
  (void)runRegionDCE(rewriter, choice.getThenRegion());
  choice.getElseRegion().walk([&](tt::LoadOp load) { markCut(load, /*isCut=*/true); });
  cuts.push_back(&choice.getElseRegion());
}

/// What is left of bounds is asked in the steps that they cut alone, and in each of their branches
/// again.
void LoopSplit::sinkIntoCuts(Block &block) {
  for (Operation *op = &block.back(); op;) {
    Operation *current = std::exchange(op, op->getPrevNode());
    if (!isPure(current) || current->getNumRegions() || current->use_empty())
      continue;
    llvm::SmallSetVector<Region *, 4> users;
    for (Operation *user : current->getUsers()) {
      auto *it = llvm::find_if(
          cuts, [&](Region *cut) { return cut->isAncestor(user->getParentRegion()); });
      users.insert(it == cuts.end() ? nullptr : *it);
    }
    if (users.contains(nullptr))
      continue;
    for (Region *cut : users) {
      builder.setInsertionPointToStart(&cut->front());
      Operation *copy = builder.clone(*current);
      for (auto [result, again] : llvm::zip(current->getResults(), copy->getResults()))
        result.replaceUsesWithIf(again, [&](OpOperand &use) {
          return use.getOwner() != copy && cut->isAncestor(use.getOwner()->getParentRegion());
        });
    }
    current->erase();
  }
}

/// The index before which the steps are whole for a group, in front of the loop, and the
/// comparisons that are true in them. It is the loop's end where all steps are whole, and null
/// where none is.
Value LoopSplit::createGroupBound(ArrayRef<Operation *> group, DenseSet<Operation *> &isTrue) {
  DenseSet<const Comparison *> asked;
  for (Operation *op : group) {
    SmallVector<const Comparison *> found;
    if (Value mask = getCondition(op))
      findComparisons(mask, found);
    asked.insert_range(found);
  }
  auto every = comparisons;
  for (auto &[op, comparison] : comparisons)
    if (asked.contains(&comparison))
      isTrue.insert(op);
  comparisons.remove_if([&](auto &entry) { return !isTrue.contains(entry.first); });
  clearConditions();
  findConditions();
  builder.setInsertionPoint(loop);
  // No index reaches the upper bound, so that it is no part of this one, and nothing is rounded.
  Value bound;
  for (auto &[sum, factor] : limits) {
    Value limit = createLimit(sum, factor);
    bound = bound ? builder.createOrFold<arith::MinSIOp>(where, bound, limit) : limit;
  }
  if (!bound)
    bound = loop.getUpperBound();
  if (Value all = createConditions())
    bound = builder.createOrFold<arith::SelectOp>(where, all, bound, loop.getLowerBound());
  if (Operation *last = loop->getPrevNode(); last && last == bound.getDefiningOp())
    last->setLoc(getBoundName());
  comparisons = std::move(every);
  APInt lower, end;
  bool never = matchPattern(bound, m_ConstantInt(&end)) &&
               matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) && end.sle(lower);
  return never ? Value() : bound;
}

/// Adds the comparisons that are part of a mask.
void LoopSplit::findComparisons(Value mask, SmallVectorImpl<const Comparison *> &found) {
  Operation *op = mask.getDefiningOp();
  if (!op)
    return;
  if (auto it = comparisons.find(op); it != comparisons.end())
    found.push_back(&it->second);
  else if (onlyMoves(op) || isa<arith::AndIOp>(op))
    for (Value operand : op->getOperands())
      findComparisons(operand, found);
}

/// Whether each comparison of the loop is true where one of these is.
bool LoopSplit::areAll(ArrayRef<const Comparison *> some) {
  return llvm::all_of(comparisons, [&](auto &each) {
    return llvm::any_of(
        some, [&](const Comparison *one) { return isSame(one->margin, each.second.margin); });
  });
}

void LoopSplit::rewrite() {
  DenseSet<Operation *> isTrue;
  IRRewriter rewriter(loop.getContext());
  dropMasks(loop, alwaysTrue);
  comparisons.remove_if([&](auto &entry) { return alwaysTrue.contains(entry.first); });
  if (isBranched)
    return branch();
  Value bound = isVersioned ? createVersionBound() : createBound();
  APInt lower, end, upper;
  if (matchPattern(bound, m_ConstantInt(&end))) {
    if (matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) && end.sle(lower))
      return;
    if (matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) && end.sge(upper))
      limits.clear();
  }
  if (limits.empty() && conditions.empty()) {
    for (auto &[op, comparison] : comparisons)
      isTrue.insert(op);
    dropMasks(loop, isTrue);
    (void)runRegionDCE(rewriter, loop->getRegions());
    return;
  }
  IRMapping mapping;
  auto whole = cast<scf::ForOp>(builder.clone(*loop, mapping));
  whole.getUpperBoundMutable().assign(bound);
  whole->setAttr(isVersioned ? msl::kVersionAttr : msl::kWholeStepsAttr, builder.getUnitAttr());
  for (auto &[op, comparison] : comparisons) {
    Operation *copy = mapping.lookupOrNull(op);
    isTrue.insert(copy ? copy : op);
  }
  dropMasks(whole, isTrue);
  (void)runRegionDCE(rewriter, whole->getRegions());
  continueLoop(bound, whole.getResults());
}

struct TTMSplitLoopsPass : impl::TTMSplitLoopsBase<TTMSplitLoopsPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      APInt step;
      if (loop.getUnsignedCmp() || !loop.getInductionVar().getType().isInteger(32) ||
          !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive() ||
          step.sgt(1 << 20))
        continue;
      LoopSplit split(loop, step.getSExtValue());
      if (split.analyse())
        split.rewrite();
    }
  }
};

} // namespace
} // namespace triton_metal
