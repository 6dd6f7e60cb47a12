#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

using namespace mlir;

namespace triton_metal {

void buildMSLLoopsPipeline(OpPassManager &manager) {
  addVerified(manager, createMSLFoldExchanges());
  addVerified(manager, createMSLScalarize());
  addVerified(manager, createMSLSplitReductions());
  addVerified(manager, createMSLCarryNumbers());
  addVerified(manager, createMSLFormTileLoops());
  addVerified(manager, createMSLPlaceTiles());
  addVerified(manager, createMSLLowerReductions());
  addVerified(manager, createMSLLowerMma());
  addVerified(manager, createMSLFormLoops());
  addVerified(manager, createMSLLowerChunks());
  addCanonicalizer(manager);
  manager.addPass(createCSEPass());
  addVerified(manager, createMSLFuseLoops());
  manager.addPass(createCSEPass());
  addVerified(manager, createMSLFuseReductions());
  addVerified(manager, createMSLSingleSteps());
}

void registerMSLLoopsPipeline() {
  PassPipelineRegistration<>("msl-loops-pipeline", "All passes from tiles as values to loops",
                             buildMSLLoopsPipeline);
}

} // namespace triton_metal
