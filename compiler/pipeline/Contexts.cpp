#include "pipeline/Contexts.h"

#include "pipeline/Register.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

#include <algorithm>
#include <mutex>
#include <vector>

using namespace mlir;

namespace triton_metal {

/// Compilations that a context serves.
static constexpr int kUses = 64;
/// Contexts that wait: more only pay where as many threads compile.
static constexpr size_t kWaiting = 4;
/// Pass managers of a context: a search over configurations has some dozens of options, each of
/// them for a few kernels.
static constexpr size_t kManagers = 12;

//===----------------------------------------------------------------------===//
// Pass managers
//===----------------------------------------------------------------------===//

LogicalResult PassManagers::run(ModuleOp module, Build build, const CompileOptions &options) {
  Key key(build, options.numWarps, options.numStages, options.arithmetic.precise,
          options.arithmetic.fused, options.obeyLoopStages, options.sliceTiles);
  auto *found = llvm::find_if(known, [&](const Known &one) { return one.key == key; });
  if (found != known.end()) {
    // The one that has waited longest is at the front.
    std::rotate(found, found + 1, known.end());
  } else {
    if (known.size() == kManagers)
      known.erase(known.begin());
    auto manager = std::make_unique<PassManager>(module.getContext(), ModuleOp::getOperationName());
    manager->enableVerifier(false);
    build(*manager, options);
    known.push_back({key, std::move(manager)});
  }
  forgetVerified();
  return known.back().manager->run(module);
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

namespace {
/// The contexts that wait for a compilation.
struct Waiting {
  std::mutex mutex;
  std::vector<std::unique_ptr<SharedContext>> contexts;
};
} // namespace

/// Never deleted: a thread may still compile while the process ends.
static Waiting &waiting() {
  static auto *all = new Waiting;
  return *all;
}

static DialectRegistry everyDialect() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

SharedContext::SharedContext() : context(everyDialect(), MLIRContext::Threading::DISABLED) {
  // A diagnostic points to the source, not to the compiler's text of it.
  context.printOpOnDiagnostic(false);
}

// A process that was forked while another thread held the mutex would wait for it forever, so that
// nothing waits here: such a compilation has a context of its own.

ContextLease::ContextLease() {
  Waiting &all = waiting();
  if (std::unique_lock lock(all.mutex, std::try_to_lock); lock && !all.contexts.empty()) {
    shared = std::move(all.contexts.back());
    all.contexts.pop_back();
  }
  if (!shared)
    shared = std::make_unique<SharedContext>();
  ++shared->uses;
}

ContextLease::~ContextLease() {
  if (shared->uses >= kUses)
    return;
  Waiting &all = waiting();
  if (std::unique_lock lock(all.mutex, std::try_to_lock); lock && all.contexts.size() < kWaiting)
    all.contexts.push_back(std::move(shared));
}

} // namespace triton_metal
