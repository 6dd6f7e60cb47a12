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

struct TTInlinePass : impl::TTInlineBase<TTInlinePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Recursion would be inlined for ever.
    CallGraph &graph = getAnalysis<CallGraph>();
    for (auto component = llvm::scc_begin(static_cast<const CallGraph *>(&graph));
         !component.isAtEnd(); ++component) {
      if (!component.hasCycle() || component->front()->isExternal())
        continue;
      auto function = component->front()->getCallableRegion()->getParentOfType<tt::FuncOp>();
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

    // What nothing calls any more goes; kernels are public.
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
};

} // namespace
} // namespace triton_metal
