// Metal compute on the CPU under the names of Metal's own API: libraries of Metal text, functions
// with constants, pipelines, buffers, and command buffers.
#pragma once

#include "host_device/metal/Buffer.h"
#include "host_device/metal/Commands.h"
#include "host_device/metal/Library.h"
#include "host_device/metal/Pipeline.h"

namespace triton_metal::metal {

/// The device. There is one in a process; objects of this class share it.
class Device {
public:
  const char *name() const { return "host Metal device"; }
  /// The limits of a threadgroup.
  uint32_t maxThreadsPerThreadgroup() const { return triton_metal::maxThreadsPerThreadgroup; }
  uint32_t maxThreadgroupMemoryLength() const { return maxThreadgroupMemory; }

  llvm::Expected<std::shared_ptr<Library>> newLibrary(llvm::StringRef source,
                                                      const CompileOptions &options = {}) const {
    return Library::compile(source, options);
  }
  llvm::Expected<std::shared_ptr<ComputePipelineState>>
  newComputePipelineState(const std::shared_ptr<Function> &function,
                          const PipelineOptions &options = {}) const {
    return ComputePipelineState::make(function, options);
  }
  /// Zeros.
  llvm::Expected<std::shared_ptr<Buffer>> newBuffer(uint64_t length) const {
    return Buffer::allocate(length);
  }
  /// A copy of memory.
  llvm::Expected<std::shared_ptr<Buffer>> newBuffer(const void *bytes, uint64_t length) const;
  /// Memory of the caller itself.
  std::shared_ptr<Buffer> newBufferNoCopy(void *contents, uint64_t length,
                                          std::function<void()> deallocator = {}) const {
    return Buffer::wrap(contents, length, /*writable=*/true, std::move(deallocator));
  }
  std::shared_ptr<Buffer> newBufferNoCopy(const void *contents, uint64_t length,
                                          std::function<void()> deallocator = {}) const {
    return Buffer::wrap(const_cast<void *>(contents), length, /*writable=*/false,
                        std::move(deallocator));
  }
  std::shared_ptr<CommandQueue> newCommandQueue() const { return std::make_shared<CommandQueue>(); }
};

inline Device createSystemDefaultDevice() { return {}; }

} // namespace triton_metal::metal
