#include "host_device/engine/Visibility.h"
#include "host_device/engine/Guard.h"
#include "host_device/engine/Owners.h"
#include "host_device/engine/PerProcess.h"
#include "host_device/engine/Runtime.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <bit>
#include <cstring>

namespace triton_metal::engine {

static constexpr uint64_t lineGranules = 32;

//===----------------------------------------------------------------------===//
// What is tracked
//===----------------------------------------------------------------------===//

static bool overlap(const LaunchState &launch, uint32_t a, uint32_t b) {
  auto startA = uint64_t(launch.bufferStarts[a]), startB = uint64_t(launch.bufferStarts[b]);
  return launch.bufferBytes[a] && launch.bufferBytes[b] &&
         startA < startB + launch.bufferBytes[b] && startB < startA + launch.bufferBytes[a];
}

uint32_t Visibility::withOverlapping(const LaunchState &launch, uint32_t buffers) {
  uint32_t before;
  do {
    before = buffers;
    for (uint32_t a = 0; a != maxBufferBindings; ++a)
      for (uint32_t b = 0; b != maxBufferBindings; ++b)
        if ((buffers >> a & 1) && overlap(launch, a, b))
          buffers |= 1u << b;
  } while (buffers != before);
  return buffers;
}

uint32_t Visibility::trackedBuffers(const LaunchState &launch, const CodeFacts &facts,
                                    bool severalThreads) {
  if (!severalThreads)
    return 0;
  uint32_t tracked = 0;
  auto meet = [&](uint32_t readers, uint32_t writers) {
    for (uint32_t read = 0; read != maxBufferBindings; ++read)
      for (uint32_t written = 0; written != maxBufferBindings; ++written)
        if ((readers >> read & 1) && (writers >> written & 1) && launch.bufferWritable[written] &&
            overlap(launch, read, written))
          tracked |= 1u << read | 1u << written;
  };
  meet(facts.loadedBuffers, facts.writtenBuffers);
  // Atomics that write get the newest value of each other, and tell of other stores.
  meet(facts.updatedBuffers, tracked || facts.mayWait ? facts.writtenBuffers : facts.storedBuffers);
  return withOverlapping(launch, tracked);
}

std::vector<std::pair<uint64_t, uint64_t>> Visibility::trackedRanges(const LaunchState &launch) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges, merged;
  for (uint32_t index = 0; index != maxBufferBindings; ++index)
    if (launch.trackedBuffers >> index & 1)
      ranges.push_back({uint64_t(launch.bufferStarts[index]),
                        uint64_t(launch.bufferStarts[index]) + launch.bufferBytes[index]});
  std::sort(ranges.begin(), ranges.end());
  for (auto [from, to] : ranges)
    if (!merged.empty() && from < merged.back().second)
      merged.back().second = std::max(merged.back().second, to);
    else
      merged.push_back({from, to});
  return merged;
}

Visibility::Visibility(const LaunchState &launch, const CodeFacts &facts)
    : shift(std::countr_zero(std::max(1u, facts.granule))) {
  for (auto [from, to] : trackedRanges(launch)) {
    regions.push_back(allocate(from, to - from));
    std::memcpy(regions.back().before.get(), reinterpret_cast<char *>(from), to - from);
  }
  known.resize(facts.sites.size());
}

Visibility::Kept &Visibility::kept() { return perThread<Kept>(); }

Visibility::Region Visibility::allocate(uint64_t start, uint64_t bytes) const {
  std::vector<Region> &old = kept().regions;
  Region region;
  if (auto found =
          llvm::find_if(old, [&](const Region &candidate) { return candidate.capacity >= bytes; });
      found != old.end()) {
    region = std::move(*found);
    old.erase(found);
  } else {
    auto memory = [&] {
      return std::unique_ptr<char[], Free>(static_cast<char *>(std::malloc(bytes)));
    };
    region.capacity = bytes;
    region.before = memory();
    region.hidden = memory();
    region.previous = memory();
    // For granules of one byte. Fresh memory only costs something where it is used.
    size_t lines = (bytes + 16) / lineGranules + 1;
    region.lines.reset(static_cast<Line *>(std::calloc(lines, sizeof(Line))));
  }
  region.start = start;
  region.bytes = bytes;
  return region;
}

Visibility::~Visibility() {
  std::vector<Region> &old = kept().regions;
  for (Region &region : regions)
    if (region.capacity <= mostKept)
      old.push_back(std::move(region));
  constexpr size_t mostRegions = 4;
  if (old.size() > mostRegions)
    old.erase(old.begin(), old.end() - mostRegions);
}

void Visibility::begin(std::vector<bool> answers) {
  run = ++kept().runs;
  olderAnswers = std::move(answers);
  olderAnswers.resize(known.size());
  known.assign(known.size(), false);
  found.clear();
  extra.clear();
  freeRecord = 0;
  now = 0;
}

void Visibility::enter(GroupView &view, uint32_t group, uint32_t simdgroups) {
  view.memory = this;
  view.group = group;
  view.observed = 0;
  view.hasObserved = false;
  view.simdgroups.resize(simdgroups);
  for (GroupView::Simdgroup &simdgroup : view.simdgroups) {
    simdgroup.barriers = 0;
    simdgroup.acquired.fill(0);
    simdgroup.fenced = 0;
    simdgroup.pending.clear();
  }
}

//===----------------------------------------------------------------------===//
// Records of stores
//===----------------------------------------------------------------------===//

/// Calls `body(region, line, bits)` for the lines that the lanes touch. Neighbouring lanes share
/// one call.
template <typename Body> void Visibility::forEachLine(const Access &access, Body &&body) {
  Region *region = nullptr;
  uint64_t line = 0;
  uint32_t bits = 0;
  auto flush = [&] {
    if (bits)
      body(*region, line, bits);
    bits = 0;
  };
  auto [mask, bytes] = access.merged();
  for (; mask; mask &= mask - 1) {
    uint64_t address = access.addresses[std::countr_zero(mask)];
    if (!region || address - region->start >= region->bytes) {
      flush();
      region = find(address);
      if (!region)
        continue;
    }
    uint64_t base = region->start >> shift;
    uint64_t granule = (address >> shift) - base, end = ((address + bytes - 1) >> shift) - base + 1;
    while (granule != end) {
      if (granule / lineGranules != line) {
        flush();
        line = granule / lineGranules;
      }
      uint64_t from = granule % lineGranules, to = std::min(lineGranules, from + (end - granule));
      bits |= uint32_t((uint64_t(1) << to) - (uint64_t(1) << from));
      granule += to - from;
    }
  }
  flush();
}

/// Copies granules of the memory.
void Visibility::keep(const Region &region, char *copy, uint64_t line, uint32_t bits) const {
  uint64_t start = (region.start >> shift << shift) + (line * lineGranules << shift);
  while (bits) {
    unsigned from = std::countr_zero(bits), count = std::countr_one(bits >> from);
    uint64_t begin = std::max(start + (uint64_t(from) << shift), region.start);
    uint64_t end = std::min(start + (uint64_t(from + count) << shift), region.start + region.bytes);
    if (begin < end)
      std::memcpy(copy + (begin - region.start), reinterpret_cast<char *>(begin), end - begin);
    bits &= ~uint32_t(((uint64_t(1) << count) - 1) << from);
  }
}

void Visibility::removeFrom(Line &line, uint32_t bits) {
  auto release = [&](uint32_t number) {
    extra[number - 1].next = freeRecord;
    freeRecord = number;
  };
  for (uint32_t *link = &line.first.next; *link;) {
    uint32_t number = *link;
    Record &record = extra[number - 1];
    record.mask &= ~bits;
    if (record.mask) {
      link = &record.next;
    } else {
      *link = record.next;
      release(number);
    }
  }
  line.first.mask &= ~bits;
  if (uint32_t number = line.first.next; number && !line.first.mask) {
    line.first = extra[number - 1];
    release(number);
  }
}

void Visibility::insert(Line &line, const Record &record) {
  if (!line.first.mask) {
    line.first = record;
    line.first.next = 0;
    return;
  }
  for (Record *old = &line.first; old; old = next(*old))
    if (old->group == record.group && old->simdgroup == record.simdgroup &&
        old->site == record.site && old->kind == record.kind && old->barriers == record.barriers &&
        old->time == record.time && old->published == record.published) {
      old->mask |= record.mask;
      return;
    }
  uint32_t number = freeRecord;
  if (number) {
    freeRecord = extra[number - 1].next;
    extra[number - 1] = line.first;
  } else {
    extra.push_back(line.first);
    number = extra.size();
  }
  line.first = record;
  line.first.next = number;
}

void Visibility::put(Region &region, uint64_t number, uint32_t bits, Record record) {
  Line &line = region.lines[number];
  if (line.run != run) {
    line.run = run;
    line.first.mask = line.first.next = line.hidden = line.previous = 0;
  }
  auto isUnseen = [](Kind kind) { return kind == Kind::Plain || kind == Kind::Pending; };
  uint32_t stored = 0, sincePhase = 0, unseen = 0;
  if (line.first.mask)
    for (Record *old = &line.first; old; old = next(*old)) {
      uint32_t both = old->mask & bits;
      stored |= both;
      if (old->group == record.group && old->barriers == record.barriers)
        sincePhase |= both;
      if (isUnseen(old->kind))
        unseen |= both;
    }
  if (uint32_t fresh = stored & ~sincePhase) {
    keep(region, region.previous.get(), number, fresh);
    line.previous |= fresh;
  }
  if (uint32_t fresh = stored & ~unseen; fresh && isUnseen(record.kind)) {
    keep(region, region.hidden.get(), number, fresh);
    line.hidden |= fresh;
  }
  if (stored)
    removeFrom(line, bits);
  record.mask = bits;
  insert(line, record);
}

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

/// With `getsNewest`, the access is an atomic that also writes.
Staleness Visibility::judge(const GroupView &view, const Record &record, uint32_t simdgroup,
                            uint32_t lane, uint32_t flags, bool getsNewest) const {
  bool isAtomic = flags & accessAtomic, isCoherent = flags & accessCoherent;
  bool isUnseen = record.kind == Kind::Plain || record.kind == Kind::Pending;
  const GroupView::Simdgroup &own = view.simdgroups[simdgroup];
  bool hasFence = own.fenced >> lane & 1;
  bool isOrdered = hasFence && record.published && record.published <= own.acquired[lane];
  if (record.group == view.group) {
    if (record.simdgroup == simdgroup || own.barriers > record.barriers ||
        (isAtomic && !isUnseen) || (isCoherent && isOrdered))
      return Staleness::None;
    return Staleness::NoBarrier;
  }
  if (record.kind == Kind::Plain)
    return Staleness::PlainStore;
  if (record.kind == Kind::Pending)
    return Staleness::NoRelease;
  if (getsNewest)
    return Staleness::None;
  if (!isCoherent && !isAtomic)
    return record.kind == Kind::Atomic ? Staleness::PlainLoadOfAtomic : Staleness::PlainLoad;
  if (isOrdered)
    return Staleness::None;
  if (record.kind == Kind::Atomic && !(hasFence && record.published))
    return isAtomic ? Staleness::RelaxedLoad : Staleness::PlainLoadOfAtomic;
  return hasFence ? Staleness::LateRelease : Staleness::NoAcquire;
}

/// The older bytes of a granule, which may begin before the region.
const char *Visibility::olderBytes(const Region &region, const Line &line, unsigned granule,
                                   Staleness why, uint32_t flags) const {
  if (why == Staleness::NoBarrier)
    return (line.previous >> granule & 1 ? region.previous : region.before).get();
  // Coherent accesses see what has been published before.
  if ((why == Staleness::PlainStore || why == Staleness::NoRelease) &&
      (flags & (accessCoherent | accessAtomic)) && (line.hidden >> granule & 1))
    return region.hidden.get();
  return region.before.get();
}

bool Visibility::answersOlder(const GroupView &view, const Record &record, uint32_t simdgroup,
                              uint32_t lane, uint32_t site, uint64_t address, Staleness why,
                              bool isAtomic) {
  if (site >= known.size())
    return false;
  if (!known[site]) {
    known[site] = true;
    found.push_back({site, record.site, why, isAtomic, address, view.group, record.group,
                     record.simdgroup, simdgroup, lane});
  }
  return olderAnswers[site];
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void Visibility::store(GroupView &view, uint32_t simdgroup, const Access &access) {
  GroupView::Simdgroup &own = view.simdgroups[simdgroup];
  Kind kind = access.flags & accessCoherent ? Kind::Pending : Kind::Plain;
  Record record{0, 0, view.group, access.site, own.barriers, uint16_t(simdgroup), kind, 0, 0};
  forEachLine(access, [&](Region &region, uint64_t line, uint32_t bits) {
    put(region, line, bits, record);
  });
  if (kind == Kind::Pending)
    wait(view, simdgroup, access);
}

/// Until a fence of the thread.
void Visibility::wait(GroupView &view, uint32_t simdgroup, const Access &access) {
  std::vector<GroupView::Pending> &pending = view.simdgroups[simdgroup].pending;
  for (uint32_t left = access.mask; left; left &= left - 1) {
    uint32_t lane = std::countr_zero(left);
    if (pending.empty() || pending.back().address != access.addresses[lane] ||
        pending.back().lane != lane || pending.back().bytes != access.bytes)
      pending.push_back({access.addresses[lane], access.bytes, lane});
  }
}

void Visibility::load(GroupView &view, uint32_t simdgroup, const Access &access,
                      const Loaded &loaded) {
  auto isOwn = [&](const Record &record) {
    return record.group == view.group && record.simdgroup == simdgroup;
  };
  bool foreign = false;
  forEachLine(access, [&](Region &region, uint64_t number, uint32_t bits) {
    if (const Line *line = lineWithStores(region, number))
      for (const Record *record = &line->first; record; record = next(*record))
        foreign |= (record->mask & bits) && !isOwn(*record);
  });
  if (!foreign)
    return;
  bool isAtomic = access.flags & accessAtomic;
  for (uint32_t left = access.mask; left; left &= left - 1) {
    uint32_t lane = std::countr_zero(left);
    for (uint32_t component = 0; component != loaded.components; ++component) {
      uint64_t address = access.addresses[lane] + uint64_t(component) * loaded.bytes;
      char *value = loaded.values + uint64_t(component) * loaded.componentStride +
                    uint64_t(lane) * loaded.laneStride;
      Access one{&address, 1, loaded.bytes, access.site, 0};
      forEachLine(one, [&](Region &region, uint64_t number, uint32_t bits) {
        const Line *stored = lineWithStores(region, number);
        if (!stored)
          return;
        const Line &line = *stored;
        for (const Record *record = &line.first; record; record = next(*record)) {
          uint32_t both = record->mask & bits;
          if (!both)
            continue;
          bool tells = record->kind == Kind::Atomic && !isOwn(*record) && isAtomic;
          Staleness why = judge(view, *record, simdgroup, lane, access.flags);
          // An older answer does not tell of the newer value.
          if (tells && (why == Staleness::None || !olderAnswers[access.site]))
            view.observe(record->time);
          if (why == Staleness::None)
            continue;
          uint64_t start = (region.start >> shift << shift) + (number * lineGranules << shift);
          for (; both; both &= both - 1) {
            unsigned granule = std::countr_zero(both);
            uint64_t begin = std::max(start + (uint64_t(granule) << shift), address);
            uint64_t end =
                std::min(start + (uint64_t(granule + 1) << shift), address + loaded.bytes);
            const char *older =
                olderBytes(region, line, granule, why, access.flags) + (begin - region.start);
            if (begin >= end || !std::memcmp(older, value + (begin - address), end - begin))
              continue;
            if (answersOlder(view, *record, simdgroup, lane, access.site, begin, why, isAtomic))
              std::memcpy(value + (begin - address), older, end - begin);
          }
        }
      });
    }
  }
}

void Visibility::atomic(GroupView &view, uint32_t simdgroup, const Access &access) {
  if (access.flags & accessOrdered)
    fence(view, simdgroup, access.mask, /*releases=*/true, /*acquires=*/false);
  GroupView::Simdgroup &own = view.simdgroups[simdgroup];
  Record record{0,   0, view.group, access.site, own.barriers, uint16_t(simdgroup), Kind::Atomic,
                now, 0};
  uint32_t lane = std::countr_zero(access.mask);
  forEachLine(access, [&](Region &region, uint64_t number, uint32_t bits) {
    Line *stored = lineWithStores(region, number);
    if (stored && !(access.flags & accessOverwrites))
      for (const Record *old = &stored->first; old; old = next(*old)) {
        uint32_t both = old->mask & bits;
        if (!both || (old->group == view.group && old->simdgroup == simdgroup))
          continue;
        if (old->kind == Kind::Atomic)
          view.observe(old->time);
        Staleness why = judge(view, *old, simdgroup, lane, access.flags, /*getsNewest=*/true);
        if (why == Staleness::None)
          continue;
        uint64_t start = (region.start >> shift << shift) + (number * lineGranules << shift);
        for (; both; both &= both - 1) {
          unsigned granule = std::countr_zero(both);
          uint64_t begin = std::max(start + (uint64_t(granule) << shift), region.start);
          uint64_t end =
              std::min(start + (uint64_t(granule + 1) << shift), region.start + region.bytes);
          const char *older =
              olderBytes(region, *stored, granule, why, access.flags) + (begin - region.start);
          char *memory = reinterpret_cast<char *>(begin);
          if (begin >= end || !std::memcmp(older, memory, end - begin))
            continue;
          // The plain store is lost: it takes effect before this operation, or never.
          if (answersOlder(view, *old, simdgroup, lane, access.site, begin, why,
                           /*isAtomic=*/true))
            std::memcpy(memory, older, end - begin);
        }
      }
    put(region, number, bits, record);
  });
  constexpr size_t mostPending = 1 << 16;
  if (own.pending.size() > mostPending) // of a kernel without fences, most likely
    own.pending.clear();
  wait(view, simdgroup, access);
  if (access.flags & accessOrdered)
    fence(view, simdgroup, access.mask, /*releases=*/false, /*acquires=*/true);
}

void Visibility::publish(GroupView &view, uint32_t simdgroup, const GroupView::Pending &pending) {
  forEachLine({&pending.address, 1, pending.bytes, 0, 0},
              [&](Region &region, uint64_t number, uint32_t bits) {
                Line *stored = lineWithStores(region, number);
                if (!stored)
                  return;
                Line &line = *stored;
                std::vector<Record> published;
                for (const Record *record = &line.first; record; record = next(*record))
                  if ((record->mask & bits) && record->kind != Kind::Plain && !record->published &&
                      record->group == view.group && record->simdgroup == simdgroup) {
                    Record copy = *record;
                    copy.mask &= bits;
                    if (copy.kind == Kind::Pending)
                      copy.kind = Kind::Published;
                    copy.published = now;
                    published.push_back(copy);
                  }
                for (const Record &record : published) {
                  removeFrom(line, record.mask);
                  insert(line, record);
                }
              });
}

void Visibility::fence(GroupView &view, uint32_t simdgroup, uint32_t mask, bool releases,
                       bool acquires) {
  GroupView::Simdgroup &own = view.simdgroups[simdgroup];
  if (releases) {
    ++now;
    std::vector<GroupView::Pending> left;
    for (const GroupView::Pending &pending : own.pending)
      if (mask >> pending.lane & 1)
        publish(view, simdgroup, pending);
      else
        left.push_back(pending);
    own.pending = std::move(left);
  }
  if (acquires && view.hasObserved) {
    own.fenced |= mask;
    for (; mask; mask &= mask - 1)
      own.acquired[std::countr_zero(mask)] = view.observed;
  }
}

//===----------------------------------------------------------------------===//
// The functions that kernels call
//===----------------------------------------------------------------------===//

extern "C" {

void __tm_runtime_stored(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                         uint32_t mask, uint32_t bytes, uint32_t site, uint32_t flags) {
  if (auto *owners = static_cast<Owners *>(group->owners)) {
    Uninterrupted here;
    owners->store(simdgroup, {addresses, mask, bytes, site, flags});
  } else if (auto *view = static_cast<GroupView *>(group->view)) {
    Uninterrupted here;
    view->memory->store(*view, simdgroup, {addresses, mask, bytes, site, flags});
  }
}

void __tm_runtime_loaded(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                         uint32_t mask, uint32_t bytes, uint32_t components, uint32_t site,
                         uint32_t flags, char *values, uint32_t laneStride,
                         uint32_t componentStride) {
  if (auto *owners = static_cast<Owners *>(group->owners)) {
    owners->load(simdgroup, {addresses, mask, bytes * components, site, flags});
  } else if (auto *view = static_cast<GroupView *>(group->view)) {
    Uninterrupted here;
    view->memory->load(*view, simdgroup, {addresses, mask, bytes * components, site, flags},
                       {values, bytes, components, laneStride, componentStride});
  }
}

void __tm_runtime_atomic(GroupState *group, uint32_t simdgroup, const uint64_t *addresses,
                         uint32_t mask, uint32_t bytes, uint32_t site, uint32_t flags) {
  if (auto *view = static_cast<GroupView *>(group->view)) {
    pauseThreadgroup(*group);
    Uninterrupted here;
    view->memory->atomic(*view, simdgroup, {addresses, mask, bytes, site, flags});
  }
}

void __tm_runtime_fence(GroupState *group, uint32_t simdgroup, uint32_t mask, uint32_t flags,
                        uint32_t order, uint32_t scope) {
  // Metal's enumerations, as stdlib/metal_compute has them.
  constexpr uint32_t memDevice = 1, acquire = 2, release = 3, deviceScope = 3;
  auto *view = static_cast<GroupView *>(group->view);
  if (view && (flags & memDevice) && scope >= deviceScope) {
    Uninterrupted here;
    view->memory->fence(*view, simdgroup, mask, /*releases=*/order >= release,
                        /*acquires=*/order == acquire || order > release);
  }
}

void __tm_runtime_barrier_flags(GroupState *group, uint32_t simdgroup, uint32_t flags) {
  constexpr uint32_t memDevice = 1;
  group->barrierFlags &= flags;
  if (auto *view = static_cast<GroupView *>(group->view); view && (flags & memDevice))
    ++view->simdgroups[simdgroup].barriers;
}

} // extern "C"

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string describeStale(const StaleAccess &access, const CodeFacts &facts,
                          const KernelInfo &kernel, const LaunchState &launch) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << (access.isAtomic ? "an atomic reads" : "reads");
  int32_t buffer = access.site < facts.sites.size() ? facts.sites[access.site].buffer : -1;
  for (uint32_t index = 0; buffer < 0 && index != maxBufferBindings; ++index)
    if (access.address - uint64_t(launch.bufferStarts[index]) < launch.bufferBytes[index])
      buffer = index;
  if (buffer >= 0) {
    stream << " byte " << int64_t(access.address - uint64_t(launch.buffers[buffer])) << " of ";
    auto parameter = llvm::find_if(kernel.parameters, [&](const ParameterInfo &candidate) {
      return candidate.kind == ParameterInfo::Kind::Buffer && candidate.index == uint32_t(buffer);
    });
    if (parameter != kernel.parameters.end())
      stream << "'" << parameter->name << "' (buffer " << buffer << ")";
    else
      stream << "buffer " << buffer;
  }
  auto groupName = [&](uint32_t group) {
    uint32_t width = launch.threadgroups[0], height = launch.threadgroups[1];
    std::string name = "threadgroup " + std::to_string(group % width);
    if (height != 1 || launch.threadgroups[2] != 1)
      name += "," + std::to_string(group / width % height) + "," +
              std::to_string(group / width / height);
    return name;
  };
  bool byAtomic = access.storeSite < facts.sites.size() &&
                  facts.sites[access.storeSite].kind == AccessKind::Atomic;
  stream << ", which ";
  if (access.why == Staleness::NoBarrier)
    stream << "SIMD-group " << access.storeSimdgroup << " of the same threadgroup";
  else
    stream << groupName(access.storeGroup);
  stream << (byAtomic ? " changed" : " stored");
  if (access.storeSite < facts.sites.size())
    stream << " in line " << facts.sites[access.storeSite].line << ":"
           << facts.sites[access.storeSite].column;
  switch (access.why) {
  case Staleness::None:
    break;
  case Staleness::PlainStore:
    stream << " through a pointer that is not coherent(device): other threadgroups see such a "
              "store only after the launch. Store through a coherent(device) pointer with a fence "
              "behind it, or with an atomic";
    break;
  case Staleness::NoRelease:
    stream << " without a fence behind the store: the storing thread must call "
              "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, "
              "thread_scope_device) before an atomic tells other threadgroups of it";
    break;
  case Staleness::PlainLoad:
    stream << ": a load through a pointer that is not coherent(device) may get the value from "
              "before the launch. Load through a coherent(device) pointer";
    break;
  case Staleness::PlainLoadOfAtomic:
    stream << (byAtomic ? " by an atomic" : "")
           << ": a load that is no atomic may get the value from before the launch. Use "
              "atomic_load_explicit";
    break;
  case Staleness::NoAcquire:
    stream << ": the loading thread has no fence after an atomic that tells of the store. It must "
              "call atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, "
              "thread_scope_device) between that atomic and this load";
    break;
  case Staleness::LateRelease:
    stream
        << ": the storing thread has no fence between the store and the atomic that tells of it. "
           "It must call atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, "
           "thread_scope_device) there";
    break;
  case Staleness::RelaxedLoad:
    stream
        << ": relaxed atomics on different memory are not ordered, so that a load may get an older "
           "value. Both threads must call atomic_thread_fence(mem_flags::mem_device, "
           "memory_order_seq_cst, thread_scope_device): after this change, and before this load";
    break;
  case Staleness::NoBarrier:
    stream << ", with no threadgroup_barrier(mem_flags::mem_device) between the two";
    break;
  }
  return text;
}

} // namespace triton_metal::engine
