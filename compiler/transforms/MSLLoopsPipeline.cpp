#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

using namespace mlir;

namespace triton_metal {

void buildMSLLoopsPipeline(OpPassManager &manager) {
  addStep(manager, createMSLFoldExchanges());
  addStep(manager, createMSLBroadcastConditions());
  addStep(manager, createMSLScalarize());
  addStep(manager, createMSLSplitReductions());
  addStep(manager, createMSLCarryNumbers());
  addStep(manager, createMSLFormTileLoops());
  addStep(manager, createMSLKeepHalves());
  addStep(manager, createMSLPlaceTiles());
  addStep(manager, createMSLLowerReductions());
  addStep(manager, createMSLLowerMma());
  addStep(manager, createMSLFormLoops());
  addStep(manager, createMSLLowerChunks());
  addCanonicalizer(manager);
  manager.addPass(createCSEPass());
  addStep(manager, createMSLFuseLoops());
  manager.addPass(createCSEPass());
  addStep(manager, createMSLFuseReductions());
  addVerified(manager, createMSLSingleSteps());
}

void registerMSLLoopsPipeline() {
  PassPipelineRegistration<>("msl-loops-pipeline", "All passes from tiles as values to loops",
                             buildMSLLoopsPipeline);
}

} // namespace triton_metal
