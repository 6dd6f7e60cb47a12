// What the lines of a program did in launches.
#pragma once

#include "host_device/Counters.h"
#include <string>
#include <vector>

namespace triton_metal {

/// What one line has added to the counters of a launch.
struct LineProfile {
  /// The name of the text, or the path of an included file.
  std::string file;
  /// Counted from 1; 0 for what belongs to no line.
  uint32_t line = 0;
  Counters counters;
};

/// The lines of a kernel that count something, sorted by file and line. Their sums are the counters
/// of the launch, except for the estimates, which belong to the whole kernel.
struct Profile {
  std::vector<LineProfile> lines;
  Counters total;
  /// Adds another launch of the same program.
  Profile &operator+=(const Profile &other);
};

} // namespace triton_metal
