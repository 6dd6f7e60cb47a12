#include "transforms/Passes.h"
#include "transforms/TTMScratch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMBROADCASTATOMICS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

void broadcast(Scratch &scratch, Operation *op, unsigned numSimdgroups) {
  Value result = op->getResult(0);
  auto layout = getLayout(result);
  bool isScalar = !layout;
  // A scalar is one element that every thread repeats.
  if (isScalar)
    layout = LinearLayout(ArrayRef<int64_t>{1}, {}, SmallVector<uint32_t>(kLaneBits, 0),
                          SmallVector<uint32_t>(llvm::Log2_32(numSimdgroups), 0));
  if (!layout->freeMask(InDim::Lane) && !layout->freeMask(InDim::Simdgroup))
    return;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto layoutAttr = LinearLayoutAttr::get(builder.getContext(), *layout);
  auto region = InFirstCopiesOp::create(builder, loc, result.getType(), layoutAttr);
  Value own = region.getResult(0), all = own;
  result.replaceAllUsesWith(own);
  builder.createBlock(&region.getBody());
  op->moveBefore(builder.getBlock(), builder.getBlock()->end());
  YieldOp::create(builder, loc, result);

  // The readers of today read what comes out.
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : own.getUses())
    uses.push_back(&use);
  builder.setInsertionPointAfter(region);
  if (isScalar)
    all = tt::SplatOp::create(builder, loc, RankedTensorType::get({1}, own.getType(), layoutAttr),
                              own);
  all = scratch.convert(builder, op, all, *layout, "broadcast");
  if (isScalar)
    all = tt::UnsplatOp::create(builder, loc, own.getType(), all);
  for (OpOperand *use : uses)
    use->set(all);
}

struct TTMBroadcastAtomicsPass : impl::TTMBroadcastAtomicsBase<TTMBroadcastAtomicsPass> {
  void runOnOperation() override {
    unsigned numSimdgroups = getNumSimdgroups(getOperation());
    bool changes = false;
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      SmallVector<Operation *> atomics;
      func.walk([&](Operation *op) {
        if (isa<AtomicRMWOp, AtomicCASOp>(op) && !op->use_empty())
          atomics.push_back(op);
      });
      if (atomics.empty() || !func.getBody().hasOneBlock())
        continue;
      changes = true;
      Scratch scratch(func);
      for (Operation *op : atomics)
        broadcast(scratch, op, numSimdgroups);
    }
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
