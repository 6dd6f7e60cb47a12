// Portable launches on several threads, for kernels whose SIMD-groups share no memory.
#include "host_device/engine/Guard.h"
#include "host_device/engine/Owners.h"
#include "host_device/engine/Pool.h"
#include "host_device/engine/Runner.h"
#include "host_device/engine/SubnormalMode.h"
#include <algorithm>

namespace triton_metal::engine {

bool runApart(LaunchPlan &plan) {
  plan.state.trackedBuffers = plan.mayRunApart ? Sharing::trackedBuffers(plan) : 0;
  if (!plan.state.trackedBuffers) {
    plan.mayRunApart = false;
    return false;
  }
  Sharing sharing(plan);
  if (!sharing.isPossible())
    return plan.mayRunApart = false;
  std::vector<uint64_t> noCounts = plan.counts;
  const LaunchState &launch = plan.state;
  uint64_t groups = plan.only ? plan.only->size()
                              : uint64_t(launch.threadgroups[0]) * launch.threadgroups[1] *
                                    launch.threadgroups[2];
  Pieces pieces(0, groups, std::max<uint64_t>(1, groups / (plan.numThreads * uint64_t(8))));
  std::mutex mutex;
  // A thread may end before another one begins.
  const PortableRun empty = *plan.portableRun;
  auto work = [&] {
    Stoppable stoppable;
    SubnormalMode mode(empty.flushResults, empty.flushOperands);
    std::optional<TimeLimit> limit;
    if (plan.timeLimit)
      limit.emplace(*plan.timeLimit);
    PortableRun run = empty;
    Part part(plan);
    part.portable = &run;
    part.order = plan.only ? plan.only->data() : nullptr;
    part.owners = &sharing.add();
    for (uint64_t from, to; pieces.take(from, to);)
      if (!Runner::ofThisThread().run(plan, from, to, part))
        pieces.stop();
    std::lock_guard lock(mutex);
    part.addTo(plan);
    plan.portableRun->add(run);
  };
  unsigned helpers = std::min<uint64_t>(plan.numThreads, groups) - 1;
  constexpr double worthWaking = 30000;
  if (plan.nanosecondsPerGroup && plan.nanosecondsPerGroup * double(groups) < worthWaking)
    helpers = 0;
  auto start = std::chrono::steady_clock::now();
  if (!helpers || !runOnThreads(helpers, work)) {
    helpers = 0;
    work();
  }
  std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  plan.nanosecondsPerGroup = std::max(1.0, time.count() * (helpers + 1) / double(groups));
  if (!plan.failure && !sharing.wasFound()) {
    if (plan.only)
      plan.written = sharing.writtenChunks();
    return plan.ranApart = true;
  }
  plan.restoreBuffers();
  plan.counts = noCounts;
  plan.failure.reset();
  plan.portableRun->clear();
  return plan.mayRunApart = false;
}

} // namespace triton_metal::engine
