// Multiplications whose product is only added become math.fma, which rounds once.

#include "dialect/tt/TT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTFUSEMULTIPLYADD
#include "transforms/Passes.h.inc"

namespace {

/// The types in which Metal's fma rounds once, and costs no more than the two operations. There is
/// none for bfloat, and float64 is emulated: its fma is dearer than its product and its sum.
bool hasMultiplyAdd(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF32() || element.isF16();
}

/// The multiplication that made a value, if the sum is all that reads it. One of another block
/// stays there: it may have left a loop.
arith::MulFOp productOf(Value value, Operation *sum) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && product->hasOneUse() && product->getBlock() == sum->getBlock()
             ? product
             : arith::MulFOp();
}

/// The negative of a value: of a constant at once, and of what is repeated before it is.
Value negated(OpBuilder &builder, Location loc, Value value) {
  Attribute attr;
  if (matchPattern(value, m_Constant(&attr))) {
    if (auto number = dyn_cast<FloatAttr>(attr))
      return arith::ConstantOp::create(builder, loc,
                                       FloatAttr::get(number.getType(), neg(number.getValue())));
    if (auto dense = dyn_cast<SplatElementsAttr>(attr))
      return arith::ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(dense.getType(), neg(dense.getSplatValue<APFloat>())));
  }
  if (auto negation = value.getDefiningOp<arith::NegFOp>())
    return negation.getOperand();
  return arith::NegFOp::create(builder, loc, value);
}

void fuse(Operation *sum) {
  if (!hasMultiplyAdd(sum->getResult(0).getType()))
    return;
  Value left = sum->getOperand(0), right = sum->getOperand(1);
  bool isDifference = isa<arith::SubFOp>(sum);
  OpBuilder builder(sum);
  auto replace = [&](arith::MulFOp product, Value a, Value b, Value c) {
    Value fused = math::FmaOp::create(builder, sum->getLoc(), a, b, c);
    sum->getResult(0).replaceAllUsesWith(fused);
    sum->erase();
    product->erase();
  };
  if (arith::MulFOp product = productOf(left, sum))
    return replace(product, product.getLhs(), product.getRhs(),
                   isDifference ? negated(builder, sum->getLoc(), right) : right);
  arith::MulFOp product = productOf(right, sum);
  if (!product)
    return;
  Value a = product.getLhs(), b = product.getRhs();
  if (isDifference) {
    // The negative of a constant costs nothing.
    Attribute attr;
    Value &one = matchPattern(b, m_Constant(&attr)) ? b : a;
    one = negated(builder, product.getLoc(), one);
  }
  replace(product, a, b, left);
}

struct TTFuseMultiplyAddPass : impl::TTFuseMultiplyAddBase<TTFuseMultiplyAddPass> {
  void runOnOperation() override {
    SmallVector<Operation *> sums;
    getOperation().walk([&](Operation *op) {
      if (isa<arith::AddFOp, arith::SubFOp>(op))
        sums.push_back(op);
    });
    for (Operation *sum : sums) {
      // What a reduction adds stands outside of its region.
      if (isa<tt::ReduceOp>(sum->getParentOp())) {
        if (auto add = dyn_cast<arith::AddFOp>(sum))
          add.setFastmath(add.getFastmath() | arith::FastMathFlags::contract);
        continue;
      }
      fuse(sum);
    }
  }
};

} // namespace
} // namespace triton_metal
