// Which functions and quotients may have the GPU's approximate forms, as Triton's do.

#include "dialect/tt/TT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTAPPROXIMATE
#include "transforms/Passes.h.inc"

namespace {

/// The functions of Triton's language that promise a bound, and not the nearest number.
bool isApproximate(Operation *op) {
  if (!isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::SinOp, math::CosOp,
           math::SqrtOp, math::RsqrtOp, arith::DivFOp>(op))
    return false;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return element.isF32() || element.isF16() || element.isBF16();
}

struct TTApproximatePass : impl::TTApproximateBase<TTApproximatePass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isApproximate(op))
        return;
      auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
      op->setAttr("fastmath", arith::FastMathFlagsAttr::get(
                                  op->getContext(), flags.getValue() | arith::FastMathFlags::afn));
    });
  }
};

} // namespace
} // namespace triton_metal
