// Constants of numbers, vectors and tiles.
#ifndef TRITON_METAL_TRANSFORMS_CONSTANTS_H
#define TRITON_METAL_TRANSFORMS_CONSTANTS_H

#include "mlir/IR/Builders.h"

namespace triton_metal {

/// A constant of the type that has the value in every element.
mlir::TypedAttr makeSplat(mlir::Type type, const llvm::APInt &value);

mlir::Value makeConstantLike(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                             const llvm::APInt &value);
mlir::Value makeConstantLike(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                             int64_t number);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_CONSTANTS_H
