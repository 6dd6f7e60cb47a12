#include "transforms/ThreadConditions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace triton_metal::msl {

Value createIsOneOf(OpBuilder &builder, Location loc, const ThreadSet &threads,
                    unsigned numSimdgroups, llvm::function_ref<Value()> getLane,
                    llvm::function_ref<Value()> getSimdgroup) {
  auto constant = [&](uint32_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  Value condition;
  // The masked bits of a position, which has the bits `all`, are these.
  auto test = [&](llvm::function_ref<Value()> getPosition, uint32_t mask, uint32_t wanted,
                  uint32_t all) {
    if (!(mask &= all))
      return;
    Value bits = getPosition();
    if (mask != all)
      bits = arith::AndIOp::create(builder, loc, bits, constant(mask));
    Value equal =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, bits, constant(wanted));
    condition =
        condition ? arith::AndIOp::create(builder, loc, condition, equal).getResult() : equal;
  };
  test(getLane, threads.laneMask, threads.lanes, 31);
  test(getSimdgroup, threads.simdgroupMask, threads.simdgroups, numSimdgroups - 1);
  return condition;
}

} // namespace triton_metal::msl
