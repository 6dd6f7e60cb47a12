// The host device as a table of functions on plain data. Programs that are not linked with clang
// and LLVM launch kernels through it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace triton_metal {

/// The version of the interface. It must be increased whenever the table or its data change.
inline constexpr uint32_t hostDeviceInterface = 6;
/// The name of the capsule in which the package `triton_metal_host` carries the table.
inline constexpr const char *hostDeviceCapsule = "triton_metal_host.table";

/// The beginning of the error text of a launch that was stopped on request
/// (HostDeviceTable::stopOnInterrupt).
inline constexpr const char *launchInterrupted = "the launch was interrupted";

struct BufferBinding {
  void *data = nullptr;
  uint64_t bytes = 0;
  bool writable = false;
  /// The number of bytes before `data` that the kernel may also access. An array with negative
  /// strides begins at its end.
  uint64_t bytesBefore = 0;
};

struct HostConfiguration {
  /// The folder for compiled kernels; if null or empty, they are only kept in memory.
  const char *cacheDirectory = nullptr;
  bool cacheRequired = false;
  /// The number of threads that run kernels; 0 means one for each core that this process may use.
  uint32_t numThreads = 0;
};

/// The source of a library. Empty lists may be null.
struct HostText {
  const char *text = nullptr;
  size_t size = 0;
  /// The name of the text in messages; null means kernel.metal.
  const char *fileName = nullptr;
  /// Bits of Checks.h.
  uint32_t checks = 0;
  bool portable = false;
  bool count = false;
  /// Names and values of macros, alternately.
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
  /// The grid in threads, from which `threadgroups` is computed.
  uint32_t gridThreads[3] = {0, 0, 0};
  bool hasGridThreads = false;
  bool hasSeed = false;
  uint64_t seed = 0;
  uint64_t portableSeed = 0;
  /// The iterations of loops that a SIMD-group may run, if that is checked; 0 for the usual number.
  uint64_t maxSteps = 0;
  /// One bit for each buffer that the launch must write wholly, if that is checked.
  uint32_t wholeBuffers = 0;
  /// One bit for each buffer that keeps what a launch has written before it failed a check.
  uint32_t keptBuffers = 0;
  const BufferBinding *buffers = nullptr;
  size_t numBuffers = 0;
  const uint32_t *threadgroupMemoryLengths = nullptr;
  size_t numThreadgroupMemoryLengths = 0;
};

struct HostLibrary;
struct HostKernel;

/// All functions may be called from any thread. Functions that return a text return null on success
/// and otherwise the error message. The caller returns texts to `freeText`.
struct HostDeviceTable {
  uint32_t interface;
  /// The number of counters of a launch: Counters::Count.
  uint32_t numCounters;
  char *(*configure)(const HostConfiguration *configuration);
  char *(*compile)(const HostText *text, HostLibrary **library);
  /// The kernels of a library as JSON (metal::describeAsJson). The caller returns it to `freeText`.
  char *(*describe)(HostLibrary *library);
  /// The kernel of this name. It lives as long as its library.
  char *(*kernel)(HostLibrary *library, const char *name, HostKernel **kernel);
  /// The bytes of threadgroup memory that the kernel's own variables take.
  char *(*threadgroupMemory)(HostKernel *kernel, uint64_t *bytes);
  /// Runs a kernel to its end. Adds to `counters` if it is not null.
  char *(*dispatch)(HostKernel *kernel, const HostDispatch *dispatch, uint64_t *counters);
  void (*release)(HostLibrary *library);
  void (*freeText)(char *text);
  /// From now on, SIGINT stops all launches of the process and is then passed to the previous
  /// handler.
  void (*stopOnInterrupt)();
};

/// The device of this program or module.
const HostDeviceTable &hostDeviceTable();

} // namespace triton_metal
