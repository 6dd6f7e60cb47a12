#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "transforms/Pipelines.h"

#include <cstdlib>

using namespace mlir;

namespace triton_metal {

namespace {

struct VerifyPass : PassWrapper<VerifyPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPass)

  StringRef getArgument() const final { return "verify"; }
  StringRef getDescription() const final { return "Runs the verifiers"; }
  void runOnOperation() final {
    if (failed(verify(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

/// All that MLIR's passes may do to a module at any time.
static void addFolding(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createRemoveDeadValuesPass());
  manager.addPass(createSymbolDCEPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(std::make_unique<VerifyPass>());
}

void addVerified(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  // No pass may rely on what MLIR's passes have not done yet.
  static const bool stress = std::getenv("TRITON_METAL_STRESS");
  if (stress)
    addFolding(manager);
  manager.addPass(std::move(pass));
  manager.addPass(std::make_unique<VerifyPass>());
  if (stress)
    addFolding(manager);
}

void addUnfolded(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  manager.addPass(std::move(pass));
  manager.addPass(std::make_unique<VerifyPass>());
}

} // namespace triton_metal
