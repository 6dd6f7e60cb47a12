// What a SIMD-group sees of another's stores to threadgroup memory in a portable launch: those from
// before the last barrier that orders this memory. Later ones may be there or not.
#include "host_device/engine/Runner.h"
#include <bit>
#include <cstring>

namespace triton_metal::engine {

static constexpr uint8_t seenByAll = 0xff;

void passBarrier(GroupState &group, uint32_t threadgroupBytes) {
  constexpr uint32_t memThreadgroup = 2; // of Metal's mem_flags
  if (!(std::exchange(group.barrierFlags, ~0u) & memThreadgroup) || !threadgroupBytes)
    return;
  char *memory = group.threadgroupMemory;
  auto *writers = reinterpret_cast<uint8_t *>(memory + threadgroupWriters);
  for (uint32_t byte = 0; byte != threadgroupBytes; ++byte)
    writers[byte] = writers[byte] ? seenByAll : 0;
  std::memcpy(memory + threadgroupOlder, memory, threadgroupBytes);
  std::memcpy(memory + threadgroupOlderWriters, writers, threadgroupBytes);
}

extern "C" void __tm_runtime_staged(GroupState *group, uint32_t simdgroup,
                                    const uint64_t *addresses, uint32_t mask, uint32_t bytes,
                                    uint32_t components, uint32_t site, uint32_t, char *values,
                                    uint32_t laneStride, uint32_t componentStride) {
  auto &runner = *static_cast<Runner *>(group->runner);
  const uint8_t own = group->simdgroups == 1 ? seenByAll : uint8_t(simdgroup + 1);
  uint64_t salts[simdWidth], bits[simdWidth];
  for (uint32_t component = 0; component != components; ++component) {
    auto memoryOf = [&](uint32_t lane) {
      return reinterpret_cast<const char *>(addresses[lane] + uint64_t(component) * bytes);
    };
    auto valueOf = [&](uint32_t lane) {
      return values + uint64_t(component) * componentStride + uint64_t(lane) * laneStride;
    };
    auto isForeign = [&](uint8_t writer) { return writer != own && writer != seenByAll; };
    uint32_t unwritten = 0, unordered = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
      uint32_t lane = std::countr_zero(left);
      const char *memory = memoryOf(lane);
      salts[lane] = uint64_t(memory) & 0xfff;
      bool hasUnwritten = false, hasForeign = false;
      for (uint32_t byte = 0; byte != bytes; ++byte) {
        uint8_t writer = memory[threadgroupWriters + byte];
        hasUnwritten |= !writer;
        hasForeign |= isForeign(writer);
      }
      (hasUnwritten ? unwritten : unordered) |= uint32_t(hasForeign) << lane;
    }
    if (unwritten) {
      runner.any(*group, site, unwritten, /*perLane=*/false, salts, bits);
      for (; unwritten; unwritten &= unwritten - 1) {
        uint32_t lane = std::countr_zero(unwritten);
        std::memcpy(valueOf(lane), &bits[lane], bytes);
      }
    }
    if (!unordered)
      continue;
    runner.any(*group, site + 1, unordered, /*perLane=*/false, salts, bits);
    for (; unordered; unordered &= unordered - 1) {
      uint32_t lane = std::countr_zero(unordered);
      if (!(bits[lane] & 1))
        continue;
      const char *memory = memoryOf(lane);
      char *value = valueOf(lane);
      for (uint32_t byte = 0; byte != bytes; ++byte)
        if (isForeign(memory[threadgroupWriters + byte]))
          // What no thread had written before is poison: a NaN, or -1.
          value[byte] =
              memory[threadgroupOlderWriters + byte] ? memory[threadgroupOlder + byte] : char(0xff);
    }
  }
}

} // namespace triton_metal::engine
