// Exchanges between SIMD-groups that are written with exclusive ors: see TTMPasses.td.

#include "analysis/CombineRegion.h"
#include "dialect/msl/ScalarTypes.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Passes.h"
#include "transforms/TTMScratch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMFOLDEXCHANGES
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// The bit of the row-major index along which `op` is the exclusive or of the elements of two
/// SIMD-groups; 0 if it is something else.
uint32_t getPairBit(tt::ReduceOp op) {
  if (op.getSrcs().size() != 1 ||
      !isa_and_nonnull<arith::XOrIOp>(getCommutativeCombiner(op.getCombineOp().front())))
    return 0;
  LinearLayout layout = *getLayout(op.getSrcs()[0]);
  unsigned axis = op.getAxis();
  uint32_t bit = layout.dimMask(axis);
  bool isBetweenSimdgroups = layout.getShape()[axis] == 2 && layout.isPermutation() &&
                             llvm::is_contained(layout.getSimdgroupBases(), bit);
  return isBetweenSimdgroups ? bit : 0;
}

/// The reduction, if `pairs` repeats its results along its axis: each element of the reduced tile
/// meets the exclusive or of itself and of its partner.
tt::ReduceOp getRepeated(Value pairs) {
  auto broadcast = pairs.getDefiningOp<tt::BroadcastOp>();
  if (!broadcast)
    return {};
  SmallVector<int64_t> kept(broadcast.getType().getShape());
  auto source = broadcast.getSrc();
  // Dimensions of size 1 are put in; other elements stay in their places.
  Operation *op = source.getDefiningOp();
  while (isa_and_nonnull<tt::ExpandDimsOp, tt::ReshapeOp, ConvertLayoutOp>(op)) {
    if (auto reshaped = dyn_cast<tt::ReshapeOp>(op); reshaped && reshaped.getAllowReorder())
      return {};
    op = op->getOperand(0).getDefiningOp();
  }
  auto reduce = dyn_cast_or_null<tt::ReduceOp>(op);
  if (!reduce || reduce.getAxis() >= kept.size())
    return {};
  kept[reduce.getAxis()] = 1;
  return source.getType().getShape() == ArrayRef(kept) ? reduce : tt::ReduceOp();
}

/// All elements through a tile, from which each thread reads those of the SIMD-group that is its
/// partner.
Value exchange(OpBuilder &builder, Scratch &scratch, tt::ReduceOp reduce, uint32_t bit) {
  Location loc = reduce.getLoc();
  Value value = reduce.getSrcs()[0];
  auto type = cast<RankedTensorType>(value.getType());
  Value stored = reshape(builder, loc, toStorage(builder, loc, value), {type.getNumElements()});
  auto flat = cast<RankedTensorType>(stored.getType());
  Value tile = scratch.allocate(
      TileType::get(builder.getContext(), flat.getShape(), flat.getElementType(), 0, 1), "partial");
  StoreTileOp::create(builder, loc, stored, tile, Value(), DenseI64ArrayAttr());
  Value read =
      LoadTileOp::create(builder, loc, flat, tile, Value(), Value(), Value(), Value(), bit);
  return fromStorage(builder, loc, reshape(builder, loc, read, type.getShape()),
                     type.getElementType());
}

struct TTMFoldExchangesPass : impl::TTMFoldExchangesBase<TTMFoldExchangesPass> {
  void runOnOperation() override {
    bool changed = false;
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      SmallVector<arith::XOrIOp> ops;
      func.walk([&](arith::XOrIOp op) {
        if (isa<RankedTensorType>(op.getType()))
          ops.push_back(op);
      });
      std::optional<Scratch> scratch;
      for (arith::XOrIOp op : ops)
        changed |= fold(func, scratch, op);
    }
    if (!changed)
      markAllAnalysesPreserved();
  }

  static bool fold(tt::FuncOp func, std::optional<Scratch> &scratch, arith::XOrIOp op) {
    for (bool swap : {false, true}) {
      Value tile = op->getOperand(swap), pairs = op->getOperand(!swap);
      tt::ReduceOp reduce = getRepeated(pairs);
      // Both are in one block: a tile is passed on at the place of the reduction.
      if (!reduce || reduce.getSrcs()[0] != tile || reduce->getBlock() != op->getBlock())
        continue;
      uint32_t bit = getPairBit(reduce);
      if (!bit)
        continue;
      if (!scratch)
        scratch.emplace(func);
      auto type = cast<RankedTensorType>(tile.getType());
      Type storage = type.getElementType().isInteger(1) ? IntegerType::get(op.getContext(), 8)
                                                        : type.getElementType();
      if (type.getNumElements() * msl::getElementBytes(storage) > scratch->freeBytes(reduce))
        continue;
      OpBuilder builder(reduce);
      op->replaceAllUsesWith(ValueRange(exchange(builder, *scratch, reduce, bit)));
      eraseIfUnread(op);
      return true;
    }
    return false;
  }

  /// Erases an operation and what was computed for it alone.
  static void eraseIfUnread(Operation *op) {
    if (!op->use_empty() || !isMemoryEffectFree(op))
      return;
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      if (Operation *defining = operand.getDefiningOp();
          isa_and_nonnull<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, ConvertLayoutOp,
                          tt::ReduceOp>(defining))
        eraseIfUnread(defining);
  }
};

} // namespace
} // namespace triton_metal
