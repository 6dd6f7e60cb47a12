#include "runtime/Kernel.h"

namespace triton_metal::runtime {

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

llvm::Expected<triton_metal::Kernel *> Kernel::variant(const LaunchOptions &options) {
  unsigned index = (options.checkBounds ? 1 : 0) | (options.count ? 2 : 0);
  if (triton_metal::Kernel *kernel = ready[index].load(std::memory_order_acquire))
    return kernel;
  std::lock_guard<std::mutex> lock(mutex);
  Variant &entry = variants[index];
  if (!entry.kernel) {
    LibraryOptions compileOptions;
    compileOptions.checkBounds = options.checkBounds;
    compileOptions.count = options.count;
    llvm::Expected<std::shared_ptr<Library>> library = Device::get().compile(metal, compileOptions);
    if (!library)
      return library.takeError();
    llvm::Expected<triton_metal::Kernel *> kernel = (*library)->kernel(metadata.name);
    if (!kernel)
      return kernel.takeError();
    entry = {std::move(*library), *kernel};
    ready[index].store(*kernel, std::memory_order_release);
  }
  return entry.kernel;
}

llvm::Error Kernel::prepare(const LaunchOptions &options) { return variant(options).takeError(); }

llvm::Error Kernel::launch(std::array<uint32_t, 3> grid,
                           llvm::MutableArrayRef<BufferBinding> buffers,
                           llvm::MutableArrayRef<uint32_t> scalars, const LaunchOptions &options,
                           Counters *counters) {
  llvm::Expected<triton_metal::Kernel *> kernel = variant(options);
  if (!kernel)
    return kernel.takeError();
  if (metadata.scalarBuffer >= 0)
    buffers[static_cast<size_t>(metadata.scalarBuffer)] = {scalars.data(),
                                                           scalars.size() * sizeof(uint32_t),
                                                           /*writable=*/false};
  Dispatch dispatch;
  dispatch.threadgroups = grid;
  dispatch.threadsPerThreadgroup = {metadata.threads, 1, 1};
  dispatch.buffers = buffers;
  dispatch.scheduleSeed = options.scheduleSeed;
  return (*kernel)->dispatch(dispatch, counters);
}

} // namespace triton_metal::runtime
