// MLX's Metal classes that only write down what is called, in order.
#pragma once

#include "mlx/backend/metal/device.h"

#include <string>
#include <vector>

namespace recording {

/// One call: "pipeline", "input", "output", "bytes", "threadgroups", "threads" or "temporaries".
struct Call {
  std::string what;
  /// The pipeline's name.
  std::string name;
  /// A binding, or the number of temporaries.
  int index = -1;
  const void *address = nullptr;
  std::vector<uint8_t> bytes;
  MTL::Size grid, group;
};

/// Since the last call of `clear`.
std::vector<Call> &calls();
/// The texts that libraries were built from, by name, in order; each is built once.
std::vector<std::pair<std::string, std::string>> &libraries();
/// What pipelines made from now on say of maxTotalThreadsPerThreadgroup.
extern NS::UInteger threadsOfPipelines;
/// Forgets calls, libraries and pipelines.
void clear();

} // namespace recording
