// Applies the combine region of a reduction to registers.
#ifndef TRITON_METAL_CONVERSION_COMBINEREGION_H
#define TRITON_METAL_CONVERSION_COMBINEREGION_H

#include "conversion/RegisterBuilder.h"

namespace triton_metal {

/// Applies the region to two vectors (or scalars) of elements, register by register. The block
/// takes the left element of each operand first, then the right ones.
llvm::SmallVector<mlir::Value> combine(RegisterBuilder &builder, mlir::Block &block,
                                       mlir::ValueRange lhs, mlir::ValueRange rhs);

/// Combines the registers that differ in this bit of their index.
llvm::SmallVector<mlir::Value> combineRegisters(RegisterBuilder &builder, mlir::Block &block,
                                                mlir::ValueRange values, unsigned registerBit);

/// Combines the registers of the lanes that differ in this bit of their index. Both lanes combine
/// in the same order, so that both get the same result.
llvm::SmallVector<mlir::Value> combineLanes(RegisterBuilder &builder, mlir::Block &block,
                                            mlir::ValueRange values, unsigned laneBit);

} // namespace triton_metal

#endif
