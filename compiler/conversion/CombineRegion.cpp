#include "conversion/CombineRegion.h"

#include "analysis/CombineRegion.h"
#include "transforms/InlineCombine.h"

using namespace mlir;

namespace triton_metal {

SmallVector<Value> combine(RegisterBuilder &builder, Block &block, ValueRange lhs, ValueRange rhs) {
  auto repeat = [&](Value scalar) {
    return builder.splat(scalar, cast<VectorType>(lhs[0].getType()).getNumElements());
  };
  return inlineCombine(builder, builder.getLoc(), block, lhs, rhs, repeat);
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
  Value isFirst = builder.isOneOf({.laneMask = 1u << laneBit});
  SmallVector<Value> first, second;
  for (auto [own, other] : llvm::zip(values, others)) {
    first.push_back(arith::SelectOp::create(builder, isFirst, own, other));
    second.push_back(arith::SelectOp::create(builder, isFirst, other, own));
  }
  return combine(builder, block, first, second);
}

} // namespace triton_metal
