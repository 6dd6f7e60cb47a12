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
    thread.published = groupPublished;
    thread.releases = !groupPublished.empty();
    active.push_back(number);
  }
  return thread;
}

void Fences::enter(uint64_t start, uint64_t threadgroupMemory, uint64_t bytes) {
  places.erase(places.lower_bound(threadgroupMemory),
               places.lower_bound(threadgroupMemory + bytes));
  groupStart = start;
  groupKnown.clear();
  groupPublished.clear();
  for (uint32_t number : active)
    threads[number] = {};
  active.clear();
}

void Fences::fence(uint32_t number, bool acquires, bool releases, uint64_t ordered, uint64_t time) {
  Thread &thread = of(number);
  if (acquires) {
    join(thread.known, thread.observed);
    thread.observed.clear();
  }
  if (!releases)
    return;
  thread.published = thread.known;
  thread.published[{groupStart, number}] = {groupStart, ordered, time, number};
  thread.releases = true;
}

void Fences::atomic(uint32_t number, uint64_t address, const Atomic &atomic, uint64_t ordered,
                    uint64_t time) {
  Thread &thread = of(number);
  Clock &place = places[address];
  if (atomic.reads)
    join(atomic.acquires ? thread.known : thread.observed, place);
  if (!atomic.writes)
    return;
  if (!atomic.reads)
    place.clear();
  if (thread.releases)
    join(place, thread.published);
  if (!atomic.releases)
    return;
  Clock own = thread.known;
  own[{groupStart, number}] = {groupStart, ordered, time, number};
  join(place, own);
}

void Fences::barrier(bool all, uint64_t time) {
  for (uint32_t number : active)
    join(groupKnown, threads[number].known);
  if (all) {
    groupPublished = groupKnown;
    groupPublished[{groupStart, 0}] = {groupStart, time, time, 0};
  } else {
    for (uint32_t number : active)
      join(groupPublished, threads[number].published);
  }
  // Threads begin anew from what all know, unless they have read an atomic and no fence since.
  std::erase_if(active, [&](uint32_t number) {
    Thread &thread = threads[number];
    if (thread.observed.empty()) {
      thread = {};
      return true;
    }
    thread.known = groupKnown;
    thread.published = groupPublished;
    thread.releases = !groupPublished.empty();
    return false;
  });
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
