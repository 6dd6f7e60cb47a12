// Exchanges between registers that are written with exclusive ors: see Passes.td.

#include "analysis/CombineRegion.h"
#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLFOLDEXCHANGES
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// The one bit along which `op` is the exclusive or of two registers; 0 if it is something else.
int64_t getPairBit(ReduceRegistersOp op) {
  if (op.getNumOperands() != 1 || !llvm::isPowerOf2_64(op.getBits()))
    return 0;
  return isa_and_nonnull<arith::XOrIOp>(
             triton_metal::getCommutativeCombiner(op.getCombine().front()))
             ? int64_t(op.getBits())
             : 0;
}

/// The bit by which the registers that `pairs` combines differ, if `pairs` has for each register of
/// `tile` the exclusive or of it and of its partner; otherwise 0.
int64_t getExchangedBit(Value tile, Value pairs) {
  auto repeated = pairs.getDefiningOp<PermuteRegistersOp>();
  auto reduce = repeated ? repeated.getValue().getDefiningOp<ReduceRegistersOp>() : nullptr;
  int64_t bit = reduce ? getPairBit(reduce) : 0;
  if (!bit || reduce.getOperand(0) != tile || repeated.getOffset())
    return 0;
  // A pair's number has the bits of its registers' indices but one.
  for (auto [index, base] : llvm::enumerate(repeated.getBases())) {
    int64_t power = int64_t(1) << index;
    if (base != (power == bit ? 0 : power > bit ? power / 2 : power))
      return 0;
  }
  return bit;
}

void exchange(arith::XOrIOp op, Value tile, int64_t bit) {
  OpBuilder builder(op);
  SmallVector<int64_t> bases;
  for (int64_t base = 1; base < cast<VectorType>(tile.getType()).getNumElements(); base *= 2)
    bases.push_back(base);
  // The bits of floats need not become integers to change places.
  auto bits = tile.getDefiningOp<arith::BitcastOp>();
  Value source = bits ? bits.getIn() : tile;
  Value moved =
      PermuteRegistersOp::create(builder, op.getLoc(), source.getType(), source, bases, bit);
  if (bits) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (isa<arith::BitcastOp>(user) && user->getResult(0).getType() == source.getType()) {
        moved.setLoc(user->getLoc());
        user->getResult(0).replaceAllUsesWith(moved);
        user->erase();
      }
    if (!op->use_empty())
      moved = arith::BitcastOp::create(builder, op.getLoc(), tile.getType(), moved);
  }
  op->replaceAllUsesWith(ValueRange(moved));
  op->erase();
}

struct FoldExchanges : triton_metal::impl::MSLFoldExchangesBase<FoldExchanges> {
  void runOnOperation() override {
    bool changed = false;
    SmallVector<arith::XOrIOp> ops;
    getOperation().walk([&](arith::XOrIOp op) {
      if (isa<VectorType>(op.getType()))
        ops.push_back(op);
    });
    for (arith::XOrIOp op : ops)
      for (bool swap : {false, true}) {
        Value tile = op->getOperand(swap), pairs = op->getOperand(!swap);
        int64_t bit = getExchangedBit(tile, pairs);
        if (!bit)
          continue;
        Operation *repeated = pairs.getDefiningOp();
        Operation *reduce = repeated->getOperand(0).getDefiningOp();
        exchange(op, tile, bit);
        SmallVector<Operation *> unread{repeated, reduce};
        if (auto bits = tile.getDefiningOp<arith::BitcastOp>())
          unread.push_back(bits);
        for (Operation *other : unread)
          if (other->use_empty())
            other->erase();
        changed = true;
        break;
      }
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
