// What a launch did, counted before any machine-dependent optimisation: the same on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal {

struct Counters {
  /// One number for each name in `names()`, in that order.
  enum Index : uint32_t {
    // Bytes that active lanes asked for, and 128-byte lines that each SIMD-group's access touched,
    // summed over accesses.
    DeviceBytesRead,
    DeviceBytesWritten,
    DeviceLinesRead,
    DeviceLinesWritten,
    ConstantBytesRead,
    ConstantLinesRead,
    ThreadgroupBytesRead,
    ThreadgroupBytesWritten,
    // Private arrays that did not become registers.
    PrivateBytesRead,
    PrivateBytesWritten,
    // Lanes' accesses to device memory by width.
    DeviceAccesses1,
    DeviceAccesses2,
    DeviceAccesses4,
    DeviceAccesses8,
    DeviceAccesses16,
    Atomics,
    // Once for a SIMD-group.
    SimdgroupMatrixMultiplies,
    SimdgroupBarriers,
    SimdShuffles,
    SimdReductions,
    // Once for a threadgroup.
    ThreadgroupBarriers,
    // Arithmetic of active lanes; a fused multiply-add is one.
    F32Add,
    F32Mul,
    F32Fma,
    F32Other,
    F16Add,
    F16Mul,
    F16Fma,
    F16Other,
    Bf16Add,
    Bf16Mul,
    Bf16Fma,
    Bf16Other,
    IntAdd,
    IntMul,
    IntOther,
    MathCalls,
    // Threads, SIMD-groups and threadgroups that ran.
    Threads,
    Simdgroups,
    Threadgroups,
    // Not a sum: an estimate of the 32-bit registers that a thread needs, and bytes of threadgroup
    // memory.
    RegistersPerThread,
    ThreadgroupMemoryBytes,
    Count,
  };

  std::array<uint64_t, Count> values{};

  uint64_t operator[](Index index) const { return values[index]; }
  uint64_t &operator[](Index index) { return values[index]; }

  static const char *name(Index index);
  /// (name, value) of every counter.
  std::vector<std::pair<std::string, uint64_t>> list() const;
  /// Adds what another launch did; of the estimates, the larger stays.
  Counters &operator+=(const Counters &other);
};

} // namespace triton_metal
