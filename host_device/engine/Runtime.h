// The functions that compiled kernels call, and the threads that run kernels.
#pragma once

#include "host_device/engine/Code.h"
#include "host_device/engine/Footprint.h"
#include "host_device/engine/Portable.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal {
struct Trace;
struct TracedThreadgroup;
} // namespace triton_metal

namespace triton_metal::engine {

class Visibility;

/// What GroupState::trace points to.
struct TraceRecord {
  Trace *trace = nullptr;
  TracedThreadgroup *group = nullptr;
};

/// Names and addresses of the functions that compiled code may call.
std::vector<std::pair<const char *, void *>> runtimeSymbols();

/// The failure of a kernel.
struct FailureRecord {
  Failure failure;
  uint32_t site = ~0u;
  uint64_t address = 0;
  uint32_t lane = 0, simdgroup = 0;
  /// For a fault.
  int signal = 0;
  std::array<uint32_t, 3> threadgroup{};
  std::string note = {};
  /// The threads of that threadgroup, which may be cut.
  std::array<uint32_t, 3> threads{};
  /// The address of its threadgroup memory.
  uint64_t threadgroupMemory = 0;
  /// For a race: the access that came first.
  struct Other {
    uint32_t site = ~0u;
    std::array<uint32_t, 3> threadgroup{};
    uint32_t thread = 0;
    /// Both store the same value.
    bool isSame = false;
  } other = {};
};

/// The plan of a launch.
struct LaunchPlan {
  KernelEntry entry = nullptr;
  /// Returns the code for groups that are cut at the edge of the grid.
  std::function<KernelEntry(std::array<uint32_t, 3> threads)> entryFor;
  const CodeFacts *facts = nullptr;
  LaunchState state{};
  bool needsFibers = false;
  /// The bytes of stack that a SIMD-group needs.
  uint64_t stackBytes = 0;
  bool clearThreadgroupMemory = false;
  std::optional<uint64_t> seed;
  /// Whether the launch is portable, and the seed of its choices. `seed` is set then.
  bool portable = false;
  uint64_t portableSeed = 0;
  /// What one run of a portable launch draws and records.
  PortableRun *portableRun = nullptr;
  uint32_t threadgroupBytes = 0;
  /// The counts, summed over all workers at the end.
  std::vector<uint64_t> counts;
  /// The memory that a launch that counts has touched, in all of its runs.
  std::unique_ptr<Footprint> footprint;
  /// The measured nanoseconds of a threadgroup, or 0 if unknown. Updated by the launch.
  double nanosecondsPerGroup = 0;
  std::optional<FailureRecord> failure;
  /// Keeps the addresses of accesses of some threadgroups, if it is not null.
  Trace *trace = nullptr;
  /// The signature of the kernel, for messages.
  const KernelInfo *kernel = nullptr;
  Checks checks;
  /// What threadgroups see of each other's stores, in a portable launch.
  Visibility *visibility = nullptr;
  /// Gives the buffers their content from before a portable launch.
  std::function<void()> restoreBuffers;
  /// How long a run of a portable launch may take.
  std::optional<std::chrono::nanoseconds> timeLimit;
  unsigned numThreads = 1;
  /// Whether a portable launch first runs on several threads, and finds out whether its SIMD-groups
  /// share memory. Cleared if they do.
  bool mayRunApart = true;
  /// Whether the last run did that and found that none do.
  bool ranApart = false;
  /// If it is not null, only these threadgroups run, by their numbers.
  const std::vector<uint32_t> *only = nullptr;
  /// The chunks of memory (BufferContents.h) that such a run has written.
  std::vector<uint64_t> written;
  /// Threadgroups are paused until no other can run: behind so many atomics, or, if it is 0, at
  /// some that the seed draws.
  bool pauses = false;
  uint64_t pausePlace = 0;
};

/// Shows the threadgroup memory that has been written to all threads, if all of them have passed a
/// barrier that orders it (ThreadgroupOrder.cpp).
void passBarrier(GroupState &group, uint32_t threadgroupBytes);

/// Lets other threadgroups run before the next atomic of this one, if the launch is to.
void pauseThreadgroup(GroupState &group);

/// Runs all threadgroups of the launch on the calling thread, and on the threads of the pool if
/// that is worthwhile.
void runLaunch(LaunchPlan &plan);

/// Calls `work` on this thread and on so many others. Returns false without calling it if the
/// threads are in use.
bool runOnThreads(unsigned helpers, const std::function<void()> &work);

/// Runs the threadgroups of a portable launch on several threads (Apart.cpp). Returns false if they
/// share memory or fail: the buffers are then as before.
bool runApart(LaunchPlan &plan);

/// Calls `run`, which runs all threadgroups of a portable launch one after the other. If loads may
/// get older values than they got, runs again with these. If the results then differ, the launch
/// fails, and its buffers are as before (VisibilityJudge.cpp).
void runWithVisibility(LaunchPlan &plan, llvm::function_ref<void()> run);

} // namespace triton_metal::engine
