// A pass that writes the text to the standard output, for triton-metal-opt.

#include "target/msl/Printer.h"

#include "mlir/Pass/Pass.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace {
struct PrintMetal : PassWrapper<PrintMetal, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintMetal)
  StringRef getArgument() const override { return "msl-print-metal"; }
  StringRef getDescription() const override {
    return "Writes the loop form of msl as Metal text to the standard output";
  }
  void runOnOperation() override {
    if (failed(triton_metal::printMetal(getOperation(), llvm::outs())))
      signalPassFailure();
  }
};
} // namespace

void triton_metal::registerPrintMetalPass() {
  registerPass([]() -> std::unique_ptr<Pass> { return std::make_unique<PrintMetal>(); });
}
