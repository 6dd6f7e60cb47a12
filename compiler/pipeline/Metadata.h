// The launch contract of a kernel: what a launcher must know of its arguments, its threadgroup and
// the parts of its text.
#ifndef TRITON_METAL_PIPELINE_METADATA_H
#define TRITON_METAL_PIPELINE_METADATA_H

#include "analysis/PointerOrigins.h"
#include "target/msl/Printer.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace triton_metal {

struct ArgumentMetadata {
  std::string name;
  /// "f32", "*bf16", "i64".
  std::string type;
  bool isBuffer = false;
  /// The number of the buffer, or of the first 32-bit word in the buffer of scalars.
  unsigned slot = 0;
  /// 32-bit words of a scalar; 0 for a buffer.
  unsigned words = 0;
  /// What the kernel does to the memory of a buffer.
  msl::MemoryUse memory;
  /// What the argument is for, if the launcher adds it for prints and assertions
  /// (dialect/tt/Messages.h).
  std::string messageRole;
};

/// A print or an assertion of the kernel: what its records in the buffer of messages mean.
struct MessageSite {
  struct Operand {
    /// MLIR's name of an element's type: "i8", "bf16", "!tt.ptr<f32>".
    std::string type;
    std::vector<int64_t> shape;
    bool isSigned = true;
  };

  bool isPrint = false;
  /// The prefix of a print, or the message of an assertion.
  std::string text;
  bool hex = false;
  /// The operands of a print, or the shape of an assertion's condition.
  std::vector<Operand> operands;
  std::vector<SourcePlace> source;
};

struct KernelMetadata {
  /// The kernel's name in the text.
  std::string name;
  unsigned threads = 0;
  int64_t threadgroupBytes = 0;
  /// The most stages in which a loop loads tiles.
  int64_t pipelineStages = 1;
  /// The stages that the launch names or that were chosen for it: a number that means the same
  /// kernel again.
  int64_t numStages = 1;
  /// Why these SIMD-groups and stages were chosen; empty where the launch names them.
  std::string choice;
  /// The slices of rows in which its tiles are worked on, one after another.
  int64_t slices = 1;
  /// Sums [c, x, y, z]: in a launch c + x * program_id(0) + y * program_id(1) + z * program_id(2)
  /// stays below 2^31.
  std::vector<std::array<int64_t, 4>> gridLimits;
  std::vector<ArgumentMetadata> arguments;
  /// Of a kernel whose first threadgroup works all programs: the place of an atomic that makes it
  /// necessary.
  std::optional<std::vector<SourcePlace>> serial;
  /// The number of the buffer of scalars, where there are scalars.
  std::optional<unsigned> scalarBuffer;
  /// Its prints and assertions.
  std::vector<MessageSite> messages;
  /// Where the kernel's parts are in the text.
  TextLayout text;

  /// The text that launchers and caches read.
  std::string toJSON() const;
};

/// A text's lines and buffers as JSON, for people who look at it: no launch needs them.
std::string linesToJSON(const TextLayout &layout);

/// The metadata of the only kernel of a module in value form whose threadgroup memory is allocated.
/// `text` stays empty.
mlir::FailureOr<KernelMetadata> getMetadata(mlir::ModuleOp module);

} // namespace triton_metal

#endif // TRITON_METAL_PIPELINE_METADATA_H
