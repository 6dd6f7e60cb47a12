// Access to the host device. It is available once its table of functions has been registered.
#ifndef TRITON_METAL_RUNTIME_HOSTDEVICE_H
#define TRITON_METAL_RUNTIME_HOSTDEVICE_H

#include "host_device/Interface.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace triton_metal::runtime {

/// Registers a host device. Refuses one with another version of the interface.
llvm::Error registerHostDevice(const HostDeviceTable *table);

/// Sets the function that is called when a host device is first needed. It registers one or returns
/// an error. Without it, only registered devices are available.
void setHostDeviceLoader(llvm::Error (*loader)());

/// The host device, or an error that says how to get one.
llvm::Expected<const HostDeviceTable *> hostDevice();

/// The host device if it has been brought in, else null.
const HostDeviceTable *registeredHostDevice();

/// Sets the directory for compiled kernels. It is remembered until there is a host device.
llvm::Error configureHostDevice(llvm::StringRef cacheDirectory);

/// Converts an error text of the table to an error.
llvm::Error errorOf(const HostDeviceTable &table, char *text);

/// A library of Metal text on the host device.
class MetalLibrary {
public:
  static llvm::Expected<std::shared_ptr<MetalLibrary>> compile(const HostText &text);
  MetalLibrary(const HostDeviceTable &table, HostLibrary *library)
      : table(table), library(library) {}
  MetalLibrary(const MetalLibrary &) = delete;
  MetalLibrary &operator=(const MetalLibrary &) = delete;
  ~MetalLibrary() { table.release(library); }

  /// The kernels and their parameters, as a JSON list.
  std::string describe() const;
  /// The kernel of that name; belongs to the library.
  llvm::Expected<HostKernel *> kernel(const std::string &name) const;
  llvm::Expected<uint64_t> threadgroupMemory(HostKernel *kernel) const;
  llvm::Error dispatch(HostKernel *kernel, const HostDispatch &dispatch,
                       uint64_t *counters = nullptr) const {
    char *text = table.dispatch(kernel, &dispatch, counters);
    return text ? errorOf(table, text) : llvm::Error::success();
  }

private:
  const HostDeviceTable &table;
  HostLibrary *library;
};

} // namespace triton_metal::runtime

#endif // TRITON_METAL_RUNTIME_HOSTDEVICE_H
