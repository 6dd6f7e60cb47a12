#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Passes.h"
#include "transforms/TTMLookups.h"
#include "transforms/TTMScratch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMLOWERLAYOUTCONVERSIONS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// The value again in this layout, if all of its elements are one scalar; else null.
Value splatAgain(OpBuilder &builder, Value value, RankedTensorType type) {
  Operation *op = getElementSource(value);
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

struct TTMLowerLayoutConversionsPass
    : impl::TTMLowerLayoutConversionsBase<TTMLowerLayoutConversionsPass> {
  void runOnOperation() override {
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      SmallVector<Operation *> movements;
      func.walk([&](Operation *op) {
        if (auto store = dyn_cast<StoreTileOp>(op))
          separateParts(store);
        if (isa<ConvertLayoutOp, tt::GatherOp, tt::HistogramOp>(op))
          movements.push_back(op);
      });
      if (movements.empty() || !func.getBody().hasOneBlock())
        continue;
      Scratch scratch(func);
      for (Operation *op : movements) {
        if (!op->use_empty()) {
          Value lowered =
              llvm::TypeSwitch<Operation *, Value>(op)
                  .Case([&](tt::GatherOp gather) { return lowerGather(scratch, gather); })
                  .Case([&](tt::HistogramOp counts) { return lowerHistogram(scratch, counts); })
                  .Case([&](ConvertLayoutOp conversion) { return lower(scratch, conversion); });
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
