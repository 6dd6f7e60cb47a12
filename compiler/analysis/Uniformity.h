#ifndef TRITON_METAL_ANALYSIS_UNIFORMITY_H
#define TRITON_METAL_ANALYSIS_UNIFORMITY_H

#include "dialect/msl/MSL.h"

#include "llvm/ADT/DenseSet.h"

namespace triton_metal::msl {

/// Which values of a kernel are the same in all threads of a threadgroup, and where those threads
/// part ways. What is not known to be the same is taken for different.
class Uniformity {
public:
  explicit Uniformity(KernelOp kernel);

  bool isUniform(mlir::Value value) const { return !divergent.contains(value); }
  /// Some threads may go through the operation's regions more often than others.
  bool partsThreads(mlir::Operation *op) const;
  /// The outermost operation around `op` at which threads part ways; null where all of them come to
  /// `op` together.
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
