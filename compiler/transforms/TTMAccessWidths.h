// The number of elements that one access to memory may take, and those that one condition holds
// for.
#ifndef TRITON_METAL_TRANSFORMS_TTMACCESSWIDTHS_H
#define TRITON_METAL_TRANSFORMS_TTMACCESSWIDTHS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace triton_metal {

/// The number of consecutive registers that are consecutive elements in memory, at most 16 bytes;
/// how many of them share one mask; and in groups of how many registers the mask is true up to some
/// register and false from there on.
struct AccessWidth {
  int64_t width = 1, maskWidth = 1, maskRun = 1;
  /// How many consecutive registers of a load have one address and one mask; 1 for stores, and
  /// where neighbours are read.
  int64_t repeat = 1;
  /// Whether groups are aligned as their elements are, and no more.
  bool unaligned = false;
};

struct TileFacts {
  /// The widths of all `tt.load` and `tt.store` of tiles.
  llvm::DenseMap<mlir::Operation *, AccessWidth> widths;
  /// Comparisons that more depends on than the masks of accesses, and in groups of how many
  /// neighbours along each dimension their results are equal.
  llvm::SmallVector<std::pair<mlir::arith::CmpIOp, llvm::SmallVector<int64_t>>> conditions;
};

/// What is known of the tiles under `module`. It may rely on sums of 32-bit numbers and program
/// indices that do not wrap around. `ttm.grid_limits` of the module becomes the list of these sums.
TileFacts findTileFacts(mlir::ModuleOp module);

} // namespace triton_metal

#endif
