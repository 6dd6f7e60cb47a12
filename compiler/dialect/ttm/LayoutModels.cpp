// How layouts pass through operations of other dialects: one model an operation.

#include "dialect/ttm/LayoutModels.h"

#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutInference.h"
#include "dialect/ttm/TTM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace triton_metal::ttm {

namespace {

using Layout = std::optional<LinearLayout>;

/// Operations of which the rule says all.
template <typename OpT, LayoutRule rule>
struct RuleModel : LayoutTransferOpInterface::ExternalModel<RuleModel<OpT, rule>, OpT> {
  LayoutRule getLayoutRule(Operation *) const { return rule; }
  Layout inferResultLayout(Operation *, unsigned, const LinearLayout &layout) const {
    return isOneLayout(rule) ? Layout(layout) : std::nullopt;
  }
  Layout inferOperandLayout(Operation *, unsigned, const LinearLayout &layout) const {
    return isOneLayout(rule) ? Layout(layout) : std::nullopt;
  }
};

/// What renames elements, and so maps layouts to layouts.
template <typename Model, typename OpT>
struct RenamingModel : LayoutTransferOpInterface::ExternalModel<Model, OpT> {
  LayoutRule getLayoutRule(Operation *) const { return LayoutRule::Inferred; }
  Layout inferResultLayout(Operation *op, unsigned, const LinearLayout &layout) const {
    return Model::toResult(cast<OpT>(op), layout);
  }
  Layout inferOperandLayout(Operation *op, unsigned, const LinearLayout &layout) const {
    return Model::toOperand(cast<OpT>(op), layout);
  }
};

struct ExpandDimsModel : RenamingModel<ExpandDimsModel, tt::ExpandDimsOp> {
  static Layout toResult(tt::ExpandDimsOp op, const LinearLayout &layout) {
    return layout.expandDims(op.getAxis());
  }
  static Layout toOperand(tt::ExpandDimsOp op, const LinearLayout &layout) {
    return layout.squeezeDim(op.getAxis());
  }
};

struct BroadcastModel : RenamingModel<BroadcastModel, tt::BroadcastOp> {
  static Layout toResult(tt::BroadcastOp op, const LinearLayout &layout) {
    return layout.broadcastTo(op.getType().getShape());
  }
  static Layout toOperand(tt::BroadcastOp op, const LinearLayout &layout) {
    return layout.broadcastSource(op.getSrc().getType().getShape());
  }
};

struct ReshapeModel : RenamingModel<ReshapeModel, tt::ReshapeOp> {
  static Layout toResult(tt::ReshapeOp op, const LinearLayout &layout) {
    return layout.reshape(op.getType().getShape());
  }
  static Layout toOperand(tt::ReshapeOp op, const LinearLayout &layout) {
    return layout.reshape(op.getSrc().getType().getShape());
  }
};

struct TransModel : RenamingModel<TransModel, tt::TransOp> {
  static Layout toResult(tt::TransOp op, const LinearLayout &layout) {
    return layout.transpose(op.getOrder());
  }
  static Layout toOperand(tt::TransOp op, const LinearLayout &layout) {
    return layout.inverseTranspose(op.getOrder());
  }
};

struct JoinModel : RenamingModel<JoinModel, tt::JoinOp> {
  static Layout toResult(tt::JoinOp, const LinearLayout &layout) { return layout.join(); }
  static Layout toOperand(tt::JoinOp, const LinearLayout &layout) {
    Layout half = layout.split();
    // The pair must be in the lowest register bit, where `join` puts it.
    return half && half->join() == layout ? half : std::nullopt;
  }
};

struct SplitModel : RenamingModel<SplitModel, tt::SplitOp> {
  static Layout toResult(tt::SplitOp, const LinearLayout &layout) { return layout.split(); }
  static Layout toOperand(tt::SplitOp, const LinearLayout &layout) { return layout.join(); }
};

struct CatModel : RenamingModel<CatModel, tt::CatOp> {
  static Layout toResult(tt::CatOp, const LinearLayout &layout) { return layout.cat(); }
  static Layout toOperand(tt::CatOp op, const LinearLayout &layout) {
    auto lhs = cast<RankedTensorType>(op->getOperand(0).getType());
    ArrayRef<uint32_t> registers = layout.getRegisterBases();
    // The second tile is in the highest register bit.
    if (registers.empty() || registers.back() != lhs.getNumElements() ||
        LinearLayout::check(lhs.getShape(), registers.drop_back(), layout.getLaneBases(),
                            layout.getSimdgroupBases()))
      return std::nullopt;
    return LinearLayout(lhs.getShape(), registers.drop_back(), layout.getLaneBases(),
                        layout.getSimdgroupBases());
  }
};

/// The result lives where its index does; the source is read from wherever it is.
struct GatherModel : LayoutTransferOpInterface::ExternalModel<GatherModel, tt::GatherOp> {
  LayoutRule getLayoutRule(Operation *) const { return LayoutRule::Same; }
  Layout inferResultLayout(Operation *, unsigned operandIndex, const LinearLayout &layout) const {
    return operandIndex == 1 ? Layout(layout) : std::nullopt;
  }
  Layout inferOperandLayout(Operation *, unsigned operandIndex, const LinearLayout &layout) const {
    return operandIndex == 1 ? Layout(layout) : std::nullopt;
  }
  bool takesAnyLayout(Operation *, unsigned operandIndex) const { return operandIndex == 0; }
};

struct ReduceModel : LayoutTransferOpInterface::ExternalModel<ReduceModel, tt::ReduceOp> {
  LayoutRule getLayoutRule(Operation *) const { return LayoutRule::Reduction; }
  Layout inferResultLayout(Operation *op, unsigned, const LinearLayout &layout) const {
    return layout.sliceDim(cast<tt::ReduceOp>(op).getAxis());
  }
};

struct DotModel : LayoutTransferOpInterface::ExternalModel<DotModel, tt::DotOp> {
  LayoutRule getLayoutRule(Operation *) const { return LayoutRule::Dot; }
  Layout inferResultLayout(Operation *, unsigned operandIndex, const LinearLayout &layout) const {
    return operandIndex == 2 ? Layout(layout) : std::nullopt;
  }
  Layout inferOperandLayout(Operation *op, unsigned operandIndex,
                            const LinearLayout &layout) const {
    if (operandIndex == 2)
      return layout;
    auto operands = RegisterOperands::get(op);
    if (!operands)
      return std::nullopt;
    auto type = cast<RankedTensorType>(op->getOperand(operandIndex).getType());
    return getOperandLayout(type.getShape(), operands->instruction, operandIndex, layout,
                            operands->transposed[operandIndex]);
  }
  // Operands are staged in memory, or are already where the accumulator wants them; or the dot says
  // that it takes them from registers.
  bool takesAnyLayout(Operation *op, unsigned operandIndex) const {
    return operandIndex != 2 && !RegisterOperands::get(op);
  }
};

template <LayoutRule rule, typename... Ops> void attachRule(MLIRContext *context) {
  (Ops::template attachInterface<RuleModel<Ops, rule>>(*context), ...);
}

} // namespace

void attachLayoutModels(MLIRContext *context) {
  attachRule<LayoutRule::Source, tt::MakeRangeOp, tt::SplatOp, arith::ConstantOp, ub::PoisonOp>(
      context);
  attachRule<LayoutRule::Same, tt::ScanOp>(context);
  attachRule<LayoutRule::Memory, tt::LoadOp, tt::StoreOp, tt::AtomicRMWOp, tt::AtomicCASOp, LoadOp,
             StoreOp, AtomicRMWOp, AtomicCASOp>(context);
  attachRule<LayoutRule::ControlFlow, scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp,
             scf::ConditionOp>(context);
  tt::ExpandDimsOp::attachInterface<ExpandDimsModel>(*context);
  tt::BroadcastOp::attachInterface<BroadcastModel>(*context);
  tt::ReshapeOp::attachInterface<ReshapeModel>(*context);
  tt::TransOp::attachInterface<TransModel>(*context);
  tt::JoinOp::attachInterface<JoinModel>(*context);
  tt::SplitOp::attachInterface<SplitModel>(*context);
  tt::CatOp::attachInterface<CatModel>(*context);
  tt::GatherOp::attachInterface<GatherModel>(*context);
  tt::ReduceOp::attachInterface<ReduceModel>(*context);
  tt::DotOp::attachInterface<DotModel>(*context);
}

} // namespace triton_metal::ttm
