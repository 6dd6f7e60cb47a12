#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Passes.h"
#include "transforms/TTMScratch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMLOWERLAYOUTCONVERSIONS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// The value again in this layout, if all of its elements are one scalar; else null.
Value splatAgain(OpBuilder &builder, Value value, RankedTensorType type) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp,
                         ConvertLayoutOp>(op))
    op = op->getOperand(0).getDefiningOp();
  DenseElementsAttr constant;
  if (auto splat = dyn_cast_or_null<tt::SplatOp>(op))
    return tt::SplatOp::create(builder, value.getLoc(), type, splat.getSrc());
  if (op && matchPattern(op, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(builder, value.getLoc(), constant.resizeSplat(type));
  return {};
}

Value lower(Scratch &scratch, ConvertLayoutOp op) {
  OpBuilder builder(op);
  if (Value splat = splatAgain(builder, op.getSrc(), op.getType()))
    return splat;
  LinearLayout to = *getLayout(op.getResult());
  LayoutConversion conversion(*getLayout(op.getSrc()), to);
  switch (conversion.kind) {
  case LayoutConversion::Kind::Identity:
  case LayoutConversion::Kind::Registers:
    return op;
  case LayoutConversion::Kind::Simdgroup:
    if (conversion.isShuffle())
      return ShuffleOp::create(builder, op.getLoc(), op.getType(), op.getSrc());
    break;
  case LayoutConversion::Kind::Threadgroup:
    break;
  }
  return scratch.convert(builder, op, op.getSrc(), to, "exchange");
}

/// Whether each element of the source that an index may choose is in the index's SIMD-group, in the
/// same register of some lane.
bool isWithinSimdgroups(tt::GatherOp op) {
  LinearLayout source = *getLayout(op.getSrc()), result = *getLayout(op.getResult());
  unsigned axis = op.getAxis();
  auto from = source.sliceDim(axis), to = result.sliceDim(axis);
  if (!from || !to || !source.isPermutationAlong(axis) || source.bitsAlong(InDim::Register, axis) ||
      source.bitsAlong(InDim::Simdgroup, axis))
    return false;
  LayoutConversion others(*from, *to);
  auto choosesRegister = [](const HardwareIndex &place) { return place.reg != 0; };
  return others.kind != LayoutConversion::Kind::Threadgroup &&
         llvm::none_of(others.lane, choosesRegister) &&
         llvm::none_of(others.simdgroup, choosesRegister);
}

Value lower(Scratch &scratch, tt::GatherOp op) {
  if (isWithinSimdgroups(op))
    return op;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value source = toStorage(builder, loc, op.getSrc());
  auto type = cast<RankedTensorType>(source.getType());
  Value tile = scratch.allocate(TileType::get(builder.getContext(), type.getShape(),
                                              type.getElementType(), /*rowPad=*/0, /*slots=*/1),
                                "gathered");
  StoreTileOp::create(builder, loc, source, tile, Value(), DenseI64ArrayAttr());
  // No index is negative.
  Value indices = op.getIndices();
  Type i32 = cast<RankedTensorType>(indices.getType()).clone(builder.getI32Type());
  unsigned width = getElementTypeOrSelf(indices.getType()).getIntOrFloatBitWidth();
  if (width < 32)
    indices = arith::ExtUIOp::create(builder, loc, i32, indices);
  else if (width > 32)
    indices = arith::TruncIOp::create(builder, loc, i32, indices);
  auto result = cast<RankedTensorType>(op.getType()).clone(type.getElementType());
  Value gathered = GatherTileOp::create(builder, loc, result, tile, indices, op.getAxis());
  return fromStorage(builder, loc, gathered, getElementTypeOrSelf(op.getType()));
}

struct TTMLowerLayoutConversionsPass
    : impl::TTMLowerLayoutConversionsBase<TTMLowerLayoutConversionsPass> {
  void runOnOperation() override {
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      SmallVector<Operation *> movements;
      func.walk([&](Operation *op) {
        if (auto store = dyn_cast<StoreTileOp>(op))
          separateParts(store);
        if (isa<ConvertLayoutOp, tt::GatherOp>(op))
          movements.push_back(op);
      });
      if (movements.empty() || !func.getBody().hasOneBlock())
        continue;
      Scratch scratch(func);
      for (Operation *op : movements) {
        if (!op->use_empty()) {
          auto gather = dyn_cast<tt::GatherOp>(op);
          Value lowered =
              gather ? lower(scratch, gather) : lower(scratch, cast<ConvertLayoutOp>(op));
          if (lowered == op->getResult(0))
            continue;
          op->getResult(0).replaceAllUsesWith(lowered);
        }
        op->erase();
      }
    }
  }

private:
  /// A store of a part takes a layout in which a register or thread is in the part or not.
  static void separateParts(StoreTileOp store) {
    LinearLayout layout = *getLayout(store.getSrc());
    if (!store.getOffsets() || layout.isPermutation())
      return;
    OpBuilder builder(store);
    store.getSrcMutable().assign(
        convertLayout(builder, store.getSrc(),
                      LinearLayout::defaultBlocked(layout.getShape(), layout.getNumSimdgroups())));
  }
};

} // namespace
} // namespace triton_metal
