#include "transforms/Dots.h"

#include "dialect/msl/ScalarTypes.h"

using namespace mlir;

namespace triton_metal {

DotForm getDotForm(tt::DotOp dot, const Budget &budget) {
  RankedTensorType a = dot.getA().getType(), b = dot.getB().getType();
  if (!budget.has(msl::Feature::SimdgroupMatrix) || a.getRank() != 2)
    return DotForm::MultiplyAdds;
  if (llvm::any_of(llvm::concat<const int64_t>(a.getShape(), b.getShape()),
                   [](int64_t extent) { return extent < 8; }))
    return DotForm::MultiplyAdds;
  // Sums of products of int8 are made in fp32.
  if (a.getElementType().isInteger())
    return a.getElementType().isInteger(8) && b.getElementType().isInteger(8) &&
                   a.getShape()[1] <= kExactTerms
               ? DotForm::SimdgroupMatrices
               : DotForm::MultiplyAdds;
  return DotForm::SimdgroupMatrices;
}

ttm::TileType getOperandTile(ArrayRef<int64_t> shape, Type element) {
  return ttm::TileType::get(element.getContext(), shape, element,
                            16 / msl::getElementBytes(element), /*slots=*/1);
}

Value transposeTile(OpBuilder &builder, Location loc, Value tile, ArrayRef<int32_t> order) {
  auto type = cast<RankedTensorType>(tile.getType());
  LinearLayout layout = ttm::getLayout(tile)->transpose(order);
  auto transposed = RankedTensorType::get(layout.getShape(), type.getElementType(),
                                          ttm::LinearLayoutAttr::get(builder.getContext(), layout));
  return tt::TransOp::create(builder, loc, transposed, tile, builder.getDenseI32ArrayAttr(order));
}

} // namespace triton_metal
