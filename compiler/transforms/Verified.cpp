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

/// That the verifiers have run on an operation. It stands until a pass changes something.
struct Verified {
  explicit Verified(Operation *) {}
};

struct VerifyPass : PassWrapper<VerifyPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPass)

  StringRef getArgument() const final { return "verify"; }
  StringRef getDescription() const final { return "Runs the verifiers"; }
  void runOnOperation() final {
    if (!getCachedAnalysis<Verified>() && failed(verify(getOperation())))
      return signalPassFailure();
    (void)getAnalysis<Verified>();
    markAllAnalysesPreserved();
  }
};

} // namespace

void addVerified(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  // No pass may rely on what MLIR's passes have not done yet.
  static const bool stress = std::getenv("TRITON_METAL_STRESS");
  if (stress) {
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    manager.addPass(createCanonicalizerPass());
  }
  manager.addPass(std::move(pass));
  manager.addPass(std::make_unique<VerifyPass>());
  if (stress) {
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    manager.addPass(std::make_unique<VerifyPass>());
  }
}

void addUnfolded(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  manager.addPass(std::move(pass));
  manager.addPass(std::make_unique<VerifyPass>());
}

} // namespace triton_metal
