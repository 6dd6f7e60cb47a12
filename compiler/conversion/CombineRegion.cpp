#include "conversion/CombineRegion.h"

#include "analysis/CombineRegion.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace triton_metal {

SmallVector<Value> combine(RegisterBuilder &builder, Block &block, ValueRange lhs, ValueRange rhs) {
  // The region's scalars become vectors of registers.
  Type shape = lhs[0].getType();
  auto vector = dyn_cast<VectorType>(shape);
  IRMapping inner;
  inner.map(block.getArguments().take_front(lhs.size()), lhs);
  inner.map(block.getArguments().drop_front(lhs.size()), rhs);
  auto lookup = [&](Value value) {
    if (Value found = inner.lookupOrNull(value))
      return found;
    // A scalar that is defined outside of the region.
    return vector ? builder.splat(value, vector.getNumElements()) : value;
  };
  for (Operation &inside : block.without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(inside)) {
      Type type = withElement(shape, constant.getType());
      TypedAttr value = constant.getValue();
      if (vector)
        value = DenseElementsAttr::get(cast<VectorType>(type), Attribute(value));
      inner.map(constant.getResult(), arith::ConstantOp::create(builder, type, value));
      continue;
    }
    for (Value operand : inside.getOperands())
      inner.map(operand, lookup(operand));
    Operation *copy = builder.clone(inside, inner);
    copy->setLoc(builder.getLoc());
    for (auto [from, to] : llvm::zip(inside.getResults(), copy->getResults()))
      to.setType(withElement(shape, from.getType()));
  }
  return llvm::map_to_vector(block.getTerminator()->getOperands(), lookup);
}

SmallVector<Value> combineRegisters(RegisterBuilder &builder, Block &block, ValueRange values,
                                    unsigned registerBit) {
  SmallVector<Value> first, second;
  for (Value value : values) {
    SmallVector<int64_t> bases;
    for (int64_t base = 1; base < cast<VectorType>(value.getType()).getNumElements(); base *= 2)
      if (base != int64_t(1) << registerBit)
        bases.push_back(base);
    first.push_back(builder.permute(value, bases));
    second.push_back(builder.permute(value, bases, int64_t(1) << registerBit));
  }
  return combine(builder, block, first, second);
}

SmallVector<Value> combineLanes(RegisterBuilder &builder, Block &block, ValueRange values,
                                unsigned laneBit) {
  SmallVector<Value> others = llvm::map_to_vector(values, [&](Value value) {
    return builder.shuffle(value, [&](Value bits) -> Value {
      return msl::SimdShuffleXorOp::create(builder, bits, builder.getI32IntegerAttr(1 << laneBit));
    });
  });
  if (getCommutativeCombiner(block))
    return combine(builder, block, values, others);
  Value isFirst = builder.threadBitsAre(1u << laneBit, 0, 0, 0);
  SmallVector<Value> first, second;
  for (auto [own, other] : llvm::zip(values, others)) {
    first.push_back(arith::SelectOp::create(builder, isFirst, own, other));
    second.push_back(arith::SelectOp::create(builder, isFirst, other, own));
  }
  return combine(builder, block, first, second);
}

} // namespace triton_metal
