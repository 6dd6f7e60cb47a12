#include "analysis/AxisInfo.h"

#include "dialect/tt/TT.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace triton_metal {

/// Powers of two up to here; zero is divisible by all of them.
static constexpr int64_t kMaxDivisor = int64_t(1) << 40;

/// All numbers here are powers of two, so the greatest common divisor is the lesser.
static int64_t gcd(int64_t a, int64_t b) { return std::min(a, b); }

static int64_t powerOf2Divisor(int64_t value) {
  auto bits = static_cast<uint64_t>(value);
  return value == 0 ? kMaxDivisor
                    : static_cast<int64_t>(std::min<uint64_t>(kMaxDivisor, bits & -bits));
}

static int64_t multiplyDivisors(int64_t a, int64_t b) {
  return std::min<int64_t>(kMaxDivisor,
                           llvm::Log2_64(a) + llvm::Log2_64(b) >= 40 ? kMaxDivisor : a * b);
}

int64_t getElementBytes(Type type) {
  type = getElementTypeOrSelf(type);
  if (auto pointer = dyn_cast<tt::PtrType>(type))
    type = pointer.getPointeeType();
  return std::max<int64_t>(1, tt::getBitWidth(type) / 8);
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// Adds the sums that are not in `needs` yet.
static void need(SmallVectorImpl<GridSum> &needs, ArrayRef<GridSum> sums) {
  for (const GridSum &sum : sums)
    if (!llvm::is_contained(needs, sum))
      needs.push_back(sum);
}

static std::optional<GridSum> add(const GridSum &a, const GridSum &b) {
  GridSum result = a;
  bool overflow = llvm::AddOverflow(a.most, b.most, result.most);
  for (unsigned axis = 0; axis < 3; ++axis)
    overflow |= llvm::AddOverflow(a.perProgram[axis], b.perProgram[axis], result.perProgram[axis]);
  return overflow ? std::nullopt : std::optional(result);
}

static std::optional<GridSum> scale(const GridSum &sum, int64_t factor) {
  GridSum result = sum;
  bool overflow = llvm::MulOverflow(sum.most, factor, result.most);
  for (unsigned axis = 0; axis < 3; ++axis)
    overflow |= llvm::MulOverflow(sum.perProgram[axis], factor, result.perProgram[axis]);
  return overflow ? std::nullopt : std::optional(result);
}

/// A sum that bounds both from above.
static GridSum larger(const GridSum &a, const GridSum &b) {
  GridSum result{std::max(a.most, b.most)};
  for (unsigned axis = 0; axis < 3; ++axis)
    result.perProgram[axis] = std::max(a.perProgram[axis], b.perProgram[axis]);
  return result;
}

static GridSum divide(const GridSum &sum, int64_t divisor) {
  GridSum result;
  result.most = llvm::divideCeil(sum.most, divisor);
  for (unsigned axis = 0; axis < 3; ++axis)
    result.perProgram[axis] = llvm::divideCeil(sum.perProgram[axis], divisor);
  return result;
}

static int64_t largestOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  unsigned width = isa<IndexType>(element) ? 64 : std::min(64u, element.getIntOrFloatBitWidth());
  return static_cast<int64_t>((uint64_t(1) << (width - 1)) - 1);
}

/// The bound of an operation whose results are at most `sum` unless they wrap around. It needs the
/// sums that the operands' bounds need, and that `sum` fits into the type.
static std::optional<UpperBound> boundOf(Type type, std::optional<GridSum> sum,
                                         ArrayRef<const UpperBound *> operands) {
  if (!sum || sum->most < 0 || sum->most > largestOf(type))
    return std::nullopt;
  UpperBound bound{*sum, {}};
  for (const UpperBound *operand : operands)
    need(bound.needs, operand->needs);
  if (sum->isConstant())
    return bound;
  // Indices of programs are below 2^31.
  bool fits = sum->most <= int64_t(1) << 61 && llvm::all_of(sum->perProgram, [](int64_t factor) {
                return factor <= int64_t(1) << 30;
              });
  if (!fits || largestOf(type) < INT32_MAX)
    return std::nullopt;
  if (largestOf(type) == INT32_MAX)
    need(bound.needs, *sum);
  return bound;
}

static ArrayRef<int64_t> shapeOf(Type type) {
  static constexpr int64_t scalar[] = {1};
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    if (tensor.getRank() > 0)
      return tensor.getShape();
  return scalar;
}

/// Metal's pointers have at least the alignment of what they point to.
static int64_t leastDivisibility(Type type) {
  return isa<tt::PtrType>(getElementTypeOrSelf(type)) ? powerOf2Divisor(getElementBytes(type)) : 1;
}

AxisInfo AxisInfo::unknown(Type type) {
  size_t rank = shapeOf(type).size();
  return AxisInfo(Dims(rank, 1), Dims(rank, leastDivisibility(type)), Dims(rank, 1));
}

int64_t AxisInfo::divisibilityOf(unsigned dim, int64_t group, int64_t unit) const {
  // A group of at least the known size begins where a known group begins. A smaller one may also
  // begin inside a known group.
  return group >= contiguity[dim] ? divisibility[dim] : gcd(divisibility[dim], group * unit);
}

AxisInfo AxisInfo::join(const AxisInfo &a, const AxisInfo &b) {
  if (a.getRank() != b.getRank())
    return a.getRank() < b.getRank() ? a : b;
  AxisInfo result = a;
  for (unsigned d = 0; d < a.getRank(); ++d) {
    result.contiguity[d] = gcd(a.contiguity[d], b.contiguity[d]);
    // With a unit of one element, the divisibility of a pointer's smaller groups is underestimated,
    // which is safe.
    result.divisibility[d] =
        gcd(a.divisibilityOf(d, result.contiguity[d]), b.divisibilityOf(d, result.contiguity[d]));
    result.constancy[d] = gcd(a.constancy[d], b.constancy[d]);
    result.runs[d] = gcd(a.runs[d], b.runs[d]);
  }
  result.bound = std::nullopt;
  if (a.bound && b.bound) {
    result.bound = UpperBound{larger(a.bound->sum, b.bound->sum), a.bound->needs};
    need(result.bound->needs, b.bound->needs);
  }
  need(result.needs, b.needs);
  return result;
}

void AxisInfo::print(raw_ostream &os) const {
  auto list = [&](StringRef name, const Dims &dims) {
    os << name << " = [";
    llvm::interleaveComma(dims, os);
    os << "]";
  };
  list("contiguity", contiguity);
  list(", divisibility", divisibility);
  list(", constancy", constancy);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Applies the hints of an attribute of the source. They can only add knowledge.
static void applyHints(AxisInfo &info, function_ref<Attribute(StringRef)> lookup) {
  auto raise = [&](StringRef name, AxisInfo::Dims &dims) {
    Attribute attr = lookup(name);
    if (auto integer = dyn_cast_or_null<IntegerAttr>(attr)) {
      for (int64_t &dim : dims)
        dim = std::max(dim, powerOf2Divisor(integer.getInt()));
      return;
    }
    auto dense = dyn_cast_or_null<DenseIntElementsAttr>(attr);
    if (!dense || dense.getNumElements() != int64_t(dims.size()))
      return;
    for (auto [dim, value] : llvm::zip(dims, dense.getValues<APInt>()))
      dim = std::max(dim, powerOf2Divisor(value.getSExtValue()));
  };
  raise(tt::contiguityAttrName, info.contiguity);
  raise(tt::divisibilityAttrName, info.divisibility);
  // This holds if the kernel's own test of its arguments succeeds. Accesses have a second body for
  // the case that it fails.
  raise(tt::testedDivisibilityAttrName, info.divisibility);
  raise(tt::constancyAttrName, info.constancy);
}

AxisInfoAnalysis::AxisInfoAnalysis(Operation *root) {
  root->walk([&](FunctionOpInterface function) {
    if (function.isExternal())
      return;
    for (BlockArgument argument : function.getArguments()) {
      AxisInfo info = AxisInfo::unknown(argument.getType());
      applyHints(
          info, [&](StringRef name) { return function.getArgAttr(argument.getArgNumber(), name); });
      set(argument, info);
    }
    for (Block &block : function.getFunctionBody())
      visitBlock(block);
  });
}

AxisInfo AxisInfoAnalysis::get(Value value) const {
  auto it = infos.find(value);
  return it != infos.end() ? it->second : AxisInfo::unknown(value.getType());
}

void AxisInfoAnalysis::set(Value value, AxisInfo info) {
  // No group is larger than the tile.
  for (auto [d, extent] : llvm::enumerate(shapeOf(value.getType()))) {
    info.contiguity[d] = std::min(info.contiguity[d], extent);
    info.constancy[d] = std::min(info.constancy[d], extent);
    info.runs[d] = std::min(info.runs[d], extent);
  }
  // A run of narrow integers may wrap unless it starts at a multiple of its length.
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(value.getType()));
  if (integer && integer.getWidth() < 32)
    for (unsigned d = 0; d < info.getRank(); ++d)
      info.contiguity[d] = std::min(info.contiguity[d], info.divisibility[d]);
  infos[value] = std::move(info);
}

void AxisInfoAnalysis::visitBlock(Block &block) {
  for (Operation &op : block)
    visitOp(&op);
}

void AxisInfoAnalysis::visitOp(Operation *op) {
  if (isa<scf::ForOp, scf::WhileOp>(op))
    return visitLoopLike(op);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (Region &region : branch->getRegions())
      for (Block &block : region)
        visitBlock(block);
    for (auto [i, result] : llvm::enumerate(branch.getResults()))
      set(result, AxisInfo::join(get(branch.thenYield().getOperand(i)),
                                 get(branch.elseYield().getOperand(i))));
    return;
  }
  for (Value result : op->getResults()) {
    AxisInfo info = compute(op, result);
    applyHints(info, [&](StringRef name) { return op->getAttr(name); });
    set(result, info);
  }
  for (Region &region : op->getRegions())
    for (Block &block : region)
      visitBlock(block);
}

/// A carried value starts with what is known of its initial value. It is joined with what is known
/// of the yielded value until nothing changes.
void AxisInfoAnalysis::visitLoopLike(Operation *op) {
  auto iterate = [&](ValueRange carried, ValueRange starts, function_ref<ValueRange()> body) {
    for (auto [value, start] : llvm::zip(carried, starts))
      set(value, get(start));
    for (bool changed = true; changed;) {
      changed = false;
      ValueRange next = body();
      for (auto [value, latest] : llvm::zip(carried, next)) {
        AxisInfo before = get(value), joined = AxisInfo::join(before, get(latest));
        // A value that grows from iteration to iteration has no bound.
        if (joined.bound != before.bound)
          joined.bound = std::nullopt;
        if (joined == before)
          continue;
        set(value, joined);
        changed = true;
      }
    }
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    AxisInfo lower = get(loop.getLowerBound()), step = get(loop.getStep());
    AxisInfo iv = AxisInfo::unknown(loop.getInductionVar().getType());
    iv.divisibility[0] = gcd(lower.divisibility[0], step.divisibility[0]);
    if (lower.isNonNegative()) {
      // The greatest multiple of the divisor below the upper bound.
      int64_t most = largestOf(loop.getInductionVar().getType());
      AxisInfo upper = get(loop.getUpperBound());
      SmallVector<const UpperBound *> bounds{&*lower.bound};
      bool isKnown = upper.bound && upper.bound->sum.isConstant();
      if (isKnown) {
        most = std::max<int64_t>(upper.bound->sum.most - 1, 0);
        bounds.push_back(&*upper.bound);
      }
      if (isKnown || !loop.getUnsignedCmp())
        iv.bound =
            boundOf(loop.getInductionVar().getType(), GridSum{most & -iv.divisibility[0]}, bounds);
    }
    set(loop.getInductionVar(), iv);
    iterate(loop.getRegionIterArgs(), loop.getInitArgs(), [&]() -> ValueRange {
      visitBlock(*loop.getBody());
      return loop.getYieldedValues();
    });
    for (auto [result, carried] : llvm::zip(loop.getResults(), loop.getRegionIterArgs()))
      set(result, get(carried));
    return;
  }
  auto loop = cast<scf::WhileOp>(op);
  iterate(loop.getBeforeArguments(), loop.getInits(), [&]() -> ValueRange {
    visitBlock(*loop.getBeforeBody());
    for (auto [after, passed] :
         llvm::zip(loop.getAfterArguments(), loop.getConditionOp().getArgs()))
      set(after, get(passed));
    visitBlock(*loop.getAfterBody());
    return loop.getYieldedValues();
  });
  for (auto [result, passed] : llvm::zip(loop.getResults(), loop.getConditionOp().getArgs()))
    set(result, get(passed));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// The integer that a scalar, or every element of a tensor, is.
static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getBitWidth() <= 64 ? std::optional(constant.getSExtValue()) : std::nullopt;
  if (auto splat = value.getDefiningOp<tt::SplatOp>())
    return getConstant(splat.getSrc());
  if (auto expand = value.getDefiningOp<tt::ExpandDimsOp>())
    return getConstant(expand.getSrc());
  if (auto broadcast = value.getDefiningOp<tt::BroadcastOp>())
    return getConstant(broadcast.getSrc());
  return std::nullopt;
}

namespace {

/// The two operands of an elementwise operation, and their part in the result, dimension by
/// dimension.
struct Binary {
  const AxisInfo &l, &r;
  AxisInfo result;

  Binary(const AxisInfo &l, const AxisInfo &r, Type type)
      : l(l), r(r), result(AxisInfo::unknown(type)) {
    for (unsigned d = 0; d < result.getRank(); ++d)
      result.constancy[d] = gcd(l.constancy[d], r.constancy[d]);
    need(result.needs, l.needs);
    need(result.needs, r.needs);
  }
};

} // namespace

static AxisInfo addition(const AxisInfo &l, const AxisInfo &r, Type type, int64_t unit,
                         bool subtract) {
  Binary b(l, r, type);
  for (unsigned d = 0; d < b.result.getRank(); ++d) {
    int64_t left = gcd(l.contiguity[d], r.constancy[d]);
    int64_t right = subtract ? 1 : gcd(l.constancy[d], r.contiguity[d]);
    int64_t group = std::max(left, right);
    b.result.contiguity[d] = group;
    b.result.runs[d] =
        std::max(gcd(l.runs[d], r.constancy[d]), subtract ? 1 : gcd(l.constancy[d], r.runs[d]));
    b.result.divisibility[d] =
        std::max(leastDivisibility(type), gcd(l.divisibilityOf(d, group, unit),
                                              multiplyDivisors(r.divisibilityOf(d, group), unit)));
  }
  if (!subtract && l.bound && r.bound)
    b.result.bound = boundOf(type, add(l.bound->sum, r.bound->sum), {&*l.bound, &*r.bound});
  // Pointers and numbers of 64 bits wrap around where addresses do.
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  if (integer && integer.getWidth() < 64)
    for (unsigned d = 0; d < b.result.getRank(); ++d)
      b.result.runs[d] = gcd(b.result.runs[d], b.result.divisibility[d]);
  return b.result;
}

static AxisInfo multiplication(const AxisInfo &l, const AxisInfo &r, Type type,
                               std::optional<int64_t> factor) {
  Binary b(l, r, type);
  for (unsigned d = 0; d < b.result.getRank(); ++d) {
    int64_t group = factor == 1 ? l.contiguity[d] : 1;
    b.result.contiguity[d] = group;
    if (factor == 1)
      b.result.runs[d] = l.runs[d];
    b.result.divisibility[d] =
        group > 1 ? l.divisibility[d]
                  : multiplyDivisors(l.divisibilityOf(d, 1), r.divisibilityOf(d, 1));
  }
  // The bound of a product is known if one factor's bound does not depend on the program.
  if (l.bound && r.bound && (l.bound->sum.isConstant() || r.bound->sum.isConstant()))
    b.result.bound = boundOf(type,
                             l.bound->sum.isConstant() ? scale(r.bound->sum, l.bound->sum.most)
                                                       : scale(l.bound->sum, r.bound->sum.most),
                             {&*l.bound, &*r.bound});
  // The first number of a block in a loop that walks over blocks: one that wraps around would be
  // behind any end. Only the widths of accesses depend on this.
  if (!b.result.bound && l.bound && factor && *factor > 0 && !isa<RankedTensorType>(type))
    b.result.bound =
        boundOf(type, GridSum{largestOf(type) & -b.result.divisibility[0]}, {&*l.bound});
  return b.result;
}

/// Whether a divisor of unknown sign is taken as positive: one number of the program's, not a
/// tile's. `pid // group_size` of products in groups is an example, where the size is what is left
/// of the rows. It is negative in no program that has rows. Stock Triton takes all dividends of
/// remainders as not negative. Only the widths of accesses depend on this (docs/msl-text.md).
static bool isTakenAsPositive(Type type, std::optional<int64_t> divisor) {
  return !isa<RankedTensorType>(type) && !divisor;
}

/// The x of `x / n * n`, a number between 0 and x whatever n is: the part of a program's number
/// that `tl.swizzle2d` is given as a row and a column, say. Null for other products.
static Value getDividend(Operation *product) {
  for (unsigned i : {0, 1})
    if (auto quotient = product->getOperand(i).getDefiningOp<arith::DivSIOp>())
      if (quotient.getRhs() == product->getOperand(1 - i))
        return quotient.getLhs();
  return {};
}

/// Division that rounds down. With `fromSign`, the operation rounds towards zero, which is the same
/// because `l` is not negative.
static AxisInfo division(const AxisInfo &l, const AxisInfo &r, Type type,
                         std::optional<int64_t> divisor, bool fromSign) {
  Binary b(l, r, type);
  for (unsigned d = 0; d < b.result.getRank(); ++d) {
    // Consecutive numbers between two multiples of the divisor have one quotient.
    int64_t group =
        gcd(gcd(l.contiguity[d], l.divisibility[d]), gcd(r.divisibilityOf(d, 1), r.constancy[d]));
    b.result.constancy[d] = std::max(b.result.constancy[d], group);
    if (divisor == 1) {
      b.result.contiguity[d] = l.contiguity[d];
      b.result.divisibility[d] = l.divisibility[d];
    } else if (divisor && *divisor > 0 && llvm::isPowerOf2_64(*divisor)) {
      b.result.divisibility[d] = std::max<int64_t>(1, l.divisibilityOf(d, 1) / *divisor);
    }
  }
  if (fromSign)
    need(b.result.needs, l.bound->needs);
  if (l.bound && r.bound)
    b.result.bound =
        boundOf(type, divisor && *divisor > 0 ? divide(l.bound->sum, *divisor) : l.bound->sum,
                {&*l.bound, &*r.bound});
  else if (l.bound && (!fromSign || isTakenAsPositive(type, divisor)))
    b.result.bound = boundOf(type, l.bound->sum, {&*l.bound});
  return b.result;
}

static AxisInfo remainder(const AxisInfo &l, const AxisInfo &r, Type type,
                          std::optional<int64_t> divisor, bool fromSign) {
  Binary b(l, r, type);
  for (unsigned d = 0; d < b.result.getRank(); ++d) {
    int64_t group =
        gcd(gcd(l.contiguity[d], l.divisibility[d]), gcd(r.divisibilityOf(d, 1), r.constancy[d]));
    b.result.contiguity[d] = group;
    b.result.divisibility[d] = gcd(l.divisibilityOf(d, group), r.divisibilityOf(d, 1));
  }
  if (fromSign)
    need(b.result.needs, l.bound->needs);
  if (l.bound)
    b.result.bound =
        boundOf(type, divisor && *divisor > 0 ? GridSum{*divisor - 1} : l.bound->sum, {&*l.bound});
  return b.result;
}

static AxisInfo comparison(arith::CmpIOp op, const AxisInfo &l, const AxisInfo &r) {
  Binary b(l, r, op.getType());
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  // Consecutive numbers that start at a multiple of their count all compare alike with a bound that
  // is such a multiple, for `<` and `>=`.
  auto hint = [&](const AxisInfo &run, const AxisInfo &bound, unsigned d) {
    return gcd(gcd(run.contiguity[d], run.divisibility[d]),
               gcd(bound.divisibilityOf(d, 1), bound.constancy[d]));
  };
  bool runLeft =
      predicate == P::slt || predicate == P::sge || predicate == P::ult || predicate == P::uge;
  bool runRight =
      predicate == P::sgt || predicate == P::sle || predicate == P::ugt || predicate == P::ule;
  // Consecutive numbers are below a bound up to one of them. A group that starts at a multiple of
  // its size does not wrap around, neither as signed numbers nor as unsigned ones.
  bool descends =
      predicate == P::slt || predicate == P::sle || predicate == P::ult || predicate == P::ule;
  bool bounds =
      predicate == P::sgt || predicate == P::sge || predicate == P::ugt || predicate == P::uge;
  auto run = [&](const AxisInfo &numbers, const AxisInfo &bound, unsigned d) {
    return gcd(gcd(numbers.contiguity[d], numbers.divisibility[d]), bound.constancy[d]);
  };
  for (unsigned d = 0; d < b.result.getRank(); ++d) {
    if (descends || bounds)
      b.result.runs[d] = descends ? run(l, r, d) : run(r, l, d);
    if (runLeft)
      b.result.constancy[d] = std::max(b.result.constancy[d], hint(l, r, d));
    if (runRight)
      b.result.constancy[d] = std::max(b.result.constancy[d], hint(r, l, d));
  }
  return b.result;
}

static AxisInfo selection(const AxisInfo &condition, bool scalarCondition, const AxisInfo &l,
                          const AxisInfo &r, Type type) {
  Binary b(l, r, type);
  for (unsigned d = 0; d < b.result.getRank(); ++d) {
    int64_t same = scalarCondition ? kMaxDivisor : condition.constancy[d];
    int64_t group = gcd(same, gcd(l.contiguity[d], r.contiguity[d]));
    b.result.contiguity[d] = group;
    b.result.divisibility[d] = std::max(
        leastDivisibility(type), gcd(l.divisibilityOf(d, group), r.divisibilityOf(d, group)));
    b.result.constancy[d] = gcd(same, b.result.constancy[d]);
    b.result.runs[d] = gcd(same, gcd(l.runs[d], r.runs[d]));
  }
  need(b.result.needs, condition.needs);
  if (l.bound && r.bound)
    b.result.bound = boundOf(type, larger(l.bound->sum, r.bound->sum), {&*l.bound, &*r.bound});
  return b.result;
}

static AxisInfo reshape(const AxisInfo &from, RankedTensorType source, RankedTensorType target) {
  AxisInfo result = AxisInfo::unknown(target);
  if (source.getRank() == 0 || target.getRank() == 0)
    return result;
  // Neighbours along the last dimension stay neighbours, in groups that fit both.
  unsigned s = source.getRank() - 1, t = target.getRank() - 1;
  int64_t extent = std::min(source.getShape()[s], target.getShape()[t]);
  int64_t group = gcd(from.contiguity[s], extent);
  result.contiguity[t] = group;
  result.divisibility[t] = std::max(leastDivisibility(target), from.divisibilityOf(s, group));
  result.constancy[t] = gcd(from.constancy[s], extent);
  result.runs[t] = gcd(from.runs[s], extent);
  result.bound = from.bound;
  result.needs = from.needs;
  return result;
}

AxisInfo AxisInfoAnalysis::compute(Operation *op, Value result) const {
  Type type = result.getType();
  auto in = [&](unsigned i) { return get(op->getOperand(i)); };
  return TypeSwitch<Operation *, AxisInfo>(op)
      .Case([&](arith::ConstantOp) {
        AxisInfo info = AxisInfo::unknown(type);
        Attribute attr = cast<arith::ConstantOp>(op).getValue();
        auto dense = dyn_cast<DenseElementsAttr>(attr);
        if (dense && !dense.isSplat())
          return info;
        info.constancy.assign(shapeOf(type).begin(), shapeOf(type).end());
        if (auto value = getConstant(result)) {
          info.divisibility.assign(info.getRank(), powerOf2Divisor(*value));
          info.bound = boundOf(type, GridSum{*value}, {});
        }
        return info;
      })
      .Case([&](tt::MakeRangeOp range) {
        int32_t start = range.getStart();
        AxisInfo info({shapeOf(type)[0]}, {powerOf2Divisor(start)}, {1});
        info.runs = info.contiguity;
        if (start >= 0)
          info.bound = boundOf(type, GridSum{int64_t(range.getEnd()) - 1}, {});
        return info;
      })
      .Case([&](tt::GetProgramIdOp program) {
        AxisInfo info = AxisInfo::unknown(type);
        GridSum sum;
        sum.perProgram[static_cast<int32_t>(program.getAxis())] = 1;
        info.bound = UpperBound{sum, {}};
        return info;
      })
      .Case([&](tt::GetNumProgramsOp) {
        AxisInfo info = AxisInfo::unknown(type);
        info.bound = boundOf(type, GridSum{largestOf(type)}, {});
        return info;
      })
      .Case([&](tt::SplatOp) {
        AxisInfo info = in(0), out = AxisInfo::unknown(type);
        out.divisibility.assign(out.getRank(), info.divisibility[0]);
        out.constancy.assign(shapeOf(type).begin(), shapeOf(type).end());
        out.bound = info.bound;
        out.needs = info.needs;
        return out;
      })
      .Case([&](tt::UnsplatOp) {
        AxisInfo info = in(0), out = AxisInfo::unknown(type);
        out.divisibility[0] = info.divisibilityOf(0, 1, getElementBytes(type));
        out.bound = info.bound;
        out.needs = info.needs;
        return out;
      })
      .Case([&](tt::ExpandDimsOp expand) {
        AxisInfo info = in(0);
        unsigned axis = expand.getAxis();
        // All groups along the new dimension are single elements, so what holds for every element
        // holds for them.
        int64_t each = leastDivisibility(type);
        for (unsigned d = 0; d < info.getRank(); ++d)
          each = std::max(each, info.divisibilityOf(d, 1));
        info.contiguity.insert(info.contiguity.begin() + axis, 1);
        info.divisibility.insert(info.divisibility.begin() + axis, each);
        info.constancy.insert(info.constancy.begin() + axis, 1);
        info.runs.insert(info.runs.begin() + axis, 1);
        return info;
      })
      .Case([&](tt::BroadcastOp broadcast) {
        AxisInfo info = in(0);
        auto from = shapeOf(broadcast.getSrc().getType()), to = shapeOf(type);
        for (unsigned d = 0; d < info.getRank(); ++d)
          if (from[d] != to[d]) {
            info.constancy[d] = to[d];
            info.runs[d] = 1;
          }
        return info;
      })
      .Case([&](tt::TransOp trans) {
        AxisInfo info = in(0), out = info;
        for (auto [i, d] : llvm::enumerate(trans.getOrder())) {
          out.contiguity[i] = info.contiguity[d];
          out.divisibility[i] = info.divisibility[d];
          out.constancy[i] = info.constancy[d];
          out.runs[i] = info.runs[d];
        }
        return out;
      })
      .Case([&](tt::ReshapeOp op) {
        return op.getAllowReorder()
                   ? AxisInfo::unknown(type)
                   : reshape(in(0), op.getSrc().getType(), cast<RankedTensorType>(type));
      })
      .Case(
          [&](tt::AddPtrOp) { return addition(in(0), in(1), type, getElementBytes(type), false); })
      .Case([&](arith::AddIOp) { return addition(in(0), in(1), type, 1, false); })
      .Case([&](arith::SubIOp) { return addition(in(0), in(1), type, 1, true); })
      .Case([&](arith::MulIOp) {
        auto l = getConstant(op->getOperand(0)), r = getConstant(op->getOperand(1));
        AxisInfo info =
            l && !r ? multiplication(in(1), in(0), type, l) : multiplication(in(0), in(1), type, r);
        if (auto dividend = getDividend(op); dividend && !info.bound)
          if (const AxisInfo &whole = get(dividend); whole.bound)
            info.bound = boundOf(type, whole.bound->sum, {&*whole.bound});
        return info;
      })
      .Case([&](arith::ShLIOp) {
        auto amount = getConstant(op->getOperand(1));
        if (!amount || *amount < 0 || *amount > 40)
          return Binary(in(0), in(1), type).result;
        AxisInfo info = in(0), factor = in(1);
        factor.divisibility.assign(factor.getRank(), int64_t(1) << *amount);
        factor.bound = UpperBound{GridSum{int64_t(1) << *amount}, {}};
        return multiplication(info, factor, type, int64_t(1) << *amount);
      })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) {
        AxisInfo l = in(0), r = in(1);
        bool isSigned = isa<arith::DivSIOp>(op);
        if (isSigned && !l.isNonNegative())
          return Binary(l, r, type).result;
        return division(l, r, type, getConstant(op->getOperand(1)), isSigned);
      })
      .Case<arith::ShRSIOp, arith::ShRUIOp>([&](auto) {
        auto amount = getConstant(op->getOperand(1));
        AxisInfo l = in(0), r = in(1);
        if (!amount || *amount < 0 || *amount > 40)
          return Binary(l, r, type).result;
        r.divisibility.assign(r.getRank(), int64_t(1) << *amount);
        return division(l, r, type, int64_t(1) << *amount, /*fromSign=*/false);
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) {
        AxisInfo l = in(0), r = in(1);
        bool isSigned = isa<arith::RemSIOp>(op);
        if (isSigned && !l.isNonNegative())
          return Binary(l, r, type).result;
        return remainder(l, r, type, getConstant(op->getOperand(1)), isSigned);
      })
      .Case([&](arith::AndIOp) {
        AxisInfo l = in(0), r = in(1);
        auto mask = getConstant(op->getOperand(1));
        AxisInfo info = Binary(l, r, type).result;
        // Two masks that end somewhere end where the first one does; equal elements end nowhere.
        if (getElementTypeOrSelf(type).isInteger(1))
          for (unsigned d = 0; d < info.getRank(); ++d)
            info.runs[d] =
                gcd(std::max(l.runs[d], l.constancy[d]), std::max(r.runs[d], r.constancy[d]));
        // A mask of low ones is the remainder by a power of two, of negative numbers too.
        if (mask && *mask > 0 && llvm::isMask_64(*mask)) {
          AxisInfo modulus = r;
          modulus.divisibility.assign(r.getRank(), *mask + 1);
          info = remainder(l, modulus, type, std::nullopt, /*fromSign=*/false);
          info.bound = boundOf(type, GridSum{*mask}, {});
        } else if (l.bound || r.bound) {
          // The result is at most the operand that is not negative.
          const UpperBound &bound = r.bound ? *r.bound : *l.bound;
          info.bound = boundOf(type, bound.sum, {&bound});
        }
        return info;
      })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp, arith::ExtUIOp>([&](auto) {
        AxisInfo info = in(0);
        if (getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1)) {
          AxisInfo out = AxisInfo::unknown(type);
          out.constancy = info.constancy;
          out.needs = info.needs;
          return out;
        }
        if (isa<arith::ExtUIOp>(op)) {
          // A negative number becomes a large one.
          Type source = op->getOperand(0).getType();
          unsigned width = getElementTypeOrSelf(source).getIntOrFloatBitWidth();
          if (!info.bound && width < 63)
            info.bound = UpperBound{GridSum{(int64_t(1) << width) - 1}, {}};
        }
        // A negative number becomes a large one, and what is truncated may wrap around.
        if (isa<arith::TruncIOp>(op) || (isa<arith::ExtUIOp>(op) && !in(0).bound))
          for (unsigned d = 0; d < info.getRank(); ++d)
            info.runs[d] = getElementTypeOrSelf(type).isInteger(1)
                               ? 1
                               : gcd(info.runs[d], gcd(info.contiguity[d], info.divisibility[d]));
        if (isa<arith::TruncIOp>(op)) {
          info.bound = std::nullopt;
          for (unsigned d = 0; d < info.getRank(); ++d)
            info.contiguity[d] = gcd(info.contiguity[d], info.divisibility[d]);
        }
        return info;
      })
      .Case([&](arith::CmpIOp compare) { return comparison(compare, in(0), in(1)); })
      .Case([&](arith::SelectOp select) {
        bool scalar = !isa<RankedTensorType>(select.getCondition().getType());
        return selection(in(0), scalar, in(1), in(2), type);
      })
      .Case<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>([&](auto) {
        AxisInfo l = in(0), r = in(1), info = Binary(l, r, type).result;
        if (l.bound && r.bound) {
          bool isLeast = isa<arith::MinSIOp, arith::MinUIOp>(op);
          const UpperBound &least = r.bound->sum.isConstant() ? *r.bound : *l.bound;
          info.bound = boundOf(type, isLeast ? least.sum : larger(l.bound->sum, r.bound->sum),
                               {&*l.bound, &*r.bound});
        } else if (l.bound || r.bound) {
          const UpperBound &bound = l.bound ? *l.bound : *r.bound;
          // A negative number is an unsigned one that is larger.
          if (isa<arith::MinUIOp>(op))
            info.bound = boundOf(type, bound.sum, {&bound});
          else if (isa<arith::MaxSIOp>(op))
            info.bound = boundOf(type, GridSum{largestOf(type)}, {&bound});
        }
        for (unsigned d = 0; d < info.getRank(); ++d)
          info.divisibility[d] = gcd(l.divisibilityOf(d, 1), r.divisibilityOf(d, 1));
        return info;
      })
      .Case([&](tt::BitcastOp cast) {
        AxisInfo info = in(0);
        if (isa<tt::PtrType>(getElementTypeOrSelf(type)) &&
            getElementBytes(type) == getElementBytes(cast.getSrc().getType()))
          return info;
        AxisInfo out = AxisInfo::unknown(type);
        out.constancy = info.constancy;
        out.needs = info.needs;
        return out;
      })
      .Default([&](Operation *) {
        // The operation is compared by name, because the ttm dialect depends on this analysis. It
        // only moves elements between threads.
        if (op->getName().getStringRef() == "ttm.convert_layout")
          return in(0);
        // Elementwise operations (and loads) take equal operands to equal results.
        AxisInfo info = AxisInfo::unknown(type);
        if (!(op->hasTrait<OpTrait::Elementwise>() || isa<tt::LoadOp>(op)) ||
            op->getNumOperands() == 0)
          return info;
        info.constancy.assign(shapeOf(type).begin(), shapeOf(type).end());
        for (Value operand : op->getOperands()) {
          AxisInfo other = get(operand);
          need(info.needs, other.needs);
          if (isa<RankedTensorType>(type) && !isa<RankedTensorType>(operand.getType()))
            continue;
          for (unsigned d = 0; d < info.getRank(); ++d)
            info.constancy[d] = gcd(info.constancy[d], other.constancy[d]);
        }
        return info;
      });
}

int64_t AxisInfoAnalysis::getAccessWidth(Value pointers, unsigned dim, int64_t maxBytes) const {
  int64_t aligned = getAlignedWidth(pointers, dim, maxBytes);
  // Metal's packed vectors have up to four numbers of up to 32 bits.
  constexpr int64_t kPacked = 4;
  Type element = cast<tt::PtrType>(getElementTypeOrSelf(pointers.getType())).getPointeeType();
  int64_t bytes = getElementBytes(pointers.getType());
  if (bytes > 4 || isa<tt::PtrType>(element) || element.isInteger(1))
    return aligned;
  return std::max(aligned, std::min({get(pointers).runs[dim], kPacked, maxBytes / bytes}));
}

int64_t AxisInfoAnalysis::getAlignedWidth(Value pointers, unsigned dim, int64_t maxBytes) const {
  AxisInfo info = get(pointers);
  int64_t bytes = getElementBytes(pointers.getType());
  int64_t aligned = std::max<int64_t>(1, info.divisibility[dim] / bytes);
  return std::min({info.contiguity[dim], aligned, std::max<int64_t>(1, maxBytes / bytes)});
}

} // namespace triton_metal
