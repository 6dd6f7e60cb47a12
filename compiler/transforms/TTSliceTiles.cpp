// Works on tiles in slices, one after another: where a thread would need more registers than it can
// have, or where the operands of products leave a core few threads.

#include "dialect/msl/MSL.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Dots.h"
#include "transforms/Passes.h"
#include "transforms/SliceChoice.h"
#include "transforms/TTSlicing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTSLICETILES
#include "transforms/Passes.h.inc"

namespace {

/// The most slices of one tile. Forgets which loops are over slices.
int64_t countSlices(tt::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (getSlices(loop) || getStepSlices(loop) > 1)
      loops.push_back(loop);
  });
  int64_t most = 1;
  for (scf::ForOp loop : loops) {
    int64_t slices = 1;
    for (; loop; loop = loop->getParentOfType<scf::ForOp>())
      slices *= std::max<int64_t>(getSlices(loop), 1) * getStepSlices(loop);
    most = std::max(most, slices);
  }
  for (scf::ForOp loop : loops) {
    loop->removeAttr(kSlicesAttr);
    loop->removeAttr(kStepSlicesAttr);
  }
  return most;
}

/// Whether rows are in slices: those of sums alone give something on.
bool hasRowSlices(tt::FuncOp kernel) {
  return kernel
      .walk([](scf::ForOp loop) {
        return getSlices(loop) && !loop.getNumResults() ? WalkResult::interrupt()
                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

bool hasProducts(tt::FuncOp kernel) {
  return kernel.walk([](tt::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

struct TTSliceTilesPass : impl::TTSliceTilesBase<TTSliceTilesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    tt::FuncOp kernel = getKernel(module);
    if (!kernel)
      return;
    Budget budget = Budget::of(module);
    bool isChosen = module->removeAttr(kChosenWarpsAttr) != nullptr;
    auto known = module->getAttrOfType<IntegerAttr>(kMostRegistersAttr);
    module->removeAttr(kMostRegistersAttr);
    int warps = readAttr(ttm::TTMDialect::getNumWarpsAttrName());
    int stages = readAttr(ttm::TTMDialect::getNumStagesAttrName());
    // Where one stage was chosen, the kernel has been weighed.
    bool isKnown = known && stages == 1 && SliceChoice::fits(known.getInt(), warps, budget);
    if ((isKnown && !hasProducts(kernel)) || hasTensorOperations(kernel, budget))
      return;
    SliceChoice choice(kernel, budget);
    std::optional<Candidate> found = choice.choose(warps, stages, isChosen);
    if (!found)
      return;
    const auto &[slices, expected] = *found;
    if (expected.warps != warps) {
      setAttr(ttm::TTMDialect::getNumWarpsAttrName(), expected.warps);
      setAttr(ttm::TTMDialect::getNumStagesAttrName(), expected.stages);
    }
    if (isChosen)
      module->setAttr(ttm::TTMDialect::getChoiceAttrName(),
                      StringAttr::get(&getContext(), expected.describe()));
    if (slices)
      replace(kernel, *found);
  }

private:
  void replace(tt::FuncOp kernel, const Candidate &candidate) {
    tt::FuncOp sliced = candidate.slices->take();
    if (hasRowSlices(sliced))
      getOperation()->setAttr(ttm::TTMDialect::getLacksRegistersAttrName(),
                              UnitAttr::get(&getContext()));
    setAttr(ttm::TTMDialect::getSlicesAttrName(), static_cast<int>(countSlices(sliced)));
    // What is sliced for registers has none left for what a second stage loads.
    if (candidate.expected.stages == 1)
      setAttr(ttm::TTMDialect::getNumStagesAttrName(), 1);
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(sliced);
    eliminateCommonSubExpressions(rewriter, dominance, sliced);
    kernel->getBlock()->getOperations().insert(kernel->getIterator(), sliced);
    kernel->erase();
  }

  void setAttr(StringRef name, int value) {
    getOperation()->setAttr(name, Builder(&getContext()).getI32IntegerAttr(value));
  }
  int readAttr(StringRef name) { return getOperation()->getAttrOfType<IntegerAttr>(name).getInt(); }

  /// Products on tensor operations need whole tiles, and no model knows of their registers.
  bool hasTensorOperations(tt::FuncOp kernel, const Budget &budget) {
    return kernel
        .walk([&](tt::DotOp dot) {
          const msl::MatrixInstruction *instruction = getInstruction(dot, budget);
          return instruction && instruction->inRegisters ? WalkResult::interrupt()
                                                         : WalkResult::advance();
        })
        .wasInterrupted();
  }
};

} // namespace
} // namespace triton_metal
