// Runs launches: their threadgroups on the cores of the machine, or in the order of a seed.
#include "host_device/engine/Guard.h"
#include "host_device/engine/PerProcess.h"
#include "host_device/engine/Pool.h"
#include "host_device/engine/Runner.h"
#include "host_device/engine/SubnormalMode.h"
#include <algorithm>
#include <chrono>
#include <numeric>

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// One thread, in the order of a seed
//===----------------------------------------------------------------------===//

/// The order of the threadgroups of a portable launch. They run one after the other, as nothing
/// promises that two run at the same time.
static std::vector<uint32_t> portableOrder(uint64_t seed, uint64_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  switch (seed % 4) {
  case 0:
    Random(seed).shuffle(order);
    break;
  case 1:
    std::reverse(order.begin(), order.end());
    break;
  case 2: { // by a stride that visits all of them
    uint64_t stride = count / 2 | 1;
    while (std::gcd(stride, count) != 1)
      stride += 2;
    for (uint64_t i = 0; i != count; ++i)
      order[i] = i * stride % count;
    break;
  }
  default: // as they are numbered
    break;
  }
  return order;
}

static void runSeeded(LaunchPlan &plan, uint64_t groups) {
  std::optional<SubnormalMode> mode;
  if (plan.portableRun)
    mode.emplace(plan.portableRun->flushResults, plan.portableRun->flushOperands);
  std::optional<TimeLimit> limit;
  if (plan.timeLimit)
    limit.emplace(*plan.timeLimit);
  Part part(plan);
  Runner &runner = Runner::ofThisThread();
  if (plan.portable && !plan.pauses) {
    std::vector<uint32_t> order = portableOrder(*plan.seed, groups);
    part.order = order.data();
    runner.run(plan, 0, groups, part);
  } else {
    runner.runSchedule(plan, groups, part);
  }
  if (part.failure && limit && limit->hasExpired())
    part.failure->failure = Failure::Endless;
  part.addTo(plan);
}

//===----------------------------------------------------------------------===//
// Several threads
//===----------------------------------------------------------------------===//

bool runOnThreads(unsigned helpers, const std::function<void()> &work) {
  return perProcess<Pool>().tryRun(helpers, work);
}

void runLaunch(LaunchPlan &plan) {
  Stoppable stoppable;
  const LaunchState &state = plan.state;
  uint64_t groups = uint64_t(state.threadgroups[0]) * state.threadgroups[1] * state.threadgroups[2];
  // A schedule has one order, so it runs on one thread.
  if (plan.seed)
    return plan.portable ? runWithVisibility(plan, [&] { runSeeded(plan, groups); })
                         : runSeeded(plan, groups);
  using Clock = std::chrono::steady_clock;
  auto nanoseconds = [](Clock::duration time) {
    return double(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  };
  auto run = [&](uint64_t first, uint64_t last) {
    Part part(plan);
    auto start = Clock::now();
    bool good = Runner::ofThisThread().run(plan, first, last, part);
    part.addTo(plan);
    if (good)
      plan.nanosecondsPerGroup =
          std::max(1.0, nanoseconds(Clock::now() - start) / double(last - first));
    return good;
  };
  uint64_t first = 0, numThreads = plan.numThreads;
  if (groups > 1 && numThreads > 1 && plan.nanosecondsPerGroup == 0) {
    if (!run(0, 1))
      return;
    first = 1;
  }
  double perGroup = plan.nanosecondsPerGroup;
  constexpr double worthWaking = 20000;
  if (groups - first > 1 && numThreads > 1 && perGroup * double(groups - first) > worthWaking) {
    unsigned helpers = std::min(numThreads - 1, groups - first - 1);
    Pieces pieces(first, groups,
                  std::clamp<uint64_t>((groups - first) / (numThreads * 16), 1,
                                       std::max<uint64_t>(1, uint64_t(200000 / perGroup))));
    std::mutex mutex;
    auto start = Clock::now();
    auto work = [&] {
      Stoppable stoppable;
      Part part(plan);
      Runner &runner = Runner::ofThisThread();
      for (uint64_t from, to; pieces.take(from, to);)
        if (!runner.run(plan, from, to, part))
          pieces.stop();
      std::lock_guard lock(mutex);
      part.addTo(plan);
    };
    if (runOnThreads(helpers, work)) {
      plan.nanosecondsPerGroup =
          std::max(1.0, nanoseconds(Clock::now() - start) * std::min<uint64_t>(numThreads, groups) /
                            double(groups - first));
      return;
    }
  }
  if (first != groups)
    run(first, groups);
}

} // namespace triton_metal::engine
