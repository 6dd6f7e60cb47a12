// Where a pointer comes from: the one analysis that follows pointers, and addresses made from them,
// back to a kernel's arguments and to its allocations of threadgroup memory.
#ifndef TRITON_METAL_ANALYSIS_POINTERORIGINS_H
#define TRITON_METAL_ANALYSIS_POINTERORIGINS_H

#include "dialect/msl/MSL.h"

#include "llvm/ADT/SetVector.h"

namespace triton_metal::msl {

/// What a pointer may point into.
struct Origins {
  /// Numbers of the kernel's arguments.
  llvm::SmallSetVector<unsigned, 2> arguments;
  /// Allocations of threadgroup memory.
  llvm::SmallSetVector<mlir::Operation *, 2> allocations;
  /// Device memory that cannot be told.
  bool isUnknown = false;
  /// A pointer on the way is made from a number.
  bool isMadeOfAddress = false;

  /// The only allocation that the pointer goes to; null if there are several or none.
  AllocOp getAllocation() const;
};

/// Follows pointers of one kernel. Each answer is computed once; the kernel may change in between
/// only where no pointer is computed.
class PointerOrigins {
public:
  explicit PointerOrigins(KernelOp kernel) : kernel(kernel) {}

  /// Of a pointer, or of addresses.
  const Origins &get(mlir::Value pointer);

  /// Whether two device pointers may point into the same memory. Arguments overlap themselves, and
  /// those that the launcher says may.
  bool mayOverlap(const Origins &a, const Origins &b) const;
  bool mayOverlap(mlir::Value a, mlir::Value b) { return mayOverlap(get(a), Origins(get(b))); }

private:
  Origins compute(mlir::Value pointer);

  KernelOp kernel;
  llvm::DenseMap<mlir::Value, Origins> known;
};

/// What a kernel does to the device memory of one of its arguments.
struct MemoryUse {
  bool reads = false, writes = false, isAtomic = false;
};

/// One for each argument of the kernel. An access that may go anywhere counts for all of them.
llvm::SmallVector<MemoryUse> getMemoryUses(KernelOp kernel);

} // namespace triton_metal::msl

#endif // TRITON_METAL_ANALYSIS_POINTERORIGINS_H
