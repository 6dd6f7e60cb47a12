#include "host_device/engine/Checked.h"
#include "host_device/engine/BufferContents.h"
#include "host_device/engine/Guard.h"
#include "host_device/engine/Pool.h"
#include "host_device/engine/Races.h"
#include "host_device/engine/Runner.h"
#include "host_device/engine/Visibility.h"
#include <algorithm>
#include <numeric>

namespace triton_metal::engine {

static uint64_t countGroups(const LaunchPlan &plan) {
  const LaunchState &launch = plan.state;
  return uint64_t(launch.threadgroups[0]) * launch.threadgroups[1] * launch.threadgroups[2];
}

/// The buffers that the launch may write, and all that share memory with them.
static uint32_t trackedBuffers(const LaunchPlan &plan) {
  uint32_t tracked = 0;
  for (uint32_t index = 0; index != maxBufferBindings; ++index)
    if ((plan.facts->writtenBuffers >> index & 1) && plan.state.bufferBytes[index] &&
        plan.state.bufferWritable[index])
      tracked |= 1u << index;
  return Visibility::withOverlapping(plan.state, tracked);
}

/// The first buffer of which the launch has not written a byte.
static void findMissing(LaunchPlan &plan, Races &races, uint32_t wholeBuffers) {
  for (uint32_t index = 0; index != maxBufferBindings; ++index) {
    if (!(wholeBuffers >> index & 1) || !plan.state.bufferBytes[index])
      continue;
    auto start = uint64_t(plan.state.bufferStarts[index]);
    std::optional<Races::Unwritten> missing;
    if (plan.state.trackedBuffers >> index & 1)
      missing = races.findUnwritten(start, plan.state.bufferBytes[index]);
    else
      missing = Races::Unwritten{0, plan.state.bufferBytes[index]};
    if (!missing)
      continue;
    FailureRecord record{Failure::Missing};
    record.address = uint64_t(index) << 48 | missing->first;
    record.note = "; " + std::to_string(missing->count) + " of its " +
                  std::to_string(plan.state.bufferBytes[index]) + " bytes have no value";
    plan.failure = record;
    return;
  }
}

/// Runs all threadgroups on so many threads. Returns whether it did, or on one.
static bool run(LaunchPlan &plan, unsigned numThreads, uint32_t wholeBuffers) {
  uint64_t groups = countGroups(plan);
  std::vector<uint32_t> order;
  if (plan.seed) {
    order.resize(groups);
    std::iota(order.begin(), order.end(), 0);
    Random(*plan.seed).shuffle(order);
  }
  std::optional<Races> races;
  if (plan.checks.races || plan.checks.outputs)
    races.emplace(plan);
  numThreads = std::min<uint64_t>(numThreads, groups);
  Pieces pieces(0, groups, std::max<uint64_t>(1, groups / (numThreads * uint64_t(8))));
  std::mutex mutex;
  auto work = [&] {
    Stoppable stoppable;
    Part part(plan);
    part.order = order.empty() ? nullptr : order.data();
    if (races)
      part.races = &races->add();
    for (uint64_t from, to; pieces.take(from, to);)
      if (!Runner::ofThisThread().run(plan, from, to, part))
        pieces.stop();
    std::lock_guard lock(mutex);
    part.addTo(plan);
  };
  auto start = std::chrono::steady_clock::now();
  bool several = numThreads > 1 && runOnThreads(numThreads - 1, work);
  if (!several)
    work();
  if (plan.failure)
    return several;
  std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  plan.nanosecondsPerGroup =
      std::max(1.0, time.count() * (several ? numThreads : 1) / double(groups));
  if (races && plan.checks.races && races->wasFound())
    plan.failure = FailureRecord{Failure::Race};
  else if (races && wholeBuffers)
    findMissing(plan, *races, wholeBuffers);
  return several;
}

/// Gives the buffers their content back, except for those that keep what was written.
static void restoreOthers(const LaunchPlan &plan, BufferContents &before, uint32_t keptBuffers) {
  std::vector<std::pair<char *, std::vector<char>>> kept;
  for (uint32_t index = 0; index != maxBufferBindings; ++index)
    if (keptBuffers >> index & 1) {
      auto *start = static_cast<char *>(plan.state.bufferStarts[index]);
      kept.emplace_back(start, std::vector<char>(start, start + plan.state.bufferBytes[index]));
    }
  before.restore();
  for (auto &[start, bytes] : kept)
    std::copy(bytes.begin(), bytes.end(), start);
}

void runChecked(LaunchPlan &plan, uint32_t wholeBuffers, uint32_t keptBuffers) {
  Stoppable stoppable;
  plan.state.trackedBuffers = trackedBuffers(plan);
  BufferContents before(plan);
  const std::vector<uint64_t> counts = plan.counts;
  constexpr double worthWaking = 30000;
  unsigned numThreads = plan.numThreads;
  // Fences order what has happened before, so threadgroups run in their order.
  if (plan.seed || (plan.checks.races && plan.facts->hasFences) ||
      (plan.nanosecondsPerGroup &&
       plan.nanosecondsPerGroup * double(countGroups(plan)) < worthWaking))
    numThreads = 1;
  bool several = run(plan, numThreads, wholeBuffers);
  if (several && plan.failure && plan.failure->failure != Failure::Interrupted &&
      plan.failure->failure != Failure::Missing) {
    // The first failure in the order of threadgroups.
    before.restore();
    FailureRecord found = *plan.failure;
    plan.failure.reset();
    plan.counts = counts;
    run(plan, 1, wholeBuffers);
    // Two host threads that have stored the same value may have been taken for a race.
    if (!plan.failure && (found.failure != Failure::Race || found.site != ~0u))
      plan.failure = found;
  }
  if (plan.failure)
    restoreOthers(plan, before, keptBuffers);
  before.keepMemory();
}

} // namespace triton_metal::engine
