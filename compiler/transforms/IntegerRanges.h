// What is known of the integers of a function.

#ifndef TRITON_METAL_TRANSFORMS_INTEGERRANGES_H
#define TRITON_METAL_TRANSFORMS_INTEGERRANGES_H

#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/IR/PatternMatch.h"

namespace triton_metal {

/// MLIR's analysis, which reads the bounds of every loop as signed numbers: what a loop with
/// unsigned bounds counts is unknown here.
class IntegerRanges : public mlir::dataflow::IntegerRangeAnalysis {
public:
  using IntegerRangeAnalysis::IntegerRangeAnalysis;
  /// A number that grows in a loop by a way that MLIR does not see (through the results of a loop
  /// within it) would be looked at for each value that it takes: after a while it may be anything.
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

/// Finds the ranges of all integers in an operation.
llvm::LogicalResult findRanges(mlir::DataFlowSolver &solver, mlir::Operation *root);

/// The range of a value, where the solver has one.
std::optional<mlir::ConstantIntRanges> getRange(mlir::DataFlowSolver &solver, mlir::Value value);

/// The ranges of single values, found as they are asked for: by MLIR's inference for each
/// operation, without what loops carry. Most passes need few, and the solver's walk until nothing
/// changes takes longer than all of theirs.
class ValueRanges {
public:
  mlir::ConstantIntRanges get(mlir::Value value);
  /// Whether no number that the value can be is negative.
  bool isNonNegative(mlir::Value value) { return get(value).smin().isNonNegative(); }
  /// Whether the exact result of an addition, subtraction, multiplication or shift to the left is a
  /// signed number of its type.
  bool cannotOverflow(mlir::Operation *op);

private:
  mlir::ConstantIntRanges infer(mlir::Value value);
  llvm::DenseMap<mlir::Value, mlir::ConstantIntRanges> known;
};

/// Keeps the solver from answering for values that are gone: a new one may lie at the same address.
struct ForgetErased : mlir::RewriterBase::Listener {
  explicit ForgetErased(mlir::DataFlowSolver &solver) : solver(solver) {}
  void notifyOperationErased(mlir::Operation *op) override;
  mlir::DataFlowSolver &solver;
};

} // namespace triton_metal

#endif
