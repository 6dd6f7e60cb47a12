// The memory of what is known of accesses, and what the host threads of a launch have done to each
// other.
#include "host_device/engine/BufferContents.h"
#include "host_device/engine/Chunks.h"
#include "host_device/engine/PerProcess.h"
#include "host_device/engine/Races.h"
#include "host_device/engine/Visibility.h"
#include <algorithm>
#include <bit>

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {
/// Times end here, so that they fit their bits.
constexpr uint64_t lastTime = (uint64_t(1) << 35) - (uint64_t(1) << 33);
constexpr size_t mostKeptEntries = size_t(64) << 20, mostKept = 64;
} // namespace

/// Entries of earlier launches, whose times are below the next one.
struct KeptEntries {
  std::mutex mutex;
  struct List {
    size_t capacity;
    uint64_t *entries;
    /// The next time that none of them has.
    uint64_t end;
  };
  std::vector<List> lists;
  size_t total = 0;
  uint64_t next = 1;
};

Races::Races(const LaunchPlan &plan) : plan(plan) {
  KeptEntries &kept = perProcess<KeptEntries>();
  std::lock_guard lock(kept.mutex);
  if (kept.next > lastTime) {
    for (KeptEntries::List &list : kept.lists)
      std::free(list.entries);
    kept.lists.clear();
    kept.total = 0;
    kept.next = 1;
  }
  base = kept.next;
}

RaceRecord::Entries Races::allocate(size_t count) {
  KeptEntries &kept = perProcess<KeptEntries>();
  {
    std::lock_guard lock(kept.mutex);
    auto found = std::find_if(kept.lists.begin(), kept.lists.end(), [&](const auto &candidate) {
      // Another launch may have ended since this one began.
      return candidate.end <= base && candidate.capacity >= count &&
             candidate.capacity / 8 <= count;
    });
    if (found != kept.lists.end()) {
      KeptEntries::List list = *found;
      kept.lists.erase(found);
      kept.total -= list.capacity;
      return {list.capacity, decltype(RaceRecord::Entries::list)(list.entries)};
    }
  }
  auto *list = static_cast<uint64_t *>(std::calloc(count, sizeof(uint64_t)));
  return {count, decltype(RaceRecord::Entries::list)(list)};
}

void Races::give(RaceRecord::Entries &entries, uint64_t end) {
  KeptEntries &kept = perProcess<KeptEntries>();
  if (!entries.list || kept.lists.size() >= mostKept ||
      kept.total + entries.capacity > mostKeptEntries)
    return;
  kept.total += entries.capacity;
  kept.lists.push_back({entries.capacity, entries.list.release(), end});
}

RaceRecord &Races::add() {
  auto record = std::make_unique<RaceRecord>();
  record->time = base;
  record->launch = &plan.state;
  record->reportsSame = plan.checks.sameValues;
  if (plan.facts->hasFences)
    record->fences = std::make_unique<RaceRecord::AllFences>();
  auto fill = [&](RaceRecord::Region &region, uint32_t granule) {
    region.shift = std::countr_zero(std::max(1u, granule));
    size_t count =
        ((region.start + region.bytes - 1) >> region.shift) - (region.start >> region.shift) + 1;
    region.floor = base;
    for (auto *entries :
         {&region.written, &region.read, &region.alsoRead, &region.changed, &region.alsoChanged})
      *entries = allocate(count);
  };
  for (auto [from, to] : Visibility::trackedRanges(plan.state)) {
    RaceRecord::Region region;
    region.start = from;
    region.bytes = to - from;
    fill(region, plan.facts->granule);
    region.chunks.resize(((to - 1) >> chunkShift) - (from >> chunkShift) + 1);
    size_t places =
        ((region.start + region.bytes - 1) >> region.shift) - (region.start >> region.shift) + 1;
    size_t rows = (places + (size_t(1) << RaceRecord::rowShift) - 1) >> RaceRecord::rowShift;
    region.isApart.resize(rows);
    region.rowWritten = allocate(rows);
    region.rowRead = allocate(rows);
    record->regions.push_back(std::move(region));
  }
  if (plan.threadgroupBytes) {
    record->threadgroup.bytes = plan.threadgroupBytes;
    fill(record->threadgroup, plan.facts->threadgroupGranule);
  }
  std::lock_guard lock(mutex);
  records.push_back(std::move(record));
  return *records.back();
}

Races::~Races() {
  KeptEntries &kept = perProcess<KeptEntries>();
  std::lock_guard lock(kept.mutex);
  // Another launch may have begun anew meanwhile.
  bool isOld = kept.next < base;
  for (std::unique_ptr<RaceRecord> &record : records) {
    if (isOld)
      continue;
    kept.next = std::max(kept.next, record->time + 1);
    record->regions.push_back(std::move(record->threadgroup));
    for (RaceRecord::Region &region : record->regions)
      for (auto *entries : {&region.written, &region.read, &region.alsoRead, &region.changed,
                            &region.alsoChanged, &region.rowWritten, &region.rowRead})
        give(*entries, record->time + 1);
  }
}

//===----------------------------------------------------------------------===//
// Judgement
//===----------------------------------------------------------------------===//

bool Races::meetInChunk(size_t number, size_t chunk, size_t begin, size_t end) {
  auto meet = [](unsigned a, unsigned b) { return ((a & 8) && b) || ((a & 4) && (b & 1)); };
  constexpr size_t length = size_t(1) << RaceRecord::rowShift;
  for (size_t i = begin; i != end; ++i) {
    size_t row = i >> RaceRecord::rowShift;
    if (i == begin || i % length == 0) {
      // Rows that no thread has taken apart are compared as a whole.
      bool anyApart = false;
      for (const auto &record : records)
        anyApart |= record->regions[number].isApart[row];
      if (!anyApart) {
        unsigned before = 0;
        for (const auto &record : records) {
          const RaceRecord::Region &region = record->regions[number];
          unsigned use = (RaceRecord::timeOf(region.rowRead[row]) >= region.floor ? 1 : 0) |
                         (RaceRecord::timeOf(region.rowWritten[row]) >= region.floor ? 8 : 0);
          if (meet(before, use) || meet(use, before))
            return true;
          before |= use;
        }
        i = std::min(end, (row + 1) << RaceRecord::rowShift) - 1;
        continue;
      }
      for (const auto &record : records)
        RaceRecord::takeApart(record->regions[number], i, i);
    }
    // What the threads before have done: 1 read, 2 read by atomics, 4 changed by atomics, 8
    // written.
    unsigned before = 0;
    for (const auto &record : records) {
      const RaceRecord::Region &region = record->regions[number];
      if (!(region.chunks[chunk] & 1))
        continue;
      unsigned use = 0;
      auto counts = [&](RaceRecord::Entry entry) {
        return RaceRecord::timeOf(entry) >= region.floor;
      };
      if (region.hasReads)
        for (RaceRecord::Entry entry : {region.read[i], region.alsoRead[i]})
          if (counts(entry))
            use |= entry & RaceRecord::atomicBit ? 2 : 1;
      if (region.hasChanges && (counts(region.changed[i]) || counts(region.alsoChanged[i])))
        use |= 4;
      if (counts(region.written[i]))
        use |= 8;
      if (meet(before, use) || meet(use, before))
        return true;
      before |= use;
    }
  }
  return false;
}

bool Races::wasFound() {
  if (records.size() < 2)
    return false;
  auto regionsOf = [](const RaceRecord &record) -> auto & { return record.regions; };
  return anySharedChunk(records, regionsOf,
                        [&](size_t number, size_t chunk, uint64_t from, uint64_t to) {
                          const RaceRecord::Region &region = records.front()->regions[number];
                          uint64_t first = region.start >> region.shift;
                          return meetInChunk(number, chunk, (from >> region.shift) - first,
                                             ((to - 1) >> region.shift) - first + 1);
                        });
}

std::optional<Races::Unwritten> Races::findUnwritten(uint64_t start, uint64_t bytes) {
  std::optional<Unwritten> result;
  if (records.empty())
    return bytes ? std::optional(Unwritten{0, bytes}) : std::nullopt;
  for (uint64_t byte = 0, next; byte < bytes; byte = next) {
    next = byte + 1;
    bool isWritten = false;
    for (const auto &record : records)
      for (RaceRecord::Region &region : record->regions) {
        uint64_t at = start + byte - region.start;
        if (at >= region.bytes)
          continue;
        uint64_t size = uint64_t(1) << region.shift;
        next = std::min(bytes, (((start + byte) >> region.shift) << region.shift) + size - start);
        size_t i = ((start + byte) >> region.shift) - (region.start >> region.shift);
        RaceRecord::takeApart(region, i, i);
        for (const auto *entries : {&region.written, &region.changed, &region.alsoChanged})
          isWritten |= RaceRecord::timeOf((*entries)[i]) >= region.floor;
      }
    if (isWritten)
      continue;
    if (!result)
      result = Unwritten{byte, 0};
    result->count += next - byte;
  }
  return result;
}

} // namespace triton_metal::engine
