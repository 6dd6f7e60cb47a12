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
      for (auto [index, use] : llvm::enumerate(msl::getMemoryUses(kernel)))
        if (isa<msl::PtrType>(kernel.getArgumentTypes()[index]) && !use.writes)
          kernel.setArgAttr(index, msl::kReadOnlyAttr, UnitAttr::get(&getContext()));
  }
};

} // namespace
} // namespace triton_metal
