// Where the host threads of a launch have accessed the same chunks of memory.
#pragma once

#include "host_device/engine/BufferContents.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace triton_metal::engine {

/// Calls `found` for each chunk that several threads have accessed and one has written: the number
/// of its region, its own number in there, and the addresses at which its part of the region begins
/// and ends. `regionsOf` gives a thread's regions, which are the same for all, with `chunks` of 1
/// for an access and 3 for a write. Ends and returns true if `found` does.
template <typename ThreadsT, typename RegionsOfT>
bool anySharedChunk(const ThreadsT &threads, RegionsOfT regionsOf,
                    llvm::function_ref<bool(size_t, size_t, uint64_t, uint64_t)> found) {
  for (size_t number = 0; number != regionsOf(*threads.front()).size(); ++number) {
    const auto &first = regionsOf(*threads.front())[number];
    for (size_t chunk = 0; chunk != first.chunks.size(); ++chunk) {
      unsigned accessed = 0, written = 0;
      for (const auto &thread : threads) {
        uint8_t use = regionsOf(*thread)[number].chunks[chunk];
        accessed += use & 1;
        written += use >> 1;
      }
      if (accessed < 2 || !written)
        continue;
      uint64_t start = ((first.start >> chunkShift) + chunk) << chunkShift;
      if (found(number, chunk, std::max(first.start, start),
                std::min(first.start + first.bytes, start + (uint64_t(1) << chunkShift))))
        return true;
    }
  }
  return false;
}

} // namespace triton_metal::engine
