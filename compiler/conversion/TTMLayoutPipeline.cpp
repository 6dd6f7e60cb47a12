#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

void buildTTMLayoutPipeline(OpPassManager &manager, int numWarps) {
  ConvertTTToTTMOptions options;
  options.numWarps = numWarps;
  addStep(manager, createConvertTTToTTM(options));
  addStep(manager, createTTMCoalesce());
  addStep(manager, createTTMSpreadReductions());
  addStep(manager, createTTMAssignDotLayouts());
  addStep(manager, createTTMRemoveLayoutConversions());
  manager.addPass(createCSEPass());
  manager.addPass(createLoopInvariantCodeMotionPass());
  manager.addPass(createCSEPass());
}

namespace {
struct LayoutPipelineOptions : PassPipelineOptions<LayoutPipelineOptions> {
  Option<int> numWarps{*this, "num-warps", llvm::cl::desc("SIMD-groups of the threadgroup"),
                       llvm::cl::init(4)};
};
} // namespace

void registerTTMLayoutPipeline() {
  PassPipelineRegistration<LayoutPipelineOptions>(
      "ttm-layout-pipeline", "All passes from tt to ttm with layouts, in their order",
      [](OpPassManager &manager, const LayoutPipelineOptions &options) {
        buildTTMLayoutPipeline(manager, options.numWarps);
      });
}

} // namespace triton_metal
