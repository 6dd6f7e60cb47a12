// What a loop has from before, and what follows from that alone.

#ifndef TRITON_METAL_TRANSFORMS_MSLBEFORE_H
#define TRITON_METAL_TRANSFORMS_MSLBEFORE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace triton_metal::msl {

/// Whether a value is computed before an operation, on every way to it.
bool isComputedBefore(mlir::Value value, mlir::Operation *op);

/// Whether two values are computed in the same way from the same values, wherever they are.
bool areComputedAlike(mlir::Value a, mlir::Value b, unsigned depth = 0);

/// The values that are known before a loop, and copies of their computation there.
class Before {
public:
  explicit Before(mlir::Operation *loop) : loop(loop) {}

  bool isInside(mlir::Value value) const {
    return loop->getRegion(0).isAncestor(value.getParentRegion());
  }
  /// Whether a value follows from what is known before the loop.
  bool isKnown(mlir::Value value, unsigned depth = 0) const;
  /// The value, computed before the loop, at the builder's place. It must be known there.
  mlir::Value compute(mlir::Value value, mlir::OpBuilder &builder);

private:
  mlir::Operation *loop;
  mlir::IRMapping copies;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLBEFORE_H
