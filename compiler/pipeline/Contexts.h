// MLIR contexts that several compilations share, one after another.
#pragma once

#include "pipeline/Pipeline.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <tuple>

namespace triton_metal {

/// The pass managers that have run in a context. A pass manager collects the patterns of its passes
/// before its first run only, which takes as long as the passes of a small kernel.
class PassManagers {
public:
  using Build = void (*)(mlir::OpPassManager &, const CompileOptions &);

  /// Runs the passes that `build` adds for `options`. The verifiers run where `build` has them.
  mlir::LogicalResult run(mlir::ModuleOp module, Build build, const CompileOptions &options = {});

private:
  /// The passes, and every option that they may read.
  using Key = std::tuple<Build, int, int, bool, bool, bool, bool>;
  struct Known {
    Key key;
    std::unique_ptr<mlir::PassManager> manager;
  };
  llvm::SmallVector<Known, 0> known;
};

/// A context with the dialects of a compilation, and what has run in it.
struct SharedContext {
  SharedContext();

  mlir::MLIRContext context;
  PassManagers managers;
  /// How often it has been lent.
  int uses = 0;
};

/// A context for one compilation at a time. It goes back to those that wait when the lease ends.
///
/// A new context and its dialects take about a millisecond, a third of the time of a small kernel.
/// What kernels intern (types, constants, places in files) lives as long as a context does, so that
/// one is deleted after kUses compilations.
class ContextLease {
public:
  ContextLease();
  ~ContextLease();
  ContextLease(const ContextLease &) = delete;
  ContextLease &operator=(const ContextLease &) = delete;

  mlir::MLIRContext *getContext() { return &shared->context; }
  PassManagers &getManagers() { return shared->managers; }

private:
  std::unique_ptr<SharedContext> shared;
};

} // namespace triton_metal
