// Small helpers of the passes that change layouts.
#ifndef TRITON_METAL_DIALECT_TTM_LAYOUTUTILS_H
#define TRITON_METAL_DIALECT_TTM_LAYOUTUTILS_H

#include "dialect/ttm/TTM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace triton_metal::ttm {

/// The value in this layout; itself if it has it. Where a value is named, its conversion has the
/// name too.
inline mlir::Value convertLayout(mlir::OpBuilder &builder, mlir::Value value,
                                 const LinearLayout &layout) {
  auto type = withLayout(mlir::cast<mlir::RankedTensorType>(value.getType()), layout);
  if (type == value.getType())
    return value;
  return ConvertLayoutOp::create(builder, value.getLoc(), type, value);
}

/// Changes the layout of a value in its place; of a constant, the attribute as well.
inline void setLayout(mlir::Value value, const LinearLayout &layout) {
  auto type = withLayout(mlir::cast<mlir::RankedTensorType>(value.getType()), layout);
  value.setType(type);
  if (auto constant = value.getDefiningOp<mlir::arith::ConstantOp>())
    constant.setValueAttr(mlir::cast<mlir::DenseElementsAttr>(constant.getValue()).reshape(type));
}

} // namespace triton_metal::ttm

#endif
