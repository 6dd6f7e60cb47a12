// Applies the combination of a reduction to chunks of registers.

#ifndef TRITON_METAL_TRANSFORMS_MSLREDUCTIONS_H
#define TRITON_METAL_TRANSFORMS_MSLREDUCTIONS_H

#include "dialect/msl/MSL.h"
#include "transforms/MSLRegisterLoops.h"

#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// The neutral element of a reduction whose combination is one known operation; null for other
/// reductions.
mlir::TypedAttr getNeutralElement(ReduceRegistersOp reduce);

/// The loops of a reduction that does not share a loop. One range of register bits is reduced: bits
/// inside a chunk by combining halves, bits above it by a loop. The loops of `nest` around it go
/// over the bits that remain.
struct ReductionShape {
  int64_t registers = 1, bits = 0;
  /// The registers of a chunk before and after the reduction.
  int64_t step = 1, width = 1;
  /// The range of bits.
  unsigned low = 0, high = 0;
  /// The reduced bits inside a chunk; the first bit that the loop goes over, and its trip count.
  int64_t inside = 0;
  unsigned loopLow = 0;
  int64_t trip = 1;
  LoopNest nest;
  /// Whether the results are one chunk, which needs no variable.
  bool isChunk = false;

  static ReductionShape get(ReduceRegistersOp op);
  /// The register of the result to which the registers at `at` reduce: `at` without the reduced
  /// bits.
  Coord compress(const Coord &at) const;
};

/// Combines chunks, component by component.
llvm::SmallVector<mlir::Value> combine(mlir::OpBuilder &builder, mlir::Location loc,
                                       mlir::Block &combination, mlir::ValueRange left,
                                       mlir::ValueRange right);

/// Combines the components of each chunk along the bits of their index that are set in `bits`.
llvm::SmallVector<mlir::Value> combineComponents(mlir::OpBuilder &builder, mlir::Location loc,
                                                 mlir::Block &combination,
                                                 llvm::SmallVector<mlir::Value> chunks,
                                                 int64_t bits);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLREDUCTIONS_H
