#ifndef TRITON_METAL_ANALYSIS_UNIFORMITY_H
#define TRITON_METAL_ANALYSIS_UNIFORMITY_H

#include "dialect/msl/MSL.h"

#include "llvm/ADT/DenseSet.h"

namespace triton_metal::msl {

/// Which values of a kernel are the same in all threads of a threadgroup, and where its threads
/// diverge. A value counts as different unless it is known to be the same.
class Uniformity {
public:
  explicit Uniformity(KernelOp kernel);

  bool isUniform(mlir::Value value) const { return !divergent.contains(value); }
  /// Whether some threads may run the operation's regions more often than others.
  bool partsThreads(mlir::Operation *op) const;
  /// The outermost operation around `op` at which threads diverge; null if all threads reach `op`
  /// together.
  mlir::Operation *getParting(mlir::Operation *op) const;

private:
  void visit(mlir::Operation *op);
  void mark(mlir::ValueRange values);
  bool areUniform(mlir::ValueRange values) const;

  int32_t threads;
  bool changed = false;
  llvm::DenseSet<mlir::Value> divergent;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_ANALYSIS_UNIFORMITY_H
