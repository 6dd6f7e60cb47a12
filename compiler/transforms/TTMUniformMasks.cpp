// One uniform test for the mask of a whole tile: a mask that compares a range with a bound is true
// everywhere if the last element of the range is inside the bound. The test is exact integer
// arithmetic, so that it is never true if an element's test is false.

#include "dialect/ttm/LocationNames.h"
#include "dialect/ttm/TTM.h"
#include "transforms/IntegerRanges.h"
#include "transforms/Passes.h"
#include "transforms/TTMMasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMUNIFORMMASKS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// A range of integers: each element is congruent, modulo 2^bits, to `scalar` (zero if null) plus a
/// number from `low` to `high`.
struct Range {
  Value scalar;
  int64_t low = 0, high = 0;
};

class UniformTest {
public:
  UniformTest(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value allTrue(Value mask);

private:
  std::optional<Range> rangeOf(Value value, unsigned depth = 0);
  Value compare(Range low, Range high, bool orEqual, unsigned bits);

  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(builder, loc, type, IntegerAttr::get(type, value));
  }
  Value boolean(bool value) { return constant(builder.getI1Type(), value); }
  /// The exact number `scalar + offset`, in 64 bits.
  Value exact(Value scalar, int64_t offset) {
    Type i64 = builder.getI64Type();
    if (!scalar)
      return constant(i64, offset);
    Value wide = arith::ExtSIOp::create(builder, loc, i64, scalar);
    if (offset)
      wide = arith::AddIOp::create(builder, loc, wide, constant(i64, offset));
    return wide;
  }

  /// Whether the exact number `scalar + offset` surely has 32 bits.
  bool fits(Value scalar, int64_t offset) {
    if (!scalar)
      return offset >= INT32_MIN && offset <= INT32_MAX;
    ConstantIntRanges range = ranges.get(scalar);
    return range.smin().getSExtValue() + offset >= INT32_MIN &&
           range.smax().getSExtValue() + offset <= INT32_MAX;
  }
  /// Whether `scalar` is a multiple of more than `offset`: then the sum does not wrap around. In a
  /// loop that changes the scalar, the test is one of a smaller bound (`msl-narrow-comparisons`).
  static bool isWithinMultiple(Value scalar, int64_t offset) {
    return scalar && offset > 0 && offset < getDivisor(scalar) &&
           !scalar.getParentRegion()->getParentOfType<LoopLikeOpInterface>();
  }
  /// The number `scalar + offset`, in 32 bits.
  Value sum(Value scalar, int64_t offset) {
    Type i32 = builder.getI32Type();
    if (!scalar)
      return constant(i32, offset);
    auto flags =
        fits(scalar, offset) ? arith::IntegerOverflowFlags::none : arith::IntegerOverflowFlags::nsw;
    return offset ? arith::AddIOp::create(builder, loc, scalar, constant(i32, offset), flags)
                        .getResult()
                  : scalar;
  }

  OpBuilder &builder;
  Location loc;
  ValueRanges ranges;
};

/// Whether a bound is far enough from the ends of 64 bits that sums of bounds do not overflow.
bool isSmall(int64_t value) { return value >= -(int64_t(1) << 40) && value <= int64_t(1) << 40; }

std::optional<Range> UniformTest::rangeOf(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 16)
    return std::nullopt;
  if (onlyMoves(op))
    return rangeOf(op->getOperand(0), depth + 1);
  if (auto range = dyn_cast<tt::MakeRangeOp>(op))
    return Range{Value(), int32_t(range.getStart()), int32_t(range.getEnd()) - 1};
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number))) {
    if (number.getSignificantBits() > 40)
      return std::nullopt;
    return Range{Value(), number.getSExtValue(), number.getSExtValue()};
  }
  if (auto splat = dyn_cast<tt::SplatOp>(op)) {
    if (matchPattern(splat.getSrc(), m_ConstantInt(&number)) && number.getSignificantBits() <= 40)
      return Range{Value(), number.getSExtValue(), number.getSExtValue()};
    return Range{splat.getSrc(), 0, 0};
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<Range> lhs = rangeOf(op->getOperand(0), depth + 1);
  std::optional<Range> rhs = lhs ? rangeOf(op->getOperand(1), depth + 1) : std::nullopt;
  if (!rhs)
    return std::nullopt;
  Range result;
  if (isa<arith::AddIOp>(op)) {
    result = {lhs->scalar ? lhs->scalar : rhs->scalar, lhs->low + rhs->low, lhs->high + rhs->high};
    if (lhs->scalar && rhs->scalar)
      result.scalar = arith::AddIOp::create(builder, loc, lhs->scalar, rhs->scalar);
  } else if (isa<arith::SubIOp>(op)) {
    result = {lhs->scalar, lhs->low - rhs->high, lhs->high - rhs->low};
    if (rhs->scalar) {
      Value from = lhs->scalar ? lhs->scalar : constant(rhs->scalar.getType(), 0);
      result.scalar = arith::SubIOp::create(builder, loc, from, rhs->scalar);
    }
  } else {
    // One factor must be a non-negative constant, so that the product keeps the order.
    if (lhs->scalar || lhs->low != lhs->high)
      std::swap(lhs, rhs);
    int64_t factor = lhs->low;
    if (lhs->scalar || lhs->high != factor || factor < 0)
      return std::nullopt;
    int64_t greatest = std::max(std::abs(rhs->high), std::abs(rhs->low));
    if (greatest != 0 && factor > (int64_t(1) << 40) / greatest)
      return std::nullopt;
    result = {rhs->scalar, rhs->low * factor, rhs->high * factor};
    if (rhs->scalar)
      result.scalar =
          arith::MulIOp::create(builder, loc, rhs->scalar, constant(rhs->scalar.getType(), factor));
  }
  if (!isSmall(result.low) || !isSmall(result.high))
    return std::nullopt;
  return result;
}

Value UniformTest::compare(Range a, Range b, bool orEqual, unsigned bits) {
  // Tests whether all of `a` is below all of `b`. Elements that wrap around would invalidate the
  // comparison, so the test also excludes that.
  auto predicate = orEqual ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt;
  int64_t least = bits == 32 ? INT32_MIN : INT64_MIN, greatest = bits == 32 ? INT32_MAX : INT64_MAX;
  if (bits == 64) {
    // No wider type is available for exact sums, so only a constant and a scalar can be compared.
    if ((a.scalar && (a.low || a.high)) || (b.scalar && (b.low || b.high)))
      return {};
  } else if (bits != 32) {
    return {};
  }
  for (const Range &range : {a, b})
    if (!range.scalar && (range.low < least || range.high > greatest))
      return {};
  if (!a.scalar && !b.scalar)
    return boolean(orEqual ? a.high <= b.low : a.high < b.low);
  if (a.high == 0 && a.low == 0 && b.high == 0 && b.low == 0 && a.scalar && b.scalar)
    return arith::CmpIOp::create(builder, loc, predicate, a.scalar, b.scalar);
  if (!a.scalar && b.low == 0 && b.high == 0)
    return arith::CmpIOp::create(builder, loc, predicate, constant(b.scalar.getType(), a.high),
                                 b.scalar);
  if (!b.scalar && a.low == 0 && a.high == 0)
    return arith::CmpIOp::create(builder, loc, predicate, a.scalar,
                                 constant(a.scalar.getType(), b.low));
  // A tile that is longer than what there is, as one of 32 rows of 10, is never whole where
  // programs divide rows among them: only a place that wraps around is so far below.
  if (!b.scalar && a.low >= 0 && b.low < a.high && a.high < getDivisor(a.scalar))
    return {};
  if (!b.scalar && a.low >= 0 && b.low - a.high >= least)
    return arith::CmpIOp::create(builder, loc, predicate, a.scalar,
                                 constant(a.scalar.getType(), b.low - a.high));
  // The upper end of `a` is compared with the lower end of `b`. The other ends are tested for being
  // in range, so that no end wraps around.
  bool narrow = bits == 32 && (fits(a.scalar, a.high) || isWithinMultiple(a.scalar, a.high)) &&
                fits(b.scalar, b.low);
  Value test = narrow ? arith::CmpIOp::create(builder, loc, predicate, sum(a.scalar, a.high),
                                              sum(b.scalar, b.low))
                      : arith::CmpIOp::create(builder, loc, predicate, exact(a.scalar, a.high),
                                              exact(b.scalar, b.low));
  auto also = [&](arith::CmpIPredicate predicate, Value lhs, int64_t bound) {
    Value more =
        arith::CmpIOp::create(builder, loc, predicate, lhs, constant(lhs.getType(), bound));
    test = arith::AndIOp::create(builder, loc, test, more);
  };
  if (a.scalar && a.low < 0 && !fits(a.scalar, a.low))
    also(arith::CmpIPredicate::sge, exact(a.scalar, a.low), least);
  if (b.scalar && b.high > 0 && !fits(b.scalar, b.high))
    also(arith::CmpIPredicate::sle, exact(b.scalar, b.high), greatest);
  return test;
}

Value UniformTest::allTrue(Value mask) {
  Operation *op = mask.getDefiningOp();
  if (!op)
    return {};
  if (onlyMoves(op))
    return allTrue(op->getOperand(0));
  if (auto splat = dyn_cast<tt::SplatOp>(op))
    return splat.getSrc();
  APInt number;
  if (matchPattern(mask, m_ConstantInt(&number)))
    return boolean(!number.isZero());
  if (isa<arith::AndIOp>(op)) {
    Value lhs = allTrue(op->getOperand(0));
    Value rhs = lhs ? allTrue(op->getOperand(1)) : Value();
    return rhs ? arith::AndIOp::create(builder, loc, lhs, rhs).getResult() : Value();
  }
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    std::optional<Range> lhs = rangeOf(cmp.getLhs());
    std::optional<Range> rhs = lhs ? rangeOf(cmp.getRhs()) : std::nullopt;
    if (!rhs)
      return {};
    unsigned bits = getElementTypeOrSelf(cmp.getLhs().getType()).getIntOrFloatBitWidth();
    switch (cmp.getPredicate()) {
    case arith::CmpIPredicate::slt:
      return compare(*lhs, *rhs, false, bits);
    case arith::CmpIPredicate::sle:
      return compare(*lhs, *rhs, true, bits);
    case arith::CmpIPredicate::sgt:
      return compare(*rhs, *lhs, false, bits);
    case arith::CmpIPredicate::sge:
      return compare(*rhs, *lhs, true, bits);
    default:
      return {};
    }
  }
  return {};
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Whether all pointers with `tt.tested_divisibility` are aligned; null if there are none.
Value testAlignment(tt::FuncOp func) {
  OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
  Location loc = func.getLoc();
  Type i64 = builder.getI64Type();
  Value bits;
  int64_t multiple = 1;
  for (auto [index, argument] : llvm::enumerate(func.getArguments())) {
    auto tested = func.getArgAttrOfType<IntegerAttr>(index, tt::testedDivisibilityAttrName);
    if (!tested || !isa<tt::PtrType>(argument.getType()))
      continue;
    multiple = std::max(multiple, tested.getInt());
    Value address = tt::PtrToIntOp::create(builder, loc, i64, argument);
    bits = bits ? arith::OrIOp::create(builder, loc, bits, address) : address;
  }
  if (!bits)
    return {};
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  };
  Value low = arith::AndIOp::create(builder, loc, bits, constant(multiple - 1));
  return arith::CmpIOp::create(builder, named(builder.getContext(), "aligned"),
                               arith::CmpIPredicate::eq, low, constant(0));
}

/// A uniform i1 which implies that the whole mask of the access is true; null if none is known.
Value buildUniformMask(Operation *access, Value mask) {
  // The test goes next to the mask, where the mask's scalars are available. The access may be in a
  // branch inside of a loop, and a test in there could not leave the loop.
  OpBuilder builder(access);
  if (Operation *op = mask.getDefiningOp())
    builder.setInsertionPointAfter(op);
  std::string name = nameOf(access->getLoc());
  Location where = name.empty() ? UnknownLoc::get(builder.getContext())
                                : Location(named(builder.getContext(), name + "_inside"));
  return UniformTest(builder, where).allTrue(mask);
}

/// Erases a value that is unused, and then its operands.
void eraseTest(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->use_empty() || !isPure(op))
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseTest(operand);
}

template <typename Access> void testAccess(Access op, Type tile, Value alignment) {
  if (!isa<RankedTensorType>(tile))
    return;
  Value mask = op.getMask(), full;
  int64_t width = op.getWidth();
  // A uniform test is worth its cost if it replaces more than one test, and if it can be true.
  if (mask && !op->hasAttr(TTMDialect::getCutAttrName()) &&
      int64_t(getLayout(tile)->getNumRegisters()) > op.getMaskWidth())
    full = buildUniformMask(op, mask);
  // A row that is no multiple of the width ends within some thread's registers. Each thread tests
  // then whether the row ends within its next ones. That stands alone if the test for the whole
  // tile is the same in each program, or would replace one test.
  bool isOne = int64_t(getLayout(tile)->getNumRegisters()) <= op.getMaskRun();
  if (full && op.getMaskWidth() < width && op.getMaskRun() >= width && (isOne || !varies(full))) {
    eraseTest(full);
    full = {};
  }
  if (alignment && width > 1 && !op.getUnaligned()) {
    if (mask && !full)
      full = buildUniformMask(op, mask);
    if (!op.getBase() || (mask && !full)) {
      // Without a test for the whole tile, the access has one body, which must work for any
      // alignment.
      op.setWidth(1);
    } else {
      OpBuilder builder(op);
      full = full ? arith::AndIOp::create(builder, op.getLoc(), alignment, full).getResult()
                  : alignment;
      op.setMaskWidth(1);
      // Without the alignment, nothing is known of the vectors.
      op.setMaskRun(1);
    }
  }
  if (full)
    op.getFullMutable().assign(full);
}

struct TTMUniformMasksPass : impl::TTMUniformMasksBase<TTMUniformMasksPass> {
  void runOnOperation() override {
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      if (!func.getBody().hasOneBlock())
        continue;
      SmallVector<Operation *> accesses;
      func.walk([&](Operation *op) {
        if (isa<LoadOp, StoreOp>(op))
          accesses.push_back(op);
      });
      Value alignment = testAlignment(func);
      for (Operation *op : accesses)
        if (auto load = dyn_cast<LoadOp>(op))
          testAccess(load, load.getType(), alignment);
        else if (auto store = dyn_cast<StoreOp>(op))
          testAccess(store, store.getValue().getType(), alignment);
      if (alignment && alignment.use_empty())
        eraseTest(alignment);
    }
  }
};

} // namespace
} // namespace triton_metal
