// The interface between compiled kernels and the runtime: the structures that a kernel reads, and
// the functions that it calls.
#pragma once

#include "host_device/Checks.h"
#include "host_device/KernelInfo.h"
#include <cstddef>
#include <cstdint>

namespace triton_metal::engine {

/// Must be increased whenever the generated code changes, so that cached code of another engine is
/// not run.
inline constexpr uint32_t engineVersion = 12;

/// The part of the state that is the same for all threadgroups of a launch.
struct LaunchState {
  void *buffers[maxBufferBindings];
  /// The memory that is bound, from its first byte to its end. It may begin before the address that
  /// the kernel gets.
  void *bufferStarts[maxBufferBindings];
  uint64_t bufferBytes[maxBufferBindings];
  /// 1 if the launch may write to the buffer.
  uint8_t bufferWritable[maxBufferBindings + 1];
  /// The offsets and lengths of the threadgroup memory arguments.
  uint32_t argumentOffsets[maxBufferBindings];
  uint32_t argumentBytes[maxBufferBindings];
  uint32_t threadgroups[3];
  uint32_t gridThreads[3];
  uint32_t dispatchThreads[3];
  /// 1, 0 or -1: where a portable launch moves results that are not exact.
  int32_t fastDirection;
  /// One bit for each buffer whose accesses are passed to Visibility.h or to Races.h.
  uint32_t trackedBuffers;
  /// The iterations of loops that a SIMD-group may run.
  uint64_t maxSteps;
  /// Keeps the lines of memory that are touched (Footprint.h), or null.
  void *footprint;
};

/// The state of one threadgroup.
struct GroupState {
  uint32_t position[3];
  uint32_t threads[3];
  uint32_t totalThreads;
  uint32_t simdgroups;
  char *threadgroupMemory;
  /// Dynamic counts, see Counting.h.
  uint64_t *counts;
  /// A permutation of the 32 lanes: the order in which conflicting accesses of a SIMD-group take
  /// effect. Only seeded code reads it.
  const uint8_t *laneOrder;
  /// Used by the runtime: the runner of this group.
  void *runner;
  /// The memory as this group sees it (Visibility.h), or null.
  void *view;
  /// Records which SIMD-group accesses memory (Owners.h), or null.
  void *owners;
  /// Records which threads access memory (Races.h), or null.
  void *races;
  /// Keeps the addresses of accesses (Trace.h), or null.
  void *trace;
  /// The mem_flags that all SIMD-groups have passed to the barrier that they wait at.
  uint32_t barrierFlags;
  /// The compare-and-exchange operations so far, and whether one has failed without a reason since
  /// this was asked for.
  uint32_t exchanges;
  uint32_t hasFailedSpuriously;
};

/// SIMD-groups `first` to `last` of a threadgroup, one after the other.
using KernelEntry = void (*)(const LaunchState *, GroupState *, uint32_t first, uint32_t last);

/// The kind of code that a launch needs. Each kind is compiled on first use.
struct CodeOptions {
  /// The size of the threadgroup is not a multiple of 32, so that the last SIMD-group has missing
  /// lanes.
  bool partial = false;
  /// A SIMD-group is not a row along x, so that positions in the threadgroup are computed for each
  /// lane.
  bool scatteredPositions = false;
  Checks checks;
  /// What Metal does not promise gets any value. Implies `checks.bounds` and `seeded`.
  bool portable = false;
  bool count = false;
  /// Conflicting stores and atomics take effect in GroupState::laneOrder.
  bool seeded = false;
  /// Compiled in little time, with few optimisations. The results and the counts are the same.
  bool quick = false;

  bool operator==(const CodeOptions &) const = default;
};

/// Where portable launches keep, for each byte of threadgroup memory, who has written it: 0 for
/// nobody, the number of a SIMD-group plus one, or 255 if all threads see it; then the bytes as
/// they were at the last barrier, and who had written these.
inline constexpr uint32_t threadgroupWriters = maxThreadgroupMemory,
                          threadgroupOlder = 2 * maxThreadgroupMemory,
                          threadgroupOlderWriters = 3 * maxThreadgroupMemory;

/// The ways in which a kernel can fail at run time.
enum class Failure : uint32_t {
  OutOfBounds,
  Misaligned,
  ReadOnly,
  DivergentBarrier,
  ShuffleLane,
  /// A signal of the processor, caused by an access of an unchecked kernel.
  Fault,
  /// A request to stop all launches.
  Interrupted,
  /// A run of a portable launch takes much longer than the others.
  Endless,
  /// The results depend on a store that another thread need not see yet.
  Stale,
  /// A loop that only another threadgroup can end.
  Waits,
  /// Accesses of two threads that nothing orders.
  Race,
  /// Threadgroup memory that no thread has written is read.
  Unwritten,
  /// The site's note says what is wrong with a value.
  Value,
  /// An operation of all threads of a SIMD-group that some of them do not come to.
  DivergentOperation,
  /// Some SIMD-groups wait at one barrier, and some at another one.
  SeveralBarriers,
  /// Loops run more iterations than the launch allows.
  Steps,
  /// The launch has left a byte of a buffer without a value.
  Missing,
};

/// How an access takes part in the order of memory, as bits.
enum AccessFlags : uint32_t {
  accessCoherent = 1,
  accessAtomic = 2,
  /// An atomic store, which does not read.
  accessOverwrites = 4,
  /// An atomic with an order other than relaxed.
  accessOrdered = 8,
  /// The accesses of neighbouring lanes follow one another without gaps.
  accessConsecutive = 16,
  /// All lanes have one address.
  accessUniform = 32,
};

// Functions of the runtime that compiled kernels call.
extern "C" {
void __tm_runtime_barrier(GroupState *group, uint32_t site);
[[noreturn]] void __tm_runtime_fail(GroupState *group, uint32_t failure, uint32_t site,
                                    uint64_t address, uint32_t lane);
/// Adds to `counter` the cycles that an access to threadgroup memory takes beyond the least for its
/// bytes.
void __tm_runtime_count_banks(uint64_t *counter, const uint64_t *addresses, uint32_t mask,
                              uint32_t bytes);
/// Checks the access of every lane. In `flags`, 1 means an access to any buffer, 2 means a write.
/// Returns if all accesses are valid.
void __tm_runtime_check(const LaunchState *launch, GroupState *group, const uint64_t *addresses,
                        uint32_t mask, uint32_t site, uint64_t start, uint64_t length,
                        uint32_t bytes, uint32_t alignment, uint32_t flags);
/// Any bits for each lane of the mask, for a site whose value Metal does not promise. Equal `salts`
/// give equal bits, unless each lane has its own.
void __tm_runtime_any(GroupState *group, uint32_t site, uint32_t mask, uint32_t perLane,
                      const uint64_t *salts, uint64_t *bits);
// The accesses of a portable launch to memory that it reads and writes, in the order in which they
// take place. `addresses` are those of all lanes, `mask` says which are active, and `flags` are
// AccessFlags.
/// Before a store.
void __tm_runtime_stored(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                         uint32_t mask, uint32_t bytes, uint32_t site, uint32_t flags);
/// After a load of `components` neighbouring numbers of `bytes` each. Number c of lane l is at
/// `values + c * componentStride + l * laneStride`. It is replaced by an older one if the launch is
/// asked for it.
void __tm_runtime_loaded(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                         uint32_t mask, uint32_t bytes, uint32_t components, uint32_t site,
                         uint32_t flags, char *values, uint32_t laneStride,
                         uint32_t componentStride);
/// Before an atomic operation that writes.
void __tm_runtime_atomic(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                         uint32_t mask, uint32_t bytes, uint32_t site, uint32_t flags);
/// After a load from threadgroup memory that finds bytes which no thread has written, or another
/// SIMD-group since the last barrier. The site of the former is `site`, and of the latter the next
/// one. The rest is as for a load from device memory.
void __tm_runtime_staged(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                         uint32_t mask, uint32_t bytes, uint32_t components, uint32_t site,
                         uint32_t flags, char *values, uint32_t laneStride,
                         uint32_t componentStride);
void __tm_runtime_fence(GroupState *group, uint32_t simdgroup, uint32_t mask, uint32_t flags,
                        uint32_t order, uint32_t scope);
/// Threadgroup memory that no thread has written is read. A launch that looks for races goes on to
/// the end of the threadgroup: another thread may write it without a barrier between them.
void __tm_runtime_unwritten(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                            uint32_t mask, uint32_t site);
// The accesses of a launch that looks for races (Races.h), with AccessFlags and RaceFlags.
/// Before an access. What a store stores is at `values`, if it is not null: all first components,
/// of `componentBytes` each, then all second ones.
void __tm_runtime_access(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                         uint32_t mask, uint32_t bytes, uint32_t site, uint32_t flags,
                         const char *values, uint32_t componentBytes);
/// Before a barrier of a SIMD-group or, if `isThreadgroup`, of a threadgroup.
void __tm_runtime_order(GroupState *group, uint32_t simdgroup, uint32_t flags,
                        uint32_t isThreadgroup);
void __tm_runtime_race_fence(GroupState *group, uint32_t simdgroup, uint32_t mask, uint32_t flags,
                             uint32_t order, uint32_t scope);
/// Whether a compare-and-exchange fails although the values are equal, as a weak one may.
uint32_t __tm_runtime_fails(GroupState *group, uint32_t simdgroup, uint32_t lane);
/// Whether one has since the last call.
uint32_t __tm_runtime_has_failed(GroupState *group);
/// Before a threadgroup barrier.
void __tm_runtime_barrier_flags(GroupState *group, uint32_t simdgroup, uint32_t flags);
/// Before an access of a launch that counts. `buffer` is the buffer that the addresses belong to,
/// or -1. `use` is a `Footprint::Use`.
void __tm_runtime_count_lines(const LaunchState *launch, GroupState *group, uint32_t simdgroup,
                              uint64_t *counter, const uint64_t *addresses, uint32_t mask,
                              uint32_t bytes, int32_t buffer, uint32_t site, uint32_t use);
}

} // namespace triton_metal::engine
