#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Passes.h"
#include "transforms/ThreadChoice.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTCHOOSETHREADS
#include "transforms/Passes.h.inc"

namespace {

struct TTChooseThreadsPass : impl::TTChooseThreadsBase<TTChooseThreadsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(&getContext());
    int warps = numWarps, stages = numStages;
    if (!warps || !stages) {
      // The functions that a kernel calls have become part of it.
      if (tt::FuncOp kernel = getKernel(module)) {
        if (!warps)
          module->setAttr(kChosenWarpsAttr, builder.getUnitAttr());
        ThreadChoice choice = chooseThreads(kernel, Budget::of(module), warps, stages);
        warps = choice.warps;
        stages = choice.stages;
        module->setAttr(ttm::TTMDialect::getChoiceAttrName(),
                        builder.getStringAttr(choice.describe()));
        if (choice.fitsMemory(Budget::of(module)))
          module->setAttr(kMostRegistersAttr, builder.getI64IntegerAttr(choice.mostRegisters));
      }
    }
    module->setAttr(ttm::TTMDialect::getNumWarpsAttrName(),
                    builder.getI32IntegerAttr(warps ? warps : 1));
    module->setAttr(ttm::TTMDialect::getNumStagesAttrName(),
                    builder.getI32IntegerAttr(stages ? stages : 1));
  }
};

} // namespace
} // namespace triton_metal
