// Ranges of integers inside of branches.

#ifndef TRITON_METAL_TRANSFORMS_CONDITIONRANGES_H
#define TRITON_METAL_TRANSFORMS_CONDITIONRANGES_H

#include "transforms/IntegerRanges.h"

#include <memory>

namespace triton_metal {

/// The ranges of single values where conditions hold: in the first region of an `scf.if`, its
/// comparisons of signed numbers bound what they compare, and what that is a sum of. So
/// `x + 63 < n` says that `x + 63` does not overflow there.
class ConditionRanges {
public:
  /// The ranges of values at an operation.
  ValueRanges &at(mlir::Operation *op);

private:
  struct Scope {
    ValueRanges::Facts facts;
    ValueRanges ranges;
  };

  Scope &scopeOf(mlir::Operation *op);

  Scope outside;
  /// The scopes of regions, and of those whose conditions say nothing, the scope around them.
  llvm::DenseMap<mlir::Region *, Scope *> scopes;
  llvm::SmallVector<std::unique_ptr<Scope>> owned;
};

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_CONDITIONRANGES_H
