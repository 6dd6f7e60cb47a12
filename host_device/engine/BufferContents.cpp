#include "host_device/engine/BufferContents.h"
#include <algorithm>
#include <cstring>

namespace triton_metal::engine {

BufferContents::BufferContents(const LaunchPlan &plan) {
  const LaunchState &launch = plan.state;
  for (uint32_t index = 0; index != maxBufferBindings; ++index)
    if ((plan.facts->writtenBuffers >> index & 1) && launch.bufferWritable[index] &&
        launch.bufferBytes[index]) {
      auto *start = static_cast<char *>(launch.bufferStarts[index]);
      buffers.push_back({index, start, {start, start + launch.bufferBytes[index]}});
    }
}

void BufferContents::restore() const {
  for (const Buffer &buffer : buffers)
    std::memcpy(buffer.start, buffer.bytes.data(), buffer.bytes.size());
}

bool BufferContents::isUnchanged() const {
  return std::all_of(buffers.begin(), buffers.end(), [](const Buffer &buffer) {
    return !std::memcmp(buffer.start, buffer.bytes.data(), buffer.bytes.size());
  });
}

} // namespace triton_metal::engine
