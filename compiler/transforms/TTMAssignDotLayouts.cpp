#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutInference.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Dots.h"
#include "transforms/Passes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMASSIGNDOTLAYOUTS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// What a dot's result is to other dots.
struct DotUses {
  bool asA = false, asB = false;
};

/// Follows the result of a dot through elementwise operations, conversions and dots that add to it
/// to operands of other dots.
void findDotUses(Value value, DotUses &uses, SetVector<tt::DotOp> &consumers) {
  SetVector<Value> seen;
  seen.insert(value);
  for (unsigned i = 0; i < seen.size(); ++i) {
    for (OpOperand &use : seen[i].getUses()) {
      Operation *user = use.getOwner();
      if (auto dot = dyn_cast<tt::DotOp>(user)) {
        uses.asA |= use.getOperandNumber() == 0;
        uses.asB |= use.getOperandNumber() == 1;
        if (use.getOperandNumber() < 2)
          consumers.insert(dot);
        else
          seen.insert(dot.getResult());
      } else if (isa<ConvertLayoutOp>(user) || user->hasTrait<OpTrait::Elementwise>()) {
        seen.insert(user->result_begin(), user->result_end());
      }
    }
  }
}

/// Up to four rows and columns in each thread: what is read for one element serves four.
LinearLayout getBlockLayout(ArrayRef<int64_t> shape, unsigned numSimdgroups) {
  SmallVector<int64_t> perThread(shape.size(), 1);
  SmallVector<unsigned> order;
  for (unsigned dim = shape.size(); dim-- > 0;) {
    order.push_back(dim);
    if (dim + 2 >= shape.size())
      perThread[dim] = std::min<int64_t>(shape[dim], 4);
  }
  return LinearLayout::blocked(shape, perThread, order, numSimdgroups);
}

/// How many SIMD-groups along the batch of a dot. Each has products of its own, and operands of all
/// of them are in threadgroup memory at a time.
unsigned tileBatch(tt::DotOp dot, msl::MatrixShape instruction, unsigned numSimdgroups,
                   const Budget &budget) {
  ArrayRef<int64_t> shape = dot.getType().getShape();
  if (shape.size() == 2)
    return 1;
  auto fits = [&](int64_t batch) {
    // Of the widest element that is stored.
    Type element = Float32Type::get(dot.getContext());
    return getOperandTile({batch, shape[1], instruction.k}, element).getBytes() +
               getOperandTile({batch, shape[2], instruction.k}, element).getBytes() <=
           budget.getDotBytes();
  };
  unsigned batch = 1;
  while (2 * batch <= numSimdgroups && 2 * batch <= shape[0] && fits(2 * batch))
    batch *= 2;
  return batch;
}

/// Whether an operand's next element in memory is that of its column and not of its row. The layout
/// of a load is still the one that memory wants; so the load says it that the operand is computed
/// of. What is computed of no load is taken as it is.
bool areColumnsFastest(Value operand) {
  SmallVector<std::pair<Value, bool>> work = {{operand, false}};
  llvm::SmallDenseSet<Value> seen;
  bool swappedAtEnd = false, isFirst = true;
  while (!work.empty()) {
    auto [value, swapped] = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    auto layout = getLayout(value);
    if (!layout || layout->getRank() != 2 || !seen.insert(value).second)
      continue;
    if (isa_and_nonnull<tt::LoadOp>(op))
      return areColumnsFastest(*layout) != swapped;
    if (auto trans = dyn_cast_or_null<tt::TransOp>(op)) {
      work.push_back({trans.getSrc(), !swapped});
    } else if (op && (isa<ConvertLayoutOp>(op) || op->hasTrait<OpTrait::Elementwise>())) {
      for (Value source : llvm::reverse(op->getOperands()))
        work.push_back({source, swapped});
    } else if (isFirst) {
      swappedAtEnd = swapped;
      isFirst = false;
    }
  }
  return swappedAtEnd;
}

struct TTMAssignDotLayoutsPass : impl::TTMAssignDotLayoutsBase<TTMAssignDotLayoutsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    unsigned numSimdgroups = getNumSimdgroups(module);
    SmallVector<tt::DotOp> dots;
    Budget budget = Budget::of(module);
    module.walk([&](tt::DotOp dot) {
      if (getDotForm(dot, budget) == DotForm::Matrices)
        dots.push_back(dot);
      else
        setAccumulatorLayout(dot, getBlockLayout(dot.getType().getShape(), numSimdgroups));
    });
    // A chain of dots is split one way: the consumer's accumulator then has the producer's rows
    // (columns) in the same SIMD-groups, and factors of a row need not move between them.
    DenseMap<Operation *, DotSplit> splits;
    for (tt::DotOp dot : dots) {
      DotUses uses;
      SetVector<tt::DotOp> consumers;
      findDotUses(dot.getResult(), uses, consumers);
      if (!uses.asA && !uses.asB)
        continue;
      DotSplit split = uses.asA ? DotSplit::Rows : DotSplit::Columns;
      splits.try_emplace(dot, split);
      for (tt::DotOp consumer : consumers)
        splits.try_emplace(consumer, split);
    }
    for (tt::DotOp dot : dots) {
      ArrayRef<int64_t> shape = dot.getType().getShape();
      const msl::MatrixInstruction *chosen = getInstruction(dot, budget);
      msl::MatrixShape instruction = chosen->shape;
      if (chosen->inRegisters)
        RegisterOperands{instruction,
                         {areColumnsFastest(dot.getA()), areColumnsFastest(dot.getB())}}
            .set(dot);
      auto it = splits.find(dot);
      unsigned batch = tileBatch(dot, instruction, numSimdgroups, budget);
      auto [rows, columns] =
          tileSimdgroups(shape.take_back(2), instruction.getAccumulator(), numSimdgroups / batch,
                         it == splits.end() ? DotSplit::Square : it->second);
      unsigned simdgroups[] = {batch, rows, columns};
      setAccumulatorLayout(dot, LinearLayout::simdgroupMatrix(
                                    shape, instruction,
                                    ArrayRef(simdgroups).take_back(shape.size()), numSimdgroups));
    }
    if (failed(verifyLayouts(module)))
      signalPassFailure();
  }

private:
  void setAccumulatorLayout(tt::DotOp dot, const LinearLayout &layout) {
    OpBuilder builder(dot);
    LinearLayout before = *getLayout(dot.getResult());
    if (before == layout)
      return;
    dot.getCMutable().assign(convertLayout(builder, dot.getC(), layout));
    setLayout(dot.getResult(), layout);
    builder.setInsertionPointAfter(dot);
    Value converted = convertLayout(builder, dot.getResult(), before);
    dot.getResult().replaceAllUsesExcept(converted, converted.getDefiningOp());
  }
};

} // namespace
} // namespace triton_metal
