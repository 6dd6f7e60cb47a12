// Whether SIMD-groups share memory, against a model that keeps sets of them.
#include "host_device/engine/Owners.h"
#include "host_device/engine/BufferContents.h"
#include "tests/unit/host_engine/Support.h"
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace triton_metal;
using namespace triton_metal::engine;
using namespace triton_metal::testing;

namespace {

/// A launch that loads and stores the bytes of `memory`.
struct Launch {
  Launch(std::vector<char> &memory, size_t skip, uint32_t granule, uint32_t groups,
         uint32_t simdgroups) {
    facts.granule = granule;
    facts.writtenBuffers = facts.loadedBuffers = facts.storedBuffers = facts.usedBuffers = 1;
    plan.facts = &facts;
    plan.state.bufferStarts[0] = plan.state.buffers[0] = memory.data() + skip;
    plan.state.bufferBytes[0] = memory.size() - skip;
    plan.state.bufferWritable[0] = 1;
    plan.state.threadgroups[0] = groups;
    plan.state.threadgroups[1] = plan.state.threadgroups[2] = 1;
    plan.state.dispatchThreads[0] = simdgroups * simdWidth;
    plan.state.dispatchThreads[1] = plan.state.dispatchThreads[2] = 1;
    plan.state.trackedBuffers = Sharing::trackedBuffers(plan);
  }
  CodeFacts facts;
  LaunchPlan plan;
};

/// Who has read and written each granule.
struct Model {
  std::map<uint64_t, std::pair<std::set<uint32_t>, std::set<uint32_t>>> granules;
  bool isShared() const {
    for (const auto &[granule, use] : granules) {
      const auto &[readers, writers] = use;
      std::set<uint32_t> all = readers;
      all.insert(writers.begin(), writers.end());
      if (!writers.empty() && all.size() > 1)
        return true;
    }
    return false;
  }
};

TEST(Owners, FindWhatAModelFinds) {
  std::mt19937_64 random(7);
  unsigned found = 0, trials = 4000;
  for (unsigned trial = 0; trial != trials; ++trial) {
    auto draw = [&](uint64_t below) { return uint64_t(random() % below); };
    uint32_t granule = 1u << draw(4), groups = 1 + draw(6), simdgroups = 1 + draw(3);
    unsigned threads = 1 + draw(3);
    // Across several chunks, or within one.
    std::vector<char> memory(draw(2) ? 3 << chunkShift : 600);
    auto base = uint64_t(memory.data());
    size_t skip = -base % granule;
    Launch launch(memory, skip, granule, groups, simdgroups);
    ASSERT_EQ(launch.plan.state.trackedBuffers, 1u);
    Sharing sharing(launch.plan);
    ASSERT_TRUE(sharing.isPossible());
    std::vector<Owners *> owners;
    for (unsigned i = 0; i != threads; ++i)
      owners.push_back(&sharing.add());
    Model model;
    // Most threadgroups keep to themselves, so that both answers are frequent.
    uint64_t size = memory.size() - skip, all = size / granule;
    bool strays = draw(2);
    for (uint32_t group = 0; group != groups; ++group) {
      Owners &own = *owners[draw(threads)];
      own.enter(group);
      for (unsigned access = 1 + draw(4); access--;) {
        uint32_t simdgroup = draw(simdgroups), number = group * simdgroups + simdgroup;
        uint64_t share = all / (groups * simdgroups), first = share * number;
        if (strays && draw(4) == 0)
          first = draw(all - share + 1);
        bool isStore = draw(3) == 0;
        uint64_t addresses[simdWidth];
        uint64_t most = std::min<uint64_t>(4, share / simdWidth);
        uint32_t flags = 0, bytes = granule;
        uint32_t mask = draw(2) ? ~0u : uint32_t(random());
        unsigned pattern = draw(3);
        if (pattern == 0 && most) {
          flags = accessConsecutive;
          bytes = granule * (1 + draw(most));
        } else if (pattern == 1) {
          flags = accessUniform;
        }
        uint64_t from = pattern == 0 && most ? draw(share - bytes / granule * simdWidth + 1) : 0;
        uint64_t one = draw(share);
        for (unsigned lane = 0; lane != simdWidth; ++lane) {
          uint64_t place = flags & accessConsecutive ? from + lane * (bytes / granule)
                           : flags & accessUniform   ? one
                                                     : draw(share);
          addresses[lane] = base + skip + (first + place) * granule;
        }
        for (unsigned lane = 0; lane != simdWidth; ++lane)
          if (mask >> lane & 1)
            for (uint64_t byte = 0; byte != bytes; byte += granule) {
              auto &[readers, writers] = model.granules[addresses[lane] + byte];
              (isStore ? writers : readers).insert(number);
            }
        Visibility::Access what{addresses, mask, bytes, 0, flags};
        isStore ? own.store(simdgroup, what) : own.load(simdgroup, what);
      }
    }
    ASSERT_EQ(sharing.wasFound(), model.isShared()) << "trial " << trial;
    std::set<uint64_t> chunks, expected;
    for (uint64_t chunk : sharing.writtenChunks())
      chunks.insert(chunk);
    for (const auto &[address, use] : model.granules)
      if (!use.second.empty())
        expected.insert(address >> chunkShift);
    ASSERT_EQ(chunks, expected) << "trial " << trial;
    found += model.isShared();
  }
  EXPECT_GT(found, trials / 10);
  EXPECT_LT(found, trials / 2);
}

TEST(Owners, AreNotAskedWhereMemoryIsNotRecorded) {
  std::vector<char> memory(1024);
  Launch launch(memory, 0, 4, 4, 1);
  EXPECT_EQ(Sharing::trackedBuffers(launch.plan), 1u);
  launch.facts.updatedBuffers = 1;
  EXPECT_EQ(Sharing::trackedBuffers(launch.plan), 0u) << "atomics";
  launch.facts.updatedBuffers = 0;
  launch.facts.mayWait = true;
  EXPECT_EQ(Sharing::trackedBuffers(launch.plan), 0u) << "loops that wait";
  launch.facts.mayWait = false;
  // A buffer of constants that shares memory with the written one.
  launch.facts.usedBuffers |= 2;
  launch.plan.state.bufferStarts[1] = launch.plan.state.buffers[1] = memory.data() + 512;
  launch.plan.state.bufferBytes[1] = 4;
  EXPECT_EQ(Sharing::trackedBuffers(launch.plan), 0u) << "constants";
  launch.facts.loadedBuffers |= 2;
  EXPECT_EQ(Sharing::trackedBuffers(launch.plan), 3u);
}

TEST(Owners, HaveNoNumbersForTooManyGroups) {
  std::vector<char> memory(1024);
  Launch launch(memory, 0, 4, uint32_t(1) << 30, 1);
  EXPECT_FALSE(Sharing(launch.plan).isPossible());
}

TEST(Owners, StartAnewWhenTheirNumbersEnd) {
  std::vector<char> memory(1024);
  Launch launch(memory, 0, 4, 1 << 28, 1);
  uint64_t addresses[simdWidth];
  std::iota(std::begin(addresses), std::end(addresses), 0);
  for (uint64_t &address : addresses)
    address = uint64_t(memory.data()) + address * 4;
  for (unsigned run = 0; run != 10; ++run) {
    Sharing sharing(launch.plan);
    ASSERT_TRUE(sharing.isPossible());
    Owners &own = sharing.add();
    own.enter(run);
    own.store(0, {addresses, ~0u, 4, 0, accessConsecutive});
    EXPECT_FALSE(sharing.wasFound());
    own.enter(run + 1);
    own.load(0, {addresses, 1, 4, 0, 0});
    EXPECT_TRUE(sharing.wasFound());
  }
}

} // namespace
