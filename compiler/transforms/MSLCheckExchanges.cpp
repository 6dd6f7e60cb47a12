// Proves for each kernel that no lane is missing where lanes exchange numbers.

#include "dialect/msl/MSL.h"
#include "transforms/MSLLaneNumbers.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLCHECKEXCHANGES
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

struct MSLCheckExchangesPass : impl::MSLCheckExchangesBase<MSLCheckExchangesPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      LaneNumbers lanes;
      WalkResult walked = kernel.walk([&](Operation *exchange) {
        if (!crossesLanes(exchange))
          return WalkResult::advance();
        for (Operation *op = exchange->getParentOp(); op != kernel; op = op->getParentOp()) {
          auto branch = dyn_cast<scf::IfOp>(op);
          if (!branch || lanes.get(branch.getCondition()) != LaneNumbers::Kind::Lane)
            continue;
          InFlightDiagnostic error =
              exchange->emitOpError("exchanges numbers where not all lanes of a SIMD-group come");
          error.attachNote(branch.getLoc()) << "lanes part ways here";
          return WalkResult::interrupt();
        }
        return WalkResult::advance();
      });
      if (walked.wasInterrupted())
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace triton_metal
