#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLMARKREADONLY
#include "transforms/Passes.h.inc"

namespace {

struct MSLMarkReadOnlyPass : impl::MSLMarkReadOnlyBase<MSLMarkReadOnlyPass> {
  void runOnOperation() override {
    for (msl::KernelOp kernel : getOperation().getOps<msl::KernelOp>())
      mark(kernel);
  }

private:
  static void mark(msl::KernelOp kernel) {
    msl::PointerOrigins origins(kernel);
    msl::Origins written;
    SmallVector<msl::MemoryAccess> accesses;
    kernel.walk([&](msl::MemoryAccessOpInterface op) { op.getAccesses(accesses); });
    for (const msl::MemoryAccess &access : accesses)
      if (access.writes()) {
        const msl::Origins &from = origins.get(access.getOrigin());
        written.isUnknown |= from.isUnknown;
        written.arguments.insert_range(from.arguments);
      }
    for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
      if (isa<msl::PtrType>(type) && !written.isUnknown && !written.arguments.contains(index))
        kernel.setArgAttr(index, msl::kReadOnlyAttr, UnitAttr::get(kernel.getContext()));
  }
};

} // namespace
} // namespace triton_metal
