// Compares in 32 bits what was compared in 64 so that a sum does not overflow: see Passes.td.

#include "dialect/msl/MSL.h"
#include "transforms/MSLBefore.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include <tuple>

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLNARROWCOMPARISONS
#include "transforms/Passes.h.inc"

namespace {

/// Whether an operation, or a condition that is made of its result, is in a loop.
bool isNeededInLoop(Operation *op) {
  if (op->getParentOfType<LoopLikeOpInterface>())
    return true;
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    return user->getParentOfType<LoopLikeOpInterface>() ||
           (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(user) && isNeededInLoop(user));
  });
}

/// The number of 32 bits that a value of 64 is.
Value getNarrow(Value wide) {
  auto extension = wide.getDefiningOp<arith::ExtSIOp>();
  return extension && extension.getIn().getType().isInteger(32) ? extension.getIn() : Value();
}

/// The sum `x + addend` and the number that it is compared with, also in 64 bits: `isBelow`, or not
/// below it.
struct Question {
  Value x, bound, wide;
  int64_t addend = 0;
  bool isBelow = true;

  auto key() const { return std::make_tuple(x, bound, addend, unsigned(isBelow)); }
};

/// What a comparison of 64 bits asks of numbers of 32.
std::optional<Question> getWide(arith::CmpIOp op) {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  Value sum = op.getLhs(), bound = op.getRhs();
  if (predicate == P::sgt || predicate == P::sle) {
    std::swap(sum, bound);
    predicate = predicate == P::sgt ? P::slt : P::sge;
  }
  auto add = sum.getDefiningOp<arith::AddIOp>();
  APInt addend;
  if ((predicate != P::slt && predicate != P::sge) || !op.getLhs().getType().isInteger(64) ||
      !add || !matchPattern(add.getRhs(), m_ConstantInt(&addend)) || addend.isNegative() ||
      addend.getSignificantBits() > 32)
    return std::nullopt;
  Value x = getNarrow(add.getLhs()), y = getNarrow(bound);
  if (!x || !y)
    return std::nullopt;
  return Question{x, y, bound, addend.getSExtValue(), predicate == P::slt};
}

/// What `x < max(y, least + c) - c` asks, which other passes make.
std::optional<Question> getNarrowed(arith::CmpIOp op) {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  Value x = op.getLhs(), last = op.getRhs();
  if (predicate == P::sgt || predicate == P::sle) {
    std::swap(x, last);
    predicate = predicate == P::sgt ? P::slt : P::sge;
  }
  Operation *less = last.getDefiningOp();
  APInt number, least;
  if ((predicate != P::slt && predicate != P::sge) || !x.getType().isInteger(32) ||
      !isa_and_present<arith::AddIOp, arith::SubIOp>(less) ||
      !matchPattern(less->getOperand(1), m_ConstantInt(&number)))
    return std::nullopt;
  int64_t addend = isa<arith::SubIOp>(less) ? number.getSExtValue() : -number.getSExtValue();
  auto most = less->getOperand(0).getDefiningOp<arith::MaxSIOp>();
  if (addend < 0 || !most || !matchPattern(most.getRhs(), m_ConstantInt(&least)) ||
      least.getSExtValue() != INT32_MIN + addend)
    return std::nullopt;
  return Question{x, most.getLhs(), Value(), addend, predicate == P::slt};
}

/// Answers questions in 32 bits, each once where one answer comes before the other.
class Narrowing {
public:
  explicit Narrowing(ArrayRef<arith::CmpIOp> comparisons) {
    for (arith::CmpIOp op : comparisons) {
      if (std::optional<Question> narrowed = getNarrowed(op))
        answers[narrowed->key()].push_back(op);
      else if (std::optional<Question> wide = getWide(op); wide && isNeededInLoop(op))
        inLoops.insert(wide->key());
    }
  }

  /// x + c < y, as x < max(y, least + c) - c: where y is less than the least sum, no sum is below
  /// it.
  bool narrow(arith::CmpIOp op) {
    std::optional<Question> question = getWide(op);
    if (!question)
      return false;
    SmallVector<Value> &known = answers[question->key()];
    for (Value answer : known)
      if (msl::isComputedBefore(answer, op)) {
        op.getResult().replaceAllUsesWith(answer);
        return true;
      }
    if (!inLoops.contains(question->key()))
      return false;
    OpBuilder builder(op);
    Value &last = bounds[{question->wide, question->addend}];
    if (!last) {
      // It is computed where its number is, which may be before the loop.
      builder.setInsertionPointAfterValue(question->wide);
      Location unnamed = builder.getUnknownLoc();
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantOp::create(builder, unnamed,
                                         builder.getI32IntegerAttr(int32_t(value)));
      };
      Value most = arith::MaxSIOp::create(builder, unnamed, question->bound,
                                          constant(INT32_MIN + question->addend));
      last = arith::SubIOp::create(builder, op.getRhs().getLoc(), most, constant(question->addend),
                                   arith::IntegerOverflowFlags::nsw);
    }
    builder.setInsertionPoint(op);
    auto predicate = question->isBelow ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge;
    Value result = arith::CmpIOp::create(builder, op.getLoc(), predicate, question->x, last);
    op.getResult().replaceAllUsesWith(result);
    known.push_back(result);
    return true;
  }

private:
  using Key = std::tuple<Value, Value, int64_t, unsigned>;
  DenseSet<Key> inLoops;
  DenseMap<Key, SmallVector<Value>> answers;
  /// The last numbers that may be compared with, by the extended bound and the addend.
  DenseMap<std::pair<Value, int64_t>, Value> bounds;
};

struct MSLNarrowComparisonsPass : impl::MSLNarrowComparisonsBase<MSLNarrowComparisonsPass> {
  void runOnOperation() override {
    SmallVector<arith::CmpIOp> comparisons;
    getOperation().walk([&](arith::CmpIOp op) { comparisons.push_back(op); });
    Narrowing narrowing(comparisons);
    SmallVector<Operation *> unread;
    for (arith::CmpIOp op : comparisons)
      if (narrowing.narrow(op))
        unread.push_back(op);
    if (unread.empty())
      return markAllAnalysesPreserved();
    // Not before: the bounds are known by value.
    while (!unread.empty()) {
      Operation *op = unread.pop_back_val();
      for (Value operand : op->getOperands())
        if (Operation *definition = operand.getDefiningOp();
            isa_and_present<arith::AddIOp, arith::ExtSIOp>(definition) && operand.hasOneUse())
          unread.push_back(definition);
      op->erase();
    }
  }
};

} // namespace
} // namespace triton_metal
