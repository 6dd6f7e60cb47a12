#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

using namespace mlir;

namespace triton_metal {

void buildMSLTextPipeline(OpPassManager &manager) {
  addStep(manager, createMSLUnrollHints());
  addStep(manager, createMSLInferOverflow());
  addStep(manager, createMSLFormVariables());
  addStep(manager, createMSLWaitBeforeTests());
  addStep(manager, createMSLExplicitTypes());
  // Values that the text writes twice must not be merged, so nothing folds after this pass.
  addUnfolded(manager, createMSLFormExpressions());
}

void registerMSLTextPipeline() {
  PassPipelineRegistration<>("msl-text-pipeline", "From msl's loop form to its text form",
                             [](OpPassManager &manager) { buildMSLTextPipeline(manager); });
}

} // namespace triton_metal
