#include "host_device/Profile.h"
#include <algorithm>
#include <tuple>

namespace triton_metal {

Profile &Profile::operator+=(const Profile &other) {
  total += other.total;
  for (const LineProfile &line : other.lines) {
    auto place = std::lower_bound(lines.begin(), lines.end(), line, [](auto &a, auto &b) {
      return std::tie(a.file, a.line) < std::tie(b.file, b.line);
    });
    if (place != lines.end() && place->file == line.file && place->line == line.line)
      place->counters += line.counters;
    else
      lines.insert(place, line);
  }
  return *this;
}

} // namespace triton_metal
