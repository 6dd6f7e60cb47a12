// Which loops go over the registers of tiles: a question about the tiles that they read.

#ifndef TRITON_METAL_TRANSFORMS_MSLREGISTERLOOPS_H
#define TRITON_METAL_TRANSFORMS_MSLREGISTERLOOPS_H

#include "dialect/msl/MSL.h"
#include "transforms/MSLRegisters.h"

#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// One loop over register bits: its index times `stride` is added to the register.
struct LoopDim {
  int64_t stride;
  int64_t trip;
};

/// The loops over the registers of a tile, the outermost first.
struct LoopNest {
  llvm::SmallVector<LoopDim> dims;
  /// There can be no loop: a tile asks for registers that are no sum of loop indices, or for a
  /// constant that is not linear in them. The steps are written out.
  bool writtenOut = false;
};

/// The loops over every `step`-th register of `registers`, so that each register that the tiles in
/// `roots` ask for is a sum of loop indices times strides. A loop ends at each bit in `breaks`.
/// Every loop over registers or over a chunk's components is formed by this answer.
LoopNest getLoopNest(llvm::ArrayRef<mlir::Value> roots, int64_t registers, int64_t step,
                     llvm::ArrayRef<int64_t> breaks = {});

/// Calls `body` at the builder's place, in the loops, for every `step`-th register.
void createLoopNest(mlir::OpBuilder &builder, mlir::Location loc, const LoopNest &nest,
                    int64_t registers, int64_t step, llvm::function_ref<void(const Coord &)> body);

/// As many registers as the widest access of `ops` takes, or as the variables hold that they read
/// register by register.
int64_t getStep(llvm::ArrayRef<mlir::Operation *> ops, int64_t registers);

/// The registers of a step where masks decide: as many as the widest access that remains.
int64_t getGuardedStep(TileLoopOp loop, int64_t step);

/// Uniform conditions under which no mask of the loop cuts.
llvm::SmallVector<mlir::Value> getFullConditions(TileLoopOp loop);

/// The operations on registers of a loop.
llvm::SmallVector<mlir::Operation *> getItems(TileLoopOp loop);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLREGISTERLOOPS_H
