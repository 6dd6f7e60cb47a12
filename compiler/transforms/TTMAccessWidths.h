// How many elements one access to memory may take.
#ifndef TRITON_METAL_TRANSFORMS_TTMACCESSWIDTHS_H
#define TRITON_METAL_TRANSFORMS_TTMACCESSWIDTHS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace triton_metal {

/// Consecutive registers that are consecutive, aligned elements in memory, at most 16 bytes of
/// them; and how many of these have one and the same mask.
struct AccessWidth {
  int64_t width = 1, maskWidth = 1;
};

/// The widths of all `tt.load` and `tt.store` of tiles under `module`. They may rest on sums of
/// 32-bit numbers and the indices of programs that do not wrap around: `ttm.grid_limits` of the
/// module becomes the list of these sums.
llvm::DenseMap<mlir::Operation *, AccessWidth> findAccessWidths(mlir::ModuleOp module);

} // namespace triton_metal

#endif
