#include "host_device/engine/Owners.h"
#include "host_device/engine/BufferContents.h"
#include "host_device/engine/Chunks.h"
#include "host_device/engine/PerProcess.h"
#include <algorithm>
#include <bit>
#include <cstdlib>

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Changes the word of a granule or a line for an access.
template <bool isStore>
static void update(int32_t &word, int32_t me, int32_t floor, int32_t &shared) {
  // What several SIMD-groups have read belongs to none of them.
  const int32_t readByMe = me << 1, readByMany = floor;
  int32_t old = word;
  int32_t isOther = (old >= floor) & ((old >> 1) != me);
  if (isStore) {
    shared |= isOther;
    word = readByMe | 1;
  } else {
    shared |= isOther & old;
    int32_t touched = isOther ? (old & 1 ? old : readByMany) : old;
    word = old >= floor ? touched : readByMe;
  }
}

template <bool isStore> void Owners::touch(uint32_t simdgroup, const Visibility::Access &access) {
  const int32_t me = firstSimdgroup + simdgroup, floor = base << 1;
  // The granules of the line have words of their own.
  const int32_t mixed = floor | 1;
  auto [mask, bytes] = access.merged();
  Region *region = nullptr;
  uint64_t markedChunk = ~uint64_t(0), front = 0;
  int32_t shared = 0;
  for (; mask; mask &= mask - 1) {
    uint64_t address = access.addresses[std::countr_zero(mask)];
    if (!region || address - region->start >= region->bytes) {
      if (!(region = findRegion(regions, last, address)))
        continue;
      front = region->start >> shift;
      markedChunk = ~uint64_t(0);
    }
    uint64_t end = std::min(address + bytes, region->start + region->bytes);
    uint64_t firstChunk = address >> chunkShift, lastChunk = (end - 1) >> chunkShift;
    if (firstChunk != markedChunk || lastChunk != markedChunk) {
      for (uint64_t chunk = firstChunk; chunk <= lastChunk; ++chunk) {
        region->chunks[chunk - (region->start >> chunkShift)] |= isStore ? 3 : 1;
        if (isStore && (chunksOfGroup.empty() || chunksOfGroup.back() != chunk))
          chunksOfGroup.push_back(chunk);
      }
      markedChunk = lastChunk;
    }
    uint64_t granule = (address >> shift) - front, behind = ((end - 1) >> shift) - front + 1;
    while (granule != behind) {
      uint64_t line = granule / lineGranules;
      uint64_t last = std::min(behind, (line + 1) * lineGranules);
      int32_t &whole = region->lines.words[line];
      if (whole != mixed && last - granule == lineGranules) {
        update<isStore>(whole, me, floor, shared);
      } else {
        if (whole != mixed) {
          // A part of a line that has been accessed as a whole.
          std::fill_n(region->granules.words.get() + line * lineGranules, lineGranules, whole);
          whole = mixed;
        }
        for (uint64_t i = granule; i != last; ++i)
          update<isStore>(region->granules.words[i], me, floor, shared);
      }
      granule = last;
    }
  }
  isShared |= shared;
}

void Owners::store(uint32_t simdgroup, const Visibility::Access &access) {
  touch<true>(simdgroup, access);
}
void Owners::load(uint32_t simdgroup, const Visibility::Access &access) {
  touch<false>(simdgroup, access);
}

//===----------------------------------------------------------------------===//
// Memory and numbers for them
//===----------------------------------------------------------------------===//

namespace {
/// Words are below 2^31, so that they are compared as signed numbers, which all processors can do.
constexpr uint32_t mostNumbers = (uint32_t(1) << 30) - 1;
constexpr size_t mostKeptWords = size_t(16) << 20, mostKept = 32;
} // namespace

/// Words of earlier launches, whose numbers are below the next one.
struct KeptWords {
  std::mutex mutex;
  std::vector<std::pair<size_t, int32_t *>> words;
  uint32_t next = 1;
  /// Increases when the numbers start anew. Older words cannot be used then.
  uint64_t generation = 0;
};

uint32_t Sharing::trackedBuffers(const LaunchPlan &plan) {
  const CodeFacts &facts = *plan.facts;
  if (facts.updatedBuffers || facts.mayWait)
    return 0;
  uint32_t tracked = 0;
  for (uint32_t index = 0; index != maxBufferBindings; ++index)
    if ((facts.writtenBuffers >> index & 1) && plan.state.bufferBytes[index] &&
        plan.state.bufferWritable[index])
      tracked |= 1u << index;
  tracked = Visibility::withOverlapping(plan.state, tracked);
  // Loads through pointers to constant memory are not recorded.
  bool isRecorded = !(tracked & facts.usedBuffers & ~(facts.loadedBuffers | facts.storedBuffers));
  return isRecorded ? tracked : 0;
}

Sharing::Sharing(const LaunchPlan &plan) : plan(plan) {
  const LaunchState &launch = plan.state;
  uint64_t threads =
      uint64_t(launch.dispatchThreads[0]) * launch.dispatchThreads[1] * launch.dispatchThreads[2];
  uint64_t groups =
      uint64_t(launch.threadgroups[0]) * launch.threadgroups[1] * launch.threadgroups[2];
  simdgroups = (threads + simdWidth - 1) / simdWidth;
  if (groups >= mostNumbers / simdgroups - 2)
    return;
  uint32_t needed = groups * simdgroups + 1;
  KeptWords &kept = perProcess<KeptWords>();
  std::lock_guard lock(kept.mutex);
  if (mostNumbers - kept.next <= needed) {
    for (auto &[capacity, words] : kept.words)
      std::free(words);
    kept.words.clear();
    kept.next = 1;
    ++kept.generation;
  }
  base = kept.next;
  kept.next += needed;
  generation = kept.generation;
}

Owners::Words Sharing::allocate(size_t count) {
  KeptWords &kept = perProcess<KeptWords>();
  {
    std::lock_guard lock(kept.mutex);
    // Lists of about this size, so that small ones do not take what large ones need.
    auto found = std::find_if(kept.words.begin(), kept.words.end(), [&](const auto &candidate) {
      return candidate.first >= count && candidate.first / 8 <= count;
    });
    if (found != kept.words.end() && kept.generation == generation) {
      auto [capacity, words] = *found;
      kept.words.erase(found);
      return {capacity, decltype(Owners::Words::words)(words)};
    }
  }
  // Fresh memory only costs something where it is used.
  auto *words = static_cast<int32_t *>(std::calloc(count, sizeof(int32_t)));
  return {count, decltype(Owners::Words::words)(words)};
}

Owners &Sharing::add() {
  auto owners = std::make_unique<Owners>();
  owners->base = base;
  owners->simdgroups = simdgroups;
  owners->shift = std::countr_zero(std::max(1u, plan.facts->granule));
  for (auto [from, to] : Visibility::trackedRanges(plan.state)) {
    size_t words = ((to - 1) >> owners->shift) - (from >> owners->shift) + 1;
    Owners::Region region{from, to - from, {}, {}, {}};
    region.chunks.resize(((to - 1) >> chunkShift) - (from >> chunkShift) + 1);
    size_t lines = (words + Owners::lineGranules - 1) / Owners::lineGranules;
    region.lines = allocate(lines);
    region.granules = allocate(lines * Owners::lineGranules);
    owners->regions.push_back(std::move(region));
  }
  std::lock_guard lock(mutex);
  threads.push_back(std::move(owners));
  return *threads.back();
}

Sharing::~Sharing() {
  KeptWords &kept = perProcess<KeptWords>();
  std::lock_guard lock(kept.mutex);
  for (std::unique_ptr<Owners> &owners : threads)
    for (Owners::Region &region : owners->regions)
      for (Owners::Words *words : {&region.lines, &region.granules})
        if (kept.generation == generation && words->capacity <= mostKeptWords &&
            kept.words.size() < mostKept)
          kept.words.push_back({words->capacity, words->words.release()});
}

//===----------------------------------------------------------------------===//
// Judgement
//===----------------------------------------------------------------------===//

bool Sharing::wasFound() const {
  for (const std::unique_ptr<Owners> &owners : threads)
    if (owners->isShared)
      return true;
  if (threads.empty())
    return false;
  const int32_t floor = base << 1;
  const unsigned shift = threads.front()->shift;
  std::vector<int32_t> seen; // 1 if a thread has accessed the granule, 3 if it has written it
  auto regionsOf = [](const Owners &owners) -> auto & { return owners.regions; };
  return anySharedChunk(threads, regionsOf, [&](size_t number, size_t, uint64_t from, uint64_t to) {
    uint64_t start = threads.front()->regions[number].start;
    size_t begin = (from >> shift) - (start >> shift);
    size_t end = ((to - 1) >> shift) - (start >> shift) + 1;
    seen.assign(end - begin, 0);
    int32_t both = 0;
    for (const std::unique_ptr<Owners> &owners : threads) {
      const Owners::Region &region = owners->regions[number];
      for (size_t i = 0; i != seen.size(); ++i) {
        int32_t word = region.lines.words[(begin + i) / Owners::lineGranules];
        if (word == (floor | 1)) // mixed
          word = region.granules.words[begin + i];
        int32_t use = word >= floor ? 1 | (word & 1) << 1 : 0;
        both |= (use & seen[i] & 1) & ((use | seen[i]) >> 1);
        seen[i] |= use;
      }
    }
    return both != 0;
  });
}

std::vector<uint64_t> Sharing::writtenChunks() const {
  std::vector<uint64_t> written;
  for (const std::unique_ptr<Owners> &owners : threads)
    for (const Owners::Region &region : owners->regions)
      for (size_t chunk = 0; chunk != region.chunks.size(); ++chunk)
        if (region.chunks[chunk] & 2)
          written.push_back((region.start >> chunkShift) + chunk);
  return written;
}

} // namespace triton_metal::engine
