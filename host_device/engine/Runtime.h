// What compiled kernels call, and the threads that run them.
#pragma once

#include "host_device/engine/Code.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal::engine {

/// Names and addresses of the functions that compiled code may call.
std::vector<std::pair<const char *, void *>> runtimeSymbols();

/// Something that went wrong in a kernel.
struct FailureRecord {
  Failure failure;
  uint32_t site = ~0u;
  uint64_t address = 0;
  uint32_t lane = 0, simdgroup = 0;
  /// Of a fault.
  int signal = 0;
  std::array<uint32_t, 3> threadgroup{};
  std::string note = {};
};

/// How one launch is to be run.
struct LaunchPlan {
  KernelEntry entry = nullptr;
  /// For groups that are cut at the grid's edge.
  std::function<KernelEntry(std::array<uint32_t, 3> threads)> entryFor;
  const CodeFacts *facts = nullptr;
  LaunchState state{};
  bool needsFibers = false;
  bool clearThreadgroupMemory = false;
  std::optional<uint64_t> seed;
  uint32_t threadgroupBytes = 0;
  /// Words of counts, summed over workers when done.
  std::vector<uint64_t> counts;
  /// Nanoseconds that a threadgroup takes, as far as known (else 0); updated.
  double nanosecondsPerGroup = 0;
  std::optional<FailureRecord> failure;
};

/// Runs all threadgroups of the launch, on the calling thread and, where that pays, on the pool's.
void runLaunch(LaunchPlan &plan, unsigned numThreads);

} // namespace triton_metal::engine
