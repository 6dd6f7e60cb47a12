// Compiled kernels, and the options of this thread's launches.
#ifndef TRITON_METAL_LAUNCHING_H
#define TRITON_METAL_LAUNCHING_H

#include "PackedLaunch.h"

#include "runtime/Kernel.h"
#include "runtime/KernelTable.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace triton_metal {

/// A compiled kernel as Python holds it.
struct NativeKernel {
  std::shared_ptr<runtime::Kernel> kernel;
  /// Created at its first use.
  const runtime::KernelTable *table = nullptr;

  /// The arguments that were compiled as multiples of 16.
  std::vector<std::string> aligned;

  explicit NativeKernel(std::shared_ptr<runtime::Kernel> kernel) : kernel(std::move(kernel)) {}
  NativeKernel(const NativeKernel &) = delete;
  NativeKernel &operator=(const NativeKernel &) = delete;
  ~NativeKernel() {
    if (table)
      table->release(table);
  }
};

/// The options of this thread's launches.
struct Settings {
  runtime::LaunchOptions options;
  nb::object sink;
};
std::vector<Settings> &settingsStack();

/// Runs a kernel on the host device with this thread's options, and reports to their log.
void launchAsSet(const std::string &name, nb::handle compiled,
                 const std::shared_ptr<runtime::Kernel> &kernel, std::array<uint32_t, 3> grid,
                 llvm::MutableArrayRef<BufferBinding> buffers,
                 llvm::MutableArrayRef<uint32_t> scalars);

/// `launchAsSet` for a kernel with prints or assertions, which are reported when it has ended. The
/// bindings and words of the hidden arguments are set here.
void launchWithMessages(const std::string &name, nb::handle compiled,
                        const std::shared_ptr<runtime::Kernel> &kernel,
                        std::array<uint32_t, 3> grid, llvm::MutableArrayRef<BufferBinding> buffers,
                        llvm::MutableArrayRef<uint32_t> scalars);
/// The same through a route in Python.
void launchWithMessages(nb::handle route, nb::handle compiled, nb::handle grid,
                        nb::handle arguments, nb::handle words);

/// Throws KeyboardInterrupt for a launch that was stopped, or what the handler of SIGINT raises.
[[noreturn]] void raiseInterrupt();
/// Throws a launch's error in Python. `compiled` maps it to source lines; it may be None.
[[noreturn]] void raiseLaunchError(const std::string &name, nb::handle compiled,
                                   const std::string &message);

/// Makes SIGINT end launches if Python's own handler is installed. Needs Python's lock.
void watchInterrupts(const HostDeviceTable &table);

void bindKernel(nb::module_ &module);

} // namespace triton_metal

#endif // TRITON_METAL_LAUNCHING_H
