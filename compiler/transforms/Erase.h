// Erasing what must not be read any more.
#ifndef TRITON_METAL_TRANSFORMS_ERASE_H
#define TRITON_METAL_TRANSFORMS_ERASE_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Region.h"

namespace triton_metal {

/// Erases an operation and all that is in it. If an operation outside of it still reads one of its
/// values, reports an error there and leaves everything as it is: an operand that refers to freed
/// memory is a crash, or wrong code, far from its cause, and no verifier can find it.
llvm::LogicalResult eraseUnread(mlir::Operation *op);

/// Replaces the body of an operation, on the same condition.
llvm::LogicalResult replaceBody(mlir::Region &old, mlir::Region &body);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_ERASE_H
