#ifndef TRITON_METAL_TARGET_MSL_PRINTER_H
#define TRITON_METAL_TARGET_MSL_PRINTER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"

namespace triton_metal {

/// Writes the kernels of a module in the loop form of `msl` as Metal Shading Language. What has no
/// text is refused with a diagnostic; `os` then holds nothing.
mlir::LogicalResult printMetal(mlir::ModuleOp module, llvm::raw_ostream &os);

/// The name that a kernel has in the text: its own, unless Metal keeps that one for itself.
std::string getMetalName(llvm::StringRef name);

/// Registers `msl-print-metal`, which writes the text to the standard output.
void registerPrintMetalPass();

} // namespace triton_metal

#endif // TRITON_METAL_TARGET_MSL_PRINTER_H
