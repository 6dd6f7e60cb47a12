// Marks the arguments whose memory one step of a loop writes and a later step may read.

#include "analysis/AccessPlaces.h"
#include "dialect/msl/MSL.h"
#include "transforms/MarkCoherent.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLCOHERENTLOOPS
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

class CoherentLoops {
public:
  explicit CoherentLoops(KernelOp kernel) : kernel(kernel), origins(kernel) {}

  /// Returns whether an argument was marked.
  bool run() {
    kernel.walk([&](LoopLikeOpInterface loop) { visit(loop); });
    return changed;
  }

private:
  static bool isInDevice(const MemoryAccess &access) {
    return !access.pointer ||
           cast<PtrType>(access.pointer.getType()).getSpace() == AddressSpace::Device;
  }

  void visit(LoopLikeOpInterface loop) {
    // A block that a bound cuts is a loop of one step, and has no later one.
    if (loop->hasAttr(kAtMostOnceAttr))
      return;
    SmallVector<MemoryAccess> found, reads, writes;
    loop->walk([&](MemoryAccessOpInterface op) {
      // The operands of products are ordered by barriers.
      if (!isa<MmaOp>(op))
        op.getAccesses(found);
    });
    for (const MemoryAccess &access : found)
      if (isInDevice(access) && access.kind != MemoryAccess::Atomic)
        (access.kind == MemoryAccess::Read ? reads : writes).push_back(access);
    for (const MemoryAccess &write : writes)
      for (const MemoryAccess &read : reads)
        if (origins.mayOverlap(write.getOrigin(), read.getOrigin()) &&
            !isApart(write, read, loop)) {
          changed |= markCoherent(kernel, origins.get(write.getOrigin()));
          changed |= markCoherent(kernel, origins.get(read.getOrigin()));
        }
  }

  /// Whether no step reads what an earlier one has written.
  static bool isApart(const MemoryAccess &write, const MemoryAccess &read, Operation *loop) {
    auto counted = dyn_cast<scf::ForOp>(loop);
    if (!counted || !write.pointer || !read.pointer)
      return false;
    std::optional<Place> written = Place::get(write.pointer, write.offsets),
                         place = Place::get(read.pointer, read.offsets);
    return written && place && written->isDisjointFrom(*place, counted);
  }

  KernelOp kernel;
  PointerOrigins origins;
  bool changed = false;
};

struct MSLCoherentLoopsPass : impl::MSLCoherentLoopsBase<MSLCoherentLoopsPass> {
  void runOnOperation() override {
    // Before Metal 3.2 there is no other coherence than a threadgroup's.
    bool changed = false;
    if (TargetAttr::get(getOperation()).has(Feature::MemoryOrders))
      for (KernelOp kernel : getOperation().getOps<KernelOp>())
        changed |= CoherentLoops(kernel).run();
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
