#include "analysis/AxisInfo.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Passes.h"

#include <set>

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

/// Whether a sum stays below 2^31 wherever the other does.
bool isNoLarger(const GridSum &sum, const GridSum &other) {
  return sum.most <= other.most &&
         llvm::all_of(llvm::zip(sum.perProgram, other.perProgram),
                      [](auto factors) { return std::get<0>(factors) <= std::get<1>(factors); });
}

struct TTMAnnotateAccessesPass : impl::TTMAnnotateAccessesBase<TTMAnnotateAccessesPass> {
  void runOnOperation() override {
    AxisInfoAnalysis axes(getOperation());
    Builder builder(&getContext());
    std::set<GridSum> limits;
    getOperation().walk([&](Operation *op) {
      if (!isa<tt::LoadOp, tt::StoreOp>(op))
        return;
      Value pointers = op->getOperand(0);
      auto layout = getLayout(pointers);
      if (!layout)
        return;
      // A volatile access is one of the source's elements.
      auto load = dyn_cast<tt::LoadOp>(op);
      bool isVolatile = load && load.getIsVolatile();
      int64_t width = 1, maskWidth = 1;
      AxisInfo info = axes.get(pointers), maskInfo;
      Value mask =
          isa<tt::LoadOp>(op) ? cast<tt::LoadOp>(op).getMask() : cast<tt::StoreOp>(op).getMask();
      if (mask)
        maskInfo = axes.get(mask);
      for (unsigned d = 0; d < layout->getRank() && !isVolatile; ++d) {
        int64_t registers = registersAlong(*layout, d);
        int64_t along = std::min(registers, axes.getAccessWidth(pointers, d));
        if (along <= width)
          continue;
        width = along;
        // All groups that lie within one of equal masks have one mask.
        maskWidth = mask ? std::min(width, maskInfo.constancy[d]) : width;
      }
      if (width > 1)
        limits.insert(info.needs.begin(), info.needs.end());
      if (maskWidth > 1)
        limits.insert(maskInfo.needs.begin(), maskInfo.needs.end());
      op->setAttr(TTMDialect::getWidthAttrName(), builder.getI32IntegerAttr(width));
      op->setAttr(TTMDialect::getMaskWidthAttrName(), builder.getI32IntegerAttr(maskWidth));
    });
    if (limits.empty())
      return;
    SmallVector<Attribute> sums;
    for (const GridSum &sum : limits)
      if (llvm::none_of(
              limits, [&](const GridSum &other) { return other != sum && isNoLarger(sum, other); }))
        sums.push_back(builder.getDenseI64ArrayAttr(
            {sum.most, sum.perProgram[0], sum.perProgram[1], sum.perProgram[2]}));
    getOperation()->setAttr(TTMDialect::getGridLimitsAttrName(), builder.getArrayAttr(sums));
  }
};

} // namespace
} // namespace triton_metal
