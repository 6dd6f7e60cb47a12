#include "dialect/tt/TT.h"
#include "mlir/Analysis/CallGraph.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Inliner.h"
#include "transforms/Passes.h"
#include "llvm/ADT/SCCIterator.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTINLINE
#include "transforms/Passes.h.inc"

namespace {

/// The largest number of operations of a kernel after inlining. Functions that call each other
/// twice, a few dozen levels deep, would fill any memory.
constexpr uint64_t kMaxOperations = 1 << 17;
/// The largest depth of calls. Each call adds a level to the locations of inlined operations.
constexpr unsigned kMaxCallDepth = 256;

struct TTInlinePass : impl::TTInlineBase<TTInlinePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    extents.clear();
    SymbolTable symbols(module);
    // Recursion would be inlined without end. Callees come before their callers.
    CallGraph &graph = getAnalysis<CallGraph>();
    for (auto component = llvm::scc_begin(static_cast<const CallGraph *>(&graph));
         !component.isAtEnd(); ++component) {
      if (component->front()->isExternal())
        continue;
      auto function = component->front()->getCallableRegion()->getParentOfType<tt::FuncOp>();
      if (!component.hasCycle()) {
        Extent extent = extents[function] = extentOf(function, symbols);
        if (extent.operations <= kMaxOperations && extent.depth <= kMaxCallDepth)
          continue;
        InFlightDiagnostic error = function.emitError()
                                   << "function '" << function.getName() << "' has ";
        if (extent.depth > kMaxCallDepth)
          error << "more than " << kMaxCallDepth << " calls within one another";
        else
          error << "more than " << kMaxOperations << " operations once what it calls is inlined";
        return signalPassFailure();
      }
      function.emitError() << "function '" << function.getName()
                           << "' calls itself; a kernel has no stack, write a loop instead";
      return signalPassFailure();
    }

    Inliner inliner(
        module, graph, *this, getAnalysisManager(),
        [](Pass &pass, OpPassManager &pipeline, Operation *op) {
          return mlir::cast<TTInlinePass>(pass).runPipeline(pipeline, op);
        },
        InlinerConfig(), [](const Inliner::ResolvedCall &) { return true; });
    if (failed(inliner.doInlining()))
      return signalPassFailure();

    // Functions that nothing calls any more are erased. Kernels are public.
    for (auto function : llvm::make_early_inc_range(module.getOps<tt::FuncOp>()))
      if (function.isPrivate() && SymbolTable::symbolKnownUseEmpty(function, module))
        function.erase();

    WalkResult left = module.walk([](tt::CallOp call) {
      call.emitOpError() << "cannot be inlined: '" << call.getCallee() << "' has no body";
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }

private:
  /// The size of a function including everything that it calls.
  struct Extent {
    uint64_t operations = 0;
    unsigned depth = 0;
  };

  /// The extents of the callees are known already.
  Extent extentOf(tt::FuncOp function, SymbolTable &symbols) {
    Extent extent;
    function.walk([&](Operation *op) {
      auto call = dyn_cast<tt::CallOp>(op);
      auto callee = call ? symbols.lookup<tt::FuncOp>(call.getCallee()) : tt::FuncOp();
      Extent called = callee ? extents.lookup(callee) : Extent{1, 0};
      extent.operations += called.operations;
      extent.depth = std::max(extent.depth, called.depth + (callee ? 1 : 0));
    });
    return extent;
  }

  DenseMap<Operation *, Extent> extents;
};

} // namespace
} // namespace triton_metal
