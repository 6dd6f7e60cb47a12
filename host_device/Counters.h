// What a launch did. It is counted before any optimisation that depends on the machine, so the
// counts are the same on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal {

struct Counters {
  /// One entry for each name in `names()`, in the same order.
  enum Index : uint32_t {
    // Bytes that active lanes accessed, lines of 128 bytes that each access of a SIMD-group
    // touched, and the bytes of these lines that it needed, where a byte for several lanes is one.
    // All are summed over the accesses.
    DeviceBytesRead,
    DeviceBytesWritten,
    DeviceLinesRead,
    DeviceLinesWritten,
    DeviceDistinctBytesRead,
    DeviceDistinctBytesWritten,
    // The lines that the launch touches, each once.
    DeviceMemoryLinesRead,
    DeviceMemoryLinesWritten,
    ConstantBytesRead,
    ConstantLinesRead,
    ConstantDistinctBytesRead,
    ThreadgroupBytesRead,
    ThreadgroupBytesWritten,
    // The cycles that SIMD-groups' accesses to threadgroup memory take beyond the least for their
    // bytes, because lanes need different words of one bank. There are 32 banks of 4 bytes.
    ThreadgroupBankConflicts,
    // Accesses to private arrays that did not become registers.
    PrivateBytesRead,
    PrivateBytesWritten,
    // The accesses of lanes to device memory, by width.
    DeviceAccesses1,
    DeviceAccesses2,
    DeviceAccesses4,
    DeviceAccesses8,
    DeviceAccesses16,
    Atomics,
    // Counted once for each SIMD-group.
    SimdgroupMatrixMultiplies,
    SimdgroupBarriers,
    SimdShuffles,
    SimdReductions,
    // Counted once for each threadgroup.
    ThreadgroupBarriers,
    // Arithmetic of active lanes. A fused multiply-add counts once.
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
    // The divisions among the operations above; remainders are divisions.
    F32Div,
    F16Div,
    Bf16Div,
    IntDiv,
    // Calls of elementary functions by lanes: those of fast::, of precise::, and those without a
    // namespace. A call for a vector counts once for each component.
    MathFast,
    MathPrecise,
    MathDefault,
    // The operations of SIMD-groups, however many of their lanes are active, and the sum over
    // active
    // lanes. Of conditional branches, those at which lanes of a SIMD-group part.
    SimdgroupInstructions,
    LaneInstructions,
    DivergentBranches,
    // Arithmetic once more, after a fixed set of optimisations that no machine has a part in.
    OptimizedF32Add,
    OptimizedF32Mul,
    OptimizedF32Fma,
    OptimizedF32Other,
    OptimizedF16Add,
    OptimizedF16Mul,
    OptimizedF16Fma,
    OptimizedF16Other,
    OptimizedBf16Add,
    OptimizedBf16Mul,
    OptimizedBf16Fma,
    OptimizedBf16Other,
    OptimizedIntAdd,
    OptimizedIntMul,
    OptimizedIntOther,
    // The floats and integers among them that are the host's way of computing elementary functions.
    OptimizedFunctionFloat,
    OptimizedFunctionInt,
    // Threads, SIMD-groups and threadgroups that ran.
    Threads,
    Simdgroups,
    Threadgroups,
    // These are not sums: an estimate of the 32-bit registers of a thread, and the bytes of
    // threadgroup memory.
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
  /// Adds the counts of another launch. Of the estimates, the larger one is kept.
  Counters &operator+=(const Counters &other);
};

} // namespace triton_metal
