#include "host_device/engine/LaneEntries.h"
#include <algorithm>
#include <bit>

namespace triton_metal::engine {

#if defined(__x86_64__) && defined(__linux__) && defined(__clang__) &&                             \
    !(defined(__has_feature) && __has_feature(address_sanitizer))
#define TM_WIDE __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define TM_WIDE
#endif

// Without the pragmas, clang makes straight-line code of loops with so few iterations before it
// looks for vectors.
TM_WIDE void findOffsets(LaneOffsets &result, const uint64_t *given, uint32_t mask,
                         uint64_t start) {
  const uint64_t *__restrict addresses = given;
  LaneOffsets &__restrict offsets = result;
  if (mask == ~0u) {
#pragma clang loop vectorize(enable) unroll(disable)
    for (uint32_t lane = 0; lane != simdWidth; ++lane) {
      offsets.list[lane] = addresses[lane] - start;
      offsets.lanes[lane] = lane;
    }
  } else {
    uint32_t there = std::countr_zero(mask);
    uint64_t instead = addresses[there] - start;
#pragma clang loop vectorize(enable) unroll(disable)
    for (uint32_t lane = 0; lane != simdWidth; ++lane) {
      bool isThere = mask >> lane & 1;
      offsets.list[lane] = isThere ? addresses[lane] - start : instead;
      offsets.lanes[lane] = isThere ? lane : there;
    }
  }
  uint64_t least = ~uint64_t(0), most = 0, bits = 0;
#pragma clang loop vectorize(enable) unroll(disable)
  for (uint32_t lane = 0; lane != simdWidth; ++lane) {
    uint64_t offset = offsets.list[lane];
    least = std::min(least, offset);
    most = std::max(most, offset);
    bits |= offset;
  }
  offsets.least = least;
  offsets.most = most;
  offsets.bits = bits;
}

TM_WIDE void findPlaces(LanePlaces &places, const LaneOffsets &offsets, unsigned shift,
                        uint64_t front, RaceEntry me) {
#pragma clang loop vectorize(enable) unroll(disable)
  for (uint32_t lane = 0; lane != simdWidth; ++lane) {
    places.first[lane] = front + (offsets.list[lane] >> shift);
    places.me[lane] = me | offsets.lanes[lane];
  }
}

/// Whether a lane meets an unordered access of another thread in the list.
TM_WIDE static bool meetLanes(const RaceEntry *list, const LanePlaces &places,
                              const RaceTimes &times) {
  const RaceTimes t = times;
  uint64_t bad = 0;
  for (size_t k = 0; k != places.count; ++k)
#pragma clang loop vectorize(enable) unroll(disable)
    for (size_t lane = 0; lane != simdWidth; ++lane)
      bad |= t.isConcurrent(list[places.first[lane] + k], places.me[lane]);
  return bad;
}

/// Makes the lanes the readers of one place each, if no other thread is. Returns a bit for each
/// lane that is not: another thread is, or another lane of these.
TM_WIDE static uint32_t addReaders(RaceEntry *list, const uint64_t *places, const RaceEntry *me,
                                   const RaceTimes &times) {
  const RaceTimes t = times;
  uint64_t met[simdWidth];
#pragma clang loop vectorize(enable) unroll(disable)
  for (size_t lane = 0; lane != simdWidth; ++lane) {
    RaceEntry entry = list[places[lane]];
    met[lane] = t.isConcurrent(entry, me[lane]) & ~(entry >> RaceBits::atomicShift);
  }
#pragma clang loop vectorize(assume_safety) unroll(disable)
  for (size_t lane = 0; lane != simdWidth; ++lane)
    if (!met[lane])
      list[places[lane]] = me[lane];
  uint64_t differ = 0;
#pragma clang loop vectorize(enable) unroll(disable)
  for (size_t lane = 0; lane != simdWidth; ++lane)
    differ |= list[places[lane]] ^ me[lane];
  if (!differ)
    return 0;
  uint32_t lost = 0;
  for (size_t lane = 0; lane != simdWidth; ++lane)
    lost |= uint32_t(list[places[lane]] != me[lane]) << lane;
  return lost;
}

/// Whether another thread has read one of the places.
TM_WIDE static bool haveOtherReader(const RaceEntry *list, const uint64_t *places,
                                    const RaceEntry *me, const RaceTimes &times) {
  const RaceTimes t = times;
  uint64_t met = 0;
  for (size_t lane = 0; lane != simdWidth; ++lane)
    met |= t.isConcurrent(list[places[lane]], me[lane]);
  return met & 1;
}

/// Adds lanes that share a place with another reader as second readers. If there are two already,
/// those of two SIMD-groups are better than those of one.
TM_WIDE static void addSecondReaders(const RaceEntry *first, RaceEntry *second,
                                     const uint64_t *places, const RaceEntry *me, uint32_t lanes,
                                     const RaceTimes &times) {
  const RaceTimes t = times;
  uint64_t takes[simdWidth];
  for (size_t lane = 0; lane != simdWidth; ++lane) {
    RaceEntry a = first[places[lane]], b = second[places[lane]], own = me[lane];
    uint64_t free = ~(t.isConcurrent(b, own) & ~(b >> RaceBits::atomicShift)) & 1;
    uint64_t sameGroup = uint64_t((a >= t.groupStart) == (b >= t.groupStart));
    uint64_t together = uint64_t(((a ^ b) & RaceBits::simdgroupMask) == 0) & sameGroup;
    uint64_t elsewhere =
        uint64_t(((a ^ own) & RaceBits::simdgroupMask) != 0) | uint64_t(a < t.groupStart);
    takes[lane] = (lanes >> lane & 1) & (free | (together & elsewhere));
  }
#pragma clang loop vectorize(assume_safety) unroll(disable)
  for (size_t lane = 0; lane != simdWidth; ++lane)
    if (takes[lane])
      second[places[lane]] = me[lane];
}

static bool meetWrites(const RaceLists &lists, const LanePlaces &places, const RaceTimes &times) {
  return meetLanes(lists.written, places, times) ||
         (lists.changed &&
          (meetLanes(lists.changed, places, times) || meetLanes(lists.alsoChanged, places, times)));
}

bool readLanes(const RaceLists &lists, RaceEntry *second, const LanePlaces &places,
               const RaceTimes &times, bool onlyOrdered, bool &hasSecond) {
  if (meetWrites(lists, places, times))
    return false;
  if (onlyOrdered)
    for (size_t k = 0; k != places.count; ++k)
      if (haveOtherReader(lists.read + k, places.first, places.me, times))
        return false;
  for (size_t k = 0; k != places.count; ++k) {
    uint32_t lost = addReaders(lists.read + k, places.first, places.me, times);
    if (!lost)
      continue;
    hasSecond = true;
    addSecondReaders(lists.read + k, second + k, places.first, places.me, lost, times);
  }
  return true;
}

/// Writes entries, and returns whether each lane finds its own everywhere.
TM_WIDE static bool putLanes(RaceEntry *list, const LanePlaces &places,
                             RaceEntry (*old)[simdWidth]) {
  for (size_t k = 0; k != places.count; ++k)
    for (size_t lane = 0; lane != simdWidth; ++lane)
      old[k][lane] = list[places.first[lane] + k];
  for (size_t k = 0; k != places.count; ++k)
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (size_t lane = 0; lane != simdWidth; ++lane)
      list[places.first[lane] + k] = places.me[lane];
  uint64_t differ = 0;
  for (size_t k = 0; k != places.count; ++k)
    for (size_t lane = 0; lane != simdWidth; ++lane)
      differ |= list[places.first[lane] + k] ^ places.me[lane];
  return !differ;
}

bool writeLanes(const RaceLists &lists, bool hasReads, const LanePlaces &places,
                const RaceTimes &times) {
  if (meetWrites(lists, places, times) ||
      (hasReads && (meetLanes(lists.read, places, times) ||
                    (lists.alsoRead && meetLanes(lists.alsoRead, places, times)))))
    return false;
  RaceEntry old[LanePlaces::most][simdWidth];
  if (putLanes(lists.written, places, old))
    return true;
  for (size_t k = 0; k != places.count; ++k)
    for (size_t lane = 0; lane != simdWidth; ++lane)
      lists.written[places.first[lane] + k] = old[k][lane];
  return false;
}

/// Whether an entry of a row is of another thread and unordered.
TM_WIDE static bool meetRow(const RaceEntry *list, size_t count, RaceEntry first,
                            unsigned laneShift, const RaceTimes &times) {
  const RaceTimes t = times;
  uint64_t bad = 0;
  for (size_t i = 0; i != count; ++i)
    bad |= t.isConcurrent(list[i], first + (i >> laneShift));
  return bad;
}

TM_WIDE static void setRow(RaceEntry *list, size_t count, RaceEntry first, unsigned laneShift) {
  for (size_t i = 0; i != count; ++i)
    list[i] = first + (i >> laneShift);
}

static bool accessRow(const RaceLists &lists, RaceEntry *own, size_t at, size_t count,
                      RaceEntry first, unsigned laneShift, const RaceTimes &times, bool hasReads) {
  auto meet = [&](const RaceEntry *list) {
    return list && meetRow(list + at, count, first, laneShift, times);
  };
  if (meet(lists.written) || meet(lists.changed) || meet(lists.alsoChanged) ||
      (hasReads && (meet(lists.read) || meet(lists.alsoRead))))
    return false;
  setRow(own + at, count, first, laneShift);
  return true;
}

bool readRow(const RaceLists &lists, size_t at, size_t count, RaceEntry first, unsigned laneShift,
             const RaceTimes &times, bool hasReads) {
  return accessRow(lists, lists.read, at, count, first, laneShift, times, hasReads);
}

bool writeRow(const RaceLists &lists, size_t at, size_t count, RaceEntry first, unsigned laneShift,
              const RaceTimes &times, bool hasReads) {
  // Reads that are ordered before the write may stay: whatever meets them meets the write.
  return accessRow(lists, lists.written, at, count, first, laneShift, times, hasReads);
}

} // namespace triton_metal::engine
