#include "host_device/metal/Pipeline.h"

using namespace llvm;

namespace triton_metal::metal {

Expected<std::shared_ptr<ComputePipelineState>>
ComputePipelineState::make(const std::shared_ptr<Function> &function,
                           const PipelineOptions &options) {
  LibraryOptions all = function->options();
  all.checks = options.checks;
  all.portable = options.portable;
  all.count = options.counters;
  auto library = function->library()->with(all);
  if (!library)
    return library.takeError();
  Expected<Kernel *> kernel = (*library)->kernel(function->name());
  if (!kernel)
    return kernel.takeError();
  std::shared_ptr<ComputePipelineState> pipeline(new ComputePipelineState);
  pipeline->made = function;
  pipeline->pipelineOptions = options;
  pipeline->library = std::move(*library);
  pipeline->kernel = *kernel;
  if (Error error = (*kernel)->staticThreadgroupMemory().moveInto(pipeline->staticMemory))
    return std::move(error);
  if (Error error = (*kernel)->writtenBuffers().moveInto(pipeline->written))
    return std::move(error);
  if (Error error = (*kernel)->registersPerThread().moveInto(pipeline->registers))
    return std::move(error);
  return pipeline;
}

} // namespace triton_metal::metal
