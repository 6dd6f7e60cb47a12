// The messages of failed launches.
#pragma once

#include "host_device/engine/Runtime.h"
#include <string>

namespace triton_metal::engine {

std::string describeFailure(const FailureRecord &failure, const CodeFacts &facts,
                            const KernelInfo &info, const LaunchState &launch);

} // namespace triton_metal::engine
