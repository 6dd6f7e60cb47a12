#include "transforms/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace triton_metal {

TypedAttr makeSplat(Type type, const APInt &value) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return DenseElementsAttr::get(shaped, value);
  return IntegerAttr::get(type, value);
}

Value makeConstantLike(OpBuilder &builder, Location loc, Type type, const APInt &value) {
  return arith::ConstantOp::create(builder, loc, makeSplat(type, value));
}

Value makeConstantLike(OpBuilder &builder, Location loc, Type type, int64_t number) {
  Type element = getElementTypeOrSelf(type);
  return makeConstantLike(builder, loc, type,
                          cast<IntegerAttr>(builder.getIntegerAttr(element, number)).getValue());
}

} // namespace triton_metal
