// Barriers in front of the tests of loops over matrices: see MSLTextPasses.td.

#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace triton_metal::msl;

namespace triton_metal {

#define GEN_PASS_DEF_MSLWAITBEFORETESTS
#include "transforms/Passes.h.inc"

namespace {

/// Whether an operation touches nothing that other threads see. Reads of device memory are not
/// among them: they had better be on their way while threads wait.
bool isPrivate(Operation &op) {
  return isa<GetOp, SetOp, VarOp, FillOp>(op) || isMemoryEffectFree(&op);
}

/// The barriers of which each way through a block meets one before anything that other threads see.
/// Empty if there is a way with none, or if they order different memory.
SmallVector<BarrierOp> firstBarriers(Block &block) {
  for (Operation &op : block) {
    if (auto barrier = dyn_cast<BarrierOp>(op))
      return {barrier};
    if (isPrivate(op))
      continue;
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch || !branch.elseBlock())
      return {};
    SmallVector<BarrierOp> all = firstBarriers(*branch.thenBlock());
    SmallVector<BarrierOp> others = firstBarriers(*branch.elseBlock());
    if (all.empty() || others.empty() || all.front().getDevice() != others.front().getDevice())
      return {};
    all.append(others);
    return all;
  }
  return {};
}

/// Whether a loop adds products up, by itself or in loops that are unrolled.
bool multipliesMatrices(msl::ForOp loop) {
  return loop.getBody()
      .walk<WalkOrder::PreOrder>([](Operation *op) {
        if (isa<MultiplyAccumulateOp>(op))
          return WalkResult::interrupt();
        return isa<msl::ForOp, scf::WhileOp>(op) ? WalkResult::skip() : WalkResult::advance();
      })
      .wasInterrupted();
}

void moveBarrier(msl::ForOp loop) {
  if (matchPattern(loop.getLower(), m_Constant()) && matchPattern(loop.getUpper(), m_Constant()))
    return;
  if (!multipliesMatrices(loop))
    return;
  SmallVector<BarrierOp> barriers = firstBarriers(loop.getBody().front());
  if (barriers.empty())
    return;
  loop.setWaits(true);
  loop.setDevice(barriers.front().getDevice());
  for (BarrierOp barrier : barriers)
    barrier.erase();
  // Behind the last test, all threads have just waited.
  for (Operation &op : llvm::make_range(std::next(loop->getIterator()), loop->getBlock()->end())) {
    if (auto barrier = dyn_cast<BarrierOp>(op)) {
      if (!barrier.getDevice() || loop.getDevice())
        barrier.erase();
      return;
    }
    if (!isPrivate(op))
      return;
  }
}

struct MSLWaitBeforeTestsPass : impl::MSLWaitBeforeTestsBase<MSLWaitBeforeTestsPass> {
  void runOnOperation() override {
    // A barrier behind a loop may go, so that nothing is changed during a walk.
    SmallVector<msl::ForOp> loops;
    getOperation()->walk([&](msl::ForOp loop) { loops.push_back(loop); });
    llvm::for_each(loops, moveBarrier);
  }
};

} // namespace

} // namespace triton_metal
