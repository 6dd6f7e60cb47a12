#include "analysis/CombineRegion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace triton_metal {

Operation *getCommutativeCombiner(Block &block) {
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block.getOperations(), 2))
    return nullptr;
  Operation *combiner = &block.front();
  bool usesBoth = combiner->getNumOperands() == 2 && combiner->getNumResults() == 1 &&
                  block.getTerminator()->getOperand(0) == combiner->getResult(0) &&
                  ((combiner->getOperand(0) == block.getArgument(0) &&
                    combiner->getOperand(1) == block.getArgument(1)) ||
                   (combiner->getOperand(0) == block.getArgument(1) &&
                    combiner->getOperand(1) == block.getArgument(0)));
  if (!usesBoth ||
      !isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
           arith::XOrIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp,
           arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp, arith::MinimumFOp>(combiner))
    return nullptr;
  return combiner;
}

/// Whether the region selects the larger (or smaller) of two numbers together with its index, and
/// the lower (or higher) index of equal numbers. Such a reduction gives the same result in any
/// order, except that a NaN, which compares with nothing, may or may not be the result.
static bool isArgMinMax(Block &block) {
  if (block.getNumArguments() != 4)
    return false;
  Value value = block.getArgument(0), index = block.getArgument(1);
  Value otherValue = block.getArgument(2), otherIndex = block.getArgument(3);
  Operation *terminator = block.getTerminator();
  auto first = terminator->getOperand(0).getDefiningOp<arith::SelectOp>();
  auto second = terminator->getOperand(1).getDefiningOp<arith::SelectOp>();
  if (!first || !second || first.getCondition() != second.getCondition() ||
      first.getTrueValue() != value || first.getFalseValue() != otherValue ||
      second.getTrueValue() != index || second.getFalseValue() != otherIndex)
    return false;
  // value > other || (value == other && index < otherIndex), in either order.
  auto isCompare = [](Value condition, Value a, Value b, bool equal) {
    if (auto cmp = condition.getDefiningOp<arith::CmpFOp>())
      return cmp.getLhs() == a && cmp.getRhs() == b &&
             (equal ? cmp.getPredicate() == arith::CmpFPredicate::OEQ
                    : llvm::is_contained({arith::CmpFPredicate::OGT, arith::CmpFPredicate::OLT},
                                         cmp.getPredicate()));
    if (auto cmp = condition.getDefiningOp<arith::CmpIOp>())
      return cmp.getLhs() == a && cmp.getRhs() == b &&
             (equal ? cmp.getPredicate() == arith::CmpIPredicate::eq
                    : llvm::is_contained({arith::CmpIPredicate::sgt, arith::CmpIPredicate::slt,
                                          arith::CmpIPredicate::ugt, arith::CmpIPredicate::ult},
                                         cmp.getPredicate()));
    return false;
  };
  auto either = first.getCondition().getDefiningOp<arith::OrIOp>();
  if (!either)
    return false;
  for (auto [better, tie] :
       {std::pair(either.getLhs(), either.getRhs()), std::pair(either.getRhs(), either.getLhs())}) {
    auto both = tie.getDefiningOp<arith::AndIOp>();
    if (!both || !isCompare(better, value, otherValue, false))
      continue;
    for (auto [equal, lower] :
         {std::pair(both.getLhs(), both.getRhs()), std::pair(both.getRhs(), both.getLhs())})
      if (isCompare(equal, value, otherValue, true) && isCompare(lower, index, otherIndex, false))
        return true;
  }
  return false;
}

bool isCommutative(Block &block) { return getCommutativeCombiner(block) || isArgMinMax(block); }

} // namespace triton_metal
