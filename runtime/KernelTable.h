// A compiled kernel as plain data and functions: what an extension module of another build launches
// it through.
#ifndef TRITON_METAL_RUNTIME_KERNELTABLE_H
#define TRITON_METAL_RUNTIME_KERNELTABLE_H

#include "host_device/Interface.h"

#include <cstddef>
#include <cstdint>

struct _object; // PyObject

namespace triton_metal::runtime {

/// Counts up whenever the table changes.
inline constexpr uint32_t kernelTableInterface = 1;
/// The name of the capsule in which `_native.Kernel.table` carries a KernelTable.
inline constexpr const char *kernelTableCapsule = "triton_metal.kernel_table";

struct KernelTableArgument {
  const char *name;
  /// A buffer's binding, or a scalar's first word in the scalar buffer.
  uint32_t slot;
  bool isBuffer;
  /// Stores or atomic updates.
  bool writes;
  /// Compiled for an address that is a multiple of 16.
  bool aligned;
};

struct KernelLaunch {
  uint32_t grid[3];
  /// By binding; the scalar buffer's place stays empty.
  BufferBinding *buffers;
  size_t numBuffers;
  uint32_t *scalars;
  size_t numScalars;
};

/// Texts that functions give are what went wrong, null where all is well; `freeText` takes them
/// back.
struct KernelTable {
  uint32_t interface;
  /// The table and its texts live while a reference is held; both may be called from any thread.
  void (*retain)(const KernelTable *table);
  void (*release)(const KernelTable *table);

  const char *name;
  const char *metal;
  size_t metalBytes;
  uint32_t threads;
  uint32_t numBuffers;
  /// The binding of the buffer that scalars travel in, or -1.
  int32_t scalarBuffer;
  uint32_t scalarWords;
  const KernelTableArgument *arguments;
  size_t numArguments;

  /// Compiles for the host device. Any thread, with or without Python's lock.
  char *(*prepare)(const KernelTable *table);
  /// Runs on the host device, without the thread's launch options. Any thread.
  char *(*launch)(const KernelTable *table, const KernelLaunch *launch);
  void (*freeText)(char *text);
  /// Whether launch options (checks, counting, an order) are set in this thread, which only
  /// `launchWithOptions` follows.
  bool (*hasOptions)();
  /// Runs on the host device as this thread's options say. With Python's lock; `compiled` is the
  /// CompiledKernel that a log of launches names. False: a Python exception is set.
  bool (*launchWithOptions)(const KernelTable *table, _object *compiled,
                            const KernelLaunch *launch);
};

} // namespace triton_metal::runtime

#endif // TRITON_METAL_RUNTIME_KERNELTABLE_H
