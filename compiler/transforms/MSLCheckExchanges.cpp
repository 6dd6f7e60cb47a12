// Proves for each kernel that no lane is missing where lanes exchange numbers.

#include "dialect/msl/MSL.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLCHECKEXCHANGES
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

/// Which numbers follow from the lane by arithmetic and accesses alone. What loops carry and
/// variables hold counts as the same in all lanes: this is a proof of defects, not of their
/// absence.
class LaneNumbers {
public:
  bool contains(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (auto it = known.find(value); it != known.end())
      return it->second;
    bool result = isa<LaneOp>(op);
    auto spread = dyn_cast<SpreadOpInterface>(op);
    if (!result && !spread && op->getNumRegions() == 0)
      result = llvm::any_of(op->getOperands(), [&](Value operand) { return contains(operand); });
    known[value] = result;
    return result;
  }

private:
  llvm::DenseMap<Value, bool> known;
};

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
          if (!branch || !lanes.contains(branch.getCondition()))
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
