// What compiled kernels and the runtime share: the structures that a kernel reads and the functions
// that it calls.
#pragma once

#include "host_device/KernelInfo.h"
#include <cstddef>
#include <cstdint>

namespace triton_metal::engine {

/// Raised with every change of what the engine generates, so that code on disk from another engine
/// is not run.
inline constexpr uint32_t engineVersion = 4;

/// The same for every threadgroup of a launch.
struct LaunchState {
  void *buffers[maxBufferBindings];
  /// The memory that is bound, from its first byte, which may lie before the one that the kernel
  /// gets, to its end.
  void *bufferStarts[maxBufferBindings];
  uint64_t bufferBytes[maxBufferBindings];
  /// 1 where the launch may write.
  uint8_t bufferWritable[maxBufferBindings + 1];
  /// Offsets and lengths of the threadgroup memory arguments.
  uint32_t argumentOffsets[maxBufferBindings];
  uint32_t argumentBytes[maxBufferBindings];
  uint32_t threadgroups[3];
  uint32_t gridThreads[3];
  uint32_t dispatchThreads[3];
};

/// One threadgroup.
struct GroupState {
  uint32_t position[3];
  uint32_t threads[3];
  uint32_t totalThreads;
  uint32_t simdgroups;
  char *threadgroupMemory;
  /// Dynamic counts, see Counting.h.
  uint64_t *counts;
  /// A permutation of 32 lanes: the order in which conflicting accesses of a SIMD-group take
  /// effect. Read by seeded code only.
  const uint8_t *laneOrder;
  /// The runtime's own: who runs this group.
  void *runner;
};

/// SIMD-groups `first` to `last` of a threadgroup, one after the other.
using KernelEntry = void (*)(const LaunchState *, GroupState *, uint32_t first, uint32_t last);

/// Which kind of code a launch needs: each is compiled when first asked for.
struct CodeOptions {
  /// The threadgroup's size is no multiple of 32: the last SIMD-group has lanes that do not exist.
  bool partial = false;
  /// A SIMD-group is not a run along x: positions in the threadgroup are computed lane by lane.
  bool scatteredPositions = false;
  bool checkBounds = false;
  bool count = false;
  /// Conflicting stores and atomics take effect in GroupState::laneOrder.
  bool seeded = false;

  bool operator==(const CodeOptions &) const = default;
};

/// What can go wrong while a kernel runs.
enum class Failure : uint32_t {
  OutOfBounds,
  Misaligned,
  ReadOnly,
  DivergentBarrier,
  ShuffleLane,
  /// A signal of the host's processor: the access of an unchecked kernel.
  Fault,
  /// Someone asked for all launches to end.
  Interrupted,
};

// Functions of the runtime that compiled kernels call.
extern "C" {
void __tm_runtime_barrier(GroupState *group, uint32_t site);
[[noreturn]] void __tm_runtime_fail(GroupState *group, uint32_t failure, uint32_t site,
                                    uint64_t address, uint32_t lane);
/// Looks at every lane's access: `flags` 1 is "into any buffer", 2 is "and writes". Returns if all
/// is well.
void __tm_runtime_check(const LaunchState *launch, GroupState *group, const uint64_t *addresses,
                        uint32_t mask, uint32_t site, uint64_t start, uint64_t length,
                        uint32_t bytes, uint32_t alignment, uint32_t flags);
/// `buffer` is the one that the addresses are in, or -1.
void __tm_runtime_count_lines(const LaunchState *launch, uint64_t *counter,
                              const uint64_t *addresses, uint32_t mask, uint32_t bytes,
                              int32_t buffer);
}

} // namespace triton_metal::engine
