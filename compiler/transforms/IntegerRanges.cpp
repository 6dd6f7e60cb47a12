#include "transforms/IntegerRanges.h"

#include "dialect/msl/MSL.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

static ConstantIntRanges getFullRange(Type type) {
  return ConstantIntRanges::maxRange(ConstantIntRanges::getStorageBitwidth(type));
}

/// The range of a loop's counter. It is known if the bounds are ordered in the same way as signed
/// and as unsigned numbers, or if the loop compares signed numbers.
static ConstantIntRanges getCounterRange(const ConstantIntRanges &lower,
                                         const ConstantIntRanges &upper, bool isUnsigned) {
  bool isSigned = lower.smin().isNonNegative() && upper.smin().isNonNegative();
  if (isUnsigned && !isSigned)
    return ConstantIntRanges::maxRange(lower.smin().getBitWidth());
  APInt most = upper.smax().isMinSignedValue() ? upper.smax() : upper.smax() - 1;
  return ConstantIntRanges::fromSigned(lower.smin(), llvm::APIntOps::smax(lower.smin(), most));
}

ConstantIntRanges ValueRanges::infer(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto unroll = dyn_cast<msl::UnrollOp>(parent))
      return ConstantIntRanges::fromSigned(APInt(32, unroll.getLower(), /*isSigned=*/true),
                                           APInt(32, int64_t(unroll.getUpper()) - 1, true));
    if (auto loop = dyn_cast<scf::ForOp>(parent); loop && argument == loop.getInductionVar())
      return getCounterRange(get(loop.getLowerBound()), get(loop.getUpperBound()),
                             loop.getUnsignedCmp());
    if (auto loop = dyn_cast<msl::ForOp>(parent))
      return getCounterRange(get(loop.getLower()), get(loop.getUpper()), loop.getIsUnsigned());
    return getFullRange(value.getType());
  }
  Operation *op = value.getDefiningOp();
  auto inferable = dyn_cast<InferIntRangeInterface>(op);
  if (!inferable)
    return getFullRange(value.getType());
  SmallVector<IntegerValueRange> operands;
  for (Value operand : op->getOperands())
    operands.push_back(getElementTypeOrSelf(operand.getType()).isIntOrIndex()
                           ? IntegerValueRange(get(operand))
                           : IntegerValueRange());
  std::optional<ConstantIntRanges> range;
  inferable.inferResultRangesFromOptional(operands,
                                          [&](Value result, const IntegerValueRange &found) {
                                            if (result == value && !found.isUninitialized())
                                              range = found.getValue();
                                          });
  // A remainder is no greater than the dividend, which MLIR's inference does not use.
  if (isa<arith::RemUIOp>(op) && range) {
    APInt most = get(op->getOperand(0)).umax();
    range = range->intersection(
        ConstantIntRanges::fromUnsigned(APInt::getZero(most.getBitWidth()), most));
  }
  return range.value_or(getFullRange(value.getType()));
}

ConstantIntRanges ValueRanges::get(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  ConstantIntRanges range = infer(value);
  known.try_emplace(value, range);
  return range;
}

bool ValueRanges::cannotOverflow(Operation *op) {
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
      flags && flags.hasNoSignedWrap())
    return true;
  ConstantIntRanges a = get(op->getOperand(0)), b = get(op->getOperand(1));
  unsigned width = a.smin().getBitWidth(), wide = 2 * width + 1;
  APInt aLow = a.smin().sext(wide), aHigh = a.smax().sext(wide), bLow = b.smin().sext(wide),
        bHigh = b.smax().sext(wide);
  APInt low, high;
  if (isa<arith::AddIOp>(op)) {
    low = aLow + bLow;
    high = aHigh + bHigh;
  } else if (isa<arith::SubIOp>(op)) {
    low = aLow - bHigh;
    high = aHigh - bLow;
  } else {
    if (isa<arith::ShLIOp>(op)) {
      // A shift is a multiplication by a power of two.
      if (bLow.isNegative() || bHigh.sge(width))
        return false;
      bLow = APInt::getOneBitSet(wide, unsigned(bLow.getZExtValue()));
      bHigh = APInt::getOneBitSet(wide, unsigned(bHigh.getZExtValue()));
    } else if (!isa<arith::MulIOp>(op)) {
      return false;
    }
    low = high = aLow * bLow;
    for (const APInt &product : {aLow * bHigh, aHigh * bLow, aHigh * bHigh}) {
      low = llvm::APIntOps::smin(low, product);
      high = llvm::APIntOps::smax(high, product);
    }
  }
  return low.isSignedIntN(width) && high.isSignedIntN(width);
}

void ForgetErased::notifyOperationErased(Operation *op) {
  solver.eraseState(solver.getProgramPointAfter(op));
  for (Value result : op->getResults())
    solver.eraseState(result);
}
