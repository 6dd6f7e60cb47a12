#include "transforms/Dots.h"

#include "dialect/msl/ScalarTypes.h"

using namespace mlir;

namespace triton_metal {

/// Whether an instruction that takes its operands from registers is right for a dot. The layouts of
/// fragments in registers are known for numbers of one float type (docs/apple.md), so int8 is
/// multiplied as half. Nobody says that the unit multiplies fp32 exactly, so it has to be allowed
/// not to. A batch has no operand layout.
static bool suitsRegisters(tt::DotOp dot) {
  RankedTensorType a = dot.getA().getType();
  Type number = a.getElementType();
  if (a.getRank() != 2 || number != dot.getB().getType().getElementType())
    return false;
  return number.isF16() || number.isBF16() || number.isInteger(8) || isRelaxed(dot);
}

const msl::MatrixInstruction *getInstruction(tt::DotOp dot, const Budget &budget) {
  RankedTensorType a = dot.getA().getType(), b = dot.getB().getType();
  if (a.getRank() > 3)
    return nullptr;
  ArrayRef<int64_t> sides = a.getShape().take_back(2);
  if (a.getElementType().isF64() || b.getElementType().isF64() ||
      dot.getType().getElementType().isF64())
    return nullptr;
  // Sums of products of int8 are made in fp32.
  if (a.getElementType().isInteger() &&
      !(a.getElementType().isInteger(8) && b.getElementType().isInteger(8) &&
        sides[1] <= kExactTerms))
    return nullptr;
  return budget.getMatrixInstruction([&](const msl::MatrixInstruction &instruction) {
    const msl::MatrixShape &shape = instruction.shape;
    if (instruction.inRegisters && (!suitsRegisters(dot) || (a.getElementType().isBF16() &&
                                                             !budget.has(msl::Feature::BFloat))))
      return false;
    return sides[0] >= shape.m && sides[1] >= shape.k && b.getShape().back() >= shape.n;
  });
}

/// Whether a thread, or else its neighbour, holds the next element of a column and not of a row.
bool areColumnsFastest(const LinearLayout &layout) {
  unsigned columns = layout.getRank() - 1, rows = layout.getRank() - 2;
  for (InDim part : {InDim::Register, InDim::Lane})
    for (uint32_t base : layout.getBases(part))
      for (unsigned dim : {columns, rows})
        if (base == 1u << layout.dimShift(dim))
          return dim == rows;
  return false;
}

std::pair<unsigned, unsigned> tileSimdgroups(ArrayRef<int64_t> shape, msl::FragmentShape fragment,
                                             unsigned numSimdgroups, DotSplit split) {
  unsigned rows = 1, columns = 1;
  while (rows * columns < numSimdgroups) {
    bool moreRows = 2 * rows * fragment.rows <= shape[0];
    bool moreColumns = 2 * columns * fragment.columns <= shape[1];
    if (split == DotSplit::Rows)
      moreColumns &= !moreRows;
    else if (split == DotSplit::Columns)
      moreRows &= !moreColumns;
    if (!moreRows && !moreColumns)
      break;
    // The longer side of what one SIMD-group has is halved, the rows first.
    if (moreRows && (!moreColumns || shape[0] / rows >= shape[1] / columns))
      rows *= 2;
    else
      columns *= 2;
  }
  return {rows, columns};
}

ttm::TileType getOperandTile(ArrayRef<int64_t> shape, Type element) {
  return ttm::TileType::get(element.getContext(), shape, element,
                            16 / msl::getElementBytes(element), /*slots=*/1);
}

} // namespace triton_metal
