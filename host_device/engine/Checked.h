// Launches that are checked.
#pragma once

#include "host_device/engine/Runtime.h"

namespace triton_metal::engine {

/// Runs the plan. If it fails, the buffers get the content from before the launch back, and the
/// failure is the first one in the order of the threadgroups: it depends neither on the number of
/// cores nor on luck. `keptBuffers` has a bit for each buffer that keeps what was written.
void runChecked(LaunchPlan &plan, uint32_t wholeBuffers, uint32_t keptBuffers);

} // namespace triton_metal::engine
