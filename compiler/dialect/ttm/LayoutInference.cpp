#include "dialect/ttm/LayoutInference.h"

#include "dialect/ttm/TTM.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal::ttm {

#include "dialect/ttm/TTMInterfaces.cpp.inc"

bool isOneLayout(LayoutRule rule) { return rule == LayoutRule::Same || rule == LayoutRule::Memory; }

LayoutRule getLayoutRule(Operation *op) {
  if (auto transfer = dyn_cast<LayoutTransferOpInterface>(op))
    return transfer.getLayoutRule();
  return op->hasTrait<OpTrait::Elementwise>() ? LayoutRule::Same : LayoutRule::Free;
}

std::optional<LinearLayout> inferResultLayout(Operation *op, unsigned operandIndex,
                                              const LinearLayout &layout) {
  if (auto transfer = dyn_cast<LayoutTransferOpInterface>(op))
    return transfer.inferResultLayout(operandIndex, layout);
  return isOneLayout(getLayoutRule(op)) ? std::optional(layout) : std::nullopt;
}

std::optional<LinearLayout> inferOperandLayout(Operation *op, unsigned operandIndex,
                                               const LinearLayout &layout) {
  if (auto transfer = dyn_cast<LayoutTransferOpInterface>(op))
    return transfer.inferOperandLayout(operandIndex, layout);
  return isOneLayout(getLayoutRule(op)) ? std::optional(layout) : std::nullopt;
}

bool takesAnyLayout(OpOperand &operand) {
  auto transfer = dyn_cast<LayoutTransferOpInterface>(operand.getOwner());
  return transfer && transfer.takesAnyLayout(operand.getOperandNumber());
}

LinearLayout getDefaultLayout(ArrayRef<int64_t> shape, unsigned numSimdgroups) {
  return LinearLayout::defaultBlocked(shape, numSimdgroups);
}

//===----------------------------------------------------------------------===//
// verifyLayouts
//===----------------------------------------------------------------------===//

/// Tensor operands have this layout.
static LogicalResult verifyOperand(Operation *op, unsigned index,
                                   const std::optional<LinearLayout> &wanted) {
  auto layout = getLayout(op->getOperand(index));
  if (!layout || !wanted || *layout == *wanted)
    return success();
  return op->emitOpError() << "operand " << index << " has layout " << layout->str()
                           << ", but the result asks for " << wanted->str();
}

static LogicalResult verifyCarried(Operation *op, ValueRange from, ValueRange to) {
  for (auto [a, b] : llvm::zip(from, to))
    if (a.getType() != b.getType())
      return op->emitOpError() << "carries " << a.getType() << " as " << b.getType();
  return success();
}

static LogicalResult verifyOp(Operation *op, unsigned numSimdgroups) {
  auto verifyType = [&](Type type) -> LogicalResult {
    if (!isa<RankedTensorType>(type))
      return success();
    auto layout = getLayout(type);
    if (!layout)
      return op->emitOpError() << "has a tensor without a layout: " << type;
    if (layout->getNumSimdgroups() != numSimdgroups)
      return op->emitOpError() << "has a layout for " << layout->getNumSimdgroups()
                               << " SIMD-groups in a module for " << numSimdgroups;
    return success();
  };
  for (Type type : op->getOperandTypes())
    if (failed(verifyType(type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(verifyType(type)))
      return failure();
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (failed(verifyType(type)))
          return failure();

  switch (getLayoutRule(op)) {
  case LayoutRule::Same:
  case LayoutRule::Memory: {
    std::optional<LinearLayout> layout;
    for (Value result : op->getResults())
      if (auto own = getLayout(result))
        layout = own;
    for (OpOperand &operand : op->getOpOperands()) {
      if (takesAnyLayout(operand))
        continue;
      if (!layout)
        layout = getLayout(operand.get());
      if (failed(verifyOperand(op, operand.getOperandNumber(), layout)))
        return failure();
    }
    return success();
  }
  case LayoutRule::Inferred: {
    auto layout = getLayout(op->getResult(0));
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      auto wanted = inferOperandLayout(op, i, *layout);
      if (!wanted)
        return op->emitOpError() << "cannot have layout " << layout->str();
      if (failed(verifyOperand(op, i, wanted)))
        return failure();
    }
    return success();
  }
  case LayoutRule::Reduction: {
    auto layout = getLayout(op->getOperand(0));
    auto wanted = inferResultLayout(op, 0, *layout);
    if (!wanted)
      return op->emitOpError() << "cannot reduce layout " << layout->str() << " along this axis";
    for (Value result : op->getResults())
      if (auto own = getLayout(result); own && *own != *wanted)
        return op->emitOpError() << "result has layout " << own->str() << ", but the operand gives "
                                 << wanted->str();
    return success();
  }
  case LayoutRule::ControlFlow:
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (failed(verifyCarried(op, loop.getInitArgs(), loop.getRegionIterArgs())) ||
          failed(verifyCarried(op, loop.getYieldedValues(), loop.getResults())) ||
          failed(verifyCarried(op, loop.getRegionIterArgs(), loop.getResults())))
        return failure();
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      if (failed(verifyCarried(op, loop.getInits(), loop.getBeforeArguments())) ||
          failed(verifyCarried(op, loop.getYieldedValues(), loop.getBeforeArguments())) ||
          failed(verifyCarried(op, loop.getConditionOp().getArgs(), loop.getResults())) ||
          failed(verifyCarried(op, loop.getAfterArguments(), loop.getResults())))
        return failure();
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (branch.getNumResults() &&
          (failed(verifyCarried(op, branch.thenYield().getOperands(), branch.getResults())) ||
           failed(verifyCarried(op, branch.elseYield().getOperands(), branch.getResults()))))
        return failure();
    }
    return success();
  case LayoutRule::Source:
  case LayoutRule::Dot:
  case LayoutRule::Free:
    return success();
  }
  return success();
}

LogicalResult verifyLayouts(Operation *root) {
  unsigned numSimdgroups = getNumSimdgroups(root);
  if (!numSimdgroups)
    return root->emitError() << "the module must have '" << TTMDialect::getNumSimdgroupsAttrName()
                             << "'";
  auto result = root->walk([&](Operation *op) {
    return failed(verifyOp(op, numSimdgroups)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace triton_metal::ttm
