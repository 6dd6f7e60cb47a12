// A combine region's work on many elements at once.
#ifndef TRITON_METAL_TRANSFORMS_INLINECOMBINE_H
#define TRITON_METAL_TRANSFORMS_INLINECOMBINE_H

#include "mlir/IR/Builders.h"

namespace triton_metal {

/// Builds what a combine region makes of the elements `lhs` and `rhs`: numbers, or vectors or
/// tensors of one shape, element by element. The block takes the left element of each operand, then
/// the right ones. `repeat` gives a number from around the region that shape.
llvm::SmallVector<mlir::Value> inlineCombine(mlir::OpBuilder &builder, mlir::Location loc,
                                             mlir::Block &block, mlir::ValueRange lhs,
                                             mlir::ValueRange rhs,
                                             llvm::function_ref<mlir::Value(mlir::Value)> repeat);

} // namespace triton_metal

#endif
