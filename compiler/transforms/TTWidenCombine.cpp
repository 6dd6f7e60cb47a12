// Reduces and scans bfloats as floats, and rounds once at the end.

#include "dialect/tt/TT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTWIDENCOMBINE
#include "transforms/Passes.h.inc"

namespace {

bool isBFloat(Type type) { return getElementTypeOrSelf(type).isBF16(); }

Type widened(Type type) {
  if (!isBFloat(type))
    return type;
  Type f32 = Float32Type::get(type.getContext());
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(f32);
  return f32;
}

/// Whether an operation of a combine region means the same on floats. Operations on bits do not,
/// and conversions would have to be rewritten.
bool canWiden(Operation &op) {
  bool touches =
      llvm::any_of(op.getOperandTypes(), isBFloat) || llvm::any_of(op.getResultTypes(), isBFloat);
  if (!touches)
    return true;
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
             arith::CmpFOp, arith::SelectOp, arith::ConstantOp, math::FmaOp, math::AbsFOp,
             tt::ReduceReturnOp, tt::ScanReturnOp>(op);
}

/// Whether the region rounds on the way. What only selects is exact in both types.
bool rounds(Operation &op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, math::FmaOp>(op) &&
         isBFloat(op.getResult(0).getType());
}

void widenConstant(arith::ConstantOp constant) {
  auto value = cast<FloatAttr>(constant.getValue());
  APFloat number = value.getValue();
  bool losesInfo;
  number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesInfo);
  constant.setValueAttr(FloatAttr::get(Float32Type::get(constant.getContext()), number));
}

template <typename CombineOp> void widen(CombineOp op) {
  Block &body = op.getCombineOp().front();
  if (llvm::none_of(body, rounds) || !llvm::all_of(body, canWiden))
    return;
  // A scalar from outside of the region keeps its type.
  for (Operation &inner : body)
    for (Value operand : inner.getOperands())
      if (isBFloat(operand.getType()) && operand.getParentBlock() != &body)
        return;

  OpBuilder builder(op);
  Location loc = op.getLoc();
  for (OpOperand &operand : op->getOpOperands())
    if (Value value = operand.get(); isBFloat(value.getType()))
      operand.set(arith::ExtFOp::create(builder, loc, widened(value.getType()), value));
  for (BlockArgument argument : body.getArguments())
    argument.setType(widened(argument.getType()));
  for (Operation &inner : body) {
    if (auto constant = dyn_cast<arith::ConstantOp>(inner);
        constant && isBFloat(constant.getType()))
      widenConstant(constant);
    for (Value result : inner.getResults())
      result.setType(widened(result.getType()));
  }
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    Type narrow = result.getType();
    if (!isBFloat(narrow))
      continue;
    result.setType(widened(narrow));
    auto rounded = arith::TruncFOp::create(builder, loc, narrow, result);
    result.replaceAllUsesExcept(rounded, rounded);
  }
}

struct TTWidenCombinePass : impl::TTWidenCombineBase<TTWidenCombinePass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (auto reduction = dyn_cast<tt::ReduceOp>(op))
        widen(reduction);
      else if (auto scan = dyn_cast<tt::ScanOp>(op))
        widen(scan);
    });
  }
};

} // namespace
} // namespace triton_metal
