#include "host_device/engine/Fences.h"
#include <algorithm>

namespace triton_metal::engine {

void Fences::join(Clock &to, const Clock &from) {
  if (to.empty()) {
    to = from;
    return;
  }
  for (const auto &[key, release] : from) {
    auto [place, isNew] = to.try_emplace(key, release);
    if (isNew)
      continue;
    place->second.all = std::max(place->second.all, release.all);
    place->second.own = std::max(place->second.own, release.own);
  }
}

Fences::Thread &Fences::of(uint32_t number) {
  Thread &thread = threads[number];
  if (!thread.active) {
    thread = {};
    thread.active = true;
    thread.known = groupKnown;
    active.push_back(number);
  }
  return thread;
}

void Fences::enter(uint64_t start) {
  groupStart = start;
  groupKnown.clear();
  for (uint32_t number : active)
    threads[number] = {};
  active.clear();
}

void Fences::fence(uint32_t number, uint64_t ordered, uint64_t time) {
  Thread &thread = of(number);
  join(thread.known, thread.observed);
  thread.observed.clear();
  thread.published = thread.known;
  thread.published[{groupStart, number}] = {groupStart, ordered, time, number};
  thread.releases = true;
}

void Fences::atomic(uint32_t number, uint64_t address, bool writes, bool isOrdered,
                    uint64_t ordered, uint64_t time) {
  Thread &thread = of(number);
  if (isOrdered)
    fence(number, ordered, time);
  Clock &place = places[address];
  join(thread.observed, place);
  if (writes && thread.releases)
    join(place, thread.published);
  if (isOrdered)
    fence(number, ordered, time);
}

void Fences::barrier() {
  for (uint32_t number : active)
    join(groupKnown, threads[number].known);
  for (uint32_t number : active)
    threads[number].known = groupKnown;
}

bool Fences::isBefore(uint32_t otherThread, uint64_t start, uint64_t time, uint32_t number) const {
  const Thread &thread = threads[number];
  const Clock &known = thread.active ? thread.known : groupKnown;
  for (auto at = known.lower_bound({start, 0}); at != known.end() && at->first.first == start; ++at)
    if (time < at->second.all || (at->second.thread == otherThread && time <= at->second.own))
      return true;
  return false;
}

} // namespace triton_metal::engine
