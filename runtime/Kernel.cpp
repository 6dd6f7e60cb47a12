#include "runtime/Kernel.h"

#include <algorithm>

namespace triton_metal::runtime {

/// Only bounds, which is the first bit.
static constexpr uint32_t usualChecks = 1;

llvm::Expected<std::shared_ptr<Kernel>> Kernel::create(std::string metal,
                                                       llvm::StringRef metadata) {
  llvm::Expected<Metadata> parsed = Metadata::parse(metadata);
  if (!parsed)
    return parsed.takeError();
  auto kernel = std::make_shared<Kernel>();
  kernel->metal = std::move(metal);
  kernel->metadata = std::move(*parsed);
  return kernel;
}

llvm::Expected<const Kernel::Variant *> Kernel::variant(const LaunchOptions &options) {
  unsigned index = (options.checks ? 1 : 0) | (options.count ? 2 : 0) | (options.portable ? 4 : 0);
  bool isUsual = options.checks <= usualChecks;
  if (isUsual && ready[index].load(std::memory_order_acquire))
    return &variants[index];
  // Loading the device may wait for a lock of the caller, so it comes before our own lock.
  if (llvm::Error error = hostDevice().takeError())
    return std::move(error);
  std::lock_guard<std::mutex> lock(mutex);
  Variant &entry = isUsual ? variants[index] : checkedVariants[options.checks << 2 | index >> 1];
  if (entry.kernel)
    return &entry;
  HostText text;
  text.text = metal.data();
  text.size = metal.size();
  text.checks = options.checks;
  text.portable = options.portable;
  text.count = options.count;
  llvm::Expected<std::shared_ptr<MetalLibrary>> library = MetalLibrary::compile(text);
  if (!library)
    return library.takeError();
  llvm::Expected<HostKernel *> kernel = (*library)->kernel(metadata.name);
  if (!kernel)
    return kernel.takeError();
  entry = {std::move(*library), *kernel};
  if (isUsual)
    ready[index].store(true, std::memory_order_release);
  return &entry;
}

llvm::Error Kernel::prepare(const LaunchOptions &options) { return variant(options).takeError(); }

llvm::Error Kernel::launch(std::array<uint32_t, 3> grid,
                           llvm::MutableArrayRef<BufferBinding> buffers,
                           llvm::MutableArrayRef<uint32_t> scalars, const LaunchOptions &options,
                           Counters *counters) {
  if (std::string problem = metadata.problemOfGrid(grid); !problem.empty())
    return llvm::createStringError(problem);
  llvm::Expected<const Variant *> kernel = variant(options);
  if (!kernel)
    return kernel.takeError();
  if (metadata.scalarBuffer >= 0)
    buffers[static_cast<size_t>(metadata.scalarBuffer)] = {scalars.data(),
                                                           scalars.size() * sizeof(uint32_t),
                                                           /*writable=*/false};
  HostDispatch dispatch;
  std::copy(grid.begin(), grid.end(), dispatch.threadgroups);
  dispatch.threadsPerThreadgroup[0] = metadata.threads;
  dispatch.buffers = buffers.data();
  dispatch.numBuffers = buffers.size();
  dispatch.hasSeed = options.scheduleSeed.has_value();
  dispatch.seed = options.scheduleSeed.value_or(0);
  dispatch.portableSeed = options.portableSeed;
  dispatch.maxSteps = options.maxSteps;
  if (metadata.hasMessages)
    for (const Argument &argument : metadata.arguments)
      if (!argument.messageRole.empty() && argument.writes)
        dispatch.keptBuffers |= 1u << argument.slot;
  return (*kernel)->library->dispatch((*kernel)->kernel, dispatch,
                                      counters ? counters->values.data() : nullptr);
}

} // namespace triton_metal::runtime
