// Compiled functions.
#pragma once

#include "host_device/Device.h"
#include "host_device/metal/Library.h"
#include <memory>

namespace triton_metal::metal {

/// What is compiled into a pipeline besides its function.
struct PipelineOptions {
  /// What launches are checked for. Metal's name for some of this is shader validation.
  Checks checks;
  /// What Metal does not promise is answered with the worst that it allows.
  bool portable = false;
  /// Counts what launches do.
  bool counters = false;
  /// The iterations of loops that a SIMD-group may run in all, if `checks.steps` is on.
  uint64_t maxSteps = defaultMaxSteps;
  /// One bit for each buffer index that a launch must write wholly, if `checks.outputs` is on.
  uint32_t wholeBuffers = 0;
};

/// A function that is ready to run, like MTLComputePipelineState.
class ComputePipelineState {
public:
  static llvm::Expected<std::shared_ptr<ComputePipelineState>>
  make(const std::shared_ptr<Function> &function, const PipelineOptions &options);

  const KernelInfo &info() const { return kernel->info(); }
  const std::shared_ptr<Function> &function() const { return made; }
  const PipelineOptions &options() const { return pipelineOptions; }
  /// The threads of a SIMD-group.
  uint32_t threadExecutionWidth() const { return simdWidth; }
  /// The most threads that a threadgroup can have.
  uint32_t maxTotalThreadsPerThreadgroup() const { return info().maxTotalThreadsPerThreadgroup; }
  /// The bytes of threadgroup memory that the function's own variables take.
  uint64_t staticThreadgroupMemoryLength() const { return staticMemory; }
  /// An estimate of the 32-bit registers that a thread takes on a GPU; 0 without `counters`.
  uint32_t registersPerThread() const { return registers; }
  /// One bit for each buffer index that the function may write.
  uint32_t writtenBuffers() const { return written; }

  /// Compiles the code for launches like this one, unless that is done.
  llvm::Error prepare(const Dispatch &dispatch) { return kernel->prepare(dispatch); }
  /// Runs one dispatch to its end on this thread, regardless of what queues do. Counters and
  /// profile are added to if the pipeline counts.
  llvm::Error run(const Dispatch &dispatch, Counters *counters = nullptr,
                  Profile *profile = nullptr) {
    if (!pipelineOptions.checks.any())
      return kernel->dispatch(dispatch, counters, profile);
    Dispatch checked = dispatch;
    checked.maxSteps = pipelineOptions.maxSteps;
    checked.wholeBuffers = pipelineOptions.wholeBuffers;
    return kernel->dispatch(checked, counters, profile);
  }

private:
  ComputePipelineState() = default;
  std::shared_ptr<Function> made;
  PipelineOptions pipelineOptions;
  std::shared_ptr<triton_metal::Library> library;
  Kernel *kernel = nullptr;
  uint64_t staticMemory = 0;
  uint32_t registers = 0;
  uint32_t written = 0;
};

} // namespace triton_metal::metal
