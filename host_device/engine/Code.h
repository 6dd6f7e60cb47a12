// A compiled kernel, as it lies in memory and in the cache: machine code and what the launcher must
// know of it.
#pragma once

#include "host_device/Counters.h"
#include "host_device/KernelInfo.h"
#include "host_device/engine/Abi.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <vector>

namespace triton_metal::engine {

enum class AccessKind : uint8_t { Load, Store, Atomic, Barrier, Shuffle };

/// A place in the MSL that can fail.
struct Site {
  uint32_t line = 0, column = 0;
  AccessKind kind = AccessKind::Load;
  AddressSpace space = AddressSpace::Device;
  uint32_t bytes = 0;
  /// The buffer that the pointer comes from, where that is known.
  int32_t buffer = -1;
};

/// What one execution of a basic block counts: for each active lane, for each SIMD-group, and once
/// for the threadgroup.
struct BlockCounts {
  std::vector<std::pair<uint32_t, uint32_t>> lane, simdgroup,
      threadgroup; // (Counters::Index, amount)
};

struct CodeFacts {
  bool usesThreadgroupBarrier = false;
  /// Bytes of stack that a SIMD-group takes: private arrays and what the code generator spills.
  uint64_t stackBytes = 0;
  /// Threadgroup variables; arguments follow them.
  uint64_t threadgroupBytes = 0;
  /// One bit for each buffer that a store may reach, and for each that is used at all.
  uint32_t writtenBuffers = 0;
  uint32_t usedBuffers = 0;
  uint32_t registersPerThread = 0;
  std::vector<Site> sites;
  std::vector<BlockCounts> blocks;
  /// The Counters::Index that each counter of lines belongs to.
  std::vector<uint32_t> lineCounters;

  /// Words of GroupState::counts: three for each block (lanes, SIMD-groups, first SIMD-groups), one
  /// for each counter of lines.
  size_t countWords() const { return 3 * blocks.size() + lineCounters.size(); }
};

struct KernelCode {
  std::string entryName;
  CodeFacts facts;
  /// The object file.
  std::string object;
};

} // namespace triton_metal::engine
