#include "host_device/engine/Races.h"
#include "host_device/engine/BufferContents.h"
#include "host_device/engine/Runner.h"
#include "host_device/engine/Visibility.h"
#include <algorithm>
#include <bit>

namespace triton_metal::engine {

static constexpr uint32_t memDevice = 1, memThreadgroup = 2; // of Metal's mem_flags

//===----------------------------------------------------------------------===//
// What orders threads
//===----------------------------------------------------------------------===//

void RaceRecord::enter(uint64_t number, const GroupState &state) {
  group = &state;
  groupStart = ++time;
  groups.push_back({time, number});
  for (Order &order : orders) {
    order.floor = groupStart;
    std::fill(std::begin(order.simdFloor), std::end(order.simdFloor), groupStart);
  }
  threadgroup.start = uint64_t(state.threadgroupMemory);
  threadgroup.floor = groupStart;
  threadgroup.hasReads = threadgroup.hasSecondReads = threadgroup.hasChanges = false;
  forgetLogged();
  if (fences)
    for (Fences *of : {&fences->device, &fences->local, &fences->threadgroup})
      of->enter(groupStart, threadgroup.start, threadgroup.bytes);
}

bool RaceRecord::hasReleased(uint32_t simdgroup) const {
  return lastRelease[simdgroup] >= groupStart && lastAccess[simdgroup] <= lastRelease[simdgroup];
}

bool RaceRecord::haveAllReleased() const {
  for (uint32_t simdgroup = 0; simdgroup != group->simdgroups; ++simdgroup)
    if (!hasReleased(simdgroup))
      return false;
  return true;
}

Fences::Moment RaceRecord::momentOf(uint32_t thread, const Order &order) const {
  return {thread, order.floor, order.simdFloor[thread / simdWidth], time};
}

void RaceRecord::passThreadgroupBarrier(uint32_t flags) {
  ++time;
  for (auto [flag, order] : {std::pair(memDevice, &orders[0]), {memThreadgroup, &orders[1]}})
    if (flags & flag) {
      order->floor = time;
      std::fill(std::begin(order->simdFloor), std::end(order->simdFloor), time);
    }
  if (flags & memThreadgroup) {
    threadgroup.hasReads = threadgroup.hasSecondReads = threadgroup.hasChanges = false;
    forgetLogged();
  }
  if (fences) {
    bool all = haveAllReleased();
    fences->device.barrier(all, time);
    fences->local.barrier(all, time);
    fences->threadgroup.barrier(false, time);
  }
}

void RaceRecord::passSimdgroupBarrier(uint32_t simdgroup, uint32_t flags) {
  ++time;
  for (auto [flag, order] : {std::pair(memDevice, &orders[0]), {memThreadgroup, &orders[1]}})
    if (flags & flag)
      order->simdFloor[simdgroup] = time;
  if (fences) {
    bool all = hasReleased(simdgroup);
    fences->device.simdBarrier(simdgroup, all, time);
    fences->local.simdBarrier(simdgroup, all, time);
    fences->threadgroup.simdBarrier(simdgroup, false, time);
  }
}

void RaceRecord::passFence(uint32_t simdgroup, uint32_t mask, uint32_t flags, uint32_t order,
                           uint32_t scope) {
  enum : uint32_t { acquire = 2, release, acquireRelease };
  enum : uint32_t { threadScope, simdgroupScope, threadgroupScope, deviceScope };
  if (!fences || scope == threadScope)
    return;
  bool releases = order >= release, acquires = order == acquire || order >= acquireRelease;
  uint32_t left = group->totalThreads - simdgroup * simdWidth;
  bool areAll = mask == ~0u || (left < simdWidth && mask == (1u << left) - 1);
  if (releases && areAll && scope >= deviceScope && (flags & memDevice))
    lastRelease[simdgroup] = time;
  for (; mask; mask &= mask - 1) {
    uint32_t thread = simdgroup * simdWidth + std::countr_zero(mask);
    if (flags & memDevice) {
      fences->local.fence(momentOf(thread, orders[0]), acquires, releases);
      if (scope >= deviceScope)
        fences->device.fence(momentOf(thread, orders[0]), acquires, releases);
    }
    if (flags & memThreadgroup)
      fences->threadgroup.fence(momentOf(thread, orders[1]), acquires, releases);
  }
  ++time;
}

uint64_t RaceRecord::groupOf(uint64_t when) const {
  auto after = std::upper_bound(groups.begin(), groups.end(), std::pair(when, ~uint64_t(0)));
  return after == groups.begin() ? 0 : (after - 1)->second;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

inline bool RaceRecord::isConcurrent(const Region &region, const Order &order, Entry entry,
                                     uint32_t thread) const {
  uint64_t when = timeOf(entry);
  if (when < region.floor || when - groupStart < order.floor - groupStart)
    return false;
  if (when >= groupStart) {
    if (threadOf(entry) == thread)
      return false;
    uint32_t simdgroup = thread / simdWidth;
    if (simdgroupOf(entry) == simdgroup && when < order.simdFloor[simdgroup])
      return false;
  }
  if (!fences)
    return true;
  auto after = std::upper_bound(groups.begin(), groups.end(), std::pair(when, ~uint64_t(0)));
  const Fences &of = &order == &orders[1] ? fences->threadgroup
                     : when >= groupStart ? fences->local
                                          : fences->device;
  return !of.isBefore(threadOf(entry), (after - 1)->first, when, thread);
}

/// Keeps two readers, so that each later writer meets one that it is not ordered with, if there is
/// one. All that a thread or a barrier orders before the new one stand for nothing more than it.
void RaceRecord::addReader(Region &region, const Order &order, size_t granule, Entry me) {
  Entry &first = region.read[granule], &second = region.alsoRead[granule];
  uint32_t thread = threadOf(me);
  bool isAtomic = me & atomicBit;
  auto gives = [&](Entry entry) {
    if (isAtomic && !(entry & atomicBit) && timeOf(entry) >= order.floor)
      return false;
    return !isConcurrent(region, order, entry, thread) || (!isAtomic && (entry & atomicBit));
  };
  bool firstGives = gives(first), secondGives = gives(second);
  if (firstGives) {
    first = me;
    if (secondGives && region.hasSecondReads)
      second = 0;
  } else if (secondGives) {
    region.hasSecondReads = true;
    second = me;
  } else if (!isAtomic) {
    auto place = [&](Entry entry) {
      return std::pair(timeOf(entry) < groupStart, simdgroupOf(entry));
    };
    if (place(first) == place(second) && place(me) != place(first))
      second = me;
  }
}

bool RaceRecord::checkGranule(Region &region, const Order &order, size_t granule, Entry me,
                              uint32_t flags, bool ignoresWrite, Entry &other, bool &isWrite) {
  uint32_t thread = threadOf(me);
  auto meets = [&](Entry entry) {
    if (!isConcurrent(region, order, entry, thread))
      return false;
    other = entry;
    return true;
  };
  bool writes = flags & raceWrites, isAtomic = flags & raceAtomic;
  isWrite = !ignoresWrite && meets(region.written[granule]);
  if (isWrite)
    return true;
  if (region.hasChanges && !isAtomic &&
      (meets(region.changed[granule]) || meets(region.alsoChanged[granule])))
    return true;
  if (!writes) {
    region.hasReads = true;
    addReader(region, order, granule, me);
    return false;
  }
  if (region.hasReads)
    for (Entry *reader : {&region.read[granule], &region.alsoRead[granule]})
      if (!(isAtomic && (*reader & atomicBit)) && meets(*reader))
        return true;
  if (!isAtomic) {
    region.written[granule] = me;
    if (region.hasReads)
      region.read[granule] = region.alsoRead[granule] = 0;
    if (region.hasChanges)
      region.changed[granule] = region.alsoChanged[granule] = 0;
    return false;
  }
  region.hasChanges = true;
  Entry &first = region.changed[granule], &second = region.alsoChanged[granule];
  if (!isConcurrent(region, order, first, thread))
    first = me;
  else if (!isConcurrent(region, order, second, thread) ||
           (simdgroupOf(first) == simdgroupOf(second) && simdgroupOf(me) != simdgroupOf(first)))
    second = me;
  return false;
}

void RaceRecord::takeApartRow(Region &region, size_t row) {
  region.isApart[row] = 1;
  size_t begin = row << rowShift, places = ((region.start + region.bytes - 1) >> region.shift) -
                                           (region.start >> region.shift) + 1;
  size_t count = std::min(places - begin, size_t(1) << rowShift);
  auto spread = [&](const Entries &rows, const Entries &list) {
    Entry entry = rows[row];
    if (timeOf(entry) < region.floor)
      return false;
    for (size_t i = 0; i != count; ++i)
      list[begin + i] = RowEntry::at(entry, i);
    return true;
  };
  spread(region.rowWritten, region.written);
  region.hasReads |= spread(region.rowRead, region.read);
}

bool RaceRecord::tryWholeRows(Region &region, const RaceTimes &times, size_t at, size_t count,
                              unsigned laneShift, bool writes, Entry first) {
  constexpr size_t length = size_t(1) << rowShift;
  if (region.isApart.empty() || at % length || count % length ||
      !RowEntry::canMake(first, laneShift))
    return false;
  size_t begin = at >> rowShift, rows = count >> rowShift;
  for (size_t i = 0; i != rows; ++i) {
    if (region.isApart[begin + i])
      return false;
    Entry me = RowEntry::make(first, laneShift) + (i << rowShift >> laneShift);
    // Two rows are of the same lanes, or most places are of two threads, as if the threads of the
    // first place were two.
    auto meets = [&](Entry entry) {
      bool isSame = !((entry ^ me) & RowEntry::shiftMask);
      return times.isConcurrent(entry, me) || (!isSame && times.isConcurrent(entry, me ^ 1));
    };
    if (meets(region.rowWritten[begin + i]) || meets(region.rowRead[begin + i]))
      return false;
  }
  const Entries &list = writes ? region.rowWritten : region.rowRead;
  for (size_t i = 0; i != rows; ++i)
    list[begin + i] = RowEntry::make(first, laneShift) + (i << rowShift >> laneShift);
  return true;
}

RaceTimes RaceRecord::timesOf(const Region &region, const Order &order, uint32_t simdgroup) const {
  return {region.floor << timeShift, groupStart << timeShift, order.floor << timeShift,
          order.simdFloor[simdgroup] << timeShift};
}

RaceLists RaceRecord::listsOf(const Region &region) {
  return {region.written.list.get(), region.read.list.get(),
          region.hasSecondReads ? region.alsoRead.list.get() : nullptr,
          region.hasChanges ? region.changed.list.get() : nullptr,
          region.hasChanges ? region.alsoChanged.list.get() : nullptr};
}

bool RaceRecord::log(const LaneOffsets &offsets, uint32_t mask, uint32_t bytes, bool isRead,
                     Entry first) {
  bool isInside = offsets.most < threadgroup.bytes;
  uint64_t from = isInside ? offsets.least >> pageShift : 0;
  uint64_t to = isInside ? std::min<uint64_t>((offsets.most + bytes - 1) >> pageShift, 63) : 63;
  uint64_t pages = ~uint64_t(0) >> (63 - to) & ~uint64_t(0) << from;
  if (!isRead) {
    writtenPages |= pages;
    if (pages & readPages)
      recordLogged();
    return false;
  }
  if ((pages & writtenPages) || !isInside)
    return false;
  if (logged.size() == mostLogged)
    recordLogged();
  LoggedRead &read = logged.emplace_back();
  for (uint32_t lane = 0; lane != simdWidth; ++lane)
    read.offsets[lane] = uint16_t(offsets.list[lane]);
  read.first = first;
  read.mask = mask;
  read.bytes = bytes;
  read.simdFloor = orders[1].simdFloor[simdgroupOf(first)];
  readPages |= pages;
  return true;
}

void RaceRecord::recordLogged() {
  // Nothing has been written there since the last barrier, so there is no race.
  std::vector<LoggedRead> reads;
  reads.swap(logged);
  readPages = 0;
  Order order = orders[1];
  for (const LoggedRead &read : reads) {
    uint64_t addresses[simdWidth];
    for (uint32_t lane = 0; lane != simdWidth; ++lane)
      addresses[lane] = threadgroup.start + read.offsets[lane];
    LaneOffsets offsets;
    findOffsets(offsets, addresses, read.mask, threadgroup.start);
    order.simdFloor[simdgroupOf(read.first)] = read.simdFloor;
    RaceTimes times = timesOf(threadgroup, order, simdgroupOf(read.first));
    if (tryPlaces(threadgroup, times, offsets, read.bytes, /*writes=*/false, read.first))
      continue;
    for (uint32_t left = read.mask; left; left &= left - 1) {
      uint32_t lane = std::countr_zero(left);
      uint64_t front = threadgroup.start >> threadgroup.shift;
      uint64_t at = (addresses[lane] >> threadgroup.shift) - front;
      uint64_t end = ((addresses[lane] + read.bytes - 1) >> threadgroup.shift) - front;
      threadgroup.hasReads = true;
      for (; at <= end; ++at)
        addReader(threadgroup, order, at, read.first | lane);
    }
  }
  reads.clear();
  reads.swap(logged);
}

bool RaceRecord::tryRow(Region &region, const RaceTimes &times, uint64_t from, uint32_t bytes,
                        bool writes, Entry first) {
  size_t perLane = bytes >> region.shift;
  if (!std::has_single_bit(perLane) || perLane << region.shift != bytes ||
      (from & ((uint64_t(1) << region.shift) - 1)) ||
      from - region.start + uint64_t(bytes) * simdWidth > region.bytes)
    return false;
  size_t at = (from >> region.shift) - (region.start >> region.shift);
  size_t count = perLane * simdWidth;
  unsigned laneShift = std::countr_zero(perLane);
  if (tryWholeRows(region, times, at, count, laneShift, writes, first))
    return true;
  takeApart(region, at, at + count - 1);
  auto *record = writes ? writeRow : readRow;
  if (!record(listsOf(region), at, count, first, laneShift, times, region.hasReads))
    return false;
  region.hasReads |= !writes;
  return true;
}

bool RaceRecord::tryPlaces(Region &region, const RaceTimes &times, const LaneOffsets &offsets,
                           uint32_t bytes, bool writes, Entry first) {
  uint64_t inGranule = (uint64_t(1) << region.shift) - 1;
  if (((offsets.bits | region.start | bytes) & inGranule) || bytes > region.bytes ||
      offsets.most > region.bytes - bytes)
    return false;
  LanePlaces places;
  places.count = bytes >> region.shift;
  if (places.count > LanePlaces::most)
    return false;
  findPlaces(places, offsets, region.shift, 0, first);
  if (!region.isApart.empty())
    for (uint64_t place : places.first)
      takeApart(region, place, place + places.count - 1);
  RaceLists lists = listsOf(region);
  if (writes)
    return writeLanes(lists, region.hasReads, places, times);
  if (!readLanes(lists, region.alsoRead.list.get(), places, times, fences != nullptr,
                 region.hasSecondReads))
    return false;
  region.hasReads = true;
  return true;
}

bool RaceRecord::tryTogether(const uint64_t *addresses, uint32_t mask, uint32_t bytes,
                             uint32_t flags, Entry first) {
  if (!mask)
    return true;
  bool writes = flags & raceWrites, isAtomic = flags & raceAtomic,
       isThreadgroup = flags & raceThreadgroup;
  uint32_t simdgroup = simdgroupOf(first);
  if (!isThreadgroup) {
    Region *region = findRegion(regions, last, addresses[std::countr_zero(mask)]);
    if (!region || isAtomic)
      return false;
    RaceTimes times = timesOf(*region, orders[0], simdgroup);
    uint64_t front = region->start >> chunkShift;
    uint8_t use = writes ? 3 : 1;
    if (mask == ~0u && (flags & accessConsecutive) &&
        tryRow(*region, times, addresses[0], bytes, writes, first)) {
      uint64_t end = addresses[simdWidth - 1] + bytes - 1;
      for (uint64_t chunk = addresses[0] >> chunkShift; chunk <= end >> chunkShift; ++chunk)
        region->chunks[chunk - front] |= use;
      return true;
    }
    LaneOffsets offsets;
    findOffsets(offsets, addresses, mask, region->start);
    if (!tryPlaces(*region, times, offsets, bytes, writes, first))
      return false;
    for (uint64_t offset : offsets.list)
      for (uint64_t at : {region->start + offset, region->start + offset + bytes - 1})
        region->chunks[(at >> chunkShift) - front] |= use;
    return true;
  }
  LaneOffsets offsets;
  findOffsets(offsets, addresses, mask, threadgroup.start);
  if (!fences && log(offsets, mask, bytes, !writes && !isAtomic, first))
    return true;
  if (isAtomic)
    return false;
  RaceTimes times = timesOf(threadgroup, orders[1], simdgroup);
  return (mask == ~0u && (flags & accessConsecutive) &&
          tryRow(threadgroup, times, addresses[0], bytes, writes, first)) ||
         tryPlaces(threadgroup, times, offsets, bytes, writes, first);
}

/// Whether a lane stores what is there already: what another lane of this store puts there, or what
/// the last thread has left in memory.
bool RaceRecord::storesSame(const Region &region, size_t granule, uint64_t when, uint32_t simdgroup,
                            uint32_t site, const uint64_t *addresses, uint32_t bytes, uint32_t lane,
                            const Stored &stored, Entry last) {
  bool isThisStore = timeOf(last) == when && siteOf(last) == site && simdgroupOf(last) == simdgroup;
  uint32_t otherLane = threadOf(last) % simdWidth;
  uint64_t number = (region.start >> region.shift) + granule;
  uint64_t from = std::max(addresses[lane], number << region.shift);
  uint64_t to = std::min(addresses[lane] + bytes, (number + 1) << region.shift);
  for (uint64_t byte = from; byte != to; ++byte) {
    char theirs;
    if (!isThisStore)
      theirs = *reinterpret_cast<const char *>(byte);
    else if (byte - addresses[otherLane] < bytes)
      theirs = stored.at(otherLane, byte - addresses[otherLane]);
    else
      return false;
    if (stored.at(lane, byte - addresses[lane]) != theirs)
      return false;
  }
  return true;
}

bool RaceRecord::access(uint32_t simdgroup, const uint64_t *addresses, uint32_t mask,
                        uint32_t bytes, uint32_t site, uint32_t flags, const Stored &stored,
                        FoundRace &found) {
  bool isThreadgroup = flags & raceThreadgroup, isAtomic = flags & raceAtomic,
       writes = flags & raceWrites;
  const Order &order = orders[isThreadgroup];
  if (!isThreadgroup)
    lastAccess[simdgroup] = time;
  site = std::min(site, (1u << siteBits) - 1);
  uint64_t when = time;
  Entry base = when << timeShift | Entry(site) << threadBits | simdgroup * simdWidth;
  if (isAtomic)
    base |= atomicBit;
  // Two lanes stand for all that read one address. By an atomic, each of them learns what fences
  // have published.
  if (!writes && (flags & accessUniform) && mask && !(fences && isAtomic))
    mask &= -mask | std::bit_floor(mask);
  if (tryTogether(addresses, mask, bytes, flags, base))
    return false;
  uint64_t markedChunk = ~uint64_t(0);
  Region *region = isThreadgroup ? &threadgroup : nullptr;
  for (; mask; mask &= mask - 1) {
    uint32_t lane = std::countr_zero(mask);
    uint64_t address = addresses[lane];
    if (!isThreadgroup && (!region || address - region->start >= region->bytes)) {
      if (!(region = findRegion(regions, last, address)))
        continue;
      markedChunk = ~uint64_t(0);
    }
    if (address - region->start >= region->bytes) // outside: the check of bounds says so
      continue;
    uint64_t end = std::min(address + bytes, region->start + region->bytes);
    if (!isThreadgroup) {
      uint64_t from = address >> chunkShift, to = (end - 1) >> chunkShift;
      if (from != markedChunk || to != markedChunk) {
        for (uint64_t chunk = from; chunk <= to; ++chunk)
          region->chunks[chunk - (region->start >> chunkShift)] |= writes ? 3 : 1;
        markedChunk = to;
      }
    }
    uint64_t front = region->start >> region->shift;
    size_t granule = (address >> region->shift) - front;
    size_t behind = ((end - 1) >> region->shift) - front + 1;
    takeApart(*region, granule, behind - 1);
    for (; granule != behind; ++granule) {
      Entry other;
      bool isWrite;
      if (!checkGranule(*region, order, granule, base | lane, flags, /*ignoresWrite=*/false, other,
                        isWrite))
        continue;
      // Stores of one value leave it whatever their order is.
      found.other.isSame = isWrite && writes && !isAtomic && stored.values &&
                           storesSame(*region, granule, when, simdgroup, site, addresses, bytes,
                                      lane, stored, other);
      if (found.other.isSame && !reportsSame &&
          !checkGranule(*region, order, granule, base | lane, flags, /*ignoresWrite=*/true, other,
                        isWrite))
        continue;
      found.other.isSame &= reportsSame;
      found.address = std::max(address, (front + granule) << region->shift);
      found.lane = lane;
      found.other.site = siteOf(other);
      found.other.thread = threadOf(other);
      uint64_t number = groupOf(timeOf(other));
      uint32_t width = launch->threadgroups[0], height = launch->threadgroups[1];
      found.other.threadgroup = {uint32_t(number % width), uint32_t(number / width % height),
                                 uint32_t(number / width / height)};
      return true;
    }
    if (fences && isAtomic) {
      uint32_t thread = simdgroup * simdWidth + lane;
      Fences::Atomic what{!(flags & raceReplaces), writes, (flags & raceAcquires) != 0,
                          (flags & raceReleases) != 0};
      fences->device.atomic(momentOf(thread, orders[0]), address, what);
      fences->local.atomic(momentOf(thread, orders[0]), address, what);
      fences->threadgroup.atomic(momentOf(thread, orders[1]), address, what);
      ++time;
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// The functions that kernels call
//===----------------------------------------------------------------------===//

extern "C" void __tm_runtime_access(GroupState *group, uint32_t simdgroup,
                                    const uint64_t *addresses, uint32_t mask, uint32_t bytes,
                                    uint32_t site, uint32_t flags, const char *values,
                                    uint32_t componentBytes) {
  FoundRace found;
  auto *races = static_cast<RaceRecord *>(group->races);
  if (races && races->access(simdgroup, addresses, mask, bytes, site, flags,
                             {values, componentBytes}, found))
    static_cast<Runner *>(group->runner)
        ->fail(Failure::Race, site, found.address, found.lane, found.other);
}

extern "C" void __tm_runtime_order(GroupState *group, uint32_t simdgroup, uint32_t flags,
                                   uint32_t isThreadgroup) {
  auto *races = static_cast<RaceRecord *>(group->races);
  if (!isThreadgroup) {
    if (races)
      races->passSimdgroupBarrier(simdgroup, flags);
  } else if (group->simdgroups == 1) {
    if (races)
      races->passThreadgroupBarrier(flags);
  } else {
    group->barrierFlags &= flags;
  }
}

extern "C" void __tm_runtime_race_fence(GroupState *group, uint32_t simdgroup, uint32_t mask,
                                        uint32_t flags, uint32_t order, uint32_t scope) {
  if (auto *races = static_cast<RaceRecord *>(group->races))
    races->passFence(simdgroup, mask, flags, order, scope);
}

} // namespace triton_metal::engine
