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

/// Whether a tile of conditions, or what is made of it by moves and boolean operations, has no use
/// but as a mask of loads and stores.
static bool isOnlyMask(Value condition, unsigned depth = 0) {
  return depth < 8 && llvm::all_of(
                          condition.getUsers(),
                          [&](Operation *user) {
                            if (isa<tt::LoadOp, tt::StoreOp>(user))
                              return true;
                            return isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, tt::BroadcastOp,
                                       tt::ExpandDimsOp, ConvertLayoutOp>(user) &&
                                   isOnlyMask(user->getResult(0), depth + 1);
                          });
}

namespace {

class TileFactsFinder {
public:
  explicit TileFactsFinder(ModuleOp module) : module(module) {}

  TileFacts find();

private:
  void visitAccess(Operation *op, Value pointers, Value mask, Value other);
  void visitCondition(arith::CmpIOp op);
  bool isMetByAccesses(ArrayRef<GridSum> needs) const;
  AxisInfoAnalysis &getAnalysis() {
    if (!analysis)
      analysis.emplace(module);
    return *analysis;
  }

  ModuleOp module;
  std::optional<AxisInfoAnalysis> analysis;
  std::set<GridSum> limits;
  SmallVector<std::pair<arith::CmpIOp, AxisInfo>, 0> conditions;
  TileFacts facts;
};

void TileFactsFinder::visitAccess(Operation *op, Value pointers, Value mask, Value other) {
  auto layout = ttm::getLayout(pointers);
  if (!layout)
    return;
  AxisInfoAnalysis &analysis = getAnalysis();
  AccessWidth access;
  AxisInfo info = analysis.get(pointers), maskInfo;
  if (mask)
    maskInfo = analysis.get(mask);
  if (!canBeMet(info.needs) || !canBeMet(maskInfo.needs))
    return;
  for (unsigned d = 0; d < layout->getRank(); ++d) {
    int64_t registers = registersAlong(*layout, d);
    int64_t along = std::min(registers, analysis.getAccessWidth(pointers, d));
    if (along <= access.width)
      continue;
    access.width = along;
    access.unaligned = along > analysis.getAlignedWidth(pointers, d);
    // Neighbours within a group of equal masks share one mask.
    access.maskWidth = mask ? std::min(along, maskInfo.constancy[d]) : 1;
    if (mask)
      access.maskRun = std::min(registers, std::max(maskInfo.runs[d], maskInfo.constancy[d]));
  }
  if (isa<tt::LoadOp>(op) && access.width == 1)
    for (unsigned d = 0; d < layout->getRank(); ++d)
      access.repeat =
          std::max(access.repeat,
                   std::min({registersAlong(*layout, d), info.constancy[d],
                             getConstancy(mask, analysis, d), getConstancy(other, analysis, d)}));
  if (access.width > 1 || access.repeat > 1)
    limits.insert(info.needs.begin(), info.needs.end());
  if (access.maskWidth > 1 || access.maskRun > 1 || access.repeat > 1)
    limits.insert(maskInfo.needs.begin(), maskInfo.needs.end());
  facts.widths[op] = access;
}

void TileFactsFinder::visitCondition(arith::CmpIOp op) {
  auto layout = ttm::getLayout(op.getResult());
  if (!layout || layout->getNumRegisters() == 1 || isOnlyMask(op.getResult()))
    return;
  AxisInfo info = getAnalysis().get(op.getResult());
  if (layout->equalRegisters(info.constancy))
    conditions.emplace_back(op, std::move(info));
}

/// Whether every launch that meets the limits of accesses meets these.
bool TileFactsFinder::isMetByAccesses(ArrayRef<GridSum> needs) const {
  return llvm::all_of(needs, [&](const GridSum &sum) {
    return llvm::any_of(limits, [&](const GridSum &limit) { return isNoLarger(sum, limit); });
  });
}

TileFacts TileFactsFinder::find() {
  module.walk([&](Operation *op) {
    // A volatile access accesses one element at a time, as in the source.
    if (auto load = dyn_cast<tt::LoadOp>(op)) {
      if (!load.getIsVolatile())
        visitAccess(op, load.getPtr(), load.getMask(), load.getOther());
    } else if (auto store = dyn_cast<tt::StoreOp>(op)) {
      visitAccess(op, store.getPtr(), store.getMask(), Value());
    } else if (auto condition = dyn_cast<arith::CmpIOp>(op)) {
      visitCondition(condition);
    }
  });
  setGridLimits(module, limits);
  // Fewer comparisons are not worth a limit of their own.
  for (auto &[op, info] : conditions)
    if (isMetByAccesses(info.needs))
      facts.conditions.emplace_back(op, SmallVector<int64_t>(ArrayRef<int64_t>(info.constancy)));
  return std::move(facts);
}

} // namespace

TileFacts findTileFacts(ModuleOp module) { return TileFactsFinder(module).find(); }

} // namespace triton_metal
