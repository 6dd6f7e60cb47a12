#include "dialect/ttm/LayoutInference.h"

#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace triton_metal::ttm {

LayoutRule getLayoutRule(Operation *op) {
  if (isa<tt::MakeRangeOp, tt::SplatOp, arith::ConstantOp, ub::PoisonOp>(op))
    return LayoutRule::Source;
  if (op->hasTrait<OpTrait::Elementwise>() || isa<tt::ScanOp>(op))
    return LayoutRule::Same;
  if (isa<tt::ExpandDimsOp, tt::BroadcastOp, tt::ReshapeOp, tt::TransOp, tt::JoinOp, tt::SplitOp,
          tt::CatOp>(op))
    return LayoutRule::Inferred;
  if (isa<tt::ReduceOp>(op))
    return LayoutRule::Reduction;
  if (isa<tt::LoadOp, tt::StoreOp, tt::AtomicRMWOp, tt::AtomicCASOp, LoadOp, StoreOp, AtomicRMWOp,
          AtomicCASOp>(op))
    return LayoutRule::Memory;
  if (isa<tt::DotOp>(op))
    return LayoutRule::Dot;
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp>(op))
    return LayoutRule::ControlFlow;
  return LayoutRule::Free;
}

std::optional<LinearLayout> inferResultLayout(Operation *op, unsigned operandIndex,
                                              const LinearLayout &layout) {
  using Result = std::optional<LinearLayout>;
  if (getLayoutRule(op) == LayoutRule::Same || getLayoutRule(op) == LayoutRule::Memory)
    return layout;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](tt::ExpandDimsOp expand) -> Result { return layout.expandDims(expand.getAxis()); })
      .Case([&](tt::BroadcastOp broadcast) -> Result {
        return layout.broadcastTo(broadcast.getType().getShape());
      })
      .Case([&](tt::ReshapeOp reshape) -> Result {
        return layout.reshape(reshape.getType().getShape());
      })
      .Case([&](tt::TransOp trans) -> Result { return layout.transpose(trans.getOrder()); })
      .Case([&](tt::JoinOp) -> Result { return layout.join(); })
      .Case([&](tt::SplitOp) -> Result { return layout.split(); })
      .Case([&](tt::CatOp) -> Result { return layout.cat(); })
      .Case([&](tt::ReduceOp reduce) -> Result { return layout.sliceDim(reduce.getAxis()); })
      .Case([&](tt::DotOp) -> Result { return operandIndex == 2 ? Result(layout) : std::nullopt; })
      .Default([](Operation *) -> Result { return std::nullopt; });
}

std::optional<LinearLayout> inferOperandLayout(Operation *op, unsigned operandIndex,
                                               const LinearLayout &layout) {
  using Result = std::optional<LinearLayout>;
  if (getLayoutRule(op) == LayoutRule::Same || getLayoutRule(op) == LayoutRule::Memory)
    return layout;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](tt::ExpandDimsOp expand) -> Result { return layout.squeezeDim(expand.getAxis()); })
      .Case([&](tt::BroadcastOp broadcast) -> Result {
        return layout.broadcastSource(broadcast.getSrc().getType().getShape());
      })
      .Case([&](tt::ReshapeOp reshape) -> Result {
        return layout.reshape(reshape.getSrc().getType().getShape());
      })
      .Case([&](tt::TransOp trans) -> Result { return layout.inverseTranspose(trans.getOrder()); })
      .Case([&](tt::SplitOp) -> Result { return layout.join(); })
      .Case([&](tt::JoinOp) -> Result {
        auto half = layout.split();
        // The pair must be in the lowest register bit, where `join` puts it.
        return half && half->join() == layout ? half : std::nullopt;
      })
      .Case([&](tt::CatOp) -> Result {
        auto lhs = cast<RankedTensorType>(op->getOperand(0).getType());
        auto registers = layout.getRegisterBases();
        if (registers.empty())
          return std::nullopt;
        uint32_t half = lhs.getNumElements();
        if (registers.back() != half ||
            LinearLayout::check(lhs.getShape(), registers.drop_back(), layout.getLaneBases(),
                                layout.getSimdgroupBases()))
          return std::nullopt;
        return LinearLayout(lhs.getShape(), registers.drop_back(), layout.getLaneBases(),
                            layout.getSimdgroupBases());
      })
      .Case([&](tt::DotOp) -> Result { return operandIndex == 2 ? Result(layout) : std::nullopt; })
      .Default([](Operation *) -> Result { return std::nullopt; });
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
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (!layout)
        layout = getLayout(op->getOperand(i));
      if (failed(verifyOperand(op, i, layout)))
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
