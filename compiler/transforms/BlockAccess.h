// Addresses and masks of a block of a tensor in memory.
#ifndef TRITON_METAL_TRANSFORMS_BLOCKACCESS_H
#define TRITON_METAL_TRANSFORMS_BLOCKACCESS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace triton_metal {

/// Tiles for the elements of a block: pointers to them, and which of them are in the tensor.
struct BlockAddresses {
  mlir::Value pointers;
  mlir::Value mask; // null if nothing is checked
};

/// One dimension of a block.
struct BlockDim {
  /// The tensor's size: 32 bits, or 64 like the offset. Null if the bounds are not checked.
  mlir::Value size;
  /// 64 bits.
  mlir::Value stride;
  /// Where the block begins: a scalar.
  mlir::Value offset;
  /// The places of the dimension's elements, instead of `offset` and those that follow it.
  mlir::Value places;
};

/// The addresses of a block. `tile` is its type as a value.
BlockAddresses makeBlockAddresses(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value base,
                                  llvm::ArrayRef<BlockDim> dims, mlir::RankedTensorType tile);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_BLOCKACCESS_H
