// Questions about tiles as values, one `vector<RxT>` a thread.

#ifndef TRITON_METAL_TRANSFORMS_MSLTILES_H
#define TRITON_METAL_TRANSFORMS_MSLTILES_H

#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// A tile: more than one register.
inline bool isTile(mlir::Type type) { return getNumRegisters(type) > 1; }
inline bool isTile(mlir::Value value) { return isTile(value.getType()); }

/// The operation computes each register of its result from the same register of its operands.
bool isElementwise(mlir::Operation *op);

/// Elementwise, or each register moves to another lane.
bool isElementwiseOrShuffle(mlir::Operation *op);

/// A tile that no loop computes: it is computed wherever its registers are asked for. Constants,
/// splats, other orders of registers, and what `msl-form-tile-loops` left outside of loops.
bool isOnDemand(mlir::Value value);

/// Where a tile comes from, and so its name: the operation that computes it, though in a loop.
mlir::Location getTileLoc(mlir::Value tile);

/// The number in every register of `tile`, at the builder's place; null where there is none.
mlir::Value getNumber(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile);

/// The operations that use a tile, seen through tiles that are computed on demand.
llvm::SmallVector<mlir::Operation *> getReaders(mlir::Value tile);

/// Nothing after `last`, an operation in the block of the tile's definition, reads the tile.
bool isDeadAfter(mlir::Value tile, mlir::Operation *last);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLTILES_H
