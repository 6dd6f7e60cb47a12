// The properties of an access to memory.

#ifndef TRITON_METAL_TRANSFORMS_MSLACCESS_H
#define TRITON_METAL_TRANSFORMS_MSLACCESS_H

#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// An access to the registers of a tile. The base is null if each register has an address of its
/// own.
struct Access {
  mlir::Value base, addresses, mask, other, value, full;
  mlir::Type element;
  int64_t width = 1, maskWidth = 1, maskRun = 1;
  bool unaligned = false, isVolatile = false, isAtomic = false, reads = false, writes = false;

  /// Returns nothing if `op` is not an access.
  static std::optional<Access> get(mlir::Operation *op);

  /// Whether each register is accessed under its mask. The body without guards runs only if `full`
  /// is true, and ignores the mask of accesses that have it.
  bool isMasked(bool guarded) const { return mask && (guarded || !full); }
  /// The number of registers that one access takes. In the guarded body of an access with `full`,
  /// the address may be unaligned, because `full` includes the test of the alignment.
  int64_t getWidth(bool guarded) const {
    if (element.isInteger(1))
      return 1;
    return isMasked(guarded) || (guarded && full) ? std::min(width, maskWidth) : width;
  }

  /// Whether two accesses must keep their order: both may touch the same memory, one of them
  /// writes, and they do not access the same address register by register.
  bool conflictsWith(const Access &other, PointerOrigins &origins) const;
};

inline bool isAccess(mlir::Operation *op) { return mlir::isa<RegisterAccessOpInterface>(op); }

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLACCESS_H
