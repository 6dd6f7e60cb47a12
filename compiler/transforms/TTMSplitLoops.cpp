// Loops whose masks are true up to some step become two: see Passes.td.

#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LocationNames.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Passes.h"
#include "transforms/TTMLoopSplit.h"
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

/// A loop with more operations than this has a long text already.
constexpr int64_t kMostOperations = 400;

} // namespace

bool isSame(const Affine &a, const Affine &b) {
  return a.terms == b.terms && a.perIndex == b.perIndex && a.low == b.low && a.high == b.high;
}

/// The number of elements that a thread holds.
static int64_t getRegisters(Value tile) {
  auto layout = ttm::getLayout(tile);
  return layout ? layout->getNumRegisters() : 1;
}

Value getMask(Operation *op) {
  if (auto load = dyn_cast<tt::LoadOp>(op))
    return load.getMask();
  auto store = dyn_cast<tt::StoreOp>(op);
  return store ? store.getMask() : Value();
}

Value getCondition(Operation *op) {
  auto select = dyn_cast<arith::SelectOp>(op);
  return select ? select.getCondition() : getMask(op);
}

/// Whether a step multiplies by what another product of it has given, in registers or by way of
/// threadgroup memory.
static bool hasChainedProducts(scf::ForOp loop) {
  SmallVector<Value> work;
  loop.getBody()->walk([&](Operation *op) {
    if (auto mma = dyn_cast<MMAOp>(op))
      work.append({mma.getA(), mma.getB()});
    else if (auto store = dyn_cast<StoreTileOp>(op))
      work.push_back(store.getSrc());
  });
  llvm::DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !loop->isProperAncestor(op) || !seen.insert(op).second)
      continue;
    if (isa<MMAOp>(op))
      return true;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        work.push_back(operand);
  }
  return false;
}

bool LoopSplit::analyse() {
  int64_t operations = 0;
  bool multiplies = false, inRegisters = false;
  isChained = hasChainedProducts(loop);
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    if (isa<LoopLikeOpInterface>(op) || ++operations > kMostOperations)
      return WalkResult::interrupt();
    if (auto mma = dyn_cast<MMAOp>(op)) {
      multiplies = true;
      const auto *instruction = msl::MatrixInstruction::get(mma.getInstruction());
      inRegisters |= instruction && instruction->inRegisters;
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
  // Where fragments are arrays of a thread, each multiply is a call on a part of them: twice as
  // many make a long text, which compilers leave in memory. Choices stand in branches there, too,
  // with the loads; loads alone have such a branch for each whole tile anyway.
  if (inRegisters && !chooses)
    return false;
  // A mask of one register alone is not worth another loop, but the one there is knows of it.
  loop.getBody()->walk([&](Operation *op) {
    if (Value mask = getMask(op); mask && getRegisters(mask) == 1)
      addMask(mask, /*onlyKnown=*/true);
  });
  findConditions(comparisons);
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
  alwaysTrue.clear();
  findConditions(comparisons);
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

std::pair<std::optional<Affine>, std::optional<Affine>>
LoopSplit::getSides(Value smaller, Value larger, bool isStrict) {
  // Places of a block below its end are indices below a size, those from its begin on indices that
  // are not below 0. What is the same in all steps is compared before the loop.
  Value block = isStrict ? larger : smaller;
  // A step of products of products is long beside the test whether a block is whole, and another
  // loop takes registers.
  std::optional<BlockBound> bound;
  if (!isChained && !loop.isDefinedOutsideOfLoop(block))
    bound = BlockBound::match(block);
  if (bound && isStrict == bool(bound->size)) {
    std::optional<Affine> places = affine.get(isStrict ? smaller : larger);
    std::optional<Affine> index = affine.get(bound->offset);
    if (places && index && affine.isWithin(*places, 0, bound->count - 1)) {
      index->add(*places, 1);
      if (isStrict)
        return {index, affine.get(bound->size)};
      return {Affine::constant(0), index};
    }
  }
  return {affine.get(smaller), affine.get(larger)};
}

std::optional<Comparison> LoopSplit::compare(arith::CmpIOp op) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  bool swapped = predicate == Predicate::sgt || predicate == Predicate::sge;
  if (!swapped && predicate != Predicate::slt && predicate != Predicate::sle)
    return std::nullopt;
  bool isStrict = predicate == Predicate::slt || predicate == Predicate::sgt;
  auto [a, b] =
      getSides(swapped ? op.getRhs() : op.getLhs(), swapped ? op.getLhs() : op.getRhs(), isStrict);
  if (!a || !b)
    return std::nullopt;
  Affine margin = *b;
  margin.add(*a, -1);
  // `low` is what is least: the least of b less the greatest of a.
  if (!isStrict)
    ++margin.low;
  if (!affine.joinParts(margin) || !margin.isSmall())
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
  std::optional<Affine> least = affine.getEnd(*a, /*isLeast=*/true);
  std::optional<Affine> greatest = affine.getEnd(*b, /*isLeast=*/false);
  if (!least || !greatest)
    return std::nullopt;
  return Comparison{margin, *least, *greatest};
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

/// Finds what decides in which steps these comparisons are true.
void LoopSplit::findConditions(const Comparisons &some) {
  conditions.clear();
  limits.clear();
  upperBounds.clear();
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
  for (auto &[op, comparison] : some) {
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
    op->setAttr(tt::divisibilityAttrName, builder.getI32IntegerAttr(step));
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
static Value getRest(OpBuilder &builder, Value mask, const DenseSet<Operation *> &isTrue) {
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

namespace {

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
