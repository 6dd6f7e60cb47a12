#include "transforms/Passes.h"
#include "transforms/TTMScratch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMBROADCASTATOMICS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

template <typename Atomic> void broadcast(Scratch &scratch, Atomic op, unsigned numSimdgroups) {
  Value result = op.getResult();
  auto layout = getLayout(result);
  if (layout && !layout->freeMask(InDim::Lane) && !layout->freeMask(InDim::Simdgroup))
    return;
  op.setFirstCopy(true);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Location loc = op.getLoc();
  // The readers of today read what comes out.
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : result.getUses())
    uses.push_back(&use);
  Value own = result;
  bool isScalar = !layout;
  if (isScalar) {
    // A scalar is one element that every thread repeats.
    layout = LinearLayout(ArrayRef<int64_t>{1}, {}, SmallVector<uint32_t>(kLaneBits, 0),
                          SmallVector<uint32_t>(llvm::Log2_32(numSimdgroups), 0));
    auto type = RankedTensorType::get({1}, result.getType(),
                                      LinearLayoutAttr::get(builder.getContext(), *layout));
    own = tt::SplatOp::create(builder, loc, type, result);
  }
  Value all = scratch.convert(builder, op, own, *layout, "broadcast");
  if (isScalar)
    all = tt::UnsplatOp::create(builder, loc, result.getType(), all);
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
        if (auto update = dyn_cast<AtomicRMWOp>(op))
          broadcast(scratch, update, numSimdgroups);
        else
          broadcast(scratch, cast<AtomicCASOp>(op), numSimdgroups);
    }
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
