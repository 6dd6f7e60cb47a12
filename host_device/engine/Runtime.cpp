#include "host_device/engine/Runtime.h"
#include "host_device/Trace.h"
#include "host_device/engine/Footprint.h"
#include <bit>
#include <bitset>
#include <cmath>
#include <cstring>
#include <utility>

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// Conversions that a host without the instructions, or its compiler's library, may lack
//===----------------------------------------------------------------------===//

static float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = half >> 10 & 31,
           fraction = half & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  float value = std::ldexp(float(fraction), -24);
  return sign ? -value : value;
}

static uint16_t doubleToHalf(double number) {
  uint64_t bits = std::bit_cast<uint64_t>(number);
  uint16_t sign = bits >> 48 & 0x8000;
  double magnitude = std::fabs(number);
  if (std::isnan(number))
    return sign | 0x7e00 | (bits >> 42 & 0x1ff);
  if (magnitude >= 65520.0)
    return sign | 0x7c00;
  if (magnitude < 0x1p-14) // subnormal halves are multiples of 2^-24
    return sign | uint16_t(std::nearbyint(magnitude * 0x1p24));
  int exponent;
  double fraction = std::frexp(magnitude, &exponent);      // 0.5 to 1
  auto digits = uint32_t(std::nearbyint(fraction * 2048)); // 1024 to 2048
  return sign | uint16_t(((exponent + 13) << 10) + digits);
}

static uint16_t floatToBfloat(float number) {
  uint32_t bits = std::bit_cast<uint32_t>(number);
  if (std::isnan(number))
    return (bits | 0x00400000) >> 16;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// Compilers with these types pass halves in vector registers, as `_Float16` is passed here.
#if defined(__FLT16_MANT_DIG__)
static float extendHalf(_Float16 half) { return halfToFloat(std::bit_cast<uint16_t>(half)); }
static _Float16 truncateFloatToHalf(float number) {
  return std::bit_cast<_Float16>(doubleToHalf(number));
}
static _Float16 truncateDoubleToHalf(double number) {
  return std::bit_cast<_Float16>(doubleToHalf(number));
}
static _Float16 truncateFloatToBfloat(float number) {
  return std::bit_cast<_Float16>(floatToBfloat(number));
}
#endif

/// Keeps an access of a threadgroup that is traced.
static void trace(const LaunchState &launch, const Trace &trace, TracedThreadgroup &group,
                  uint32_t simdgroup, const uint64_t *addresses, uint32_t mask, int32_t buffer,
                  uint32_t site) {
  if (!mask || group.executions[{site, simdgroup}]++ >= trace.executionsPerSite)
    return;
  size_t first = group.accesses.size();
  for (; mask; mask &= mask - 1) {
    unsigned lane = std::countr_zero(mask);
    int32_t found = buffer;
    for (uint32_t index = 0; found < 0 && index != maxBufferBindings; ++index)
      if (addresses[lane] - uint64_t(launch.bufferStarts[index]) < launch.bufferBytes[index])
        found = index;
    // Lanes with pointers into several buffers are one access for each.
    size_t place = first;
    while (place != group.accesses.size() && group.accesses[place].buffer != found)
      ++place;
    if (place == group.accesses.size())
      group.accesses.push_back({site, simdgroup, 0, found, {}});
    TracedAccess &access = group.accesses[place];
    access.lanes |= 1u << lane;
    access.offsets[lane] =
        int64_t(addresses[lane] - (found < 0 ? 0 : uint64_t(launch.bufferStarts[found])));
  }
}

/// Adds the lines to the first counter and their bytes that are needed to the second.
extern "C" void __tm_runtime_count_lines(const LaunchState *launch, GroupState *group,
                                         uint32_t simdgroup, uint64_t *counters,
                                         const uint64_t *addresses, uint32_t mask, uint32_t bytes,
                                         int32_t buffer, uint32_t site, uint32_t use) {
  if (group->trace) {
    auto *record = static_cast<TraceRecord *>(group->trace);
    trace(*launch, *record->trace, *record->group, simdgroup, addresses, mask, buffer, site);
  }
  // Lines are counted from the start of the buffer, wherever the host has allocated it. On a GPU, a
  // buffer starts at the start of a line.
  constexpr uint64_t lineBytes = Footprint::lineBytes;
  struct Line {
    uint64_t number;
    std::bitset<lineBytes> needed;
  };
  std::array<Line, 2 * simdWidth> lines;
  unsigned count = 0;
  for (; mask; mask &= mask - 1) {
    uint64_t address = addresses[std::countr_zero(mask)];
    for (uint32_t index = 0; buffer < 0 && index != maxBufferBindings; ++index)
      if (address - uint64_t(launch->bufferStarts[index]) < launch->bufferBytes[index])
        buffer = index;
    if (buffer >= 0)
      address -= uint64_t(launch->bufferStarts[buffer]);
    for (uint64_t at = address, end = address + bytes; at != end;) {
      uint64_t number = at / lineBytes, first = at % lineBytes;
      uint64_t size = std::min(end - at, lineBytes - first);
      unsigned i = count;
      while (i && lines[i - 1].number != number)
        --i;
      if (!i) {
        if (count == lines.size())
          break;
        lines[count] = {number, {}};
        i = ++count;
      }
      lines[i - 1].needed |= ~std::bitset<lineBytes>() >> (lineBytes - size) << first;
      at += size;
    }
  }
  counters[0] += count;
  for (unsigned i = 0; i != count; ++i)
    counters[1] += lines[i].needed.count();
  auto *footprint = static_cast<Footprint *>(launch->footprint);
  if (!footprint || use == Footprint::None)
    return;
  for (unsigned i = 0; i != count; ++i) {
    const std::bitset<lineBytes> &needed = lines[i].needed;
    uint64_t begin = lines[i].number * lineBytes, first = 0, last = lineBytes - 1;
    while (!needed[first])
      ++first;
    while (!needed[last])
      --last;
    footprint->mark(buffer, begin + first, begin + last, Footprint::Use(use));
  }
}

/// A bank gives a word of 4 bytes to all lanes that need it in one cycle.
extern "C" void __tm_runtime_count_banks(uint64_t *counter, const uint64_t *addresses,
                                         uint32_t mask, uint32_t bytes) {
  constexpr uint64_t numBanks = 32, wordBytes = 4;
  std::array<uint64_t, 1024> words;
  size_t count = 0;
  for (; mask; mask &= mask - 1) {
    uint64_t address = addresses[std::countr_zero(mask)];
    for (uint64_t word = address / wordBytes; word <= (address + bytes - 1) / wordBytes; ++word)
      if (count != words.size())
        words[count++] = word;
  }
  std::sort(words.begin(), words.begin() + count);
  count = std::unique(words.begin(), words.begin() + count) - words.begin();
  std::array<uint32_t, numBanks> load{};
  uint32_t most = 0;
  for (size_t i = 0; i != count; ++i)
    most = std::max(most, ++load[words[i] % numBanks]);
  *counter += most - (count + numBanks - 1) / numBanks;
}

extern "C" uint32_t __tm_runtime_fails(GroupState *group, uint32_t simdgroup, uint32_t lane) {
  // One in four, and never two in succession, so that a loop of attempts ends.
  uint64_t hash = group->exchanges++;
  for (uint64_t part : {uint64_t(group->position[0]), uint64_t(group->position[1]),
                        uint64_t(group->position[2]), uint64_t(simdgroup * simdWidth + lane)})
    hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15 + part;
  bool fails = !group->hasFailedSpuriously && (hash >> 40) % 4 == 0;
  group->hasFailedSpuriously = fails;
  return fails;
}

extern "C" uint32_t __tm_runtime_has_failed(GroupState *group) {
  return std::exchange(group->hasFailedSpuriously, 0);
}

extern "C" void __tm_runtime_check(const LaunchState *launch, GroupState *group,
                                   const uint64_t *addresses, uint32_t mask, uint32_t site,
                                   uint64_t start, uint64_t length, uint32_t bytes,
                                   uint32_t alignment, uint32_t flags) {
  bool anyBuffer = flags & 1, writes = flags & 2;
  for (; mask; mask &= mask - 1) {
    uint32_t lane = std::countr_zero(mask);
    uint64_t address = addresses[lane];
    auto inside = [&](uint64_t from, uint64_t size) {
      return size >= bytes && address - from <= size - bytes;
    };
    bool found = false, allowed = true;
    if (anyBuffer) {
      for (uint32_t index = 0; index != maxBufferBindings && !found; ++index)
        if (launch->bufferBytes[index] &&
            inside(uint64_t(launch->bufferStarts[index]), launch->bufferBytes[index])) {
          found = true;
          allowed = launch->bufferWritable[index];
        }
    } else {
      found = inside(start, length);
      for (uint32_t index = 0; writes && index != maxBufferBindings; ++index)
        if (uint64_t(launch->bufferStarts[index]) == start && launch->bufferBytes[index] == length)
          allowed &= launch->bufferWritable[index] || !found;
    }
    // Of a variable of the program the message has the byte, which is the same in each process.
    if (!found)
      __tm_runtime_fail(group, uint32_t(Failure::OutOfBounds), site,
                        flags & 4 ? address - start : address, lane);
    if (writes && !allowed)
      __tm_runtime_fail(group, uint32_t(Failure::ReadOnly), site, address, lane);
    if (address & (alignment - 1))
      __tm_runtime_fail(group, uint32_t(Failure::Misaligned), site, address, lane);
  }
}

std::vector<std::pair<const char *, void *>> runtimeSymbols() {
  auto address = [](auto *function) { return reinterpret_cast<void *>(function); };
  return {
      {"__tm_runtime_barrier", address(&__tm_runtime_barrier)},
      {"__tm_runtime_fail", address(&__tm_runtime_fail)},
      {"__tm_runtime_check", address(&__tm_runtime_check)},
      {"__tm_runtime_any", address(&__tm_runtime_any)},
      {"__tm_runtime_count_lines", address(&__tm_runtime_count_lines)},
      {"__tm_runtime_count_banks", address(&__tm_runtime_count_banks)},
      {"__tm_runtime_unwritten", address(&__tm_runtime_unwritten)},
      {"__tm_runtime_access", address(&__tm_runtime_access)},
      {"__tm_runtime_order", address(&__tm_runtime_order)},
      {"__tm_runtime_race_fence", address(&__tm_runtime_race_fence)},
      {"__tm_runtime_stored", address(&__tm_runtime_stored)},
      {"__tm_runtime_loaded", address(&__tm_runtime_loaded)},
      {"__tm_runtime_fails", address(&__tm_runtime_fails)},
      {"__tm_runtime_has_failed", address(&__tm_runtime_has_failed)},
      {"__tm_runtime_staged", address(&__tm_runtime_staged)},
      {"__tm_runtime_atomic", address(&__tm_runtime_atomic)},
      {"__tm_runtime_fence", address(&__tm_runtime_fence)},
      {"__tm_runtime_barrier_flags", address(&__tm_runtime_barrier_flags)},
#if defined(__FLT16_MANT_DIG__)
      {"__extendhfsf2", address(&extendHalf)},
      {"__gnu_h2f_ieee", address(&extendHalf)},
      {"__truncsfhf2", address(&truncateFloatToHalf)},
      {"__gnu_f2h_ieee", address(&truncateFloatToHalf)},
      {"__truncdfhf2", address(&truncateDoubleToHalf)},
      {"__truncsfbf2", address(&truncateFloatToBfloat)},
#endif
  };
}

} // namespace triton_metal::engine
