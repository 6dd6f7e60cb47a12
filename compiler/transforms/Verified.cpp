#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "transforms/Pipelines.h"

#include <cstdlib>
#include <optional>

using namespace mlir;

namespace triton_metal {

namespace {

/// A number that changes whenever anything changes that a verifier looks at. It takes a tenth of the
/// time that verifiers take.
class Fingerprint {
public:
  explicit Fingerprint(Operation *root) {
    root->walk<WalkOrder::PreOrder>([&](Operation *op) { add(op); });
  }
  bool operator==(const Fingerprint &) const = default;

private:
  void add(const void *pointer) { add(uint64_t(reinterpret_cast<uintptr_t>(pointer))); }
  void add(uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    state ^= state >> 29;
  }
  void add(Operation *op) {
    add(static_cast<const void *>(op));
    add(op->getName().getAsOpaquePointer());
    add(op->getRawDictionaryAttrs().getAsOpaquePointer());
    add(uint64_t(size_t(op->hashProperties())));
    add(static_cast<const void *>(op->getBlock()));
    for (Value operand : op->getOperands())
      add(operand.getAsOpaquePointer());
    for (Type type : op->getResultTypes())
      add(type.getAsOpaquePointer());
    for (Block *successor : op->getSuccessors())
      add(static_cast<const void *>(successor));
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        add(static_cast<const void *>(&block));
        for (BlockArgument argument : block.getArguments())
          add(argument.getType().getAsOpaquePointer());
      }
  }

  uint64_t state = 0;
};

/// What this thread has verified last: passes that find nothing to do leave it.
thread_local std::optional<Fingerprint> lastVerified;

struct VerifyPass : PassWrapper<VerifyPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPass)

  StringRef getArgument() const final { return "verify"; }
  StringRef getDescription() const final { return "Runs the verifiers"; }
  /// Another run may have another context, whose types stand at the places of this one's.
  LogicalResult initialize(MLIRContext *) final {
    lastVerified.reset();
    return success();
  }
  void runOnOperation() final {
    markAllAnalysesPreserved();
    Fingerprint fingerprint(getOperation());
    if (lastVerified == fingerprint)
      return;
    if (failed(verify(getOperation())))
      return signalPassFailure();
    lastVerified = fingerprint;
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

/// No pass may rely on what MLIR's passes have not done yet.
static bool isStressed() {
  static const bool stress = std::getenv("TRITON_METAL_STRESS");
  return stress;
}

void addStep(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  if (isStressed())
    addVerified(manager, std::move(pass));
  else
    manager.addPass(std::move(pass));
}

void addVerified(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  const bool stress = isStressed();
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
