// Makes one reduction for each range of register bits: see Passes.td.

#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLSPLITREDUCTIONS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// Creates a reduction of `values` over other bits with the combination of `op`.
static ReduceRegistersOp createLike(OpBuilder &builder, ReduceRegistersOp op, ValueRange values,
                                    uint64_t bits, TypeRange types) {
  auto result =
      ReduceRegistersOp::create(builder, op.getLoc(), types, values, static_cast<int64_t>(bits));
  IRMapping mapping;
  op.getCombine().cloneInto(&result.getCombine(), mapping);
  return result;
}

/// Reduces the highest range of bits first; null if there is only one range.
static ReduceRegistersOp split(ReduceRegistersOp op) {
  uint64_t bits = op.getBits();
  if (llvm::isShiftedMask_64(bits))
    return {};
  unsigned low = 63 - llvm::countl_zero(bits);
  while (low > 0 && (bits >> (low - 1) & 1))
    --low;
  uint64_t upper = bits >> low << low;
  SmallVector<Type> types;
  for (Value value : op.getOperands())
    types.push_back(VectorType::get(getNumRegisters(value.getType()) >> llvm::popcount(upper),
                                    getElementTypeOrSelf(value.getType())));
  OpBuilder builder(op);
  ReduceRegistersOp first = createLike(builder, op, op.getOperands(), upper, types);
  ReduceRegistersOp second =
      createLike(builder, op, first.getResults(), bits & ~upper, op.getResultTypes());
  op.replaceAllUsesWith(second.getResults());
  op.erase();
  return second;
}

struct SplitReductions : triton_metal::impl::MSLSplitReductionsBase<SplitReductions> {
  void runOnOperation() override {
    SmallVector<ReduceRegistersOp> reductions;
    getOperation().walk([&](ReduceRegistersOp op) { reductions.push_back(op); });
    if (reductions.empty())
      return markAllAnalysesPreserved();
    for (ReduceRegistersOp op : reductions) {
      if (op.getBits() == 0) {
        op.replaceAllUsesWith(op.getOperands());
        op.erase();
        continue;
      }
      while (op)
        op = split(op);
    }
  }
};

} // namespace
