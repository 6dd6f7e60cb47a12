// Conditions on the thread's position.
#ifndef TRITON_METAL_TRANSFORMS_THREADCONDITIONS_H
#define TRITON_METAL_TRANSFORMS_THREADCONDITIONS_H

#include "dialect/msl/ThreadSet.h"

#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// Whether this thread is one of `threads`; null if all threads of the SIMD-groups are. The
/// positions are asked for only where the condition needs them.
mlir::Value createIsOneOf(mlir::OpBuilder &builder, mlir::Location loc, const ThreadSet &threads,
                          unsigned numSimdgroups, llvm::function_ref<mlir::Value()> getLane,
                          llvm::function_ref<mlir::Value()> getSimdgroup);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_THREADCONDITIONS_H
