// Types that the target lacks, or Metal as a whole, become integers that hold their bits.
#ifndef TRITON_METAL_TRANSFORMS_MSLEMULATETYPES_H
#define TRITON_METAL_TRANSFORMS_MSLEMULATETYPES_H

#include "dialect/msl/MSL.h"

#include "mlir/Transforms/DialectConversion.h"

namespace triton_metal::msl {

/// Values of types that the target lacks become integers that hold their bits.
class EmulatedTypes : public mlir::TypeConverter {
public:
  explicit EmulatedTypes(TargetAttr target);

  bool isEmulated(mlir::Type number) const;

private:
  TargetAttr target;
};

/// Refuses an operation on 64-bit floats that there is no function for.
mlir::LogicalResult checkFloat64(mlir::Operation *op);

/// Arithmetic of 64-bit floats becomes `msl.float64` on their bits.
void populateFloat64Patterns(const EmulatedTypes &types, mlir::RewritePatternSet &patterns);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLEMULATETYPES_H
