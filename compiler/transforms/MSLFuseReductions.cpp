// Sums of reductions over products become math.fma.

#include "dialect/ttm/LocationNames.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLFUSEREDUCTIONS
#include "transforms/Passes.h.inc"

namespace {

void fuse(arith::AddFOp sum) {
  Type element = getElementTypeOrSelf(sum.getType());
  if (!element.isF32() && !element.isF16())
    return;
  for (unsigned operand : {0, 1}) {
    auto product = sum->getOperand(operand).getDefiningOp<arith::MulFOp>();
    if (!product || !product->hasOneUse() || product->getBlock() != sum->getBlock())
      continue;
    OpBuilder builder(sum);
    Location loc = sum.getLoc();
    if (nameOf(loc).empty())
      loc = named(builder.getContext(), "sum");
    Value fused = math::FmaOp::create(builder, loc, product.getLhs(), product.getRhs(),
                                      sum->getOperand(1 - operand));
    sum.replaceAllUsesWith(fused);
    sum.erase();
    product.erase();
    return;
  }
}

struct MSLFuseReductionsPass : impl::MSLFuseReductionsBase<MSLFuseReductionsPass> {
  void runOnOperation() override {
    SmallVector<arith::AddFOp> sums;
    getOperation().walk([&](arith::AddFOp sum) {
      if (bitEnumContainsAll(sum.getFastmath(), arith::FastMathFlags::contract))
        sums.push_back(sum);
    });
    for (arith::AddFOp sum : sums)
      fuse(sum);
  }
};

} // namespace
} // namespace triton_metal
