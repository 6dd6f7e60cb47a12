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

/// A place in the source.
struct SourcePlace {
  std::string file;
  unsigned line = 0, column = 0;
};

/// Where a statement of the text that accesses memory comes from.
struct TextPlace {
  /// From 1. The column is where the access begins, 0 for the statement itself.
  unsigned line = 0, column = 0;
  /// "load", "store", "atomic" or "barrier".
  const char *kind = "";
  /// The place, and those of the calls that lead to it, the kernel's own last.
  std::vector<SourcePlace> source;
};

/// Where the parts of one kernel are in the text, for who writes another signature around them.
struct TextLayout {
  std::string name;
  /// The kernel begins here, with its attributes; what a header needs is before.
  size_t begin = 0;
  /// The statements between the braces.
  size_t bodyBegin = 0, bodyEnd = 0;
  std::vector<TextParameter> parameters;
  /// The kernel's own place in the source, and those of its accesses, by line and column.
  std::vector<SourcePlace> source;
  std::vector<TextPlace> places;
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
