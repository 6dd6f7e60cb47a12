// The log of launches while a profile is made.
#include "Profile.h"
#include "Bindings.h"

#include <nanobind/stl/array.h>

#include <chrono>
#include <vector>

namespace triton_metal {

bool isProfiling = false;

namespace {

struct Log {
  std::vector<LaunchRecord> records;
  size_t capacity = 0;
  uint64_t dropped = 0;
};

/// Never destroyed: it holds Python objects.
Log &theLog() {
  static Log *log = new Log();
  return *log;
}

nb::tuple asTuple(const LaunchRecord &record) {
  return nb::make_tuple(record.compiled, deviceEntry(record.device).name,
                        nb::make_tuple(record.grid[0], record.grid[1], record.grid[2]),
                        record.begin, record.end, record.bytesRead, record.bytesWritten,
                        record.thread, record.isFirst);
}

} // namespace

int64_t profileClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void recordLaunch(LaunchRecord record) {
  Log &log = theLog();
  if (log.records.size() >= log.capacity) {
    ++log.dropped;
    return;
  }
  record.thread = PyThread_get_thread_ident();
  log.records.push_back(std::move(record));
}

void bindProfile(nb::module_ &module) {
  module.def(
      "take_profile",
      [](size_t capacity) {
        Log &log = theLog();
        std::vector<LaunchRecord> records = std::move(log.records);
        uint64_t dropped = log.dropped;
        log.records = {};
        log.records.reserve(std::min<size_t>(capacity, 4096));
        log.capacity = capacity;
        log.dropped = 0;
        isProfiling = capacity > 0;
        nb::list result;
        for (const LaunchRecord &record : records)
          result.append(asTuple(record));
        return nb::make_tuple(result, dropped);
      },
      nb::arg("capacity"),
      "Takes the launches that were recorded, and the number of those that had no place. From now "
      "on at most `capacity` are recorded; 0 ends the recording.");
  module.def("profile_clock", &profileClock, "Nanoseconds of the clock of profiles.");
  module.def("is_profiling", [] { return isProfiling; });
  module.def(
      "record_launch",
      [](nb::object compiled, const std::string &device, std::array<uint32_t, 3> grid,
         int64_t begin, uint64_t bytesRead, uint64_t bytesWritten, bool isFirst) {
        if (isProfiling)
          recordLaunch({std::move(compiled), deviceNamed(device), grid, begin, profileClock(),
                        bytesRead, bytesWritten, 0, isFirst});
      },
      nb::arg("compiled"), nb::arg("device"), nb::arg("grid"), nb::arg("begin"),
      nb::arg("bytes_read"), nb::arg("bytes_written"), nb::arg("is_first"),
      "Records a launch that Python made.");
}

} // namespace triton_metal
