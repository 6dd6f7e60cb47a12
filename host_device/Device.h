// A Metal device whose GPU is the CPU: it compiles MSL and runs its kernels, exact about
// SIMD-groups, address spaces and limits.
#pragma once

#include "host_device/Counters.h"
#include "host_device/Interface.h"
#include "host_device/KernelInfo.h"
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

struct LibraryOptions {
  /// Every access is checked against its buffer; what is outside stops the kernel with an error
  /// that names the line.
  bool checkBounds = false;
  /// Launches count what they do.
  bool count = false;
  std::vector<FunctionConstantValue> functionConstants;
  std::string fileName = "kernel.metal";
  std::vector<std::pair<std::string, std::string>> macros;
  /// Folders for #include. Libraries that use them are compiled anew each time: the files could
  /// have changed.
  std::vector<std::string> includeDirectories;
  /// The processor to compile for, as LLVM calls it: one whose instructions the host has all of.
  /// Empty: what TRITON_METAL_HOST_CPU says, else the host's own.
  std::string processor;
};

struct DeviceOptions {
  /// Where compiled kernels are kept; empty: in memory only.
  std::string cacheDirectory;
  /// A folder that cannot be written is an error of `configure`; otherwise it is a warning, and
  /// kernels are kept in memory only.
  bool cacheRequired = false;
  /// Threads that run kernels; 0: one for each core that this process may use.
  unsigned numThreads = 0;
};

struct Dispatch {
  std::array<uint32_t, 3> threadgroups{1, 1, 1};
  std::array<uint32_t, 3> threadsPerThreadgroup{1, 1, 1};
  /// The grid in threads, as in dispatchThreads: `threadgroups` then follows from it, and groups at
  /// its edges are cut.
  std::optional<std::array<uint32_t, 3>> gridThreads;
  /// By index; those without data are missing.
  llvm::ArrayRef<BufferBinding> buffers;
  /// Bytes of each threadgroup memory argument, by index.
  std::vector<uint32_t> threadgroupMemoryLengths;
  /// Threadgroups, SIMD-groups between barriers and lanes in conflict take turns in an order drawn
  /// from this number.
  std::optional<uint64_t> scheduleSeed;
};

class Library;

class Kernel {
public:
  ~Kernel();
  const KernelInfo &info() const;
  /// Compiles for launches like this one, which `dispatch` otherwise does when the first comes.
  llvm::Error prepare(const Dispatch &dispatch);
  /// Runs the kernel to its end. `counters`, if given and the library was compiled to count, are
  /// added to.
  llvm::Error dispatch(const Dispatch &dispatch, Counters *counters = nullptr);
  /// Bytes of threadgroup memory that the kernel's own variables take.
  llvm::Expected<uint64_t> staticThreadgroupMemory();
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
  const std::vector<KernelInfo> &kernels() const;
  /// The kernel of that name; belongs to the library.
  llvm::Expected<Kernel *> kernel(llvm::StringRef name);

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
  /// Applies to libraries compiled from now on.
  static llvm::Error configure(const DeviceOptions &options);

  /// May be called from any thread; the same text with the same options gives the same library.
  llvm::Expected<std::shared_ptr<Library>> compile(llvm::StringRef msl,
                                                   const LibraryOptions &options = {});
  /// A library from LLVM IR (text or bitcode) that keeps the front end's contract.
  llvm::Expected<std::shared_ptr<Library>> compileIR(llvm::StringRef ir,
                                                     std::vector<KernelInfo> kernels,
                                                     const LibraryOptions &options = {});
  /// Forgets libraries that nobody holds.
  void trim();

  struct State;

private:
  Device();
  ~Device();
  std::unique_ptr<State> state;
};

} // namespace triton_metal
