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

/// A parameter in the text of a kernel: a buffer, or the thread's position that the attribute
/// names.
struct TextParameter {
  std::string name;
  /// The text before the name: "const device float *", "uint3".
  std::string type;
  std::optional<unsigned> buffer;
  /// "threadgroup_position_in_grid"; empty for a buffer.
  std::string attribute;
};

/// A place in the source.
struct SourcePlace {
  std::string file;
  unsigned line = 0, column = 0;
};

/// Adds the places of a location: the innermost, and the calls that lead to it.
void addFrames(mlir::Location loc, std::vector<SourcePlace> &frames);

/// The source of a statement in the text that accesses memory.
struct TextPlace {
  /// Counted from 1. The column is where the access begins; 0 for the statement itself.
  unsigned line = 0, column = 0;
  /// "load", "store", "atomic" or "barrier".
  const char *kind = "";
  /// The location, followed by those of the calls that lead to it, the kernel's own last.
  std::vector<SourcePlace> source;
};

/// The positions of the parts of a kernel in the text, for frameworks that write another signature.
struct TextLayout {
  std::string name;
  /// The start of the kernel, including its attributes. Helper functions come before it.
  size_t begin = 0;
  /// The range of the statements between the braces.
  size_t bodyBegin = 0, bodyEnd = 0;
  std::vector<TextParameter> parameters;
  /// The location of the kernel in the source, and those of its accesses, by line and column.
  std::vector<SourcePlace> source;
  std::vector<TextPlace> places;
};

/// Writes the kernels of a module in the text form of `msl` as Metal Shading Language. If something
/// cannot be written, reports an error and writes nothing. `layouts`, if given, gets the positions
/// of the parts of every kernel.
mlir::LogicalResult printMetal(mlir::ModuleOp module, llvm::raw_ostream &os,
                               std::vector<TextLayout> *layouts = nullptr);

/// The name of a kernel in the text: its own name, unless Metal reserves it.
std::string getMetalName(llvm::StringRef name);

/// Registers `msl-print-metal`, which writes the text to the standard output.
void registerPrintMetalPass();

} // namespace triton_metal

#endif // TRITON_METAL_TARGET_MSL_PRINTER_H
