#ifndef TRITON_METAL_ANALYSIS_ACCESSPLACES_H
#define TRITON_METAL_ANALYSIS_ACCESSPLACES_H

#include "dialect/msl/MSL.h"

namespace mlir::scf {
class ForOp;
}

namespace triton_metal::msl {

/// The bytes that an access may touch, over all threads and registers: from `low` to below `high`,
/// relative to `root` plus the uniform numbers in `terms`, each times its factor.
struct Place {
  mlir::Value root;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> terms;
  int64_t low = 0, high = 0;

  static std::optional<Place> get(mlir::Value base, mlir::Value offsets);

  /// Whether two accesses of the same iteration touch different bytes.
  bool isDisjointFrom(const Place &other) const;
  /// Whether this access, in any earlier iteration of the loop, and the other one, in the present
  /// iteration, touch different bytes.
  bool isDisjointInLaterSteps(const Place &later, mlir::scf::ForOp loop) const;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_ANALYSIS_ACCESSPLACES_H
