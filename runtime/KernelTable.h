// A compiled kernel as plain data and functions, through which extension modules of other builds
// launch it.
#ifndef TRITON_METAL_RUNTIME_KERNELTABLE_H
#define TRITON_METAL_RUNTIME_KERNELTABLE_H

#include "host_device/Interface.h"

#include <cstddef>
#include <cstdint>

struct _object; // PyObject

namespace triton_metal::runtime {

/// The version of the interface. It must be increased whenever the table changes.
inline constexpr uint32_t kernelTableInterface = 1;
/// The name of the capsule in which `_native.Kernel.table` carries a KernelTable.
inline constexpr const char *kernelTableCapsule = "triton_metal.kernel_table";

struct KernelTableArgument {
  const char *name;
  /// The binding of a buffer, or the first word of a scalar in the buffer of scalars.
  uint32_t slot;
  bool isBuffer;
  /// Whether the kernel stores to the buffer or updates it atomically.
  bool writes;
  /// Whether the kernel was compiled for an address that is a multiple of 16.
  bool aligned;
};

struct KernelLaunch {
  uint32_t grid[3];
  /// Indexed by binding. The entry of the scalar buffer stays empty.
  BufferBinding *buffers;
  size_t numBuffers;
  uint32_t *scalars;
  size_t numScalars;
};

/// The texts that functions return are error messages, or null on success. The caller returns them
/// to `freeText`.
struct KernelTable {
  uint32_t interface;
  /// The table and its texts stay valid while a reference is held. Both functions may be called
  /// from any thread.
  void (*retain)(const KernelTable *table);
  void (*release)(const KernelTable *table);

  const char *name;
  const char *metal;
  size_t metalBytes;
  uint32_t threads;
  uint32_t numBuffers;
  /// The binding of the buffer of scalars, or -1.
  int32_t scalarBuffer;
  uint32_t scalarWords;
  const KernelTableArgument *arguments;
  size_t numArguments;

  /// Compiles the kernel for the host device. May be called from any thread, with or without
  /// Python's lock.
  char *(*prepare)(const KernelTable *table);
  /// Runs the kernel on the host device and ignores the launch options of the thread. May be called
  /// from any thread.
  char *(*launch)(const KernelTable *table, const KernelLaunch *launch);
  void (*freeText)(char *text);
  /// Whether launch options (checks, counting, an order) are set in this thread. Only
  /// `launchWithOptions` uses them.
  bool (*hasOptions)();
  /// Runs the kernel on the host device with the launch options of this thread. The caller holds
  /// Python's lock; `compiled` is the CompiledKernel for the log of launches. Returns false if a
  /// Python exception is set.
  bool (*launchWithOptions)(const KernelTable *table, _object *compiled,
                            const KernelLaunch *launch);
};

} // namespace triton_metal::runtime

#endif // TRITON_METAL_RUNTIME_KERNELTABLE_H
