// Chunks of registers: Metal vectors of up to four neighbours, and the variables that they live in.

#ifndef TRITON_METAL_TRANSFORMS_MSLARRAYS_H
#define TRITON_METAL_TRANSFORMS_MSLARRAYS_H

#include "dialect/msl/MSL.h"
#include "transforms/MSLRegisters.h"

#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// The most components of a Metal vector.
inline constexpr int64_t kLargestChunk = 4;

/// A type of `width` registers of `type`'s elements: the element itself for 1.
mlir::Type getChunkType(mlir::Type type, int64_t width);

mlir::Value createConstant(mlir::OpBuilder &builder, mlir::Location loc, int64_t value,
                           mlir::Type type);

/// Components [first, first + width) of a chunk.
mlir::Value createSwizzle(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value chunk,
                          int64_t first, int64_t width);

/// The sum of the terms, counted in units of `unit` registers; null for 0.
mlir::Value createIndex(mlir::OpBuilder &builder, const Coord &at, int64_t unit);

/// Registers [at, at + width) of a tile.
mlir::Value createChunk(mlir::OpBuilder &builder, mlir::Value tile, const Coord &at, int64_t width);

/// A variable for `type`'s registers, `width` of them (or fewer) in an element.
mlir::Value createVariable(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                           int64_t width);
/// A variable for `type`'s registers in matrices of this type.
mlir::Value createVariable(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                           MatrixType matrix);

ArrayType getArrayType(mlir::Value variable);
/// The registers in one element of a variable.
int64_t getWidth(mlir::Value variable);
/// The matrices in a variable; null where it holds something else.
MatrixType getMatrixType(mlir::Value variable);

/// The index of the element with a register: none where the variable has only one.
mlir::Value createElementIndex(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value variable,
                               const Coord &at);
mlir::Value readArray(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value variable,
                      const Coord &at, int64_t width);
void writeArray(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value variable, const Coord &at,
                int64_t width, mlir::Value value);
/// The one element of a variable.
mlir::Value readWhole(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value variable);
void writeWhole(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value variable,
                mlir::Value value);

/// Where in its element a variable has the register.
Coord getComponentCoord(mlir::OpBuilder &builder, const Coord &at, int64_t width);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLARRAYS_H
