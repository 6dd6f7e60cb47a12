// Finds accesses of two threads to one place that nothing orders, whatever the order in which the
// launch runs them.
//
// For each piece of memory (a granule) it is known which thread has written it last, and which two
// threads have read or changed it atomically since. An access is compared with these. Barriers of a
// threadgroup order all that its threads have done before with all that they do later, if their
// flags name the memory; a simdgroup_barrier does so for a SIMD-group. Two threadgroups are ordered
// by atomics with fences only (Fences.h).
#pragma once

#include "host_device/engine/Fences.h"
#include "host_device/engine/LaneEntries.h"
#include "host_device/engine/Runtime.h"
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace triton_metal::engine {

/// How an access takes part in races, as bits that are passed with AccessFlags.
enum RaceFlags : uint32_t {
  raceWrites = 64,
  raceAtomic = 128,
  raceThreadgroup = 256,
  raceAcquires = 512,
  raceReleases = 1024,
  /// It writes without reading.
  raceReplaces = 2048,
};

/// The other side of a race.
struct FoundRace {
  uint64_t address;
  uint32_t lane;
  FailureRecord::Other other;
};

/// What the lanes store.
struct Stored {
  const char *values;
  uint32_t componentBytes;
  char at(uint32_t lane, uint64_t byte) const {
    uint64_t component = byte / componentBytes;
    return values[(component * simdWidth + lane) * componentBytes + byte % componentBytes];
  }
};

/// What the threadgroups that one host thread runs access.
class RaceRecord {
public:
  /// A threadgroup begins.
  void enter(uint64_t number, const GroupState &group);
  /// All threads of the threadgroup have come to a barrier with these mem_flags.
  void passThreadgroupBarrier(uint32_t flags);
  void passSimdgroupBarrier(uint32_t simdgroup, uint32_t flags);
  void passFence(uint32_t simdgroup, uint32_t mask, uint32_t flags, uint32_t order, uint32_t scope);
  /// Returns whether there is a race. Otherwise the access is recorded.
  bool access(uint32_t simdgroup, const uint64_t *addresses, uint32_t mask, uint32_t bytes,
              uint32_t site, uint32_t flags, const Stored &stored, FoundRace &found);

private:
  friend class Races;
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  using Entry = RaceEntry;
  static constexpr unsigned threadBits = RaceBits::thread, siteBits = RaceBits::site;
  static constexpr unsigned timeShift = RaceBits::timeShift;
  static constexpr Entry atomicBit = RaceBits::atomic;
  static uint64_t timeOf(Entry entry) { return entry >> timeShift; }
  static uint32_t threadOf(Entry entry) { return entry & (maxThreadsPerThreadgroup - 1); }
  static uint32_t siteOf(Entry entry) { return entry >> threadBits & ((1u << siteBits) - 1); }
  static uint32_t simdgroupOf(Entry entry) { return threadOf(entry) / simdWidth; }

  struct Entries {
    size_t capacity = 0;
    std::unique_ptr<Entry[], Free> list;
    Entry *operator+(size_t i) const { return list.get() + i; }
    Entry &operator[](size_t i) const { return list[i]; }
  };
  struct Region {
    uint64_t start = 0, bytes = 0;
    unsigned shift = 0;
    /// The first time that counts.
    uint64_t floor = 0;
    /// The last write; two threads that have read since; and two that have changed it by atomics.
    Entries written, read, alsoRead, changed, alsoChanged;
    bool hasReads = false, hasSecondReads = false, hasChanges = false;
    /// For device memory, rows of places of which the lanes of a SIMD-group have each accessed some
    /// neighbours, in their order: one entry for all, as RowEntry says. The lists above count for a
    /// row only once it is apart.
    Entries rowWritten, rowRead;
    std::vector<uint8_t> isApart;
    /// For each chunk of device memory: 1 if it has been accessed, 3 if it has been written.
    std::vector<uint8_t> chunks;
  };
  static constexpr unsigned rowShift = 5;
  /// The entry of the first place, with the logarithm of the places of each lane in the upper bits
  /// of the site.
  struct RowEntry {
    static constexpr unsigned shiftAt = threadBits + siteBits - 3;
    static constexpr Entry shiftMask = Entry(7) << shiftAt;
    static Entry make(Entry first, unsigned laneShift) {
      return first | Entry(laneShift) << shiftAt;
    }
    static bool canMake(Entry first, unsigned laneShift) {
      return !(first & shiftMask) && laneShift < 8;
    }
    static Entry at(Entry row, size_t i) {
      return (row & ~shiftMask) + (i >> ((row & shiftMask) >> shiftAt));
    }
  };
  /// Gives each place of these its own entry.
  static void takeApart(Region &region, size_t first, size_t last) {
    if (region.isApart.empty())
      return;
    for (size_t row = first >> rowShift; row <= last >> rowShift; ++row)
      if (!region.isApart[row])
        takeApartRow(region, row);
  }
  static void takeApartRow(Region &region, size_t row);
  /// Records the access of all lanes to whole rows, if they are not apart and nothing is unordered.
  static bool tryWholeRows(Region &region, const RaceTimes &times, size_t at, size_t count,
                           unsigned laneShift, bool writes, Entry first);

  /// What orders accesses to device memory, or to threadgroup memory.
  struct Order {
    /// The time of the last barrier of the threadgroup.
    uint64_t floor = 0;
    uint64_t simdFloor[maxThreadsPerThreadgroup / simdWidth] = {};
  };

  static bool storesSame(const Region &region, size_t granule, uint64_t when, uint32_t simdgroup,
                         uint32_t site, const uint64_t *addresses, uint32_t bytes, uint32_t lane,
                         const Stored &stored, Entry last);
  /// Whether nothing orders the entry before this access.
  bool isConcurrent(const Region &region, const Order &order, Entry entry, uint32_t thread) const;
  bool checkGranule(Region &region, const Order &order, size_t granule, Entry me, uint32_t flags,
                    bool ignoresWrite, Entry &other, bool &isWrite);
  /// Records the access of all lanes at once if nothing about it is out of the ordinary.
  bool tryTogether(const uint64_t *addresses, uint32_t mask, uint32_t bytes, uint32_t flags,
                   Entry first);
  bool tryRow(Region &region, const RaceTimes &times, uint64_t from, uint32_t bytes, bool writes,
              Entry first);
  bool tryPlaces(Region &region, const RaceTimes &times, const LaneOffsets &offsets, uint32_t bytes,
                 bool writes, Entry first);
  RaceTimes timesOf(const Region &region, const Order &order, uint32_t simdgroup) const;
  static RaceLists listsOf(const Region &region);
  /// Notes a read of threadgroup memory, which is recorded only if a thread writes near it before
  /// the next barrier: most memory is written before a barrier and read behind it. Returns whether
  /// it need not be recorded now.
  bool log(const LaneOffsets &offsets, uint32_t mask, uint32_t bytes, bool isRead, Entry first);
  void recordLogged();
  void addReader(Region &region, const Order &order, size_t granule, Entry me);
  uint64_t groupOf(uint64_t time) const;

  /// Whether two threads that store the same value race.
  bool reportsSame = false;
  std::vector<Region> regions;
  Region threadgroup;
  size_t last = 0;
  Order orders[2];
  uint64_t time = 0, groupStart = 0;
  const GroupState *group = nullptr;
  const LaunchState *launch = nullptr;
  std::vector<std::pair<uint64_t, uint64_t>> groups; // the first time, and the number
  /// What orders device memory for all threads, device memory for those of one threadgroup, and
  /// threadgroup memory. Null if nothing does but barriers.
  struct AllFences {
    Fences device, local, threadgroup;
  };
  std::unique_ptr<AllFences> fences;
  /// The last access of a SIMD-group to device memory, and the last fence of it that releases all
  /// threads' to device memory.
  uint64_t lastAccess[maxThreadsPerThreadgroup / simdWidth] = {},
                                                 lastRelease[maxThreadsPerThreadgroup / simdWidth] =
                                                     {};
  bool hasReleased(uint32_t simdgroup) const;
  bool haveAllReleased() const;
  Fences::Moment momentOf(uint32_t thread, const Order &order) const;

  struct LoggedRead {
    /// From the beginning of the memory.
    uint16_t offsets[simdWidth];
    Entry first;
    uint32_t mask, bytes;
    /// The last barrier of the SIMD-group.
    uint64_t simdFloor;
  };
  static constexpr size_t mostLogged = 1024;
  std::vector<LoggedRead> logged;
  /// The pages of threadgroup memory that logged reads touch, and those that have been written
  /// since the last barrier, one bit each.
  uint64_t readPages = 0, writtenPages = 0;
  static constexpr unsigned pageShift = 9;
  static_assert(maxThreadgroupMemory >> pageShift == 64);
  void forgetLogged() {
    logged.clear();
    readPages = writtenPages = 0;
  }
};

/// What all host threads of a launch access.
class Races {
public:
  explicit Races(const LaunchPlan &plan);
  ~Races();
  Races(const Races &) = delete;

  RaceRecord &add();
  /// Whether what one host thread has run races with what another one has. To be asked at the end.
  bool wasFound();
  struct Unwritten {
    uint64_t first, count;
  };
  /// The first byte of the memory that no thread has written, and how many there are.
  std::optional<Unwritten> findUnwritten(uint64_t start, uint64_t bytes);

private:
  RaceRecord::Entries allocate(size_t count);
  void give(RaceRecord::Entries &entries, uint64_t end);

  const LaunchPlan &plan;
  uint64_t base = 0;
  std::mutex mutex;
  /// Whether threads have met in a chunk of a region, from one place to another.
  bool meetInChunk(size_t number, size_t chunk, size_t begin, size_t end);

  std::vector<std::unique_ptr<RaceRecord>> records;
};

} // namespace triton_metal::engine
