// Chooses the loops over the registers of tiles, given the tiles that they read.

#ifndef TRITON_METAL_TRANSFORMS_MSLREGISTERLOOPS_H
#define TRITON_METAL_TRANSFORMS_MSLREGISTERLOOPS_H

#include "dialect/msl/MSL.h"
#include "transforms/MSLRegisters.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// One loop over register bits: its index times `stride` is added to the register.
struct LoopDim {
  int64_t stride;
  int64_t trip;
  /// The iterations are written out: a constant takes too many operations to compute from the
  /// index, or the steps are few and differ in what they do.
  bool writtenOut = false;
};

/// The loops over the registers of a tile, the outermost first.
struct LoopNest {
  llvm::SmallVector<LoopDim> dims;
  /// All steps are written out, and there is no loop.
  bool writtenOut = false;

  bool hasLoopsOnly() const;
};

/// The loops over every `step`-th register of `registers`, such that each register of the tiles in
/// `roots` is a sum of loop indices times strides, or of bits of them under exclusive or. A loop
/// ends at each bit in `breaks`. This function chooses all loops over registers and over the
/// components of chunks.
LoopNest getLoopNest(llvm::ArrayRef<mlir::Value> roots, int64_t registers, int64_t step,
                     llvm::ArrayRef<int64_t> breaks = {});

/// Creates the loops at the insertion point and calls `body` in them, for every `step`-th register.
void createLoopNest(mlir::OpBuilder &builder, mlir::Location loc, const LoopNest &nest,
                    int64_t registers, int64_t step, llvm::function_ref<void(const Coord &)> body);

/// Whether the tiles can be computed at an index that selects any register of a step.
bool canBeIndexed(llvm::ArrayRef<mlir::Value> roots, int64_t registers);

/// The number of registers of a step: as many as the widest access in `ops` takes, or as the
/// variables hold that `ops` read register by register.
int64_t getStep(llvm::ArrayRef<mlir::Operation *> ops, int64_t registers);

/// The masks of accesses and choices of the loop that end somewhere in each row (`mask_run`), so
/// that in steps of so many registers the last mask tells whether all are true, and the first
/// whether none is. Nothing if no access and no choice is better without its mask.
llvm::SmallVector<mlir::Value> getRunMasks(TileLoopOp loop, int64_t step);

/// The number of registers of a step in the guarded body: as many as its widest access takes.
int64_t getGuardedStep(TileLoopOp loop, int64_t step);

/// The uniform conditions under which all masks of the loop are true: of its accesses, and of
/// choices between tiles by the mask of an access, wherever that is.
llvm::SmallVector<mlir::Value> getFullConditions(TileLoopOp loop);

/// The one mask of all masked accesses of a loop that only loads, computes and stores, if the
/// registers of a step have it in common: a step does nothing where it is false. Null if there is
/// none.
mlir::Value getWholeMask(TileLoopOp loop, int64_t step);

/// A uniform condition under which all of the mask by which the operation chooses is true, and
/// which is known before the loop; null if none is known.
mlir::Value getFullCondition(mlir::arith::SelectOp op, TileLoopOp loop);

/// The operations on registers of a loop.
llvm::SmallVector<mlir::Operation *> getItems(TileLoopOp loop);

/// Some operations of a loop, and those of its masks that they read.
struct ItemGroup {
  llvm::SmallVector<mlir::Operation *> items;
  llvm::SmallVector<mlir::Value> masks;
};

/// The operations in groups that share no value of the loop and no mask, in their order. All are
/// one group if groups would change that order.
llvm::SmallVector<ItemGroup> getItemGroups(llvm::ArrayRef<mlir::Operation *> items,
                                           llvm::ArrayRef<mlir::Value> masks);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLREGISTERLOOPS_H
