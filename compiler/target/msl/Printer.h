#ifndef TRITON_METAL_TARGET_MSL_PRINTER_H
#define TRITON_METAL_TARGET_MSL_PRINTER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace triton_metal {

/// One parameter of a kernel's text: a buffer, or what the attribute names of the thread's place.
struct TextParameter {
  std::string name;
  /// As it is written before the name: "const device float *", "uint3".
  std::string type;
  std::optional<unsigned> buffer;
  /// "threadgroup_position_in_grid", where it is no buffer.
  std::string attribute;
};

/// Where the parts of one kernel are in the text, for who writes another signature around them.
struct TextLayout {
  std::string name;
  /// The kernel begins here, with its attributes; what a header needs is before.
  size_t begin = 0;
  /// The statements between the braces.
  size_t bodyBegin = 0, bodyEnd = 0;
  std::vector<TextParameter> parameters;
};

/// Writes the kernels of a module in the loop form of `msl` as Metal Shading Language. What has no
/// text is refused with a diagnostic; `os` then holds nothing. `layouts`, where given, gets the
/// place of every kernel's parts.
mlir::LogicalResult printMetal(mlir::ModuleOp module, llvm::raw_ostream &os,
                               std::vector<TextLayout> *layouts = nullptr);

/// The name that a kernel has in the text: its own, unless Metal keeps that one for itself.
std::string getMetalName(llvm::StringRef name);

/// Registers `msl-print-metal`, which writes the text to the standard output.
void registerPrintMetalPass();

} // namespace triton_metal

#endif // TRITON_METAL_TARGET_MSL_PRINTER_H
