// The memory that the SIMD-groups of some threadgroups access, access by access.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal {

/// A place in the text that accesses device or constant memory.
struct TracedSite {
  uint32_t line = 0, column = 0;
  /// The name of the file that the line is in, if it is not the main text.
  std::string file;
  /// The kernel's call of the function that the line is in; 0 in the kernel itself.
  uint32_t callLine = 0, callColumn = 0;
  bool reads = false, writes = false, isConstant = false;
  /// What each lane accesses.
  uint32_t bytes = 0;
};

/// What one execution of a site by a SIMD-group accesses in one buffer.
struct TracedAccess {
  uint32_t site = 0, simdgroup = 0;
  /// One bit for each lane that takes part.
  uint32_t lanes = 0;
  /// The buffer, or -1 if the addresses are in none.
  int32_t buffer = -1;
  /// Where the lanes' bytes begin in the buffer; 0 for lanes that take no part.
  std::array<int64_t, 32> offsets{};
};

struct TracedThreadgroup {
  std::array<uint32_t, 3> position{};
  std::vector<TracedAccess> accesses;
  /// By site and SIMD-group: how often it was executed by some lane.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> executions;
};

/// What to trace in a launch that counts, and what was traced.
struct Trace {
  /// The threadgroups to trace. Others cost nothing.
  std::vector<TracedThreadgroup> threadgroups;
  /// The executions of a site by a SIMD-group that are kept, the first ones.
  uint64_t executionsPerSite = 8;
  /// By the accesses' numbers of sites.
  std::map<uint32_t, TracedSite> sites;

  TracedThreadgroup *find(const uint32_t *position) {
    for (TracedThreadgroup &group : threadgroups)
      if (group.position[0] == position[0] && group.position[1] == position[1] &&
          group.position[2] == position[2])
        return &group;
    return nullptr;
  }
};

} // namespace triton_metal
