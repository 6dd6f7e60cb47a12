// What the masks of tiles are made of.
#ifndef TRITON_METAL_TRANSFORMS_TTMMASKS_H
#define TRITON_METAL_TRANSFORMS_TTMMASKS_H

#include "mlir/IR/Operation.h"

namespace triton_metal {

/// Whether an operation only moves the elements of a tile, or repeats them.
bool onlyMoves(mlir::Operation *op);

/// Whether a scalar may differ from program to program or from step to step of a loop.
bool varies(mlir::Value scalar);

/// The greatest power of two that surely divides a number.
int64_t getDivisor(mlir::Value value, unsigned depth = 0);

} // namespace triton_metal

#endif
