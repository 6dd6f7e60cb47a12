// The lines of memory that a launch touches, each counted once however often it is touched.
#pragma once

#include "host_device/engine/Abi.h"
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace triton_metal::engine {

/// The footprint of one launch. Buffers that share memory, as views of one array do, share their
/// lines. The threads of a launch may mark lines at the same time.
class Footprint {
public:
  static constexpr uint64_t lineBytes = 128;
  enum Use : uint8_t { None = 0, Read = 1, Written = 2 };

  explicit Footprint(const LaunchState &launch);

  /// Marks the lines of bytes `first` to `last` of a buffer. Lines in no buffer, or in one of
  /// unknown size, count each time.
  void mark(int32_t buffer, uint64_t first, uint64_t last, Use use);
  /// The lines that were marked for this use.
  uint64_t count(Use use) const;

private:
  struct Memory {
    uint64_t begin = 0, end = 0;
    std::unique_ptr<std::atomic<uint8_t>[]> lines;
    uint64_t numLines() const { return (end - begin + lineBytes - 1) / lineBytes; }
  };
  std::vector<Memory> memories;
  struct Place {
    Memory *memory = nullptr;
    /// Of the buffer in the memory.
    uint64_t offset = 0;
  };
  std::array<Place, maxBufferBindings> places{};
  std::array<std::atomic<uint64_t>, 3> elsewhere{};
};

} // namespace triton_metal::engine
