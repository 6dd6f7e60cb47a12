// What the buffers hold that a launch may write.
#pragma once

#include "host_device/engine/Runtime.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace triton_metal::engine {

/// Pieces of memory of this size, which is a power of two, are told apart by their number:
/// the address without its lower bits.
inline constexpr unsigned chunkShift = 14;

class BufferContents {
public:
  struct Buffer {
    uint32_t index;
    char *start;
    llvm::SmallVector<char, 0> bytes;
    bool operator==(const Buffer &) const = default;
  };

  /// Copies what the buffers of the launch hold now. With `chunks`, only these.
  explicit BufferContents(const LaunchPlan &plan, const std::vector<uint64_t> *chunks = nullptr);
  /// Puts it back. With `chunks`, only these.
  void restore(const std::vector<uint64_t> *chunks = nullptr) const;
  /// Forgets it, and keeps its memory for the next launch: new memory takes longer to get than to
  /// fill.
  void keepMemory();
  /// Whether the buffers still hold it.
  bool isUnchanged() const;

  bool operator==(const BufferContents &) const = default;

  std::vector<Buffer> buffers;
};

} // namespace triton_metal::engine
