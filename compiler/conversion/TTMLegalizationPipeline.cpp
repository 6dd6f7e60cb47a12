#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace triton_metal {

void buildTTMLegalizationPipeline(OpPassManager &manager) {
  manager.addPass(createTTMCheckSupport());
  addStep(manager, createTTMSplitLoops());
  addStep(manager, createTTMLowerPointers());
  addStep(manager, createTTMUniformMasks());
  // Scans, reductions and atomics leave conversions behind, and tiles that leave those less room.
  addStep(manager, createTTMLowerScans());
  addStep(manager, createTTMFoldExchanges());
  addStep(manager, createTTMLowerReductions());
  addStep(manager, createTTMBroadcastAtomics());
  addStep(manager, createTTMLowerLayoutConversions());
}

void registerTTMLegalizationPipeline() {
  PassPipelineRegistration<>("ttm-legalization-pipeline",
                             "All passes from ttm with layouts to what msl can say, in their order",
                             buildTTMLegalizationPipeline);
}

} // namespace triton_metal
