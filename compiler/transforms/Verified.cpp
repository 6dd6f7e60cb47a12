#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "transforms/Pipelines.h"

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

void addVerified(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  manager.addPass(std::move(pass));
  manager.addPass(std::make_unique<VerifyPass>());
}

} // namespace triton_metal
