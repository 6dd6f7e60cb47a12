#include "analysis/AxisInfo.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutInference.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Passes.h"

#include "llvm/ADT/SmallBitVector.h"

#include <map>

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMCOALESCE
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// A memory operation and the layout that suits it.
struct Access {
  Operation *op;
  LinearLayout::Shape shape;
  /// The dimensions, ordered by how many neighbours are consecutive in memory, the most first.
  SmallVector<unsigned> order;
  /// The number of neighbours that one thread accesses.
  int64_t perThread;
};

Access getAccess(Operation *op, const AxisInfoAnalysis &axes, unsigned numSimdgroups) {
  Value pointers = op->getOperand(0);
  auto type = cast<RankedTensorType>(pointers.getType());
  Access access{op, LinearLayout::Shape(type.getShape()), {}, 1};
  for (unsigned d = type.getRank(); d-- > 0;)
    access.order.push_back(d);
  AxisInfo info = axes.get(pointers);
  // By default the last dimension is the fastest. Equal addresses (constancy) do not count as
  // neighbours.
  llvm::sort(access.order, [&](unsigned a, unsigned b) {
    return info.contiguity[a] != info.contiguity[b] ? info.contiguity[a] > info.contiguity[b]
                                                    : a > b;
  });
  // An atomic accesses one element, so that neighbouring lanes access neighbours.
  if (type.getRank() > 0 && isa<tt::LoadOp, tt::StoreOp>(op)) {
    int64_t width = axes.getAccessWidth(pointers, access.order.front());
    int64_t threads = int64_t(numSimdgroups) * kSimdWidth;
    access.perThread = std::min(width, std::max<int64_t>(1, type.getNumElements() / threads));
  }
  return access;
}

struct TTMCoalescePass : impl::TTMCoalesceBase<TTMCoalescePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    unsigned numSimdgroups = getNumSimdgroups(module);
    AxisInfoAnalysis axes(module);
    SmallVector<Access> accesses;
    module.walk([&](Operation *op) {
      if (getLayoutRule(op) == LayoutRule::Memory &&
          isa<RankedTensorType>(op->getOperand(0).getType()))
        accesses.push_back(getAccess(op, axes, numSimdgroups));
    });
    // All accesses of one shape and order take as many elements for each thread as the widest of
    // them, because their values are combined.
    std::map<std::pair<LinearLayout::Shape, SmallVector<unsigned>>, int64_t> most;
    for (const Access &access : accesses) {
      int64_t &width = most[{access.shape, access.order}];
      width = std::max(width, access.perThread);
    }
    // Dimensions that are reduced are spread over SIMD-groups last, because a reduction over lanes
    // needs no barrier.
    std::map<LinearLayout::Shape, llvm::SmallBitVector> reduced;
    module.walk([&](Operation *op) {
      if (!isa<tt::ReduceOp, tt::ScanOp>(op))
        return;
      auto type = cast<RankedTensorType>(op->getOperand(0).getType());
      llvm::SmallBitVector &dims = reduced[LinearLayout::Shape(type.getShape())];
      dims.resize(type.getRank());
      dims.set(op->getAttrOfType<IntegerAttr>("axis").getInt());
    });
    for (const Access &access : accesses) {
      SmallVector<int64_t> perThread(access.shape.size(), 1);
      if (!access.order.empty())
        perThread[access.order.front()] = most[{access.shape, access.order}];
      SmallVector<unsigned> simdgroupOrder(access.order);
      if (auto it = reduced.find(access.shape); it != reduced.end())
        llvm::sort(simdgroupOrder, [&](unsigned a, unsigned b) {
          bool reducedA = it->second.test(a), reducedB = it->second.test(b);
          return reducedA != reducedB ? reducedB
                                      : llvm::find(access.order, a) < llvm::find(access.order, b);
        });
      LinearLayout layout = LinearLayout::blocked(access.shape, perThread, access.order,
                                                  numSimdgroups, simdgroupOrder);
      setLayouts(access.op, layout, layout);
    }
    if (failed(verifyLayouts(module)))
      signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
