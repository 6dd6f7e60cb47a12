// Conversions that Metal does not have: of floats of 8 bits, and toward zero.
#ifndef TRITON_METAL_TRANSFORMS_FLOATFORMATS_H
#define TRITON_METAL_TRANSFORMS_FLOATFORMATS_H

#include "dialect/tt/TT.h"

#include "mlir/IR/Builders.h"

namespace triton_metal {

/// The encoding of a float of 8 bits: a sign, an exponent and a mantissa, with subnormals.
struct SmallFloat {
  unsigned mantissaBits;
  int bias;
  /// The code of the largest number, without its sign.
  uint8_t largest;
  /// The code of a NaN. 0x80 in the formats that have neither an infinity nor a negative zero;
  /// none in the format that has no NaN either.
  std::optional<uint8_t> nan;
  /// The code of infinity, if there is one.
  std::optional<uint8_t> infinity;

  /// The format of a type; null for types that are none of Triton's floats of 8 bits.
  static const SmallFloat *get(mlir::Type element);

  bool hasNegativeZero() const { return nan != 0x80; }
  /// The nearest code, ties to even. Numbers that are too large become the largest.
  uint8_t encode(const llvm::APFloat &number) const;
};

/// Whether the type or the tile has floats of 8 bits.
bool hasSmallFloats(mlir::Type type);

/// The same type or tile with another element type.
mlir::Type withElementType(mlir::Type type, mlir::Type element);

/// The conversion of `value` to the element type `to`, rounded once. Numbers that are too large for
/// a type of 8 bits become its largest, infinity too; toward zero, infinity stays where the type
/// has it. Values of 8-bit types come and go by `tt.bitcast`s.
mlir::Value convertFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                         mlir::Type to, tt::RoundingMode rounding);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_FLOATFORMATS_H
