// Ranges of the integers of a function.

#ifndef TRITON_METAL_TRANSFORMS_INTEGERRANGES_H
#define TRITON_METAL_TRANSFORMS_INTEGERRANGES_H

#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/IR/PatternMatch.h"

namespace triton_metal {

/// MLIR's analysis reads the bounds of every loop as signed numbers. Here the counter of a loop
/// with unsigned bounds is unknown.
class IntegerRanges : public mlir::dataflow::IntegerRangeAnalysis {
public:
  using IntegerRangeAnalysis::IntegerRangeAnalysis;
  /// Limits the number of visits. MLIR does not recognise a number that grows through the results
  /// of an inner loop, and would visit its operations once for each value. After a while, its range
  /// becomes the full range.
  llvm::LogicalResult
  visitOperation(mlir::Operation *op,
                 llvm::ArrayRef<const mlir::dataflow::IntegerValueRangeLattice *> operands,
                 llvm::ArrayRef<mlir::dataflow::IntegerValueRangeLattice *> results) override;
  void
  visitNonControlFlowArguments(mlir::Operation *op, const mlir::RegionSuccessor &successor,
                               llvm::ArrayRef<mlir::dataflow::IntegerValueRangeLattice *> arguments,
                               unsigned firstIndex) override;

private:
  llvm::DenseMap<mlir::Operation *, unsigned> visits;
};

/// Finds the ranges of all integers inside of an operation.
llvm::LogicalResult findRanges(mlir::DataFlowSolver &solver, mlir::Operation *root);

/// The range of a value; nothing if the solver does not have one.
std::optional<mlir::ConstantIntRanges> getRange(mlir::DataFlowSolver &solver, mlir::Value value);

/// The ranges of single values, computed on demand: by MLIR's inference for each operation, and
/// without values that loops carry. Most passes need few ranges, and the solver's fixed-point
/// iteration takes longer than all of these passes.
class ValueRanges {
public:
  using Facts = llvm::SmallVector<std::pair<mlir::Value, mlir::ConstantIntRanges>>;

  ValueRanges() = default;
  /// With what is known of some values from elsewhere.
  explicit ValueRanges(const Facts &facts) : known(facts.begin(), facts.end()) {}
  mlir::ConstantIntRanges get(mlir::Value value);
  /// Whether the value is never negative.
  bool isNonNegative(mlir::Value value) { return get(value).smin().isNonNegative(); }
  /// Whether the exact result of an addition, subtraction, multiplication or shift to the left
  /// always fits into the signed type.
  bool cannotOverflow(mlir::Operation *op);

private:
  mlir::ConstantIntRanges infer(mlir::Value value);
  llvm::DenseMap<mlir::Value, mlir::ConstantIntRanges> known;
};

/// Removes erased values from the solver. A new value may be allocated at the same address.
struct ForgetErased : mlir::RewriterBase::Listener {
  explicit ForgetErased(mlir::DataFlowSolver &solver) : solver(solver) {}
  void notifyOperationErased(mlir::Operation *op) override;
  mlir::DataFlowSolver &solver;
};

} // namespace triton_metal

#endif
