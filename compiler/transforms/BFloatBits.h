// Conversion between bfloats and their bits.
#ifndef TRITON_METAL_TRANSFORMS_BFLOATBITS_H
#define TRITON_METAL_TRANSFORMS_BFLOATBITS_H

#include "mlir/IR/Builders.h"

namespace triton_metal {

/// The float whose upper half is the i16, or the vector of i16; this is the bfloat with these bits.
mlir::Value makeFloatOfBits(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bits);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_BFLOATBITS_H
