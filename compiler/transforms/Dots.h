// How a dot is computed: the passes that lay dots out and those that lower them agree through this.
#ifndef TRITON_METAL_TRANSFORMS_DOTS_H
#define TRITON_METAL_TRANSFORMS_DOTS_H

#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Budget.h"

namespace triton_metal {

enum class DotForm {
  /// On simdgroup matrices: a product or a batch of them, no side below the instruction's, of types
  /// that it takes.
  SimdgroupMatrices,
  /// A loop of multiply-adds over K: any shape, any numbers that Metal has.
  MultiplyAdds,
};

/// Sums of so many products of int8 are exact in fp32.
inline constexpr int64_t kExactTerms = 1024;

/// The form of a dot on the target of `budget`.
DotForm getDotForm(tt::DotOp dot, const Budget &budget);

/// Threadgroup memory for an operand of this shape. 16 bytes of padding put neighbouring rows into
/// different banks.
ttm::TileType getOperandTile(llvm::ArrayRef<int64_t> shape, mlir::Type element);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_DOTS_H
