#include "host_device/Counters.h"
#include <algorithm>

namespace triton_metal {

static constexpr const char *counterNames[Counters::Count] = {
    "device_bytes_read",
    "device_bytes_written",
    "device_lines_read",
    "device_lines_written",
    "device_distinct_bytes_read",
    "device_distinct_bytes_written",
    "device_memory_lines_read",
    "device_memory_lines_written",
    "constant_bytes_read",
    "constant_lines_read",
    "constant_distinct_bytes_read",
    "threadgroup_bytes_read",
    "threadgroup_bytes_written",
    "threadgroup_bank_conflicts",
    "private_bytes_read",
    "private_bytes_written",
    "device_accesses_1",
    "device_accesses_2",
    "device_accesses_4",
    "device_accesses_8",
    "device_accesses_16",
    "atomics",
    "simdgroup_matrix_multiplies",
    "simdgroup_barriers",
    "simd_shuffles",
    "simd_reductions",
    "threadgroup_barriers",
    "f32_add",
    "f32_mul",
    "f32_fma",
    "f32_other",
    "f16_add",
    "f16_mul",
    "f16_fma",
    "f16_other",
    "bf16_add",
    "bf16_mul",
    "bf16_fma",
    "bf16_other",
    "int_add",
    "int_mul",
    "int_other",
    "math_calls",
    "f32_div",
    "f16_div",
    "bf16_div",
    "int_div",
    "math_fast",
    "math_precise",
    "math_default",
    "simdgroup_instructions",
    "lane_instructions",
    "divergent_branches",
    "optimized_f32_add",
    "optimized_f32_mul",
    "optimized_f32_fma",
    "optimized_f32_other",
    "optimized_f16_add",
    "optimized_f16_mul",
    "optimized_f16_fma",
    "optimized_f16_other",
    "optimized_bf16_add",
    "optimized_bf16_mul",
    "optimized_bf16_fma",
    "optimized_bf16_other",
    "optimized_int_add",
    "optimized_int_mul",
    "optimized_int_other",
    "optimized_function_float",
    "optimized_function_int",
    "threads",
    "simdgroups",
    "threadgroups",
    "registers_per_thread",
    "threadgroup_memory_bytes",
};

const char *Counters::name(Index index) { return counterNames[index]; }

std::vector<std::pair<std::string, uint64_t>> Counters::list() const {
  std::vector<std::pair<std::string, uint64_t>> result;
  for (uint32_t index = 0; index != Count; ++index)
    result.emplace_back(counterNames[index], values[index]);
  return result;
}

Counters &Counters::operator+=(const Counters &other) {
  for (uint32_t index = 0; index != Count; ++index) {
    if (index == RegistersPerThread || index == ThreadgroupMemoryBytes)
      values[index] = std::max(values[index], other.values[index]);
    else
      values[index] += other.values[index];
  }
  return *this;
}

} // namespace triton_metal
