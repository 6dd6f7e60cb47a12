// A combine region's work on registers, for everything that combines elements.
#ifndef TRITON_METAL_CONVERSION_COMBINEREGION_H
#define TRITON_METAL_CONVERSION_COMBINEREGION_H

#include "conversion/RegisterBuilder.h"

namespace triton_metal {

/// What the region makes of two vectors (or scalars) of elements, register by register. The block
/// takes the left element of each operand and then the right ones.
llvm::SmallVector<mlir::Value> combine(RegisterBuilder &builder, mlir::Block &block,
                                       mlir::ValueRange lhs, mlir::ValueRange rhs);

/// The registers that differ in this bit of their index, combined.
llvm::SmallVector<mlir::Value> combineRegisters(RegisterBuilder &builder, mlir::Block &block,
                                                mlir::ValueRange values, unsigned registerBit);

/// The registers of the lanes that differ in this bit of their index, combined: in both lanes in
/// the same order, so that both have the same result.
llvm::SmallVector<mlir::Value> combineLanes(RegisterBuilder &builder, mlir::Block &block,
                                            mlir::ValueRange values, unsigned laneBit);

} // namespace triton_metal

#endif
