#include "transforms/TTMAccessWidths.h"

#include "analysis/AxisInfo.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"

#include <limits>
#include <set>

using namespace mlir;

namespace triton_metal {

using namespace ttm;

/// The number of registers, from the first on, that are neighbours along the dimension.
static int64_t registersAlong(const LinearLayout &layout, unsigned dim) {
  int64_t count = 1;
  for (uint32_t basis : layout.getRegisterBases()) {
    if (count >= layout.getShape()[dim] || basis != uint32_t(count) << layout.dimShift(dim))
      break;
    count *= 2;
  }
  return count;
}

/// Whether `sum` stays below 2^31 whenever `other` does.
static bool isNoLarger(const GridSum &sum, const GridSum &other) {
  return sum.most <= other.most &&
         llvm::all_of(llvm::zip(sum.perProgram, other.perProgram),
                      [](auto factors) { return std::get<0>(factors) <= std::get<1>(factors); });
}

/// Whether a launch of two programs can meet a limit: a width is not worth one that none can. Loops
/// whose upper bound is not known have such limits.
static bool canBeMet(ArrayRef<GridSum> needs) {
  return llvm::all_of(needs, [](const GridSum &sum) {
    return llvm::all_of(sum.perProgram, [&](int64_t factor) {
      return factor == 0 || sum.most + factor < int64_t(1) << 31;
    });
  });
}

static void setGridLimits(ModuleOp module, const std::set<GridSum> &limits) {
  if (limits.empty())
    return;
  Builder builder(module.getContext());
  SmallVector<Attribute> sums;
  for (const GridSum &sum : limits)
    if (llvm::none_of(limits,
                      [&](const GridSum &other) { return other != sum && isNoLarger(sum, other); }))
      sums.push_back(builder.getDenseI64ArrayAttr(
          {sum.most, sum.perProgram[0], sum.perProgram[1], sum.perProgram[2]}));
  module->setAttr(TTMDialect::getGridLimitsAttrName(), builder.getArrayAttr(sums));
}

/// In groups of how many the elements of a mask, or of the values behind it, are equal: without
/// one, all are.
static int64_t getConstancy(Value tile, const AxisInfoAnalysis &analysis, unsigned dim) {
  return tile ? analysis.get(tile).constancy[dim] : std::numeric_limits<int64_t>::max();
}

DenseMap<Operation *, AccessWidth> findAccessWidths(ModuleOp module) {
  DenseMap<Operation *, AccessWidth> widths;
  std::optional<AxisInfoAnalysis> analysis;
  std::set<GridSum> limits;
  module.walk([&](Operation *op) {
    auto load = dyn_cast<tt::LoadOp>(op);
    auto store = dyn_cast<tt::StoreOp>(op);
    // A volatile access accesses one element at a time, as in the source.
    if ((!load && !store) || (load && load.getIsVolatile()))
      return;
    Value pointers = op->getOperand(0), mask = load ? load.getMask() : store.getMask();
    auto layout = ttm::getLayout(pointers);
    if (!layout)
      return;
    if (!analysis)
      analysis.emplace(module);
    AccessWidth access;
    AxisInfo info = analysis->get(pointers), maskInfo;
    if (mask)
      maskInfo = analysis->get(mask);
    if (!canBeMet(info.needs) || !canBeMet(maskInfo.needs))
      return;
    for (unsigned d = 0; d < layout->getRank(); ++d) {
      int64_t registers = registersAlong(*layout, d);
      int64_t along = std::min(registers, analysis->getAccessWidth(pointers, d));
      if (along <= access.width)
        continue;
      access.width = along;
      access.unaligned = along > analysis->getAlignedWidth(pointers, d);
      // Neighbours within a group of equal masks share one mask.
      access.maskWidth = mask ? std::min(along, maskInfo.constancy[d]) : 1;
      if (mask)
        access.maskRun = std::min(registers, std::max(maskInfo.runs[d], maskInfo.constancy[d]));
    }
    if (load && access.width == 1)
      for (unsigned d = 0; d < layout->getRank(); ++d)
        access.repeat =
            std::max(access.repeat, std::min({registersAlong(*layout, d), info.constancy[d],
                                              getConstancy(mask, *analysis, d),
                                              getConstancy(load.getOther(), *analysis, d)}));
    if (access.width > 1 || access.repeat > 1)
      limits.insert(info.needs.begin(), info.needs.end());
    if (access.maskWidth > 1 || access.maskRun > 1 || access.repeat > 1)
      limits.insert(maskInfo.needs.begin(), maskInfo.needs.end());
    widths[op] = access;
  });
  setGridLimits(module, limits);
  return widths;
}

} // namespace triton_metal
