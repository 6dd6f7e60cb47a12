// Runs several threadgroups at a time on one thread, in an order that a seed draws.
#include "host_device/engine/Runner.h"
#include <algorithm>
#include <numeric>

namespace triton_metal::engine {

/// Always runs the most urgent SIMD-group of several threadgroups that can continue. Urgencies are
/// random numbers, drawn when a SIMD-group starts and sometimes at a barrier. A SIMD-group may
/// therefore stay behind until all others have ended or wait for it, which exposes missing
/// synchronisation.
bool Runner::runSchedule(const LaunchPlan &plan, uint64_t count, Part &part) {
  Random random(*plan.seed);
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  constexpr uint64_t mostAtOnce = 4, mostPaused = 16;
  size_t atOnce =
      plan.pauses ? std::min(count, mostPaused) : std::min(count, 1 + random.next() % mostAtOnce);
  pausing = Random(*plan.seed);
  pausePlace = plan.pausePlace;
  while (groups.size() < atOnce)
    groups.push_back(std::make_unique<Group>());
  std::vector<Group *> live;
  uint64_t next = 0;
  auto start = [&](Group &group) {
    uint64_t linear = order[next++];
    if (!begin(group, plan, part))
      return false;
    placeNext(group, plan, part, linear);
    group.pausesLeft = !plan.pauses ? 0 : plan.pausePlace ? 1 : 2;
    group.status.assign(group.state.simdgroups, Group::Status::Ready);
    group.priority.resize(group.state.simdgroups);
    for (uint64_t &priority : group.priority)
      priority = random.next();
    return makeFibers(group, plan, group.state.simdgroups);
  };
  for (size_t i = 0; i != atOnce; ++i) {
    live.push_back(groups[i].get());
    if (!start(*live.back()))
      return fail(*live.back(), part);
  }
  while (!live.empty()) {
    Group *chosen = nullptr;
    uint32_t simdgroup = 0;
    // If all are paused, the last one continues. The others have not done what it may wait for.
    if (std::all_of(live.begin(), live.end(), [](Group *group) { return group->pausedAt; }))
      (*std::max_element(live.begin(), live.end(), [](Group *a, Group *b) {
        return a->pausedAt < b->pausedAt;
      }))->pausedAt = 0;
    for (Group *group : live)
      for (uint32_t i = 0; i != group->state.simdgroups && !group->pausedAt; ++i)
        if (group->status[i] == Group::Status::Ready &&
            (!chosen || group->priority[i] > chosen->priority[simdgroup])) {
          chosen = group;
          simdgroup = i;
        }
    resume(*chosen, simdgroup);
    if (event == Event::Failed)
      return fail(*chosen, part);
    if (event == Event::Paused)
      continue;
    std::vector<Group::Status> &status = chosen->status;
    status[simdgroup] = event == Event::Done ? Group::Status::Done : Group::Status::Waiting;
    if (std::count(status.begin(), status.end(), Group::Status::Ready))
      continue;
    auto waiting = uint32_t(std::count(status.begin(), status.end(), Group::Status::Waiting));
    if (!waiting) {
      if (next == count)
        live.erase(std::find(live.begin(), live.end(), chosen));
      else if (!start(*chosen))
        return fail(*chosen, part);
      continue;
    }
    if (waiting != status.size()) {
      failBarrier(*chosen, waiting);
      return fail(*chosen, part);
    }
    orderMemory(*chosen, plan);
    std::fill(status.begin(), status.end(), Group::Status::Ready);
    if (random.next() % 2)
      for (uint64_t &priority : chosen->priority)
        priority = random.next();
  }
  return true;
}

} // namespace triton_metal::engine
