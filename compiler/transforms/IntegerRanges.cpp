#include "transforms/IntegerRanges.h"

#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace triton_metal;

/// How often an operation may be visited; a few times are usual.
static constexpr unsigned kMaxVisits = 100;

LogicalResult
IntegerRanges::visitOperation(Operation *op,
                              ArrayRef<const dataflow::IntegerValueRangeLattice *> operands,
                              ArrayRef<dataflow::IntegerValueRangeLattice *> results) {
  if (++visits[op] <= kMaxVisits)
    return IntegerRangeAnalysis::visitOperation(op, operands, results);
  setAllToEntryStates(results);
  return success();
}

void IntegerRanges::visitNonControlFlowArguments(
    Operation *op, const RegionSuccessor &successor,
    ArrayRef<dataflow::IntegerValueRangeLattice *> arguments, unsigned firstIndex) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop || !loop.getUnsignedCmp())
    return IntegerRangeAnalysis::visitNonControlFlowArguments(op, successor, arguments, firstIndex);
  auto *lattice = getLatticeElement(loop.getInductionVar());
  propagateIfChanged(lattice,
                     lattice->join(IntegerValueRange::getMaxRange(loop.getInductionVar())));
}

LogicalResult triton_metal::findRanges(DataFlowSolver &solver, Operation *root) {
  dataflow::loadBaselineAnalyses(solver);
  solver.load<IntegerRanges>();
  return solver.initializeAndRun(root);
}

std::optional<ConstantIntRanges> triton_metal::getRange(DataFlowSolver &solver, Value value) {
  auto *state = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
  if (!state || state->getValue().isUninitialized())
    return std::nullopt;
  return state->getValue().getValue();
}

void ForgetErased::notifyOperationErased(Operation *op) {
  solver.eraseState(solver.getProgramPointAfter(op));
  for (Value result : op->getResults())
    solver.eraseState(result);
}
