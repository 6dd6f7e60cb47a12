// The host device as a table of functions on plain data: what a program that is linked without
// clang and LLVM launches through.
#pragma once

#include <cstddef>
#include <cstdint>

namespace triton_metal {

/// Counts up whenever the table or what it takes changes.
inline constexpr uint32_t hostDeviceInterface = 2;
/// The name of the capsule in which the package `triton_metal_host` carries the table.
inline constexpr const char *hostDeviceCapsule = "triton_metal_host.table";

/// How the text begins that a launch gives which was asked to stop
/// (HostDeviceTable::stopOnInterrupt).
inline constexpr const char *launchInterrupted = "the launch was interrupted";

struct BufferBinding {
  void *data = nullptr;
  uint64_t bytes = 0;
  bool writable = false;
  /// Bytes in front of `data` that the kernel may touch as well: an array whose strides are
  /// negative begins at its end.
  uint64_t bytesBefore = 0;
};

struct HostConfiguration {
  /// Where compiled kernels are kept; null or empty: in memory only.
  const char *cacheDirectory = nullptr;
  bool cacheRequired = false;
  /// Threads that run kernels; 0: one for each core that this process may use.
  uint32_t numThreads = 0;
};

/// A library of Metal text. Lists may be null where they are empty.
struct HostText {
  const char *text = nullptr;
  size_t size = 0;
  /// What the text is called in messages; null: kernel.metal.
  const char *fileName = nullptr;
  bool checkBounds = false;
  bool count = false;
  /// Names and values of macros, in turn.
  const char *const *macros = nullptr;
  size_t numMacros = 0;
  const char *const *includeDirectories = nullptr;
  size_t numIncludeDirectories = 0;
  /// Indices of function constants, and the bits of their values.
  const uint32_t *functionConstants = nullptr;
  const uint64_t *functionConstantBits = nullptr;
  size_t numFunctionConstants = 0;
};

struct HostDispatch {
  uint32_t threadgroups[3] = {1, 1, 1};
  uint32_t threadsPerThreadgroup[3] = {1, 1, 1};
  /// The grid in threads, which `threadgroups` then follows from.
  uint32_t gridThreads[3] = {0, 0, 0};
  bool hasGridThreads = false;
  bool hasSeed = false;
  uint64_t seed = 0;
  const BufferBinding *buffers = nullptr;
  size_t numBuffers = 0;
  const uint32_t *threadgroupMemoryLengths = nullptr;
  size_t numThreadgroupMemoryLengths = 0;
};

struct HostLibrary;
struct HostKernel;

/// Every function may be called from any thread. Those that give text give null where all is well,
/// else what went wrong, which `freeText` takes back.
struct HostDeviceTable {
  uint32_t interface;
  /// How many numbers a launch counts: Counters::Count.
  uint32_t numCounters;
  char *(*configure)(const HostConfiguration *configuration);
  char *(*compile)(const HostText *text, HostLibrary **library);
  /// The library's kernels and their parameters, as a JSON list, which `freeText` takes back.
  char *(*describe)(HostLibrary *library);
  /// The kernel of that name, which lives as long as its library.
  char *(*kernel)(HostLibrary *library, const char *name, HostKernel **kernel);
  /// The bytes of threadgroup memory that the kernel's own variables take.
  char *(*threadgroupMemory)(HostKernel *kernel, uint64_t *bytes);
  /// Runs a kernel to its end. `counters`, where it is not null, are added to.
  char *(*dispatch)(HostKernel *kernel, const HostDispatch *dispatch, uint64_t *counters);
  void (*release)(HostLibrary *library);
  void (*freeText)(char *text);
  /// From now on SIGINT ends all launches of the process, and then goes where it went before.
  void (*stopOnInterrupt)();
};

/// The device of this program or module.
const HostDeviceTable &hostDeviceTable();

} // namespace triton_metal
