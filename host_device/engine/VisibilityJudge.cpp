// Runs a launch again with older answers of its loads, if any were in play, and compares.
#include "host_device/engine/BufferContents.h"
#include "host_device/engine/Visibility.h"

namespace triton_metal::engine {

void runWithVisibility(LaunchPlan &plan, llvm::function_ref<void()> run) {
  if ((plan.mayRunApart && runApart(plan)) || plan.only)
    return;
  const LaunchState &launch = plan.state;
  uint64_t groups =
      uint64_t(launch.threadgroups[0]) * launch.threadgroups[1] * launch.threadgroups[2];
  uint64_t threads =
      uint64_t(launch.dispatchThreads[0]) * launch.dispatchThreads[1] * launch.dispatchThreads[2];
  plan.state.trackedBuffers =
      Visibility::trackedBuffers(launch, *plan.facts, groups > 1 || threads > simdWidth);
  if (!plan.state.trackedBuffers)
    return run();
  Visibility visibility(launch, *plan.facts);
  std::vector<uint64_t> noCounts = plan.counts;
  plan.pauses = false;
  bool isFirst = true;
  auto runWith = [&](std::vector<bool> older) {
    if (!std::exchange(isFirst, false))
      plan.restoreBuffers();
    plan.counts = noCounts;
    plan.failure.reset();
    visibility.begin(std::move(older));
    plan.visibility = &visibility;
    run();
    plan.visibility = nullptr;
  };
  runWith({});
  std::vector<StaleAccess> inPlay = visibility.inPlay();
  if (plan.failure)
    return;
  if (inPlay.empty() && !plan.facts->mayWait)
    return;
  BufferContents expected(plan);
  std::vector<uint64_t> counts = plan.counts;
  size_t sites = plan.facts->sites.size();
  auto differs = [&](std::vector<bool> older) {
    runWith(std::move(older));
    return plan.failure ? plan.failure->failure != Failure::Interrupted : !expected.isUnchanged();
  };
  if (plan.facts->mayWait) {
    // A threadgroup may find others in the midst of their work.
    for (uint64_t place : {1, 2, 0}) {
      plan.pauses = true;
      plan.pausePlace = place;
      runWith({});
      plan.pauses = false;
      if (plan.failure)
        return;
    }
  }
  bool depends = !inPlay.empty() && differs(std::vector<bool>(sites, true));
  if (!depends) {
    expected.restore();
    plan.counts = counts;
    return; // plan.failure is that of an interrupted launch
  }
  // The one load that makes the difference, if there is one.
  StaleAccess access = inPlay.front();
  if (inPlay.size() > 1)
    for (const StaleAccess &candidate : inPlay) {
      std::vector<bool> older(sites);
      older[candidate.site] = true;
      if (differs(std::move(older))) {
        access = candidate;
        break;
      }
      if (plan.failure)
        break;
    }
  if (!plan.failure || plan.failure->failure != Failure::Interrupted) {
    FailureRecord record{Failure::Stale};
    record.site = access.site;
    record.lane = access.lane;
    record.simdgroup = access.simdgroup;
    uint32_t width = launch.threadgroups[0], height = launch.threadgroups[1];
    record.threadgroup = {access.group % width, access.group / width % height,
                          access.group / width / height};
    record.note = describeStale(access, *plan.facts, *plan.kernel, launch);
    plan.failure = record;
  }
}

} // namespace triton_metal::engine
