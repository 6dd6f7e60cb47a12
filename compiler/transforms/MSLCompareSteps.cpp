// Comparisons in unrolled loops add a constant of each step last.

#include "dialect/msl/MSL.h"
#include "transforms/Erase.h"
#include "transforms/MSLBefore.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLCOMPARESTEPS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// A sum `known + (other + step)`: two numbers that are known before a nest of unrolled loops, and
/// one that changes with its indices.
struct Sum {
  Value known, other, step;
};

/// The comparisons of one nest.
class ComparedSums {
public:
  explicit ComparedSums(UnrollOp outermost) : outermost(outermost), before(outermost) {}

  bool run() {
    SmallVector<OpOperand *> operands;
    outermost.getBody().walk([&](arith::CmpIOp op) {
      for (OpOperand &operand : op->getOpOperands())
        operands.push_back(&operand);
    });
    bool changes = false;
    for (OpOperand *operand : operands)
      if (std::optional<Sum> sum = get(operand->get())) {
        addStepLast(*operand, *sum);
        changes = true;
      }
    return changes;
  }

private:
  /// An addition that nothing else reads.
  static arith::AddIOp getAddition(Value value) {
    auto add = value.getDefiningOp<arith::AddIOp>();
    return add && add->hasOneUse() ? add : arith::AddIOp();
  }

  /// A number that is known before the nest, but no constant.
  bool isKnown(Value value) const {
    return before.isKnown(value) && !matchPattern(value, m_Constant());
  }

  std::optional<Sum> get(Value value) const {
    arith::AddIOp outer = getAddition(value);
    for (unsigned side = 0; outer && side < 2; ++side) {
      Value known = outer->getOperand(side);
      arith::AddIOp inner = getAddition(outer->getOperand(1 - side));
      if (!inner || !isKnown(known))
        continue;
      for (unsigned place = 0; place < 2; ++place) {
        Value other = inner->getOperand(place), step = inner->getOperand(1 - place);
        if (isKnown(other) && !before.isKnown(step))
          return Sum{known, other, step};
      }
    }
    return std::nullopt;
  }

  /// The number that is in all of a vector's elements; a scalar itself.
  static Value getScalar(Value value) {
    if (!isa<VectorType>(value.getType()))
      return value;
    auto splat = value.getDefiningOp<SplatOp>();
    return splat ? splat.getOperand() : Value();
  }

  /// A sum wraps around in whatever order its numbers are added.
  void addStepLast(OpOperand &operand, const Sum &sum) {
    Location loc = operand.get().getLoc();
    Value a = getScalar(sum.known), b = getScalar(sum.other);
    bool isScalar = a && b;
    a = isScalar ? a : sum.known;
    b = isScalar ? b : sum.other;
    Value &first = sums[{a, b}];
    if (!first) {
      OpBuilder builder(outermost);
      first = arith::AddIOp::create(builder, loc, before.compute(a, builder),
                                    before.compute(b, builder));
    }
    OpBuilder builder(operand.getOwner());
    Value all = first;
    if (all.getType() != sum.step.getType())
      all = SplatOp::create(builder, loc, sum.step.getType(), all);
    operand.set(arith::AddIOp::create(builder, loc, all, sum.step));
  }

  UnrollOp outermost;
  Before before;
  DenseMap<std::pair<Value, Value>, Value> sums;
};

struct CompareSteps : triton_metal::impl::MSLCompareStepsBase<CompareSteps> {
  void runOnOperation() override {
    bool changes = false;
    getOperation().walk<WalkOrder::PreOrder>([&](UnrollOp loop) {
      // What is the same in all steps of a loop is computed before it, where it is in no loop's
      // way.
      if (!isa<UnrollOp>(loop->getParentOp()) && loop->getParentOfType<scf::ForOp>())
        changes |= ComparedSums(loop).run();
    });
    if (!changes)
      return markAllAnalysesPreserved();
    triton_metal::eraseDead(getOperation());
  }
};

} // namespace
