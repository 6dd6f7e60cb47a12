#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

using namespace mlir;

namespace triton_metal {

void buildTTPipeline(OpPassManager &manager, const Arithmetic &arithmetic) {
  // What the passes after this make for themselves is not approximated.
  if (!arithmetic.precise)
    addUnfolded(manager, createTTApproximate());
  // Functions with one block come first, because only then can a call inside of a loop be inlined.
  addUnfolded(manager, createTTLiftControlFlow());
  addUnfolded(manager, createTTInline());
  addUnfolded(manager, createTTRewriteDescriptors());
  addUnfolded(manager, createTTPrepareMessages());
  // Nothing after this knows floats of 8 bits.
  addUnfolded(manager, createTTDecomposeScaledDots());
  addUnfolded(manager, createTTEmulateFloats());
  // What functions do for each element is arithmetic on tiles from here on.
  addUnfolded(manager, createTTRegionsOnTiles());
  addUnfolded(manager, createTTLowerMessages());
  // This comes before anything folds, because MLIR folds undefined results to poison.
  addUnfolded(manager, createDefineArithmetic());
  addCanonicalizer(manager);
  addStep(manager, createTTCheckProgress());
  addStep(manager, createTTLegalizeAtomics());
  addStep(manager, createTTWidenCombine());
  addStep(manager, createTTReorderBroadcast());
  addStep(manager, createTTNarrowShapes());
  manager.addPass(createCSEPass());
  addStep(manager, createTTAccumulateDots());
  addStep(manager, createTTSplitPointers());
  // Offsets that do not change leave their loops here.
  addCanonicalizer(manager);
  addStep(manager, createTTNarrowIndices());
  addStep(manager, createTTReorderBroadcast());
  addCanonicalizer(manager);
  if (!arithmetic.precise)
    addStep(manager, createTTReciprocals());
  // Nothing folds constants that differ any more.
  addStep(manager, createTTExpandConstants());
  manager.addPass(createLoopInvariantCodeMotionPass());
  manager.addPass(createCSEPass());
  if (arithmetic.fused)
    addStep(manager, createTTFuseMultiplyAdd());
}

void registerTTPipeline() {
  PassPipelineRegistration<>("tt-pipeline", "All tt passes in their order",
                             [](OpPassManager &manager) { buildTTPipeline(manager); });
}

} // namespace triton_metal
