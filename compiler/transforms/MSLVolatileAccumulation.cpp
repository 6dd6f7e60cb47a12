// Makes the loads volatile that a loop accumulates, for targets that need it.

#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLVOLATILEACCUMULATION
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

/// Whether what the operation gives reaches a value that a loop around it carries, or memory that
/// the loop also reads.
bool isAccumulated(Operation *load, PointerOrigins &origins) {
  if (!load->getParentOfType<LoopLikeOpInterface>())
    return false;
  llvm::SetVector<Value> reached;
  reached.insert(load->result_begin(), load->result_end());
  for (unsigned index = 0; index < reached.size(); ++index)
    for (OpOperand &use : reached[index].getUses()) {
      Operation *user = use.getOwner();
      Operation *parent = user->getParentOp();
      if (user->hasTrait<OpTrait::IsTerminator>()) {
        if (isa<LoopLikeOpInterface>(parent))
          return true;
        // What a branch or a combination gives goes on.
        reached.insert(parent->result_begin(), parent->result_end());
        continue;
      }
      if (auto access = dyn_cast<MemoryAccessOpInterface>(user)) {
        SmallVector<MemoryAccess> accesses;
        access.getAccesses(accesses);
        for (const MemoryAccess &touched : accesses)
          if (touched.writes() && origins.mayOverlap(touched.getOrigin(), load->getOperand(0)))
            return true;
        // A product accumulates what it loads itself, a load what it is told where to.
        if (!isa<MmaOp>(user))
          continue;
      }
      reached.insert(user->result_begin(), user->result_end());
    }
  return false;
}

/// Whether a load reads device memory: one by addresses always does.
bool isFromDevice(LoadOp load) {
  return load.getBase().getType().getSpace() == AddressSpace::Device;
}
bool isFromDevice(LoadAddressOp) { return true; }

struct MSLVolatileAccumulationPass
    : impl::MSLVolatileAccumulationBase<MSLVolatileAccumulationPass> {
  void runOnOperation() override {
    bool changed = false;
    if (TargetAttr::get(getOperation()).has(Feature::VolatileAccumulation))
      for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
        PointerOrigins origins(kernel);
        auto visit = [&](auto load) {
          if (!isFromDevice(load) || !isAccumulated(load, origins))
            return;
          // A volatile access reads one element.
          load.setIsVolatile(true);
          load.setWidth(1);
          load.setMaskWidth(1);
          load.setMaskRun(1);
          load.setUnaligned(false);
          load.getFullMutable().clear();
          changed = true;
        };
        kernel.walk([&](Operation *op) {
          llvm::TypeSwitch<Operation *>(op).Case<LoadOp, LoadAddressOp>(visit);
        });
      }
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
