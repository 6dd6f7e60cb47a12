#ifndef TRITON_METAL_TRANSFORMS_TTLOCKS_H
#define TRITON_METAL_TRANSFORMS_TTLOCKS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace triton_metal {

/// Of a function whose programs must run one after the other: the place of what makes it necessary.
inline constexpr llvm::StringLiteral kSerialFunctionAttr = "tt.serial";

/// Whether a loop that waits with `wait` takes a lock that the same program gives back: programs
/// that run one after the other always find it free.
bool isLock(mlir::scf::WhileOp loop, mlir::Operation *wait);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_TTLOCKS_H
