#include "analysis/Uniformity.h"
#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLCHECKBARRIERS
#include "transforms/Passes.h.inc"

namespace {

struct MSLCheckBarriersPass : impl::MSLCheckBarriersBase<MSLCheckBarriersPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (msl::KernelOp kernel : getOperation().getOps<msl::KernelOp>()) {
      msl::Uniformity uniformity(kernel);
      WalkResult walked = kernel.walk([&](msl::BarrierOp barrier) {
        Operation *parting = uniformity.getParting(barrier);
        if (!parting)
          return WalkResult::advance();
        InFlightDiagnostic error =
            barrier.emitOpError("is where not all threads of the threadgroup come, and those that "
                                "do would wait for ever");
        error.attachNote(parting->getLoc()) << "threads part ways here";
        return WalkResult::interrupt();
      });
      if (walked.wasInterrupted())
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace triton_metal
