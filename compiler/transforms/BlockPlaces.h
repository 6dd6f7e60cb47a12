// Which blocks of a tensor in memory lie beside each other.
#ifndef TRITON_METAL_TRANSFORMS_BLOCKPLACES_H
#define TRITON_METAL_TRANSFORMS_BLOCKPLACES_H

#include "dialect/tt/TT.h"
#include "transforms/BlockAccess.h"

#include "llvm/ADT/DenseMap.h"

#include <map>

namespace triton_metal {

/// Numbers the tensors that a function accesses in blocks, and the offsets of the blocks.
///
/// `tt.places` of an access holds the number of its tensor, and two numbers for each dimension:
/// that of the block's offset, and how many loops are around what the offset is. The same numbers
/// are the same tensor and the same offset, within one step of these loops. Only accesses to
/// tensors of which each place is memory of its own have the attribute.
class BlockPlaces {
public:
  /// A launch says that each place in the tensor at this base is memory of its own.
  void setNonOverlapping(mlir::Value base) { nonOverlapping.push_back(base); }

  /// `tt.places` of an access to a block; null if places in the tensor may share memory.
  mlir::DenseI32ArrayAttr get(mlir::Value base, llvm::ArrayRef<BlockDim> dims);

private:
  /// A number that is known, or a value.
  using Number = std::pair<const void *, int64_t>;
  static Number numberOf(mlir::Value value);

  llvm::SmallVector<mlir::Value, 2> nonOverlapping;
  std::map<std::vector<Number>, int32_t> tensors;
  std::map<Number, int32_t> offsets;
};

/// Whether blocks that two accesses touch lie in one tensor, at the same offset along a dimension.
/// Where they differ in it, they touch different memory. `depth` is how many loops are around what
/// is executed, so that offsets may change in deeper ones.
bool haveSameOffset(mlir::Operation *a, mlir::Operation *b, unsigned dim, int depth);

/// The number of loops around an operation that `counts`.
int getLoopDepth(
    mlir::Operation *op,
    llvm::function_ref<bool(mlir::Operation *)> counts = [](mlir::Operation *) { return true; });

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_BLOCKPLACES_H
