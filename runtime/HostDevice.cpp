#include "runtime/HostDevice.h"

#include "host_device/Counters.h"

#include <atomic>
#include <mutex>

namespace triton_metal::runtime {

namespace {

std::atomic<const HostDeviceTable *> registered{nullptr};
std::atomic<llvm::Error (*)()> loader{nullptr};
std::mutex configuration;
std::string &wantedCacheDirectory() {
  static std::string directory;
  return directory;
}

llvm::Error configure(const HostDeviceTable &table, const std::string &cacheDirectory) {
  HostConfiguration wanted;
  wanted.cacheDirectory = cacheDirectory.c_str();
  return errorOf(table, table.configure(&wanted));
}

} // namespace

llvm::Error errorOf(const HostDeviceTable &table, char *text) {
  if (!text)
    return llvm::Error::success();
  std::string message = text;
  table.freeText(text);
  return llvm::createStringError(message);
}

llvm::Error registerHostDevice(const HostDeviceTable *table) {
  if (table->interface != hostDeviceInterface || table->numCounters != Counters::Count)
    return llvm::createStringError(
        "the installed triton-metal-host was made for another version of triton-metal: "
        "pip install --upgrade triton-metal[host]");
  std::lock_guard<std::mutex> lock(configuration);
  registered.store(table, std::memory_order_release);
  const std::string &directory = wantedCacheDirectory();
  return directory.empty() ? llvm::Error::success() : configure(*table, directory);
}

const HostDeviceTable *registeredHostDevice() { return registered.load(std::memory_order_acquire); }

void setHostDeviceLoader(llvm::Error (*function)()) { loader.store(function); }

llvm::Expected<const HostDeviceTable *> hostDevice() {
  if (const HostDeviceTable *table = registered.load(std::memory_order_acquire))
    return table;
  if (llvm::Error(*load)() = loader.load())
    if (llvm::Error error = load())
      return std::move(error);
  if (const HostDeviceTable *table = registered.load(std::memory_order_acquire))
    return table;
  return llvm::createStringError("NumPy arrays and CPU tensors run on the host device, which is "
                                 "not installed: pip install triton-metal[host]");
}

llvm::Error configureHostDevice(llvm::StringRef cacheDirectory) {
  std::lock_guard<std::mutex> lock(configuration);
  wantedCacheDirectory() = cacheDirectory.str();
  const HostDeviceTable *table = registered.load(std::memory_order_acquire);
  return table ? configure(*table, wantedCacheDirectory()) : llvm::Error::success();
}

llvm::Expected<std::shared_ptr<MetalLibrary>> MetalLibrary::compile(const HostText &text) {
  llvm::Expected<const HostDeviceTable *> table = hostDevice();
  if (!table)
    return table.takeError();
  HostLibrary *library = nullptr;
  if (llvm::Error error = errorOf(**table, (*table)->compile(&text, &library)))
    return std::move(error);
  return std::make_shared<MetalLibrary>(**table, library);
}

std::string MetalLibrary::describe() const {
  char *text = table.describe(library);
  std::string result = text;
  table.freeText(text);
  return result;
}

llvm::Expected<uint64_t> MetalLibrary::threadgroupMemory(HostKernel *kernel) const {
  uint64_t bytes = 0;
  if (llvm::Error error = errorOf(table, table.threadgroupMemory(kernel, &bytes)))
    return std::move(error);
  return bytes;
}

llvm::Expected<HostKernel *> MetalLibrary::kernel(const std::string &name) const {
  HostKernel *found = nullptr;
  if (llvm::Error error = errorOf(table, table.kernel(library, name.c_str(), &found)))
    return std::move(error);
  return found;
}

} // namespace triton_metal::runtime
