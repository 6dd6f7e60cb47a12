// The launch contract: what a launcher must know beyond the text of a kernel.
#ifndef TRITON_METAL_RUNTIME_METADATA_H
#define TRITON_METAL_RUNTIME_METADATA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace triton_metal::runtime {

/// What the 32-bit words of a scalar argument hold.
enum class ScalarKind : uint8_t { Integer, Float16, BFloat16, Float32, Float64 };

struct Argument {
  std::string name;
  bool isBuffer = false;
  ScalarKind kind = ScalarKind::Integer;
  /// The contract's name of the type, such as "i32" or "*f32".
  std::string type;
  /// The binding of a buffer, or the first word of a scalar in the buffer of scalars.
  unsigned slot = 0;
  unsigned words = 1;
  bool reads = false;
  bool writes = false;
  bool whollyWritten = false;
  bool atomic = false;
  /// What it is for, if the launcher itself gives it for prints and assertions: "failures",
  /// "prints", "origin" or "size". Such arguments come behind all others.
  std::string messageRole;

  /// A scalar of this type at the first word of the buffer of scalars.
  static Argument scalar(llvm::StringRef type);
};

/// The launch metadata that the compiler prints as JSON.
struct Metadata {
  std::string name;
  uint32_t threads = 0;
  uint32_t threadgroupBytes = 0;
  uint32_t numWarps = 0;
  std::vector<Argument> arguments;
  /// The binding of the buffer of scalars, or -1.
  int scalarBuffer = -1;
  unsigned scalarWords = 0;
  unsigned numBuffers = 0;
  /// Whether there are such arguments.
  bool hasMessages = false;
  /// Sums [c, x, y, z]: c + x * program_id(0) + y * program_id(1) + z * program_id(2) must stay
  /// below 2^31 in every program, because the kernel computes it in 32 bits.
  std::vector<std::array<int64_t, 4>> gridLimits;

  /// The reason why the kernel cannot run on a grid of this size; empty if it can.
  std::string problemOfGrid(std::array<uint32_t, 3> grid) const;

  static llvm::Expected<Metadata> parse(llvm::StringRef json);
};

/// Writes a scalar's words, low word first.
void packInteger(llvm::MutableArrayRef<uint32_t> words, uint64_t value);
void packFloat(llvm::MutableArrayRef<uint32_t> words, ScalarKind kind, double value);

} // namespace triton_metal::runtime

#endif // TRITON_METAL_RUNTIME_METADATA_H
