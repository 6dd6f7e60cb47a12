// How a dot is computed: the passes that lay dots out and those that lower them agree through this.
#ifndef TRITON_METAL_TRANSFORMS_DOTS_H
#define TRITON_METAL_TRANSFORMS_DOTS_H

#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Budget.h"

namespace triton_metal {

enum class DotForm {
  /// On one of the target's matrix instructions: a product or a batch of them, no side below the
  /// instruction's, of types that it takes.
  Matrices,
  /// A loop of multiply-adds over K: any shape, any numbers that Metal has.
  MultiplyAdds,
};

/// Sums of so many products of int8 are exact in fp32.
inline constexpr int64_t kExactTerms = 1024;

/// The instruction that a dot is computed with on the target of `budget`; null if none suits.
const msl::MatrixInstruction *getInstruction(tt::DotOp dot, const Budget &budget);

/// The form of a dot on the target of `budget`.
inline DotForm getDotForm(tt::DotOp dot, const Budget &budget) {
  return getInstruction(dot, budget) ? DotForm::Matrices : DotForm::MultiplyAdds;
}

/// Whether the fp32 operands of a dot may lose bits of their significands.
inline bool isRelaxed(tt::DotOp dot) {
  return dot.getA().getType().getElementType().isF32() &&
         dot.getInputPrecision() == tt::InputPrecision::TF32;
}

/// Whether a thread, or else its neighbour, holds the next element of a column and not of a row.
bool areColumnsFastest(const LinearLayout &layout);

/// How SIMD-groups share a dot's result: as squares, or whole rows (columns) each while they last.
enum class DotSplit { Square, Rows, Columns };

/// How many SIMD-groups lie along rows and columns of a result, each with a fragment at least.
std::pair<unsigned, unsigned> tileSimdgroups(llvm::ArrayRef<int64_t> shape,
                                             msl::FragmentShape fragment, unsigned numSimdgroups,
                                             DotSplit split);

/// Threadgroup memory for an operand of this shape. 16 bytes of padding put neighbouring rows into
/// different banks.
ttm::TileType getOperandTile(llvm::ArrayRef<int64_t> shape, mlir::Type element);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_DOTS_H
