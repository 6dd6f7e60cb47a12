#ifndef TRITON_METAL_ANALYSIS_TILEDIMS_H
#define TRITON_METAL_ANALYSIS_TILEDIMS_H

#include "dialect/tt/TT.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"

namespace triton_metal {

/// One dimension of a tile.
struct TileDim {
  mlir::Value tile;
  unsigned dim = 0;

  int64_t getSize() const;
};

/// Which dimensions of a kernel's tiles run along each other: the rows of a product, say, are those
/// of its first operand, of the accumulator, of the pointers and masks of both. Dimensions in one
/// class have one size, but for those that a reshape splits: the groups of K that share a scale run
/// along K, and an n-th of them along an n-th of K. A class is free if each place along it is
/// computed by itself: no operation combines or moves elements along it. It is summed if matrix
/// products alone do, which add up what their operands have along it.
class TileDims {
public:
  explicit TileDims(tt::FuncOp kernel);

  unsigned getNumClasses() const { return members.size(); }
  llvm::ArrayRef<TileDim> getMembers(unsigned id) const { return members[id]; }
  /// The rows of matrix products in a class, or the least size of its dimensions.
  int64_t getSize(unsigned id) const { return sizes[id]; }
  /// Whether all dimensions of a class can be cut into so many slices.
  bool isDivisible(unsigned id, int64_t parts) const;
  bool isFree(unsigned id) const { return !pinned.test(id) && !summed.test(id); }
  bool isSummed(unsigned id) const { return !pinned.test(id) && summed.test(id); }

private:
  void number(mlir::Value value);
  void visit(mlir::Operation *op);
  void visitReshape(tt::ReshapeOp reshape);
  void link(mlir::Value a, unsigned dimA, mlir::Value b, unsigned dimB);
  void linkAll(mlir::Value a, mlir::Value b);
  void linkAll(mlir::ValueRange a, mlir::ValueRange b);
  void pin(mlir::Value value, unsigned dim) { pins.push_back(first.lookup(value) + dim); }
  void pinAll(mlir::Value value);
  void sum(mlir::Value value, unsigned dim) { sums.push_back(first.lookup(value) + dim); }
  void addProduct(mlir::Value value);

  llvm::DenseMap<mlir::Value, unsigned> first;
  llvm::SmallVector<TileDim> all;
  llvm::IntEqClasses classes;
  llvm::SmallVector<unsigned> pins, sums, products;
  llvm::BitVector pinned, summed;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<llvm::SmallVector<TileDim>> members;
};

} // namespace triton_metal

#endif // TRITON_METAL_ANALYSIS_TILEDIMS_H
