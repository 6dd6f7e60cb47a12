// What a profile records of launches. See triton_metal/profiling.py.
#pragma once

#include "Devices.h"

#include <array>
#include <cstdint>

namespace triton_metal {

/// Whether a profile is being made. Python's lock protects it.
extern bool isProfiling;

/// Nanoseconds of the clock that profiles use.
int64_t profileClock();

/// One launch. Times are in nanoseconds of `profileClock`; bytes are those of the arrays that the
/// kernel reads and writes by its launch contract, each counted once.
struct LaunchRecord {
  nb::object compiled;
  DeviceId device = DeviceId::Host;
  std::array<uint32_t, 3> grid{};
  int64_t begin = 0, end = 0;
  uint64_t bytesRead = 0, bytesWritten = 0;
  uint64_t thread = 0;
  /// Whether the kernel was launched before.
  bool isFirst = false;
};

/// Appends a launch, or counts it if there is no more room. `record.thread` is set here.
void recordLaunch(LaunchRecord record);

} // namespace triton_metal
