// What an operation on memory accesses.

#ifndef TRITON_METAL_TRANSFORMS_MSLACCESS_H
#define TRITON_METAL_TRANSFORMS_MSLACCESS_H

#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// An access to memory, register by register. The base is null where each register has an address.
struct Access {
  mlir::Value base, addresses, mask, other, value, full;
  mlir::Type element;
  int64_t width = 1, maskWidth = 1;
  bool isVolatile = false, isAtomic = false, reads = false, writes = false;

  /// Nothing where `op` is no access.
  static std::optional<Access> get(mlir::Operation *op);

  /// The mask decides. Where a loop has a body without masks, `full` has been asked before.
  bool isMasked(bool guarded) const { return mask && (guarded || !full); }
  /// The registers that one access takes. Where the uniform test fails, the alignment may be what
  /// failed.
  int64_t getWidth(bool guarded) const {
    if (element.isInteger(1))
      return 1;
    return isMasked(guarded) || (guarded && full) ? std::min(width, maskWidth) : width;
  }

  /// Whether the order of two accesses shows: both touch memory that may be the same, one of them
  /// writes, and they do not go register by register through the same addresses.
  bool conflictsWith(const Access &other, PointerOrigins &origins) const;
};

inline bool isAccess(mlir::Operation *op) { return mlir::isa<RegisterAccessOpInterface>(op); }

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLACCESS_H
