// What one threadgroup sees of another's stores to device memory in a portable launch.
//
// Threadgroups run one after the other on memory that always has the newest values. This file knows
// which thread stored each piece of it last, and by which means, and so whether a load of another
// thread must see that value, or may also get an older one. A load with two answers is *in play*.
// Whether the results depend on it is found by a second run that gives the older answer.
#pragma once

#include "host_device/engine/Code.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal::engine {

/// Why a load or an atomic may get an older value.
enum class Staleness : uint8_t {
  None,
  /// The store is no atomic, and its pointer is not coherent.
  PlainStore,
  /// The storing thread has no fence after a coherent store.
  NoRelease,
  /// The load is no atomic, and its pointer is not coherent.
  PlainLoad,
  /// As PlainLoad, of memory that an atomic has changed.
  PlainLoadOfAtomic,
  /// The storing thread has a fence, but only after the atomic that the loading thread knows of.
  LateRelease,
  /// The loading thread has no fence after an atomic of another threadgroup.
  NoAcquire,
  /// A relaxed atomic load of what an atomic has changed, without fences on both sides.
  RelaxedLoad,
  /// Both threads are of one threadgroup, without a barrier for device memory between them.
  NoBarrier,
};

/// A load that was in play.
struct StaleAccess {
  uint32_t site = ~0u, storeSite = ~0u;
  Staleness why = Staleness::None;
  bool isAtomic = false;
  uint64_t address = 0;
  /// The loading and the storing threadgroup, and the storing SIMD-group.
  uint32_t group = 0, storeGroup = 0, storeSimdgroup = 0;
  uint32_t simdgroup = 0, lane = 0;
};

/// The region with the address, or null. `last` is the place of the last one.
template <typename Region>
Region *findRegion(std::vector<Region> &regions, size_t &last, uint64_t address) {
  if (last < regions.size() && address - regions[last].start < regions[last].bytes)
    return &regions[last];
  for (last = 0; last != regions.size(); ++last)
    if (address - regions[last].start < regions[last].bytes)
      return &regions[last];
  return nullptr;
}

class Visibility;

/// The memory as the threads of one threadgroup see it.
struct GroupView {
  Visibility *memory = nullptr;
  uint32_t group = 0;
  /// The time of the newest atomic operation of another group that this one has read.
  uint64_t observed = 0;
  bool hasObserved = false;

  struct Pending {
    uint64_t address;
    uint32_t bytes;
    uint32_t lane;
  };
  struct Simdgroup {
    /// The barriers for device memory that this SIMD-group has come to.
    uint32_t barriers = 0;
    /// The time up to which each lane sees what has been published.
    std::array<uint64_t, simdWidth> acquired{};
    /// The lanes that have a fence after such an atomic operation.
    uint32_t fenced = 0;
    /// Coherent stores and atomics that no fence has published yet.
    std::vector<Pending> pending;
  };
  std::vector<Simdgroup> simdgroups;

  void observe(uint64_t time) {
    observed = std::max(observed, time);
    hasObserved = true;
  }
};

class Visibility {
public:
  /// The buffers of a launch whose accesses matter: those whose memory it both reads and writes.
  static uint32_t trackedBuffers(const LaunchState &launch, const CodeFacts &facts,
                                 bool severalThreads);

  /// The buffers, and all that share memory with one of them.
  static uint32_t withOverlapping(const LaunchState &launch, uint32_t buffers);
  /// The memory of the tracked buffers, each piece once: from its first byte to its end.
  static std::vector<std::pair<uint64_t, uint64_t>> trackedRanges(const LaunchState &launch);

  /// Keeps a copy of the memory of the tracked buffers, which is that from before the launch.
  Visibility(const LaunchState &launch, const CodeFacts &facts);
  ~Visibility();
  Visibility(const Visibility &) = delete;

  /// Before each run. All memory must have its value from before the launch.
  void begin(std::vector<bool> olderAnswers);
  /// Sets the view of a threadgroup that starts.
  void enter(GroupView &view, uint32_t group, uint32_t simdgroups);

  /// The first access of each site that was in play in this run, in their order.
  const std::vector<StaleAccess> &inPlay() const { return found; }

  /// The lanes of a SIMD-group that access memory.
  struct Access {
    const uint64_t *addresses;
    uint32_t mask;
    /// Of each lane.
    uint32_t bytes;
    uint32_t site, flags;

    /// The lanes and the bytes of each of them that stand for all: one lane stands for all that
    /// have its address, and for neighbours that follow it without gaps.
    std::pair<uint32_t, uint64_t> merged() const {
      uint32_t first = mask & -mask;
      if (flags & accessUniform)
        return {first, bytes};
      bool areNeighbours = mask && !(mask & (mask + first));
      if ((flags & accessConsecutive) && areNeighbours)
        return {first, uint64_t(bytes) * std::popcount(mask)};
      return {mask, bytes};
    }
  };
  /// Numbers that have been loaded: `components` of `bytes` each for every lane.
  struct Loaded {
    char *values;
    uint32_t bytes, components, laneStride, componentStride;
  };
  void store(GroupView &view, uint32_t simdgroup, const Access &access);
  void load(GroupView &view, uint32_t simdgroup, const Access &access, const Loaded &loaded);
  void atomic(GroupView &view, uint32_t simdgroup, const Access &access);
  void fence(GroupView &view, uint32_t simdgroup, uint32_t mask, bool releases, bool acquires);

private:
  enum class Kind : uint8_t { Plain, Pending, Published, Atomic };
  /// The stores of one SIMD-group to the granules of a line: those with a bit in `mask`.
  struct Record {
    uint32_t mask;
    /// The next record of the line plus one, or 0.
    uint32_t next;
    uint32_t group;
    uint32_t site;
    uint32_t barriers;
    uint16_t simdgroup;
    Kind kind;
    /// When an atomic took place.
    uint64_t time;
    /// When a fence of the storing thread followed; 0 if none did.
    uint64_t published;
  };
  /// 32 granules. A line of another run is one without stores.
  struct Line {
    uint32_t run;
    Record first;
    /// The granules for which Region::hidden and Region::previous have the older value. For others,
    /// it is the one from before the launch.
    uint32_t hidden, previous;
  };
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  struct Region {
    uint64_t start = 0, bytes = 0, capacity = 0;
    std::unique_ptr<Line[], Free> lines;
    /// The bytes before the launch; the newest that other threadgroups may see by coherent
    /// accesses; and those before the stores since the last barrier.
    std::unique_ptr<char[], Free> before, hidden, previous;
  };
  /// Memory of this thread's earlier launches, and the number of the next run.
  struct Kept {
    std::vector<Region> regions;
    uint32_t runs = 0;
  };
  static Kept &kept();
  static constexpr uint64_t mostKept = 16 << 20;
  Region allocate(uint64_t start, uint64_t bytes) const;
  /// The line, or null if nothing is stored there.
  Line *lineWithStores(const Region &region, uint64_t number) const {
    Line &line = region.lines[number];
    return line.run == run && line.first.mask ? &line : nullptr;
  }

  template <typename Body> void forEachLine(const Access &access, Body &&body);
  Region *find(uint64_t address) { return findRegion(regions, last, address); }
  void put(Region &region, uint64_t line, uint32_t bits, Record record);
  void keep(const Region &region, char *copy, uint64_t line, uint32_t bits) const;
  void removeFrom(Line &line, uint32_t bits);
  void insert(Line &line, const Record &record);
  Record *next(const Record &record) { return record.next ? &extra[record.next - 1] : nullptr; }
  Staleness judge(const GroupView &view, const Record &record, uint32_t simdgroup, uint32_t lane,
                  uint32_t flags, bool getsNewest = false) const;
  static void wait(GroupView &view, uint32_t simdgroup, const Access &access);
  const char *olderBytes(const Region &region, const Line &line, unsigned granule, Staleness why,
                         uint32_t flags) const;
  bool answersOlder(const GroupView &view, const Record &record, uint32_t simdgroup, uint32_t lane,
                    uint32_t site, uint64_t address, Staleness why, bool isAtomic);
  void publish(GroupView &view, uint32_t simdgroup, const GroupView::Pending &pending);

  std::vector<Region> regions;
  size_t last = 0;
  /// The logarithm of CodeFacts::granule.
  unsigned shift = 0;
  std::vector<Record> extra;
  uint32_t freeRecord = 0;
  uint64_t now = 0;
  uint32_t run = 0;
  std::vector<bool> olderAnswers;
  std::vector<bool> known;
  std::vector<StaleAccess> found;
};

/// Describes the access in one sentence, after the line of its site.
std::string describeStale(const StaleAccess &access, const CodeFacts &facts,
                          const KernelInfo &kernel, const LaunchState &launch);

} // namespace triton_metal::engine
