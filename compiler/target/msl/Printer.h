#ifndef TRITON_METAL_TARGET_MSL_PRINTER_H
#define TRITON_METAL_TARGET_MSL_PRINTER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"

#include <cstddef>
#include <cstdint>
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
  bool operator==(const SourcePlace &) const = default;
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

/// A line of the text with the locations of all that it says: of its statement and of the
/// expressions in it. Each begins with the innermost place, as in `TextPlace`.
struct TextLine {
  unsigned line = 0;
  std::vector<std::vector<SourcePlace>> sources;
};

/// An array in threadgroup memory.
struct TextBuffer {
  /// Its name in the text, and the type of its elements there.
  std::string name, type;
  /// Where it begins in threadgroup memory, and its size, in bytes.
  uint64_t offset = 0, bytes = 0;
  /// The lines whose statements access it, in ascending order.
  std::vector<unsigned> lines;
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
  /// For people who look at the text, if they are asked for: where each line comes from, and what
  /// is in threadgroup memory.
  std::vector<TextLine> lines;
  std::vector<TextBuffer> buffers;

  /// Something comes before the kernel: adds to all numbers of lines.
  void moveLines(unsigned down);
};

/// Writes the kernels of a module in the text form of `msl` as Metal Shading Language. If something
/// cannot be written, reports an error and writes nothing. `layouts`, if given, gets the positions
/// of the parts of every kernel, with lines and buffers only if `withLines`.
mlir::LogicalResult printMetal(mlir::ModuleOp module, llvm::raw_ostream &os,
                               std::vector<TextLayout> *layouts = nullptr, bool withLines = false);

/// The name of a kernel in the text: its own name, unless Metal reserves it.
std::string getMetalName(llvm::StringRef name);

/// Registers `msl-print-metal`, which writes the text to the standard output.
void registerPrintMetalPass();

} // namespace triton_metal

#endif // TRITON_METAL_TARGET_MSL_PRINTER_H
