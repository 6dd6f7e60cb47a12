#include "transforms/Dots.h"

#include "dialect/msl/ScalarTypes.h"

using namespace mlir;

namespace triton_metal {

DotForm getDotForm(tt::DotOp dot, const Budget &budget) {
  RankedTensorType a = dot.getA().getType(), b = dot.getB().getType();
  const msl::MatrixInstruction *instruction = budget.getMatrixInstruction();
  if (!instruction || a.getRank() > 3)
    return DotForm::MultiplyAdds;
  msl::MatrixShape shape = instruction->shape;
  ArrayRef<int64_t> sides = a.getShape().take_back(2);
  if (sides[0] < shape.m || sides[1] < shape.k || b.getShape().back() < shape.n)
    return DotForm::MultiplyAdds;
  if (a.getElementType().isF64() || b.getElementType().isF64() ||
      dot.getType().getElementType().isF64())
    return DotForm::MultiplyAdds;
  // Sums of products of int8 are made in fp32.
  if (a.getElementType().isInteger())
    return a.getElementType().isInteger(8) && b.getElementType().isInteger(8) &&
                   sides[1] <= kExactTerms
               ? DotForm::SimdgroupMatrices
               : DotForm::MultiplyAdds;
  return DotForm::SimdgroupMatrices;
}

ttm::TileType getOperandTile(ArrayRef<int64_t> shape, Type element) {
  return ttm::TileType::get(element.getContext(), shape, element,
                            16 / msl::getElementBytes(element), /*slots=*/1);
}

} // namespace triton_metal
