// Constants of registers as functions of the bits of a register's index.

#ifndef TRITON_METAL_TRANSFORMS_MSLCONSTANTBITS_H
#define TRITON_METAL_TRANSFORMS_MSLCONSTANTBITS_H

#include "transforms/MSLRegisters.h"

#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// What each bit of the outer index contributes to `constant[map(index)]` by exclusive or. Nothing
/// if the constant is no exclusive or of such contributions. A constant of floats is one only if it
/// is the same everywhere.
std::optional<llvm::SmallVector<int64_t>> getExclusiveOrs(mlir::DenseElementsAttr constant,
                                                          const RegisterMap &map);

/// Decisions by the bits of an index that lead to a group of `width` neighbours of a constant.
/// Equal groups and equal decisions are one node.
struct Decisions {
  struct Node {
    /// The bit that decides; negative for a group.
    int bit;
    /// The nodes where the bit is 0 and 1; or, in `low`, the register that the group begins at.
    int64_t low, high;
  };
  /// Each node comes after those that it leads to. The last one is the first decision.
  llvm::SmallVector<Node> nodes;
  int64_t numDecisions = 0;

  /// Stops at more than `limit` decisions, and then has no nodes.
  static Decisions get(mlir::DenseElementsAttr constant, const RegisterMap &map, int64_t width,
                       int64_t limit);
};

/// The most decisions that a loop takes to compute one register of a constant.
inline constexpr int64_t kMostDecisions = 16;

/// The bits of the outer index that a constant depends on which is no sum of multiples of them.
/// Nothing if it takes too many operations to compute a register of it from the index.
std::optional<uint64_t> getComputedBits(mlir::DenseElementsAttr constant, const RegisterMap &map);

/// Registers [at, at + width) of a constant.
mlir::Value createConstantChunk(mlir::OpBuilder &builder, mlir::Location loc,
                                mlir::DenseElementsAttr constant, const Coord &at, int64_t width);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLCONSTANTBITS_H
