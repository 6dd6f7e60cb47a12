// Which SIMD-group accesses which piece of memory. Where no piece that one writes is accessed by
// another, the threadgroups of a launch can neither see each other's stores nor depend on their
// order.
#pragma once

#include "host_device/engine/Runtime.h"
#include "host_device/engine/Visibility.h"
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace triton_metal::engine {

/// What the threadgroups that one thread runs access of the tracked memory.
class Owners {
public:
  /// The threadgroup of this number begins.
  void enter(uint64_t number) {
    firstSimdgroup = base + 1 + number * simdgroups;
    chunksOfGroup.clear();
  }
  void store(uint32_t simdgroup, const Visibility::Access &access);
  void load(uint32_t simdgroup, const Visibility::Access &access);
  /// The chunks that the current threadgroup has written.
  const std::vector<uint64_t> &writtenChunks() const { return chunksOfGroup; }

private:
  friend class Sharing;
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  /// One word for each granule: twice the number of a SIMD-group, plus one if it has written it.
  /// Words below twice the base are of other launches. One word stands for a line while all
  /// accesses are to all of it, as those of neighbouring lanes are.
  static constexpr uint64_t lineGranules = 32;
  struct Words {
    size_t capacity = 0;
    std::unique_ptr<int32_t[], Free> words;
  };
  struct Region {
    uint64_t start, bytes;
    Words lines, granules;
    /// For each chunk: 1 if it has been accessed, 3 if it has been written.
    std::vector<uint8_t> chunks;
  };

  template <bool isStore> void touch(uint32_t simdgroup, const Visibility::Access &access);

  std::vector<Region> regions;
  size_t last = 0;
  unsigned shift = 0;
  uint32_t base = 0, simdgroups = 1, firstSimdgroup = 0;
  /// Whether one SIMD-group has accessed what another one has written.
  int32_t isShared = 0;
  std::vector<uint64_t> chunksOfGroup;
};

/// What all threads of a launch access.
class Sharing {
public:
  /// The buffers whose accesses matter, or none if a launch of this kernel may share memory that is
  /// not tracked.
  static uint32_t trackedBuffers(const LaunchPlan &plan);

  explicit Sharing(const LaunchPlan &plan);
  ~Sharing();
  Sharing(const Sharing &) = delete;

  /// Whether there are enough numbers for the SIMD-groups.
  bool isPossible() const { return base; }
  /// The record of another thread.
  Owners &add();
  /// Whether one SIMD-group has accessed what another one has written. To be asked when all threads
  /// have ended.
  bool wasFound() const;
  std::vector<uint64_t> writtenChunks() const;

private:
  Owners::Words allocate(size_t count);

  const LaunchPlan &plan;
  uint32_t base = 0, simdgroups = 1;
  uint64_t generation = 0;
  std::mutex mutex;
  std::vector<std::unique_ptr<Owners>> threads;
};

} // namespace triton_metal::engine
