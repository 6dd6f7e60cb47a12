// Queries about tiles as values, one `vector<RxT>` in each thread.

#ifndef TRITON_METAL_TRANSFORMS_MSLTILES_H
#define TRITON_METAL_TRANSFORMS_MSLTILES_H

#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// Whether the type is that of a tile: more than one register.
inline bool isTile(mlir::Type type) { return getNumRegisters(type) > 1; }
inline bool isTile(mlir::Value value) { return isTile(value.getType()); }

/// Whether the operation computes each register of its result from the same register of its
/// operands.
bool isElementwise(mlir::Operation *op);

/// Whether the lanes of a SIMD-group exchange numbers in the operation: all of them must come to
/// it.
bool crossesLanes(mlir::Operation *op);

/// Whether the operation is elementwise or moves each register to another lane.
bool isElementwiseOrShuffle(mlir::Operation *op);

/// Whether no loop computes the tile, so that its registers are computed where they are needed:
/// constants, splats, other orders of registers, and what `msl-form-tile-loops` has left outside of
/// loops.
bool isOnDemand(mlir::Value value);

/// The location of the operation that computes a tile, also if that is in a loop. It carries the
/// tile's name.
mlir::Location getTileLoc(mlir::Value tile);

/// The number that all registers of `tile` hold, created at the insertion point; null if they
/// differ.
mlir::Value getNumber(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile);

/// The operations that use a tile, directly or through tiles that are computed on demand.
llvm::SmallVector<mlir::Operation *> getReaders(mlir::Value tile);

/// Whether nothing reads the tile after `last`, an operation in the block that defines the tile.
bool isDeadAfter(mlir::Value tile, mlir::Operation *last);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLTILES_H
