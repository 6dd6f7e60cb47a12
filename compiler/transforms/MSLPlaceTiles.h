// What places the tiles of a kernel in variables.

#ifndef TRITON_METAL_TRANSFORMS_MSLPLACETILES_H
#define TRITON_METAL_TRANSFORMS_MSLPLACETILES_H

#include "dialect/msl/MSL.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// Goes over a kernel in the order of its execution. A tile that has its variable is an
/// `msl.read_tile` where it was defined; what reads it gets a read of its own there, so that the
/// uses of the first are what has not been visited yet.
class TilePlacement {
public:
  explicit TilePlacement(KernelOp kernel);
  void run();

private:
  void visitBlock(mlir::Block &block);
  void visitTileLoop(TileLoopOp loop);
  void visitReduce(ReduceRegistersOp op);
  void visitMma(MmaOp op);
  // MSLPlaceControlFlow.cpp.
  void visitFor(mlir::scf::ForOp loop);
  void visitIf(mlir::scf::IfOp op);
  void visitWhile(mlir::scf::WhileOp loop);
  /// Copies tiles into variables, all at once.
  void assign(mlir::ValueRange tiles, llvm::ArrayRef<mlir::Value> variables);
  /// Assigns the tiles that a terminator passes on, and drops them from its operands.
  void passOn(mlir::Operation *terminator, mlir::MutableOperandRange operands,
              llvm::ArrayRef<mlir::Value> variables);

  /// Makes `tile` a read of its variable, at the builder's place.
  void place(mlir::Value tile, mlir::Value variable, mlir::Location loc);
  /// `tile` as it is read at the builder's place: again, where it lives in a variable.
  mlir::Value reread(mlir::Value tile);
  void rereadOperands(mlir::Operation *op);
  /// The variable that a tile lives in; null where it has none.
  static mlir::Value getVariable(mlir::Value tile);

  /// The matrices that a tile consists of; null where no product takes it as such.
  MatrixType getMatrices(mlir::Value tile) const { return matrices.lookup(tile); }
  /// Whether a product takes a tile, as matrices or as vectors.
  bool isInProduct(mlir::Value tile) const { return matrices.contains(tile); }
  /// Whether a variable holds tiles as products take this one, if they take it.
  bool isAsInProduct(mlir::Value variable, mlir::Value tile) const;
  /// A new variable for a tile: of its matrices, or else of `width` registers an element.
  mlir::Value createVariableOf(mlir::Value tile, mlir::Location loc, int64_t width);
  /// A new variable for a tile as a product takes it: of matrices, or of vectors where there are
  /// none.
  mlir::Value createProductVariable(mlir::Value tile, MatrixType matrix, mlir::Location loc);
  mlir::Value chooseVariable(mlir::Value tile, mlir::Operation *op, TileLoopOp loop, int64_t width);
  /// An array of these matrices, or of vectors where there are none, that holds the tile.
  mlir::Value getFragments(mlir::Value tile, MatrixType matrix);
  void copy(mlir::Value tile, mlir::Value variable) { copy({{tile, variable}}); }
  /// Copies tiles of one size by one loop, whose steps read all tiles before they write.
  void copy(llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> tiles);

  KernelOp kernel;
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Value, MatrixType> matrices;
  /// The variables of loops' arguments and conditionals' results.
  llvm::DenseMap<mlir::Value, mlir::Value> variables;
  /// The first read of each tile; and for those in loops, the one that they stand for.
  llvm::SmallVector<ReadTileOp> placed;
  llvm::DenseMap<mlir::Value, mlir::Value> rereads;
};

/// Makes tiles that are never needed at the same time share a variable, in a kernel whose tiles do
/// not fit into registers anyway.
void shareVariables(KernelOp kernel);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLPLACETILES_H
