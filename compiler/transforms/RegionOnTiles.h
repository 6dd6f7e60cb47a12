// Scalar code with control flow, for all elements of tiles at once.
#ifndef TRITON_METAL_TRANSFORMS_REGIONONTILES_H
#define TRITON_METAL_TRANSFORMS_REGIONONTILES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace triton_metal {

/// Builds what a region of scalar code does for each element of tiles of one shape. Both sides of a
/// branch are computed, and a loop runs until no element wants another iteration. What touches
/// memory does so under a mask. With an empty shape, the code is for one element, and branches
/// become selections.
class RegionOnTiles {
public:
  /// `shape` is the shape of all tiles; none for scalars.
  RegionOnTiles(mlir::OpBuilder &builder, mlir::Location loc,
                std::optional<llvm::ArrayRef<int64_t>> shape)
      : builder(builder), loc(loc), shape(shape) {}

  /// Whether the code needs no loop and touches no memory, so that selections can replace its
  /// branches.
  static bool isStraight(mlir::Block &block);

  /// What the block returns where its arguments are `arguments`; failure, with an error, if it has
  /// operations that do not work on tiles. Elements where `mask` is false (all are computed if it
  /// is null) touch no memory and keep no loop running; their results are anything.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  build(mlir::Block &block, mlir::ValueRange arguments, mlir::Value mask);

private:
  /// What a value of the code is: a tile, or a number that all elements share.
  mlir::Value lookup(mlir::Value value) { return mapping.lookupOrDefault(value); }
  bool isTile(mlir::Value value);
  mlir::Value getTile(mlir::Value value);
  llvm::SmallVector<mlir::Value> getTiles(mlir::ValueRange values);
  mlir::Type tileOf(mlir::Type type);
  mlir::Value splat(mlir::Value scalar);
  mlir::Value constant(mlir::TypedAttr number);
  /// Any value of a tile's type, for elements that never read it.
  mlir::Value anything(mlir::Type type);
  mlir::Value both(mlir::Value mask, mlir::Value condition);
  mlir::Value opposite(mlir::Value condition);
  /// Whether a tile of conditions has one that is true: the same answer in all threads.
  mlir::Value any(mlir::Value conditions);

  mlir::LogicalResult buildBlock(mlir::Block &block, mlir::Value mask);
  mlir::LogicalResult buildOperation(mlir::Operation &op, mlir::Value mask);
  mlir::LogicalResult buildIf(mlir::Operation &op, mlir::Value mask);
  mlir::LogicalResult buildFor(mlir::Operation &op, mlir::Value mask);
  mlir::LogicalResult buildWhile(mlir::Operation &op, mlir::Value mask);
  mlir::LogicalResult buildAccess(mlir::Operation &op, mlir::Value mask);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  std::optional<llvm::ArrayRef<int64_t>> shape;
  mlir::IRMapping mapping;
};

} // namespace triton_metal

#endif
