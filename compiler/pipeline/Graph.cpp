#include "pipeline/Graph.h"

#include "conversion/GraphProgram.h"
#include "dialect/tt/Import.h"
#include "dialect/tt/TT.h"
#include "pipeline/Contexts.h"
#include "pipeline/Diagnostics.h"
#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

void buildGraphPipeline(OpPassManager &manager) {
  addUnfolded(manager, createTTLiftControlFlow());
  addUnfolded(manager, createTTInline());
  addUnfolded(manager, createTTRewriteDescriptors());
  addUnfolded(manager, createTTPrepareMessages());
  addUnfolded(manager, createTTDecomposeScaledDots());
  addUnfolded(manager, createTTEmulateFloats());
  addUnfolded(manager, createTTRegionsOnTiles());
  addUnfolded(manager, createDefineArithmetic());
  addCanonicalizer(manager);
  addStep(manager, createTTCheckProgress());
  addStep(manager, createTTWidenCombine());
  addStep(manager, createTTReorderBroadcast());
  manager.addPass(createCSEPass());
  addStep(manager, createTTSplitPointers());
  addCanonicalizer(manager);
  manager.addPass(createLoopInvariantCodeMotionPass());
  manager.addPass(createCSEPass());
}

void registerGraphPipeline() {
  PassPipelineRegistration<>("graph-pipeline",
                             "All passes from Triton IR to the program of an MLX graph",
                             [](OpPassManager &manager) { buildGraphPipeline(manager); });
}

FailureOr<std::string> graphProgram(StringRef ttir, StringRef name, std::string &diagnostics) {
  ContextLease lease;
  diagnostics.clear();
  ScopedDiagnosticHandler handler(lease.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      appendDiagnostic(diagnostics, diagnostic, "error");
    return success();
  });
  OwningOpRef<ModuleOp> module = tt::parseModule(ttir, name, lease.getContext());
  if (!module || failed(tt::checkModule(*module)) || failed(verify(*module)))
    return failure();
  auto build = [](OpPassManager &manager, const CompileOptions &) { buildGraphPipeline(manager); };
  if (failed(lease.getManagers().run(*module, build)) || failed(verify(*module)))
    return failure();
  return writeGraphProgram(*module);
}

} // namespace triton_metal
