// Which tiles of pointers are one scalar pointer and a tile of offsets.

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
  /// The bits of the offsets where the tile is split: 0 (no offsets: the same pointer everywhere),
  /// 32 or 64.
  unsigned width = 0;

  static PointerTile whole() { return {Whole, 0}; }
  static PointerTile split(unsigned width) { return {Split, width}; }
  bool operator==(const PointerTile &other) const {
    return kind == other.kind && width == other.width;
  }
};

/// True for a tensor of pointers.
bool isPointerTile(mlir::Type type);

/// The scalar that a tile of integers has everywhere, where that shows from the operation that made
/// it: a splat's operand, or null with `constant` set to the value for a constant. Nothing
/// otherwise.
struct UniformValue {
  mlir::Value scalar;
  mlir::IntegerAttr constant;
};
std::optional<UniformValue> getUniformValue(mlir::Value value);

/// A cast of pointers that keeps the number of bytes of an element, so that offsets keep their
/// meaning.
bool keepsElementSize(tt::BitcastOp op);

/// For every tile of pointers under an operation: whether its pointers have one base, which may
/// differ from run to run of a loop and from branch to branch, and how wide their offsets are at
/// most.
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
