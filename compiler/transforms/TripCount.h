// How often a counted loop runs.
#ifndef TRITON_METAL_TRANSFORMS_TRIPCOUNT_H
#define TRITON_METAL_TRANSFORMS_TRIPCOUNT_H

#include "mlir/IR/Builders.h"

namespace triton_metal {

/// The number of iterations of a loop from `lower` to `upper` in steps of `step`, as an unsigned
/// number of their type: what Python's `range` has. A negative step counts down, and a step of 0
/// gives no iterations. With `isUnsigned` all three have no sign. Numbers, or tiles of them.
mlir::Value createTripCount(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lower,
                            mlir::Value upper, mlir::Value step, bool isUnsigned);

} // namespace triton_metal

#endif
