#include "transforms/InlineCombine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace triton_metal {

SmallVector<Value> inlineCombine(OpBuilder &builder, Location loc, Block &block, ValueRange lhs,
                                 ValueRange rhs, llvm::function_ref<Value(Value)> repeat) {
  auto shape = dyn_cast<ShapedType>(lhs[0].getType());
  IRMapping inner;
  inner.map(block.getArguments().take_front(lhs.size()), lhs);
  inner.map(block.getArguments().drop_front(lhs.size()), rhs);
  auto lookup = [&](Value value) {
    if (Value found = inner.lookupOrNull(value))
      return found;
    return shape ? repeat(value) : value;
  };
  for (Operation &inside : block.without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(inside)) {
      TypedAttr value = constant.getValue();
      if (shape)
        value = DenseElementsAttr::get(shape.clone(constant.getType()), Attribute(value));
      inner.map(constant.getResult(), arith::ConstantOp::create(builder, loc, value));
      continue;
    }
    for (Value operand : inside.getOperands())
      inner.map(operand, lookup(operand));
    Operation *copy = builder.clone(inside, inner);
    copy->setLoc(loc);
    if (shape)
      for (Value result : copy->getResults())
        result.setType(shape.clone(result.getType()));
  }
  return llvm::map_to_vector(block.getTerminator()->getOperands(), lookup);
}

} // namespace triton_metal
