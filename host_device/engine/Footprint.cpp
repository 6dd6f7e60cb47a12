#include "host_device/engine/Footprint.h"
#include <algorithm>

namespace triton_metal::engine {

/// The caller of a launch may not know how long a buffer is. It then passes a huge number.
static constexpr uint64_t mostBytes = uint64_t(1) << 35;

Footprint::Footprint(const LaunchState &launch) {
  std::vector<uint32_t> buffers;
  for (uint32_t index = 0; index != maxBufferBindings; ++index)
    if (launch.bufferStarts[index] && launch.bufferBytes[index] &&
        launch.bufferBytes[index] < mostBytes)
      buffers.push_back(index);
  auto startOf = [&](uint32_t index) {
    return reinterpret_cast<uint64_t>(launch.bufferStarts[index]);
  };
  std::sort(buffers.begin(), buffers.end(),
            [&](uint32_t a, uint32_t b) { return startOf(a) < startOf(b); });
  for (uint32_t index : buffers) {
    uint64_t begin = startOf(index), end = begin + launch.bufferBytes[index];
    if (memories.empty() || begin >= memories.back().end)
      memories.push_back({begin, end, nullptr});
    memories.back().end = std::max(memories.back().end, end);
  }
  for (Memory &memory : memories)
    memory.lines = std::make_unique<std::atomic<uint8_t>[]>(memory.numLines());
  for (uint32_t index : buffers)
    for (Memory &memory : memories)
      if (startOf(index) >= memory.begin && startOf(index) < memory.end)
        places[index] = {&memory, startOf(index) - memory.begin};
}

void Footprint::mark(int32_t buffer, uint64_t first, uint64_t last, Use use) {
  const Place *place = buffer >= 0 ? &places[buffer] : nullptr;
  if (!place || !place->memory ||
      last + place->offset >= place->memory->end - place->memory->begin) {
    elsewhere[use].fetch_add(last / lineBytes - first / lineBytes + 1, std::memory_order_relaxed);
    return;
  }
  for (uint64_t line = (first + place->offset) / lineBytes,
                end = (last + place->offset) / lineBytes;
       line <= end; ++line) {
    std::atomic<uint8_t> &mark = place->memory->lines[line];
    if (!(mark.load(std::memory_order_relaxed) & use))
      mark.fetch_or(use, std::memory_order_relaxed);
  }
}

uint64_t Footprint::count(Use use) const {
  uint64_t found = elsewhere[use].load(std::memory_order_relaxed);
  for (const Memory &memory : memories)
    for (uint64_t line = 0, end = memory.numLines(); line != end; ++line)
      found += (memory.lines[line].load(std::memory_order_relaxed) & use) != 0;
  return found;
}

} // namespace triton_metal::engine
