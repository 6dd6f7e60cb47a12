#ifndef TRITON_METAL_TRANSFORMS_MSLORIGINS_H
#define TRITON_METAL_TRANSFORMS_MSLORIGINS_H

#include "dialect/msl/MSL.h"

#include "llvm/ADT/SetVector.h"

namespace triton_metal::msl {

/// The kernel's arguments that a device pointer may come from; `all` where that cannot be said.
struct Origins {
  llvm::SmallSetVector<unsigned, 4> arguments;
  bool all = false;

  /// Follows a pointer, or an address made from one, back to the arguments of the kernel with this
  /// entry block.
  static Origins get(mlir::Value pointer, mlir::Block *entry);
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLORIGINS_H
