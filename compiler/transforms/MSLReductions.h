// How the combination of a reduction is applied to chunks of registers.

#ifndef TRITON_METAL_TRANSFORMS_MSLREDUCTIONS_H
#define TRITON_METAL_TRANSFORMS_MSLREDUCTIONS_H

#include "dialect/msl/MSL.h"
#include "transforms/MSLRegisterLoops.h"

#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// The neutral element of a reduction whose combination is one known operation; null for others.
mlir::TypedAttr getNeutralElement(ReduceRegistersOp reduce);

/// How a reduction that has loops of its own goes over its operands' registers. Register bits in
/// one range are reduced: those inside a chunk are combined by halves, those above by a loop, and
/// the loops of `nest` around it go over the bits that stay.
struct ReductionShape {
  int64_t registers = 1, bits = 0;
  /// The registers of a chunk, and of what is left of one.
  int64_t step = 1, width = 1;
  /// The range of bits.
  unsigned low = 0, high = 0;
  /// The reduced bits inside a chunk; the first bit that the loop goes over, and its trip count.
  int64_t inside = 0;
  unsigned loopLow = 0;
  int64_t trip = 1;
  LoopNest nest;
  /// The results are one chunk, which needs no variable.
  bool isChunk = false;

  static ReductionShape get(ReduceRegistersOp op);
  /// Where the result of the registers at `at` goes: the reduced bits are dropped.
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
