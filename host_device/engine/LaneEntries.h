// What the lanes of a SIMD-group do at once to the entries of Races.h, as loops that compilers turn
// into vector code. Each function refuses, and changes nothing, if a lane may be in a race or is
// out of the ordinary; the lanes are then judged one by one.
#pragma once

#include "host_device/KernelInfo.h"
#include <cstddef>
#include <cstdint>

namespace triton_metal::engine {

/// An entry is the time of an access, whether it was atomic, its site and its thread. Entries of
/// earlier launches, and in threadgroup memory of earlier threadgroups, count as empty.
using RaceEntry = uint64_t;

struct RaceBits {
  static constexpr unsigned thread = 10, site = 18;
  static constexpr unsigned atomicShift = thread + site, timeShift = atomicShift + 1;
  static constexpr RaceEntry atomic = RaceEntry(1) << atomicShift;
  static constexpr RaceEntry threadMask = maxThreadsPerThreadgroup - 1;
  static constexpr RaceEntry simdgroupMask = threadMask & ~RaceEntry(simdWidth - 1);
};
static_assert(RaceBits::threadMask >> RaceBits::thread == 0);

/// The times that order earlier accesses before those of a SIMD-group, shifted as in entries: what
/// counts at all, the begin of the threadgroup, the last barrier of the threadgroup, and the last
/// one of the SIMD-group.
struct RaceTimes {
  RaceEntry floor, groupStart, ordered, simdOrdered;

  /// 1 if nothing orders the entry before an access of `me`, fences aside.
  uint64_t isConcurrent(RaceEntry entry, RaceEntry me) const {
    uint64_t unordered =
        uint64_t(entry >= floor) & uint64_t(entry - groupStart >= ordered - groupStart);
    uint64_t inGroup = entry >= groupStart;
    uint64_t differs = entry ^ me;
    uint64_t own =
        uint64_t((differs & RaceBits::threadMask) == 0) |
        (uint64_t((differs & RaceBits::simdgroupMask) == 0) & uint64_t(entry < simdOrdered));
    return unordered & ~(inGroup & own) & 1;
  }
};

/// The entries of a region: the last write, two threads that have read since, and two that have
/// changed it by atomics. `alsoRead` and the last two are null if they hold nothing that counts.
struct RaceLists {
  RaceEntry *written, *read, *alsoRead;
  const RaceEntry *changed, *alsoChanged;
};

/// The places that the lanes access: `count` neighbours from `first[lane]`, which lane `lane` has
/// as thread and time `me[lane]`. Missing lanes repeat another one.
struct LanePlaces {
  static constexpr size_t most = 16;
  uint64_t first[simdWidth];
  RaceEntry me[simdWidth];
  size_t count = 0;
};

/// The addresses of the lanes of the mask, which is not 0, from `start` on: the first one, the last
/// one, and all bits that are set in one of them. Missing lanes repeat the first one that is there.
struct LaneOffsets {
  uint64_t list[simdWidth];
  uint32_t lanes[simdWidth];
  uint64_t least, most, bits;
};
void findOffsets(LaneOffsets &offsets, const uint64_t *addresses, uint32_t mask, uint64_t start);
/// Makes places of offsets to which `shift` bits are one place, from the place `front` on. `me` is
/// the entry of lane 0.
void findPlaces(LanePlaces &places, const LaneOffsets &offsets, unsigned shift, uint64_t front,
                RaceEntry me);

/// Records that the lanes read. Two readers of a place that nothing orders are kept. With
/// `onlyOrdered`, refuses if there is an unordered one. Sets `hasSecond` if it uses `alsoRead`, of
/// which `second` is the list.
bool readLanes(const RaceLists &lists, RaceEntry *second, const LanePlaces &places,
               const RaceTimes &times, bool onlyOrdered, bool &hasSecond);
/// Records that the lanes write. Refuses if two lanes write one place.
bool writeLanes(const RaceLists &lists, bool hasReads, const LanePlaces &places,
                const RaceTimes &times);

/// The same for `count` neighbours of which each `1 << laneShift` belong to one lane, in their
/// order, from `first` on. Two lanes do not meet here.
bool readRow(const RaceLists &lists, size_t at, size_t count, RaceEntry first, unsigned laneShift,
             const RaceTimes &times, bool hasReads);
bool writeRow(const RaceLists &lists, size_t at, size_t count, RaceEntry first, unsigned laneShift,
              const RaceTimes &times, bool hasReads);

} // namespace triton_metal::engine
