// Where a pointer comes from: the one analysis that follows pointers, and addresses made from them,
// back to a kernel's arguments and to its allocations of threadgroup memory.
#ifndef TRITON_METAL_ANALYSIS_POINTERORIGINS_H
#define TRITON_METAL_ANALYSIS_POINTERORIGINS_H

#include "dialect/msl/MSL.h"

#include "llvm/ADT/SetVector.h"

#include <memory>

namespace triton_metal::msl {

/// The memory that a pointer may point into.
struct Origins {
  /// Numbers of the kernel's arguments.
  llvm::SmallSetVector<unsigned, 2> arguments;
  /// Allocations of threadgroup memory.
  llvm::SmallSetVector<mlir::Operation *, 2> allocations;
  /// The pointer may point into any device memory.
  bool isUnknown = false;
  /// The pointer is computed from an integer on the way.
  bool isMadeOfAddress = false;

  /// The only allocation that the pointer points into; null if there are several or none.
  AllocOp getAllocation() const;
};

/// Follows the pointers of one kernel. Each answer is computed once and kept, so operations that
/// compute pointers must not change between two queries.
class PointerOrigins {
public:
  explicit PointerOrigins(KernelOp kernel) : kernel(kernel) {}

  /// The origins of a pointer or of addresses. They stay where they are when others are asked for.
  const Origins &get(mlir::Value pointer);

  /// Whether two device pointers may point into the same memory. An argument overlaps itself, and
  /// those arguments that the launcher marks as overlapping.
  bool mayOverlap(const Origins &a, const Origins &b) const;
  bool mayOverlap(mlir::Value a, mlir::Value b) { return mayOverlap(get(a), get(b)); }

private:
  Origins compute(mlir::Value pointer);

  KernelOp kernel;
  llvm::DenseMap<mlir::Value, std::unique_ptr<Origins>> known;
};

/// What a kernel does to the device memory of one of its arguments.
struct MemoryUse {
  bool reads = false, writes = false, isAtomic = false;
};

/// One entry for each argument of the kernel. An access that may go anywhere counts for all
/// arguments.
llvm::SmallVector<MemoryUse> getMemoryUses(KernelOp kernel);

} // namespace triton_metal::msl

#endif // TRITON_METAL_ANALYSIS_POINTERORIGINS_H
