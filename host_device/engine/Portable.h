// The runs of a portable launch. What Metal does not promise is drawn from a stream of values. A
// launch whose result differs from stream to stream depends on such a value.
#pragma once

#include "host_device/engine/Code.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace triton_metal::engine {

struct LaunchPlan;
struct FailureRecord;

/// What one run of a portable launch draws and records.
class PortableRun {
public:
  /// The number of streams that kinds of values take. Whatever kind a stream gives to a site (zero,
  /// negative or NaN, huge, small), the others give the other kinds. Further streams give the
  /// constants that the kernel compares with.
  static constexpr unsigned numKinds = 4, mostConstantStreams = 4;
  static unsigned countStreams(const CodeFacts &facts) {
    size_t constants = std::max(facts.comparedIntegers.size(), facts.comparedFloats.size());
    return numKinds + unsigned(std::min<size_t>(constants, mostConstantStreams));
  }

  PortableRun(const CodeFacts &facts, uint64_t seed)
      : sites(facts.sites), facts(facts), seed(seed),
        flushResults(seed % 4 % 3 == 0 || seed % 4 == 2), flushOperands(seed % 4 % 3 == 0),
        streamOf(sites.size()), firings(sites.size()) {}

  static int32_t fastDirection(uint64_t seed) { return int32_t(seed % 3) - 1; }

  /// The first time that a site gave a value.
  struct Firing {
    bool fired = false;
    std::array<uint32_t, 3> threadgroup{};
    uint32_t simdgroup = 0, lane = 0;
  };

  /// Draws the bits for the lanes of a site, and records it.
  void draw(std::array<uint32_t, 3> threadgroup, uint32_t simdgroup, uint32_t site, uint32_t mask,
            bool perLane, const uint64_t *salts, uint64_t *bits);

  const std::vector<Site> &sites;
  const CodeFacts &facts;
  const uint64_t seed;
  /// Whether subnormal results and operands of float arithmetic become zero.
  bool flushResults = false, flushOperands = false;
  /// The stream of each site.
  std::vector<uint8_t> streamOf;
  std::vector<Firing> firings;
  /// The threadgroups in which a site gave a value, in the order in which they did.
  std::vector<std::array<uint32_t, 3>> firedIn;
  /// Chunks of memory that these have written, if the run records them.
  std::vector<uint64_t> chunks;

  /// Takes over what a run of other threadgroups has recorded.
  void add(const PortableRun &other);
  /// Forgets what has been recorded.
  void clear();

private:
  uint64_t value(const Site &site, unsigned kind, uint64_t hash) const;
  /// The constant of that number to which the kernel compares values of the site's type.
  std::optional<uint64_t> constantFor(const Site &site, uint64_t number) const;
};

/// Describes why a value is any value: "the variable 'x' is read before it has a value".
std::string describeReason(const Site &site, const KernelInfo &info);

/// Runs the plan portably. Buffers that it changed get their content back if it fails. Returns the
/// error's text, or an empty string.
std::string runPortably(LaunchPlan &plan, const KernelInfo &info,
                        llvm::function_ref<std::string(const FailureRecord &)> describe);

} // namespace triton_metal::engine
