// Tiles that become one by constant choices between their registers, such as the codes of words.

#ifndef TRITON_METAL_TRANSFORMS_MSLJOINS_H
#define TRITON_METAL_TRANSFORMS_MSLJOINS_H

#include "dialect/msl/MSL.h"
#include "llvm/ADT/DenseSet.h"

namespace triton_metal::msl {

/// The arithmetic that makes several tiles of fewer numbers, and the choices that put these side by
/// side: what a word holds, for one. Each number is read once, where the last choice is, so that it
/// may be computed there: then the words wait, and not what is in them.
class Joins {
public:
  explicit Joins(KernelOp kernel);

  /// Whether the operation is part of a join, but not its last choice.
  bool contains(mlir::Operation *op) const { return members.contains(op); }

private:
  llvm::DenseSet<mlir::Operation *> members;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLJOINS_H
