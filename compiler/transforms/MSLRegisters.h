#ifndef TRITON_METAL_TRANSFORMS_MSLREGISTERS_H
#define TRITON_METAL_TRANSFORMS_MSLREGISTERS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace triton_metal::msl {

/// A linear map from the registers of one value to those of another. The inner index is the
/// exclusive or of the offset and of the bases of all bits that are set in the outer index.
struct RegisterMap {
  llvm::SmallVector<int64_t> bases;
  int64_t offset = 0;

  static RegisterMap identity(int64_t registers);
  int64_t apply(int64_t index) const;
  /// The composition: this map first, then `inner`.
  RegisterMap then(const RegisterMap &inner) const;
  /// Whether no bit of the inner index comes from two bases, so that exclusive or is addition.
  bool isDisjoint() const;
  bool isIdentity() const;
};

/// The integer or bit pattern at `index` of a constant.
int64_t getConstantElement(mlir::DenseElementsAttr constant, int64_t index);

/// What each bit of the outer index adds to `constant[map(index)]`. Nothing if the bits do not add
/// independently of each other, or if their sum may overflow the constant's type. A constant of
/// floats has strides only if it is a splat.
std::optional<llvm::SmallVector<int64_t>> getLinearStrides(mlir::DenseElementsAttr constant,
                                                           const RegisterMap &map);

/// A register index: a sum of loop indices times powers of two, plus a constant. Several terms may
/// have the same index, which is then 0 or 1 and adds more than one power of two.
struct Coord {
  struct Term {
    mlir::Value index;
    int64_t stride;
    int64_t trip;
    bool operator==(const Term &) const = default;
  };
  llvm::SmallVector<Term, 4> terms;
  int64_t constant = 0;

  bool operator==(const Coord &) const = default;
  /// The sum over all terms of what bit `bit` of `index` adds.
  int64_t getBase(mlir::Value index, unsigned bit) const;
  /// Whether no earlier term has the same index.
  bool isFirstOfIndex(const Term &term) const;
  Coord plus(int64_t offset) const;
  Coord plus(mlir::Value index, int64_t stride, int64_t trip) const;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLREGISTERS_H
