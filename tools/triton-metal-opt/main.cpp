// Runs passes over a module, for tests and to look at what a pass does.

#include "compiler/pipeline/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  triton_metal::registerAllDialects(registry);
  triton_metal::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "triton-metal-opt: runs passes over Triton IR and what becomes of it\n",
      registry));
}
