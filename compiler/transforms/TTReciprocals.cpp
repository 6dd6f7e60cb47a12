// Tiles that are divided by one number a row are multiplied by its reciprocal.

#include "dialect/tt/TT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTRECIPROCALS
#include "transforms/Passes.h.inc"

namespace {

/// What a tile repeats: a scalar, or a smaller tile. Null if it repeats nothing.
Value repeated(Value tile) {
  if (auto splat = tile.getDefiningOp<tt::SplatOp>())
    return splat.getSrc();
  if (auto broadcast = tile.getDefiningOp<tt::BroadcastOp>())
    return broadcast.getSrc();
  return {};
}

Type withElement(Type type, Type element) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(element);
  return element;
}

TypedAttr one(Type type) {
  auto number = FloatAttr::get(getElementTypeOrSelf(type), 1.0);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return DenseElementsAttr::get(tensor, ArrayRef<Attribute>(number));
  return number;
}

void multiply(arith::DivFOp quotient) {
  if (!bitEnumContainsAll(quotient.getFastmath(), arith::FastMathFlags::afn))
    return;
  Value divisor = repeated(quotient.getRhs());
  // 1 / s has no product that a reciprocal would save.
  Attribute attr;
  if (!divisor || matchPattern(quotient.getLhs(), m_Constant(&attr)))
    return;
  OpBuilder builder(quotient);
  Location loc = quotient.getLoc();
  Type type = quotient.getType(), f32 = builder.getF32Type();
  Operation *repeats = quotient.getRhs().getDefiningOp();
  // Shorter floats are multiplied as float32, and rounded once.
  auto widened = [&](Value value) -> Value {
    if (getElementTypeOrSelf(value.getType()).isF32())
      return value;
    return arith::ExtFOp::create(builder, loc, withElement(value.getType(), f32), value);
  };
  builder.setInsertionPointAfter(repeats);
  divisor = widened(divisor);
  Value ones = arith::ConstantOp::create(builder, loc, one(divisor.getType()));
  // It is rounded correctly, with all its special values: there are few of them.
  Value reciprocal = arith::DivFOp::create(builder, loc, ones, divisor);
  Type wide = withElement(type, f32);
  Value factor = isa<tt::SplatOp>(repeats)
                     ? tt::SplatOp::create(builder, loc, wide, reciprocal).getResult()
                     : tt::BroadcastOp::create(builder, loc, wide, reciprocal).getResult();
  builder.setInsertionPoint(quotient);
  Value product = arith::MulFOp::create(builder, loc, widened(quotient.getLhs()), factor);
  if (type != wide)
    product = arith::TruncFOp::create(builder, loc, type, product);
  quotient.replaceAllUsesWith(product);
  quotient.erase();
}

struct TTReciprocalsPass : impl::TTReciprocalsBase<TTReciprocalsPass> {
  void runOnOperation() override {
    SmallVector<arith::DivFOp> quotients;
    getOperation().walk([&](arith::DivFOp op) { quotients.push_back(op); });
    for (arith::DivFOp quotient : quotients)
      multiply(quotient);
  }
};

} // namespace
} // namespace triton_metal
