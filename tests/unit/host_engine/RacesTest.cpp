// Random accesses of four SIMD-groups: the first one that races, by a list of all accesses, is the
// first one that is found.
#include "host_device/engine/Races.h"
#include "host_device/engine/Random.h"
#include "gtest/gtest.h"
#include <array>
#include <optional>
#include <vector>

using namespace triton_metal;
using namespace triton_metal::engine;

namespace {

constexpr uint32_t simdgroups = 4, memoryBytes = 2048;

/// All accesses since the threadgroup began, compared one by one.
class Reference {
public:
  void threadgroupBarrier() { ++interval; }
  void simdgroupBarrier(uint32_t simdgroup) { ++simdIntervals[simdgroup]; }
  bool access(uint32_t simdgroup, const uint64_t *offsets, uint32_t mask, uint32_t bytes,
              bool writes) {
    bool found = false;
    for (uint32_t lane = 0; lane != simdWidth; ++lane)
      if (mask >> lane & 1) {
        Access one{
            simdgroup * simdWidth + lane, offsets[lane], offsets[lane] + bytes, writes, interval,
            simdIntervals[simdgroup]};
        for (const Access &other : list)
          found |= races(one, other);
        list.push_back(one);
      }
    return found;
  }

private:
  struct Access {
    uint32_t thread;
    uint64_t from, to;
    bool writes;
    uint64_t interval, simdInterval;
  };
  static bool races(const Access &a, const Access &b) {
    bool sameSimdgroup = a.thread / simdWidth == b.thread / simdWidth;
    return a.thread != b.thread && a.from < b.to && b.from < a.to && (a.writes || b.writes) &&
           a.interval == b.interval && !(sameSimdgroup && a.simdInterval != b.simdInterval);
  }
  std::vector<Access> list;
  uint64_t interval = 0;
  std::array<uint64_t, simdgroups> simdIntervals{};
};

struct Step {
  uint64_t offsets[simdWidth];
  uint32_t simdgroup, mask, bytes, flags;
};

/// Accesses of the kinds that code has: rows, columns, one place for all, and places at random. A
/// thread mostly keeps to its own, so that many steps pass without a race.
Step draw(Random &random) {
  Step step{};
  step.simdgroup = random.next() % simdgroups;
  step.mask = random.next() % 3 ? ~0u : uint32_t(random.next() & random.next());
  step.bytes = 4 << random.next() % 3;
  bool writes = random.next() % 3 == 0;
  step.flags = writes ? raceWrites : 0;
  uint64_t kind = random.next() % 6, shift = random.next() % 4;
  uint64_t own = step.simdgroup * (memoryBytes / simdgroups);
  if (!writes && random.next() % 2)
    own = shift * (memoryBytes / simdgroups);
  for (uint64_t lane = 0; lane != simdWidth; ++lane) {
    uint64_t at;
    if (kind < 3)
      at = own + lane * step.bytes;
    else if (kind == 3)
      at = own + lane % 8 * 4 * step.bytes + lane / 8 * step.bytes;
    else if (kind == 4 && !writes)
      at = own;
    else
      at = own + (lane * 5 + shift) % simdWidth * step.bytes;
    step.offsets[lane] = at % memoryBytes;
  }
  if (kind < 3)
    step.flags |= accessConsecutive;
  else if (kind == 4 && !writes)
    step.flags |= accessUniform;
  if (random.next() % 16 == 0) {
    step.flags &= ~uint32_t(accessConsecutive | accessUniform);
    step.offsets[random.next() % simdWidth] = random.next() % (memoryBytes / 16) * 16;
  }
  return step;
}

void compare(bool isThreadgroup) {
  alignas(128) static char memory[memoryBytes];
  unsigned longest = 0, found = 0;
  for (uint64_t seed = 0; seed != 3000; ++seed) {
    Random random(seed);
    CodeFacts facts;
    facts.granule = facts.threadgroupGranule = 4;
    LaunchPlan plan;
    plan.facts = &facts;
    std::fill(std::begin(plan.state.threadgroups), std::end(plan.state.threadgroups), 1);
    GroupState group{};
    group.simdgroups = simdgroups;
    group.totalThreads = simdgroups * simdWidth;
    group.threadgroupMemory = memory;
    if (isThreadgroup) {
      plan.threadgroupBytes = memoryBytes;
    } else {
      plan.state.bufferStarts[0] = memory;
      plan.state.bufferBytes[0] = memoryBytes;
      plan.state.trackedBuffers = 1;
    }
    Races races(plan);
    RaceRecord &record = races.add();
    record.enter(0, group);
    Reference reference;
    uint32_t flag = isThreadgroup ? 2 : 1;
    for (unsigned number = 0; number != 60; ++number) {
      uint64_t what = random.next() % 10;
      if (what < 2) {
        record.passThreadgroupBarrier(flag);
        reference.threadgroupBarrier();
        continue;
      }
      if (what == 2) {
        uint32_t simdgroup = random.next() % simdgroups;
        record.passSimdgroupBarrier(simdgroup, flag);
        reference.simdgroupBarrier(simdgroup);
        continue;
      }
      Step step = draw(random);
      uint64_t addresses[simdWidth];
      for (uint32_t lane = 0; lane != simdWidth; ++lane)
        addresses[lane] = uint64_t(memory) + step.offsets[lane];
      bool expected = reference.access(step.simdgroup, step.offsets, step.mask, step.bytes,
                                       step.flags & raceWrites);
      FoundRace race;
      bool got = record.access(step.simdgroup, addresses, step.mask, step.bytes, number,
                               step.flags | (isThreadgroup ? raceThreadgroup : 0), {}, race);
      ASSERT_EQ(got, expected) << "seed " << seed << ", step " << number;
      longest = std::max(longest, number);
      if (got) {
        ++found;
        EXPECT_LT(race.other.site, number + 1);
        break;
      }
    }
  }
  EXPECT_GT(longest, 50u);
  EXPECT_GT(found, 1000u);
}

} // namespace

TEST(Races, FirstRaceInThreadgroupMemoryIsFound) { compare(true); }
TEST(Races, FirstRaceInDeviceMemoryIsFound) { compare(false); }
