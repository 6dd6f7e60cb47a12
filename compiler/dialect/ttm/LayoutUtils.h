// Small helpers of the passes that change layouts.
#ifndef TRITON_METAL_DIALECT_TTM_LAYOUTUTILS_H
#define TRITON_METAL_DIALECT_TTM_LAYOUTUTILS_H

#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace triton_metal::ttm {

/// The type of a tile in this layout.
inline mlir::RankedTensorType getTensorType(const LinearLayout &layout, mlir::Type element) {
  return mlir::RankedTensorType::get(layout.getShape(), element,
                                     LinearLayoutAttr::get(element.getContext(), layout));
}

/// The value with the same elements in row-major order; itself if that is its shape.
inline mlir::Value reshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                           llvm::ArrayRef<int64_t> shape) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  auto reshaped = getTensorType(getLayout(type)->reshape(shape), type.getElementType());
  return tt::ReshapeOp::create(builder, loc, reshaped, value);
}

/// The value with its dimensions in another order.
inline mlir::Value transpose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                             llvm::ArrayRef<int32_t> order) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  auto transposed = getTensorType(getLayout(type)->transpose(order), type.getElementType());
  return tt::TransOp::create(builder, loc, transposed, value, builder.getDenseI32ArrayAttr(order));
}

/// The order of dimensions that undoes `order`.
inline llvm::SmallVector<int32_t> invertOrder(llvm::ArrayRef<int32_t> order) {
  llvm::SmallVector<int32_t> inverse(order.size());
  for (auto [index, dim] : llvm::enumerate(order))
    inverse[dim] = index;
  return inverse;
}

/// The operation that a tile's elements come from, behind all that only moves or repeats them; null
/// for an argument.
inline mlir::Operation *getElementSource(mlir::Value tile) {
  mlir::Operation *op = tile.getDefiningOp();
  while (mlir::isa_and_nonnull<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp,
                               ConvertLayoutOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

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

/// Has an operation take its operands in one layout and give its results in another one. What uses
/// the results has them as before.
inline void setLayouts(mlir::Operation *op, const LinearLayout &operands,
                       const LinearLayout &results) {
  mlir::OpBuilder builder(op);
  for (mlir::OpOperand &operand : op->getOpOperands())
    if (mlir::isa<mlir::RankedTensorType>(operand.get().getType()))
      operand.set(convertLayout(builder, operand.get(), operands));
  builder.setInsertionPointAfter(op);
  for (mlir::Value result : op->getResults()) {
    std::optional<LinearLayout> before = getLayout(result);
    if (!before || *before == results)
      continue;
    setLayout(result, results);
    mlir::Value converted = convertLayout(builder, result, *before);
    result.replaceAllUsesExcept(converted, converted.getDefiningOp());
  }
}

} // namespace triton_metal::ttm

#endif
