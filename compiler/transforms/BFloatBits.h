// The number that the bits of a bfloat say.
#ifndef TRITON_METAL_TRANSFORMS_BFLOATBITS_H
#define TRITON_METAL_TRANSFORMS_BFLOATBITS_H

#include "mlir/IR/Builders.h"

namespace triton_metal {

/// The float whose upper half the i16, or the vector of i16, holds: every bfloat is one.
mlir::Value makeFloatOfBits(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bits);

/// An integer constant; in every element where the type is a vector.
mlir::Value makeConstantLike(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                             int64_t number);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_BFLOATBITS_H
