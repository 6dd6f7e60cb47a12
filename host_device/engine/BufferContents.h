// What the buffers hold that a launch may write.
#pragma once

#include "host_device/engine/Runtime.h"
#include <vector>

namespace triton_metal::engine {

class BufferContents {
public:
  struct Buffer {
    uint32_t index;
    char *start;
    std::vector<char> bytes;
    bool operator==(const Buffer &) const = default;
  };

  /// Copies what the buffers of the launch hold now.
  explicit BufferContents(const LaunchPlan &plan);
  /// Puts it back.
  void restore() const;
  /// Whether the buffers still hold it.
  bool isUnchanged() const;

  bool operator==(const BufferContents &) const = default;

  std::vector<Buffer> buffers;
};

} // namespace triton_metal::engine
