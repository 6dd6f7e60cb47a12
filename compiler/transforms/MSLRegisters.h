#ifndef TRITON_METAL_TRANSFORMS_MSLREGISTERS_H
#define TRITON_METAL_TRANSFORMS_MSLREGISTERS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace triton_metal::msl {

/// How the registers of one value are found from those of another: a base for each bit of the outer
/// index, and the inner index is the exclusive or of the bases of the bits that are set, and of an
/// offset.
struct RegisterMap {
  llvm::SmallVector<int64_t> bases;
  int64_t offset = 0;

  static RegisterMap identity(int64_t registers);
  int64_t apply(int64_t index) const;
  /// First this map, then `inner`.
  RegisterMap then(const RegisterMap &inner) const;
  /// No bit of the inner index comes from two bases, so that exclusive or is addition.
  bool isDisjoint() const;
  bool isIdentity() const;
};

/// The integer or bit pattern at `index` of a constant.
int64_t getConstantElement(mlir::DenseElementsAttr constant, int64_t index);

/// What each bit of the outer index adds to `constant[map(index)]`, where bits add independently of
/// each other; nothing where they do not, or where their sum may overflow the constant's type. A
/// constant of floats has strides only if it is a splat.
std::optional<llvm::SmallVector<int64_t>> getLinearStrides(mlir::DenseElementsAttr constant,
                                                           const RegisterMap &map);

/// A register index: the sum of loop indices times powers of two, and a constant. Several terms may
/// have the same index, of 0 or 1: it then adds more than one power of two.
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
  /// What bit `bit` of `index` adds, over all terms.
  int64_t getBase(mlir::Value index, unsigned bit) const;
  /// No term before this one has its index.
  bool isFirstOfIndex(const Term &term) const;
  Coord plus(int64_t offset) const;
  Coord plus(mlir::Value index, int64_t stride, int64_t trip) const;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLREGISTERS_H
