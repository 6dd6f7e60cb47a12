// Finds the tiles of pointers that consist of one scalar pointer and a tile of offsets.

#ifndef TRITON_METAL_TRANSFORMS_TTPOINTERANALYSIS_H
#define TRITON_METAL_TRANSFORMS_TTPOINTERANALYSIS_H

#include "dialect/tt/TT.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace triton_metal {

/// What is known of one tile of pointers.
struct PointerTile {
  enum Kind { Unknown, Split, Whole };
  Kind kind = Unknown;
  /// The width of the offsets of a split tile: 32, 64, or 0 if there are none because all pointers
  /// are equal.
  unsigned width = 0;

  static PointerTile whole() { return {Whole, 0}; }
  static PointerTile split(unsigned width) { return {Split, width}; }
  bool operator==(const PointerTile &other) const {
    return kind == other.kind && width == other.width;
  }
};

/// True for a tensor of pointers.
bool isPointerTile(mlir::Type type);

/// The scalar that all elements of a tile of integers are equal to, if the defining operation shows
/// it: the operand of a splat, or null and `constant` for a constant. Nothing otherwise.
struct UniformValue {
  mlir::Value scalar;
  mlir::IntegerAttr constant;
};
std::optional<UniformValue> getUniformValue(mlir::Value value);

/// Whether a cast of pointers keeps the size of the elements, so that offsets keep their meaning.
bool keepsElementSize(tt::BitcastOp op);

/// Determines for every tile of pointers under an operation whether its pointers have one base, and
/// the greatest width of their offsets. The base may differ between iterations of a loop and
/// between branches.
class PointerAnalysis {
public:
  explicit PointerAnalysis(mlir::Operation *root);

  PointerTile get(mlir::Value value) const;

private:
  void visit(mlir::Operation *op);
  void join(mlir::Value value, PointerTile tile);
  void joinAll(mlir::ValueRange values, mlir::ValueRange from);

  llvm::DenseMap<mlir::Value, PointerTile> tiles;
  bool changed = false;
};

} // namespace triton_metal

#endif
