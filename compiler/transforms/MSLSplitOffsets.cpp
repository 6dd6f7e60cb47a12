// What accesses of unrolled loops add to a pointer in every step is added before the loops.

#include "analysis/Uniformity.h"
#include "dialect/msl/MSL.h"
#include "transforms/ConditionRanges.h"
#include "transforms/Erase.h"
#include "transforms/MSLBefore.h"
#include "transforms/MSLPointerOffsets.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLSPLITOFFSETS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

namespace {

/// A nest of fewer steps keeps its sums: the pointer takes two registers.
constexpr int64_t kFewestSteps = 4;

/// The parts of an offset: numbers that are known before the loops, and the rest, which is a
/// constant in each step.
struct Split {
  SmallVector<Value> before, steps;
};

/// A pointer to which numbers have been added before a nest.
struct Moved {
  Value from;
  SmallVector<Value> by;
  Value pointer;
};

/// Splits the offsets of one nest of unrolled loops.
class OffsetSplitter {
public:
  OffsetSplitter(UnrollOp outermost, function_ref<const Uniformity &()> getUniformity,
                 ConditionRanges &conditions)
      : outermost(outermost), getUniformity(getUniformity), conditions(conditions),
        before(outermost) {}

  void run() {
    outermost.getBody().walk([&](Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op); read && read.getOffset())
        split(op, read.getBaseMutable(), read.getOffsetMutable());
      else if (auto write = dyn_cast<WriteOp>(op); write && write.getOffset())
        split(op, write.getBaseMutable(), write.getOffsetMutable());
    });
  }

  bool changes = false;

private:
  bool isInside(Value value) const { return before.isInside(value); }

  /// How often the access runs in the nest; nothing if it also depends on something else.
  std::optional<int64_t> getSteps(Operation *op) const {
    int64_t steps = 1;
    while (op != outermost) {
      op = op->getParentOp();
      auto loop = dyn_cast<UnrollOp>(op);
      if (!loop)
        return std::nullopt;
      steps *= int64_t(loop.getUpper()) - int64_t(loop.getLower());
    }
    return steps;
  }

  /// Whether the value is a constant in each step.
  bool isStep(Value value) const {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return isInside(value) && isa<UnrollOp>(argument.getOwner()->getParentOp());
    Operation *op = value.getDefiningOp();
    return matchPattern(value, m_Constant()) ||
           (isInside(value) && isa<arith::AddIOp, arith::MulIOp, arith::ShLIOp>(op) &&
            llvm::all_of(op->getOperands(), [&](Value operand) { return isStep(operand); }));
  }

  /// Collects the terms of a sum that does not overflow; false if one of them is neither.
  bool collect(Value value, ValueRanges &ranges, Split &parts) const {
    if (isStep(value)) {
      parts.steps.push_back(value);
      return true;
    }
    if (before.isKnown(value)) {
      parts.before.push_back(value);
      return true;
    }
    auto sum = value.getDefiningOp<arith::AddIOp>();
    return sum && ranges.cannotOverflow(sum) && collect(sum.getLhs(), ranges, parts) &&
           collect(sum.getRhs(), ranges, parts);
  }

  /// Whether the values' sum fits into their type in any order.
  static bool fits(ArrayRef<Value> values, ValueRanges &ranges) {
    unsigned width = values.front().getType().getIntOrFloatBitWidth(), wide = width + 8;
    if (values.size() > 64)
      return false;
    APInt low = APInt::getZero(wide), high = low;
    for (Value value : values) {
      ConstantIntRanges range = ranges.get(value);
      low += llvm::APIntOps::smin(range.smin().sext(wide), APInt::getZero(wide));
      high += llvm::APIntOps::smax(range.smax().sext(wide), APInt::getZero(wide));
    }
    return low.isSignedIntN(width) && high.isSignedIntN(width);
  }

  static Value createSum(OpBuilder &builder, Location loc, ArrayRef<Value> values) {
    Value sum;
    for (Value value : values)
      sum = sum ? arith::AddIOp::create(builder, loc, sum, value, arith::IntegerOverflowFlags::nsw)
                : value;
    return sum;
  }

  void split(Operation *op, OpOperand &base, MutableOperandRange offset) {
    auto type = cast<PtrType>(base.get().getType());
    if (!mayAddTwice(type))
      return;
    std::optional<int64_t> steps = getSteps(op);
    if (!steps || *steps < kFewestSteps)
      return;
    // A pointer that the loops move keeps what it adds.
    Value root = base.get();
    auto row = root.getDefiningOp<PtrAddOp>();
    if (isInside(root)) {
      if (!row || isInside(row.getBase()))
        return;
      root = row.getBase();
    } else {
      row = {};
    }
    ValueRanges &ranges = conditions.at(op);
    Split parts;
    if (!collect(offset[0].get(), ranges, parts) || parts.before.empty() || parts.steps.empty() ||
        llvm::all_of(parts.steps, [](Value value) { return matchPattern(value, m_Constant()); }) ||
        !fits(parts.before, ranges) || !fits(parts.steps, ranges))
      return;
    // A GPU adds a thread's offset to a pointer that all threads have in the access.
    const Uniformity &uniformity = getUniformity();
    bool isShared = uniformity.isUniform(root) && !(row && !uniformity.isUniform(row.getOffset()));
    if (isShared &&
        llvm::any_of(parts.before, [&](Value value) { return !uniformity.isUniform(value); }))
      return;
    changes = true;
    Location loc = op->getLoc();
    Value pointer = move(root, parts.before, loc);
    if (row) {
      Value &sum = rows[{row, pointer}];
      if (!sum) {
        OpBuilder builder(row);
        sum = PtrAddOp::create(builder, row.getLoc(), type, pointer, row.getOffset());
      }
      pointer = sum;
    }
    base.set(pointer);
    OpBuilder builder(op);
    offset.assign(createSum(builder, loc, parts.steps));
  }

  /// The pointer plus the values, before the nest.
  Value move(Value from, ArrayRef<Value> values, Location loc) {
    OpBuilder builder(outermost);
    SmallVector<Value> by;
    for (Value value : values)
      by.push_back(before.compute(value, builder));
    for (const Moved &other : moved)
      if (other.from == from && other.by == by)
        return other.pointer;
    Value pointer =
        PtrAddOp::create(builder, loc, from.getType(), from, createSum(builder, loc, by));
    moved.push_back({from, std::move(by), pointer});
    return pointer;
  }

  UnrollOp outermost;
  function_ref<const Uniformity &()> getUniformity;
  ConditionRanges &conditions;
  Before before;
  SmallVector<Moved> moved;
  DenseMap<std::pair<Operation *, Value>, Value> rows;
};

struct SplitOffsets : triton_metal::impl::MSLSplitOffsetsBase<SplitOffsets> {
  void runOnOperation() override {
    bool changes = false;
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      ConditionRanges conditions;
      // Few kernels have an offset that needs it.
      std::optional<Uniformity> uniformity;
      auto getUniformity = [&]() -> const Uniformity & {
        return uniformity ? *uniformity : uniformity.emplace(kernel);
      };
      kernel.walk<WalkOrder::PreOrder>([&](UnrollOp loop) {
        if (isa<UnrollOp>(loop->getParentOp()))
          return;
        OffsetSplitter splitter(loop, getUniformity, conditions);
        splitter.run();
        changes |= splitter.changes;
      });
    }
    if (!changes)
      return markAllAnalysesPreserved();
    eraseDead(getOperation());
  }
};

} // namespace
