// The Metal that a module is compiled for: `#msl.target`, and what it offers.
#ifndef TRITON_METAL_DIALECT_MSL_TARGET_H
#define TRITON_METAL_DIALECT_MSL_TARGET_H

#include "dialect/msl/Simdgroup.h"

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include "dialect/msl/MSLEnums.h.inc"

namespace triton_metal::msl {
struct MatrixInstruction;
} // namespace triton_metal::msl

#define GET_ATTRDEF_CLASSES
#include "dialect/msl/MSLAttrs.h.inc"

namespace triton_metal::msl {

/// A feature in the words of a diagnostic.
struct FeatureInfo {
  Feature feature;
  /// What uses it, what has it first, and what to do without it (or nothing).
  llvm::StringRef words, since, instead;
};

const FeatureInfo &getFeatureInfo(Feature feature);

/// An instruction that multiplies matrices: the one place that says its shape.
struct MatrixInstruction {
  /// What a target must have for it.
  Feature feature;
  MatrixShape shape;
  /// Its operands are a thread's own numbers, in the layout of `LinearLayout::simdgroupOperand` or
  /// the transposed one. Others are matrices, which are loaded from threadgroup memory too.
  bool inRegisters;

  /// It multiplies matrices of such numbers. ScalarTypes.cpp says which.
  bool takes(mlir::Type number) const;

  /// The instruction of this shape; null where there is none.
  static const MatrixInstruction *get(MatrixShape shape);
  /// Whether one of the instructions works on matrices of this shape, whose type Metal has.
  static bool hasFragment(FragmentShape shape);
};

/// Whether some instruction multiplies matrices of such numbers.
bool isMatrixNumber(mlir::Type number);

} // namespace triton_metal::msl

#endif // TRITON_METAL_DIALECT_MSL_TARGET_H
