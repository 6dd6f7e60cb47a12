#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "transforms/Pipelines.h"

#include "llvm/ADT/DenseSet.h"

#include <cstdlib>
#include <optional>

using namespace mlir;

namespace triton_metal {

namespace {

//===----------------------------------------------------------------------===//
// What has been verified
//===----------------------------------------------------------------------===//

/// A hash of everything that an operation's own verifier reads.
class Fingerprint {
public:
  explicit Fingerprint(Operation *op) {
    add(static_cast<const void *>(op));
    add(op->getName().getAsOpaquePointer());
    add(op->getRawDictionaryAttrs().getAsOpaquePointer());
    if (op->getPropertiesStorageSize())
      add(uint64_t(size_t(op->hashProperties())));
    add(static_cast<const void *>(op->getBlock()));
    for (Value operand : op->getOperands()) {
      add(operand.getAsOpaquePointer());
      add(operand.getType().getAsOpaquePointer());
    }
    for (Type type : op->getResultTypes())
      add(type.getAsOpaquePointer());
    for (Block *successor : op->getSuccessors())
      add(static_cast<const void *>(successor));
  }

  uint64_t get() const { return state; }

private:
  void add(const void *pointer) { add(uint64_t(reinterpret_cast<uintptr_t>(pointer))); }
  void add(uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    state ^= state >> 29;
  }

  uint64_t state = 0;
};

/// The operations that have not changed since their verifiers ran.
class VerifiedOperations {
public:
  /// Runs the verifiers of operations that have changed, and checks that their operands dominate
  /// them and that they dominate their uses. The verifier at the end also finds operations that
  /// have only moved within a block.
  LogicalResult verify(ModuleOp module) {
    llvm::DenseSet<uint64_t> standing;
    standing.reserve(known.size());
    DominanceInfo dominance(module);
    WalkResult walked = module->walk([&](Operation *op) {
      // The symbol table is verified once, after the last pass.
      if (op == module)
        return WalkResult::advance();
      uint64_t fingerprint = Fingerprint(op).get();
      bool isNew = !known.contains(fingerprint);
      standing.insert(fingerprint);
      if (isNew && failed(verifyDominance(op, dominance)))
        return WalkResult::interrupt();
      // The verifier of an operation with regions reads them. That a kernel uses no values from
      // outside is also verified after the last pass.
      bool looksInside = op->getNumRegions() && !op->hasTrait<OpTrait::IsIsolatedFromAbove>();
      return (isNew || looksInside) && failed(verifyAlone(op, looksInside))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    known = std::move(standing);
    return failure(walked.wasInterrupted());
  }

  void clear() { known.clear(); }

private:
  static LogicalResult verifyDominance(Operation *op, DominanceInfo &dominance) {
    auto check = [&](OpOperand &operand) -> LogicalResult {
      if (dominance.properlyDominates(operand.get(), operand.getOwner()))
        return success();
      return operand.getOwner()->emitError()
             << "operand #" << operand.getOperandNumber() << " does not dominate this use";
    };
    for (OpOperand &operand : op->getOpOperands())
      if (failed(check(operand)))
        return failure();
    for (OpOperand &use : op->getUses())
      if (failed(check(use)))
        return failure();
    return success();
  }

  /// The checks of MLIR's verifier for an operation, without its regions.
  static LogicalResult verifyAlone(Operation *op, bool looksInside) {
    std::optional<RegisteredOperationName> name = op->getRegisteredInfo();
    if (!name)
      return mlir::verify(op, /*verifyRecursively=*/false);
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (Dialect *dialect = attribute.getNameDialect();
          dialect && failed(dialect->verifyOperationAttribute(op, attribute)))
        return failure();
    return failure(failed(name->verifyInvariants(op)) ||
                   (looksInside && failed(name->verifyRegionInvariants(op))));
  }

  llvm::DenseSet<uint64_t> known;
};

/// The verified operations of the kernel that this thread compiles.
thread_local VerifiedOperations verified;

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Stands from one verification to the next if no pass has changed anything, or hints at most.
struct Unchanged {
  explicit Unchanged(Operation *) {}
};

struct VerifyPass : PassWrapper<VerifyPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPass)

  StringRef getArgument() const final { return "verify"; }
  StringRef getDescription() const final {
    return "Runs the verifiers of operations that have changed";
  }
  /// Tools make a pass manager for each text, some of them in a context of its own.
  LogicalResult initialize(MLIRContext *) final {
    verified.clear();
    return success();
  }
  void runOnOperation() final {
    markAllAnalysesPreserved();
    if (getCachedAnalysis<Unchanged>())
      return;
    if (failed(verified.verify(getOperation())))
      return signalPassFailure();
    getAnalysis<Unchanged>();
  }
};

} // namespace

void forgetVerified() { verified.clear(); }

/// Adds passes of MLIR that may change a module at any time.
static void addFolding(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createRemoveDeadValuesPass());
  manager.addPass(createSymbolDCEPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(std::make_unique<VerifyPass>());
}

/// In stress mode, no pass may rely on what MLIR's passes have not folded yet.
static bool isStressed() {
  static const bool stress = std::getenv("TRITON_METAL_STRESS");
  return stress;
}

void addCanonicalizer(OpPassManager &manager) {
  // Each region has one block, so regions cannot be simplified.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  manager.addPass(createCanonicalizerPass(config));
}

void addStep(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  const bool stress = isStressed();
  if (stress)
    addFolding(manager);
  manager.addPass(std::move(pass));
  if (stress) {
    manager.addPass(std::make_unique<VerifyPass>());
    addFolding(manager);
  }
}

void addVerified(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  addStep(manager, std::move(pass));
  manager.addPass(std::make_unique<VerifyPass>());
}

void addUnfolded(OpPassManager &manager, std::unique_ptr<Pass> pass) {
  manager.addPass(std::move(pass));
  if (isStressed())
    manager.addPass(std::make_unique<VerifyPass>());
}

} // namespace triton_metal
