// A compiled kernel on the host Metal device.
#ifndef TRITON_METAL_RUNTIME_KERNEL_H
#define TRITON_METAL_RUNTIME_KERNEL_H

#include "host_device/Counters.h"
#include "runtime/HostDevice.h"
#include "runtime/Metadata.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace triton_metal::runtime {

/// The options of a launch.
struct LaunchOptions {
  /// Bits of host_device/Checks.h.
  uint32_t checks = 0;
  uint64_t maxSteps = 0;
  bool portable = false;
  bool count = false;
  std::optional<uint64_t> scheduleSeed;
  uint64_t portableSeed = 0;
};

class Kernel {
public:
  /// Creates a kernel from its text and metadata. The device compiles it at the first launch.
  static llvm::Expected<std::shared_ptr<Kernel>> create(std::string metal,
                                                        llvm::StringRef metadata);

  const Metadata &getMetadata() const { return metadata; }
  const std::string &getMetal() const { return metal; }

  /// Runs the kernel over a grid of programs. `buffers` are in the order of their bindings, without
  /// the buffer of scalars, which is made of `scalars`.
  llvm::Error launch(std::array<uint32_t, 3> grid, llvm::MutableArrayRef<BufferBinding> buffers,
                     llvm::MutableArrayRef<uint32_t> scalars, const LaunchOptions &options,
                     Counters *counters);

  /// Compiles the kernel for the device now.
  llvm::Error prepare(const LaunchOptions &options);

private:
  /// A compiled kernel for each combination of checks and counting.
  struct Variant {
    std::shared_ptr<MetalLibrary> library;
    HostKernel *kernel = nullptr;
  };
  llvm::Expected<const Variant *> variant(const LaunchOptions &options);

  std::string metal;
  Metadata metadata;
  std::mutex mutex;
  /// Those without checks besides bounds, by their options, and the others.
  std::array<Variant, 8> variants;
  std::array<std::atomic<bool>, 8> ready{};
  std::map<uint32_t, Variant> checkedVariants;
};

} // namespace triton_metal::runtime

#endif // TRITON_METAL_RUNTIME_KERNEL_H
