#include "analysis/AxisInfo.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMANNOTATEACCESSES
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// How many registers, from the first on, are neighbours along the dimension.
int64_t registersAlong(const LinearLayout &layout, unsigned dim) {
  int64_t count = 1;
  for (uint32_t basis : layout.getRegisterBases()) {
    if (count >= layout.getShape()[dim] || basis != uint32_t(count) << layout.dimShift(dim))
      break;
    count *= 2;
  }
  return count;
}

struct TTMAnnotateAccessesPass : impl::TTMAnnotateAccessesBase<TTMAnnotateAccessesPass> {
  void runOnOperation() override {
    AxisInfoAnalysis axes(getOperation());
    Builder builder(&getContext());
    getOperation().walk([&](Operation *op) {
      if (!isa<tt::LoadOp, tt::StoreOp>(op))
        return;
      Value pointers = op->getOperand(0);
      auto layout = getLayout(pointers);
      if (!layout)
        return;
      int64_t width = 1, maskWidth = 1;
      Value mask =
          isa<tt::LoadOp>(op) ? cast<tt::LoadOp>(op).getMask() : cast<tt::StoreOp>(op).getMask();
      for (unsigned d = 0; d < layout->getRank(); ++d) {
        int64_t registers = registersAlong(*layout, d);
        int64_t along = std::min(registers, axes.getAccessWidth(pointers, d));
        if (along <= width)
          continue;
        width = along;
        // All groups that lie within one of equal masks have one mask.
        maskWidth = mask ? std::min(width, axes.get(mask).constancy[d]) : width;
      }
      op->setAttr(TTMDialect::getWidthAttrName(), builder.getI32IntegerAttr(width));
      op->setAttr(TTMDialect::getMaskWidthAttrName(), builder.getI32IntegerAttr(maskWidth));
    });
  }
};

} // namespace
} // namespace triton_metal
