#ifndef TRITON_METAL_ANALYSIS_ACCESSPLACES_H
#define TRITON_METAL_ANALYSIS_ACCESSPLACES_H

#include "dialect/msl/MSL.h"

namespace mlir::scf {
class ForOp;
}

namespace triton_metal::msl {

/// The bytes that all threads and registers of an access may touch: from `root`, the uniform
/// numbers `terms` times their factors further, and from there from `low` to below `high`.
struct Place {
  mlir::Value root;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> terms;
  int64_t low = 0, high = 0;

  static std::optional<Place> get(mlir::Value base, mlir::Value offsets);

  /// Two accesses in one run of their code.
  bool isDisjointFrom(const Place &other) const;
  /// This access in any earlier step of the loop, and another one in the present step.
  bool isDisjointInLaterSteps(const Place &later, mlir::scf::ForOp loop) const;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_ANALYSIS_ACCESSPLACES_H
