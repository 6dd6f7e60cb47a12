// A Metal device whose GPU is the CPU. It compiles MSL and runs its kernels with the exact
// semantics of SIMD-groups, address spaces and limits.
#pragma once

#include "host_device/Checks.h"
#include "host_device/Counters.h"
#include "host_device/Interface.h"
#include "host_device/KernelInfo.h"
#include "host_device/Profile.h"
#include "host_device/Text.h"
#include "host_device/msl/Frontend.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace triton_metal {

/// How kernels are compiled. The results are the same.
enum class Effort : uint8_t {
  /// Quickly at first, and in the background with all optimisations when a kernel has run for so
  /// long that it pays.
  Adaptive,
  Quick,
  Full,
};

struct LibraryOptions {
  /// What launches are checked for. A launch that fails a check leaves its buffers as they were.
  Checks checks;
  /// Runs kernels portably: what Metal does not promise is answered with the worst that it allows,
  /// and a result that depends on it is an error. Checks every access, too.
  bool portable = false;
  /// Counts what launches do.
  bool count = false;
  std::vector<FunctionConstantValue> functionConstants;
  std::string fileName = "kernel.metal";
  std::vector<std::pair<std::string, std::string>> macros;
  /// Folders for #include. A library is known again if all files that it asked for are as they
  /// were, those included that did not exist.
  std::vector<std::string> includeDirectories;
  /// The processor to compile for, by its LLVM name. The host must have all of its instructions. If
  /// empty, TRITON_METAL_HOST_CPU decides, or else the host's own processor is used.
  std::string processor;
  /// TRITON_METAL_HOST_EFFORT (quick or full) replaces `Adaptive`.
  Effort effort = Effort::Adaptive;
};

struct DeviceOptions {
  /// The folder for compiled kernels; if empty, they are only kept in memory.
  std::string cacheDirectory;
  /// Whether a folder that cannot be written is an error of `configure`. Otherwise it is a warning,
  /// and kernels are only kept in memory.
  bool cacheRequired = false;
  /// The number of threads that run kernels; 0 means one for each core that this process may use.
  unsigned numThreads = 0;
};

struct Trace;

struct Dispatch {
  std::array<uint32_t, 3> threadgroups{1, 1, 1};
  std::array<uint32_t, 3> threadsPerThreadgroup{1, 1, 1};
  /// The grid in threads, as in dispatchThreads. `threadgroups` is computed from it, and groups at
  /// its edges are cut.
  std::optional<std::array<uint32_t, 3>> gridThreads;
  /// The buffers by index. A buffer without data is not bound.
  llvm::ArrayRef<BufferBinding> buffers;
  /// The bytes of each threadgroup memory argument, by index; `noLength` for one that is not set.
  /// An argument of no bytes is set: a kernel may take one that it does not use.
  static constexpr uint32_t noLength = UINT32_MAX;
  std::vector<uint32_t> threadgroupMemoryLengths;
  /// A seed for a random order of threadgroups, of SIMD-groups between barriers, and of conflicting
  /// lanes.
  std::optional<uint64_t> scheduleSeed;
  /// Draws the choices of a portable launch, and its schedule if `scheduleSeed` does not. Without
  /// effect if the library is not portable.
  uint64_t portableSeed = 0;
  /// The iterations of loops that a SIMD-group may run in all, if the library checks `steps`.
  uint64_t maxSteps = defaultMaxSteps;
  /// One bit for each buffer that the launch must write wholly, if the library checks `outputs`.
  uint32_t wholeBuffers = 0;
  /// One bit for each buffer that keeps what a launch has written before it failed a check:
  /// messages of the kernel.
  uint32_t keptBuffers = 0;
  /// Receives the addresses that some threadgroups access, if the library counts and is not
  /// portable.
  Trace *trace = nullptr;
};

class Library;

class Kernel {
public:
  ~Kernel();
  const KernelInfo &info() const;
  /// Compiles the kernel for launches like this one. Otherwise the first `dispatch` does it.
  llvm::Error prepare(const Dispatch &dispatch);
  /// Runs the kernel to its end. Adds to `counters` and `profile`, if given and if the library
  /// counts.
  llvm::Error dispatch(const Dispatch &dispatch, Counters *counters = nullptr,
                       Profile *profile = nullptr);
  /// The bytes of threadgroup memory that the kernel's own variables need.
  llvm::Expected<uint64_t> staticThreadgroupMemory();
  /// An estimate of the 32-bit registers that a thread takes on a GPU; 0 if the library does not
  /// count.
  llvm::Expected<uint32_t> registersPerThread();
  /// Whether a launch like this one would run code that was compiled quickly.
  llvm::Expected<bool> isQuick(const Dispatch &dispatch);
  /// One bit for each buffer that the kernel may write.
  llvm::Expected<uint32_t> writtenBuffers();

private:
  friend class Library;
  struct State;
  explicit Kernel(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

class Library : public std::enable_shared_from_this<Library> {
public:
  ~Library();
  /// The kernels as they are declared. Which function constants a kernel needs, its threadgroup
  /// variables, and what its code uses that the device does not have are not known yet.
  const std::vector<KernelInfo> &kernels() const;
  /// All about a kernel. Lowers it, unless that is known.
  llvm::Expected<KernelInfo> info(llvm::StringRef name);
  /// The kernel of that name; belongs to the library.
  llvm::Expected<Kernel *> kernel(llvm::StringRef name);
  /// A library of the same text, and of the same files that it includes, with other options.
  llvm::Expected<std::shared_ptr<Library>> with(const LibraryOptions &options);
  /// How often this process has parsed the text, how many of its kernels it has lowered, and how
  /// many functions clang has generated code for.
  Text::Work work() const;

  struct State;

private:
  friend class Device;
  friend class Kernel;
  explicit Library(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

class Device {
public:
  static Device &get();
  /// Sets options for libraries that are compiled from now on.
  static llvm::Error configure(const DeviceOptions &options);

  /// May be called from any thread; the same text with the same options gives the same library.
  llvm::Expected<std::shared_ptr<Library>> compile(llvm::StringRef msl,
                                                   const LibraryOptions &options = {});
  /// Compiles a library from LLVM IR (text or bitcode) that has the form of the front end's output.
  llvm::Expected<std::shared_ptr<Library>> compileIR(llvm::StringRef ir,
                                                     std::vector<KernelInfo> kernels,
                                                     const LibraryOptions &options = {});
  /// Waits until nothing is being compiled in the background.
  void finishCompilations();
  /// Drops the libraries that are no longer used.
  void trim();

  struct State;

private:
  Device();
  ~Device();
  std::unique_ptr<State> state;
};

} // namespace triton_metal
