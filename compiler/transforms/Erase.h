// Erases operations safely.
#ifndef TRITON_METAL_TRANSFORMS_ERASE_H
#define TRITON_METAL_TRANSFORMS_ERASE_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Region.h"

namespace triton_metal {

/// Erases an operation and everything inside of it. If an operation outside of it still uses one of
/// its values, reports an error there and changes nothing. Otherwise an operand would refer to
/// freed memory, which leads to a crash or wrong code far from its cause, and which no verifier can
/// find.
llvm::LogicalResult eraseUnread(mlir::Operation *op);

/// Replaces the body of an operation under the same condition.
llvm::LogicalResult replaceBody(mlir::Region &old, mlir::Region &body);

/// Erases the operations in an operation whose results nothing reads and that have no effect.
void eraseDead(mlir::Operation *op);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_ERASE_H
