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
    place->second.simd = std::max(place->second.simd, release.simd);
  }
}

void Fences::begin(Thread &thread, const Start &start) {
  thread.known = start.known;
  thread.published = start.published;
  thread.releases = !start.published.empty();
}

Fences::Thread &Fences::of(uint32_t number) {
  Thread &thread = threads[number];
  if (!thread.active) {
    thread = {};
    thread.active = true;
    begin(thread, startOf(number));
    active.push_back(number);
  }
  return thread;
}

void Fences::enter(uint64_t start, uint64_t threadgroupMemory, uint64_t bytes) {
  places.erase(places.lower_bound(threadgroupMemory),
               places.lower_bound(threadgroupMemory + bytes));
  groupStart = start;
  ofGroup = {};
  for (Start &own : ofSimdgroup)
    if (own.active)
      own = {};
  for (uint32_t number : active)
    threads[number] = {};
  active.clear();
}

void Fences::fence(const Moment &moment, bool acquires, bool releases) {
  Thread &thread = of(moment.thread);
  if (acquires) {
    join(thread.known, thread.observed);
    thread.observed.clear();
  }
  if (!releases)
    return;
  thread.published = thread.known;
  thread.published[{groupStart, moment.thread}] = releaseOf(moment);
  thread.releases = true;
}

void Fences::atomic(const Moment &moment, uint64_t address, const Atomic &atomic) {
  Thread &thread = of(moment.thread);
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
  own[{groupStart, moment.thread}] = releaseOf(moment);
  join(place, own);
}

void Fences::beginAnew(uint32_t first, uint32_t last, const Start &start) {
  std::erase_if(active, [&](uint32_t number) {
    if (number < first || number >= last)
      return false;
    Thread &thread = threads[number];
    if (thread.observed.empty()) {
      thread = {};
      return true;
    }
    begin(thread, start);
    return false;
  });
}

void Fences::barrier(bool all, uint64_t time) {
  for (const Start &own : ofSimdgroup)
    if (own.active)
      join(ofGroup.known, own.known);
  for (uint32_t number : active)
    join(ofGroup.known, threads[number].known);
  if (all) {
    ofGroup.published = ofGroup.known;
    ofGroup.published[{groupStart, 0}] = {groupStart, time, time, 0, time};
  } else {
    for (const Start &own : ofSimdgroup)
      if (own.active)
        join(ofGroup.published, own.published);
    for (uint32_t number : active)
      join(ofGroup.published, threads[number].published);
  }
  for (Start &own : ofSimdgroup)
    if (own.active)
      own = {};
  beginAnew(0, maxThreadsPerThreadgroup, ofGroup);
}

void Fences::simdBarrier(uint32_t simdgroup, bool all, uint64_t time) {
  uint32_t first = simdgroup * simdWidth, last = first + simdWidth;
  auto isOurs = [&](uint32_t number) { return number >= first && number < last; };
  if (std::none_of(active.begin(), active.end(), isOurs))
    return;
  Start &own = ofSimdgroup[simdgroup];
  if (!own.active)
    own = {true, ofGroup.known, ofGroup.published};
  for (uint32_t number : active)
    if (isOurs(number))
      join(own.known, threads[number].known);
  if (all) {
    own.published = own.known;
    own.published[{groupStart, first}] = {groupStart, 0, time, first, time};
  } else {
    for (uint32_t number : active)
      if (isOurs(number))
        join(own.published, threads[number].published);
  }
  beginAnew(first, last, own);
}

bool Fences::isBefore(uint32_t otherThread, uint64_t start, uint64_t time, uint32_t number) const {
  const Thread &thread = threads[number];
  const Clock &known = thread.active ? thread.known : startOf(number).known;
  for (auto at = known.lower_bound({start, 0}); at != known.end() && at->first.first == start; ++at)
    if (const Release &release = at->second;
        time < release.all || (release.thread == otherThread && time <= release.own) ||
        (release.thread / simdWidth == otherThread / simdWidth && time < release.simd))
      return true;
  return false;
}

} // namespace triton_metal::engine
