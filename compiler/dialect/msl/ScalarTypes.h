// The scalar types of Metal: one row a type, which everything that depends on the type reads.
#ifndef TRITON_METAL_DIALECT_MSL_SCALARTYPES_H
#define TRITON_METAL_DIALECT_MSL_SCALARTYPES_H

#include "dialect/msl/Target.h"

#include "mlir/IR/BuiltinTypes.h"

namespace triton_metal::msl {

/// In which form the functions of a SIMD-group take a number. Those of 64 bits travel as pairs of
/// words, which `msl-explicit-types` makes of them.
enum class SimdForm {
  /// As it is.
  Itself,
  /// As a number of another type: bool as char.
  AsByte,
  /// As its bits: bfloat as short, double as long.
  AsBits,
};

struct ScalarType {
  /// Metal's names of the type and of its unsigned form (the same where there is none). Empty where
  /// Metal has no such type, and passes replace it.
  llvm::StringLiteral name, unsignedName;
  /// How the launch metadata spells it, and so the runtimes.
  llvm::StringLiteral code;
  bool isFloat;
  unsigned bits;
  /// Bytes of an element in memory.
  unsigned bytes;
  SimdForm simdForm;
  /// `simd_sum`, or all of the integer reductions, take it.
  bool hasSimdReduction;
  /// The features whose matrix instructions multiply it.
  Feature matrices;
  /// Metal has an atomic type of it.
  bool isAtomic;
  /// What the target must have; None where every target has it.
  Feature feature;

  /// Whether some Metal has the type. Others are computed with in software.
  bool isInMetal() const { return !name.empty(); }

  /// The row of a number's type; null for a type that no kernel can have.
  static const ScalarType *get(mlir::Type type);
};

/// Bytes of an element in memory: of a number, or of a pointer, which is an address there.
int64_t getElementBytes(mlir::Type type);

} // namespace triton_metal::msl

#endif // TRITON_METAL_DIALECT_MSL_SCALARTYPES_H
