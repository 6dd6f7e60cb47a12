#include "dialect/ttm/LayoutInference.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Passes.h"
#include "transforms/TTMLayoutSolver.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMREMOVELAYOUTCONVERSIONS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// Changes a module to the layouts that a solver has chosen.
class Rewriter {
public:
  Rewriter(ModuleOp module, const LayoutSolver &solver)
      : module(module), solver(solver), builder(module) {}

  void run() {
    SmallVector<Operation *> kept;
    module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value result : op->getResults())
        setFixed(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Value argument : block.getArguments())
            setFixed(argument);
      if (solver.isKept(op))
        kept.push_back(op);
    });
    for (Operation *op : kept)
      for (OpOperand &operand : op->getOpOperands())
        if (isa<RankedTensorType>(operand.get().getType()))
          operand.set(get(operand.get(), solver.getRequired(operand)));
    removeDead();
  }

private:
  void setFixed(Value value) {
    if (auto layout = solver.getFixed(value))
      setLayout(value, *layout);
  }

  /// The value in this layout: converted, or computed again, directly after its definition.
  Value get(Value value, const LinearLayout &layout) {
    Value &made = cache[{value, LinearLayoutAttr::get(module.getContext(), layout)}];
    if (made)
      return made;
    Value result = make(value, layout);
    // `make` may have moved the entries of the cache.
    cache[{value, LinearLayoutAttr::get(module.getContext(), layout)}] = result;
    return result;
  }

  Value make(Value value, const LinearLayout &layout) {
    auto own = solver.getFixed(value);
    if (own && *own == layout)
      return value;
    Operation *op = value.getDefiningOp();
    OpBuilder::InsertionGuard guard(builder);
    if (own) {
      if (op)
        builder.setInsertionPointAfter(op);
      else
        builder.setInsertionPointToStart(cast<BlockArgument>(value).getOwner());
      return convertLayout(builder, value, layout);
    }
    return remake(op, cast<OpResult>(value).getResultNumber(), layout);
  }

  /// Creates the operation again such that its result has the layout.
  Value remake(Operation *op, unsigned resultNumber, const LinearLayout &layout) {
    SmallVector<Value> operands;
    bool possible = true;
    for (OpOperand &operand : op->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()) && !takesAnyLayout(operand) &&
          !inferOperandLayout(op, operand.getOperandNumber(), layout))
        possible = false;
    // Some layouts of the result would require data to move. The result is then computed in its
    // original layout and converted.
    LinearLayout target = possible ? layout : solver.getOriginal(op->getResult(resultNumber));
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType())) {
        operands.push_back(operand.get());
        continue;
      }
      LinearLayout wanted =
          possible ? solver.getOperandLayout(operand, layout) : solver.getOriginal(operand);
      operands.push_back(get(operand.get(), wanted));
    }
    builder.setInsertionPoint(op);
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    for (Value result : copy->getResults())
      if (isa<RankedTensorType>(result.getType()))
        setLayout(result, target);
    return convertLayout(builder, copy->getResult(resultNumber), layout);
  }

  void removeDead() {
    module.walk<WalkOrder::PostOrder, mlir::ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  }

  ModuleOp module;
  const LayoutSolver &solver;
  OpBuilder builder;
  DenseMap<std::pair<Value, Attribute>, Value> cache;
};

struct TTMRemoveLayoutConversionsPass
    : impl::TTMRemoveLayoutConversionsBase<TTMRemoveLayoutConversionsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    LayoutSolver solver(module);
    solver.solve();
    Rewriter(module, solver).run();
    if (failed(verifyLayouts(module)))
      signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
