// What an access in loop form adds to its pointer.

#ifndef TRITON_METAL_TRANSFORMS_MSLPOINTEROFFSETS_H
#define TRITON_METAL_TRANSFORMS_MSLPOINTEROFFSETS_H

#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"

namespace triton_metal::msl {

/// The pointer of a read or write; null for other operations.
inline mlir::OpOperand *getBase(mlir::Operation *op) {
  if (auto read = mlir::dyn_cast<ReadOp>(op))
    return &read.getBaseMutable();
  if (auto write = mlir::dyn_cast<WriteOp>(op))
    return &write.getBaseMutable();
  return nullptr;
}

/// What a read or write adds to its pointer: one number or none.
inline mlir::MutableOperandRange getOffset(mlir::Operation *op) {
  if (auto read = mlir::dyn_cast<ReadOp>(op))
    return read.getOffsetMutable();
  return mlir::cast<WriteOp>(op).getOffsetMutable();
}

/// Apple's compiler has been seen to lose bytes at a pointer plus an offset plus another one.
inline bool mayAddTwice(PtrType type) {
  return type.getSpace() == AddressSpace::Device && getElementBytes(type.getElementType()) != 1;
}

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLPOINTEROFFSETS_H
