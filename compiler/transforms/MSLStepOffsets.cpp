// Offsets of unrolled loops as a number from before them and multiples of their indices.

#include "dialect/msl/MSL.h"
#include "transforms/Erase.h"
#include "transforms/IntegerRanges.h"
#include "transforms/MSLBefore.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLSTEPOFFSETS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

namespace {

/// A loop of fewer steps keeps its sums: the pointer takes two registers.
constexpr int64_t kFewestSteps = 4;

/// A product of a constant and of a number that is known before a nest, or 1 if that is null.
struct Product {
  Value number;
  int64_t factor = 1;
};

/// A number modulo 2^32, or 2^64 for offsets of 64 bits: the sum of what is known before a nest and
/// of the nest's indices, each times a product.
struct Sum {
  Value known;
  int64_t constant = 0;
  SmallVector<std::pair<Value, Product>, 2> steps;
};

/// The offsets of one nest of unrolled loops.
class StepOffsets {
public:
  explicit StepOffsets(UnrollOp outermost) : outermost(outermost), before(outermost) {}

  void run() {
    SmallVector<OpOperand *> offsets;
    outermost.getBody().walk([&](Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op); read && read.getOffset())
        add(read.getBase(), read.getOffsetMutable()[0], offsets);
      else if (auto write = dyn_cast<WriteOp>(op); write && write.getOffset())
        add(write.getBase(), write.getOffsetMutable()[0], offsets);
      else if (auto sum = dyn_cast<PtrAddOp>(op))
        add(sum.getBase(), sum.getOffsetMutable(), offsets);
    });
    for (OpOperand *offset : offsets)
      rewrite(*offset);
    outermost.getBody().walk([&](UnrollOp inner) { takeRows(inner); });
  }

private:
  void add(Value base, OpOperand &offset, SmallVectorImpl<OpOperand *> &offsets) {
    if (cast<PtrType>(base.getType()).getSpace() == AddressSpace::Device &&
        !before.isKnown(offset.get()))
      offsets.push_back(&offset);
  }

  /// Adds before a loop within the nest what is the same in its steps. A branch in each step would
  /// keep compilers from it.
  void takeRows(UnrollOp inner) {
    if (!isa<UnrollOp>(inner->getParentOp()) ||
        int64_t(inner.getUpper()) - int64_t(inner.getLower()) < kFewestSteps)
      return;
    Before steps(inner);
    OpBuilder builder(inner);
    SmallVector<std::pair<Value, Value>> rows;
    inner.getBody().walk([&](PtrAddOp row) {
      if (row->getParentOp() == inner || !steps.isKnown(row.getResult()))
        return;
      auto same = llvm::find_if(
          rows, [&](auto &other) { return areComputedAlike(row.getResult(), other.first); });
      Value sum = same != rows.end() ? same->second : steps.compute(row.getResult(), builder);
      if (same == rows.end())
        rows.push_back({row.getResult(), sum});
      row.replaceAllUsesWith(sum);
      creates = true;
    });
  }

  /// Whether a value is the index of an unrolled loop.
  static bool isIndex(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isa<UnrollOp>(argument.getOwner()->getParentOp());
  }

  std::optional<Sum> get(Value value, unsigned depth = 0) {
    if (APInt number; matchPattern(value, m_ConstantInt(&number)))
      return Sum{Value(), number.getSExtValue(), {}};
    if (before.isKnown(value))
      return Sum{widened(value), 0, {}};
    if (isIndex(value))
      return Sum{Value(), 0, {{value, Product()}}};
    Operation *op = value.getDefiningOp();
    if (!op || depth > 8)
      return std::nullopt;
    if (auto wide = dyn_cast<arith::ExtSIOp>(op); wide && wide.getIn().getType().isInteger(32))
      return get(wide.getIn(), depth + 1);
    // A sum of 32 bits that wraps around is not that of its parts in 64.
    if (!isa<arith::AddIOp, arith::MulIOp, arith::ShLIOp>(op) ||
        (value.getType() != type && !ranges.cannotOverflow(op)))
      return std::nullopt;
    std::optional<Sum> a = get(op->getOperand(0), depth + 1);
    std::optional<Sum> b = a ? get(op->getOperand(1), depth + 1) : std::nullopt;
    if (!b)
      return std::nullopt;
    if (isa<arith::AddIOp>(op))
      return sum(*a, *b);
    if (isa<arith::ShLIOp>(op)) {
      if (b->known || !b->steps.empty() || b->constant < 0 || b->constant > 31)
        return std::nullopt;
      b->constant = int64_t(1) << b->constant;
    }
    if (!a->steps.empty() && !b->steps.empty())
      return std::nullopt;
    return a->steps.empty() ? times(*b, *a) : times(*a, *b);
  }

  Sum sum(Sum a, const Sum &b) {
    a.known = plus(a.known, b.known);
    a.constant += b.constant;
    // The multiples of one index are two terms: that is rare, and right.
    a.steps.append(b.steps.begin(), b.steps.end());
    return a;
  }

  /// The product with a number from before the nest; nothing where that has two parts.
  std::optional<Sum> times(Sum a, const Sum &factor) {
    if (factor.known && factor.constant)
      return times(std::move(a), Sum{plus(factor.known, constant(factor.constant)), 0, {}});
    if (!factor.known) {
      a.known = times(a.known, factor.constant);
      a.constant *= factor.constant;
      for (auto &[index, product] : a.steps)
        product.factor *= factor.constant;
      return isSmall(a) ? std::optional(a) : std::nullopt;
    }
    if (llvm::any_of(a.steps, [](auto &step) { return bool(step.second.number); }))
      return std::nullopt;
    Value known = a.known;
    if (a.constant)
      known = plus(known, constant(a.constant));
    a.known = known ? create<arith::MulIOp>(known, factor.known) : Value();
    a.constant = 0;
    for (auto &[index, product] : a.steps)
      product.number = factor.known;
    return a;
  }

  static bool isSmall(const Sum &sum) {
    auto fits = [](int64_t number) { return std::abs(number) < int64_t(1) << 31; };
    return fits(sum.constant) &&
           llvm::all_of(sum.steps, [&](auto &step) { return fits(step.second.factor); });
  }

  /// Writes an offset anew if a step multiplies by a number that is not in the text.
  void rewrite(OpOperand &offset) {
    type = offset.get().getType();
    std::optional<Sum> sum = get(offset.get());
    if (!sum || !isSmall(*sum) || !sum->known ||
        llvm::none_of(sum->steps, [](auto &step) { return bool(step.second.number); }))
      return;
    builder.setInsertionPoint(offset.getOwner());
    Location loc = offset.get().getLoc();
    Value all = sum->known;
    if (sum->constant)
      all = plus(all, constant(sum->constant));
    for (auto &[index, product] : sum->steps) {
      Value by = product.number ? times(product.number, product.factor) : Value();
      if (!by)
        by = constant(product.factor);
      builder.setInsertionPoint(offset.getOwner());
      Value number = index;
      if (number.getType() != type)
        number = arith::ExtSIOp::create(builder, loc, type, number);
      Value step = arith::MulIOp::create(builder, loc, number, by);
      all = arith::AddIOp::create(builder, loc, all, step);
    }
    offset.set(all);
  }

  Value constant(int64_t number) {
    builder.setInsertionPoint(outermost);
    return arith::ConstantOp::create(builder, UnknownLoc::get(builder.getContext()),
                                     builder.getIntegerAttr(type, number));
  }

  /// A number that is known before the nest, as one of the offset's type.
  Value widened(Value value) {
    if (value.getType() == type)
      return value;
    builder.setInsertionPoint(outermost);
    value = before.compute(value, builder);
    for (Operation *user : value.getUsers())
      if (auto known = dyn_cast<arith::ExtSIOp>(user);
          known && known.getType() == type && isComputedBefore(known, outermost))
        return known;
    creates = true;
    return arith::ExtSIOp::create(builder, UnknownLoc::get(builder.getContext()), type, value);
  }

  Value plus(Value a, Value b) {
    if (!a || !b)
      return a ? a : b;
    return create<arith::AddIOp>(a, b);
  }

  Value times(Value a, int64_t factor) {
    return !a || factor == 1 ? a : create<arith::MulIOp>(a, constant(factor));
  }

  static bool isSame(Value a, Value b) {
    APInt x, y;
    return a == b || (a.getType() == b.getType() && matchPattern(a, m_ConstantInt(&x)) &&
                      matchPattern(b, m_ConstantInt(&y)) && x == y);
  }

  /// The operation on two numbers, before the loops that change neither; what is there already.
  template <typename Op> Value create(Value a, Value b) {
    builder.setInsertionPoint(outermost);
    a = before.compute(a, builder);
    b = before.compute(b, builder);
    Operation *place = outermost;
    for (Operation *op = outermost->getParentOp(); op; op = op->getParentOp()) {
      if (isa<LoopLikeOpInterface>(op) && !isa<scf::ForOp>(op))
        break;
      if (isa<scf::ForOp>(op)) {
        auto isChanged = [&](Value value) {
          return !matchPattern(value, m_Constant()) && Before(op).isInside(value);
        };
        if (isChanged(a) || isChanged(b))
          break;
        place = op;
      }
    }
    for (Operation *user : (matchPattern(a, m_Constant()) ? b : a).getUsers())
      if (auto known = dyn_cast<Op>(user); known && isSame(known.getLhs(), a) &&
                                           isSame(known.getRhs(), b) &&
                                           isComputedBefore(known, place))
        return known;
    SmallVector<Op> nested = getNested<Op>(a, b, place);
    builder.setInsertionPoint(place);
    auto moved = [&](Value value) {
      // Constants stand anywhere.
      Operation *definition = value.getDefiningOp();
      return matchPattern(value, m_Constant()) ? builder.clone(*definition)->getResult(0) : value;
    };
    a = moved(a);
    b = moved(b);
    creates = true;
    Op result = Op::create(builder, UnknownLoc::get(builder.getContext()), a, b);
    for (Op same : nested)
      same.replaceAllUsesWith(result.getResult());
    return result;
  }

  /// The same operations in branches before a place, which moves in front of these.
  template <typename Op> SmallVector<Op> getNested(Value a, Value b, Operation *&place) {
    SmallVector<Op> nested;
    Operation *earliest = place;
    for (Operation *user : (matchPattern(a, m_Constant()) ? b : a).getUsers()) {
      auto same = dyn_cast<Op>(user);
      if (!same || !isSame(same.getLhs(), a) || !isSame(same.getRhs(), b))
        continue;
      Operation *branch = place->getBlock()->findAncestorOpInBlock(*user);
      auto isThere = [&](Value value) {
        return matchPattern(value, m_Constant()) || isComputedBefore(value, branch);
      };
      if (!isa_and_present<scf::IfOp>(branch) || !branch->isBeforeInBlock(place) || !isThere(a) ||
          !isThere(b))
        continue;
      nested.push_back(same);
      if (branch->isBeforeInBlock(earliest))
        earliest = branch;
    }
    place = earliest;
    return nested;
  }

public:
  /// Whether there are new operations.
  bool creates = false;

private:
  UnrollOp outermost;
  Before before;
  OpBuilder builder{outermost};
  ValueRanges ranges;
  /// That of the offset which is written anew.
  Type type;
};

struct StepOffsetsPass : triton_metal::impl::MSLStepOffsetsBase<StepOffsetsPass> {
  void runOnOperation() override {
    bool changes = false;
    getOperation().walk<WalkOrder::PreOrder>([&](UnrollOp loop) {
      if (isa<UnrollOp>(loop->getParentOp()))
        return;
      StepOffsets offsets(loop);
      offsets.run();
      changes |= offsets.creates;
    });
    if (!changes)
      return markAllAnalysesPreserved();
    eraseDead(getOperation());
  }
};

} // namespace
