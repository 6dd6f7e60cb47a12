// Lets compilers see that all threads take the same way: see Passes.td.

#include "dialect/msl/MSL.h"
#include "transforms/MSLLaneNumbers.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLBROADCASTCONDITIONS
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

/// Whether threads meet in an operation: at a barrier, or where lanes exchange numbers.
bool meetsThreads(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<BarrierOp>(inner) || crossesLanes(inner) ? WalkResult::interrupt()
                                                            : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a number decides, by arithmetic on numbers, which threads come to where threads meet.
bool decidesWhoMeets(Value number) {
  return llvm::any_of(number.getUsers(), [](Operation *user) {
    if (isa<scf::ConditionOp>(user))
      return meetsThreads(user->getParentOp());
    if (user->getNumRegions())
      return isa<scf::IfOp, scf::ForOp, scf::IndexSwitchOp>(user) && meetsThreads(user);
    return user->getNumResults() == 1 && !isa<VectorType>(user->getResult(0).getType()) &&
           decidesWhoMeets(user->getResult(0));
  });
}

struct MSLBroadcastConditionsPass : impl::MSLBroadcastConditionsBase<MSLBroadcastConditionsPass> {
  void runOnOperation() override {
    LaneNumbers lanes;
    SmallVector<UniformOp> found;
    getOperation().walk([&](UniformOp uniform) {
      Type type = uniform.getType();
      bool isOfMetal = type.isIntOrFloat() && !type.isBF16() && !type.isInteger(1) &&
                       type.getIntOrFloatBitWidth() <= 32;
      if (isOfMetal && lanes.get(uniform.getValue()) == LaneNumbers::Kind::Exchanged &&
          decidesWhoMeets(uniform))
        found.push_back(uniform);
    });
    for (UniformOp uniform : found) {
      OpBuilder builder(uniform);
      uniform.getValueMutable().assign(
          SimdBroadcastFirstOp::create(builder, uniform.getLoc(), uniform.getValue()));
    }
  }
};

} // namespace
} // namespace triton_metal
