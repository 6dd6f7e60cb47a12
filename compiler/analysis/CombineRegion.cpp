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

/// Such a reduction gives the same result in any order, except that a NaN, which compares with
/// nothing, may or may not be the result.
std::optional<ArgMinMax> ArgMinMax::get(Block &block) {
  if (block.getNumArguments() != 4)
    return std::nullopt;
  Value value = block.getArgument(0), index = block.getArgument(1);
  Value otherValue = block.getArgument(2), otherIndex = block.getArgument(3);
  Operation *terminator = block.getTerminator();
  auto first = terminator->getOperand(0).getDefiningOp<arith::SelectOp>();
  auto second = terminator->getOperand(1).getDefiningOp<arith::SelectOp>();
  if (!first || !second || first.getCondition() != second.getCondition() ||
      first.getTrueValue() != value || first.getFalseValue() != otherValue ||
      second.getTrueValue() != index || second.getFalseValue() != otherIndex)
    return std::nullopt;
  ArgMinMax result;
  // The comparison of a and b: whether a is greater, and whether the numbers have no sign.
  auto compares = [](Value condition, Value a, Value b, bool &isGreater, bool &isUnsigned) {
    if (auto cmp = condition.getDefiningOp<arith::CmpFOp>()) {
      isGreater = cmp.getPredicate() == arith::CmpFPredicate::OGT;
      return cmp.getLhs() == a && cmp.getRhs() == b &&
             (isGreater || cmp.getPredicate() == arith::CmpFPredicate::OLT);
    }
    if (auto cmp = condition.getDefiningOp<arith::CmpIOp>()) {
      auto predicate = cmp.getPredicate();
      isGreater = predicate == arith::CmpIPredicate::sgt || predicate == arith::CmpIPredicate::ugt;
      isUnsigned = predicate == arith::CmpIPredicate::ugt || predicate == arith::CmpIPredicate::ult;
      return cmp.getLhs() == a && cmp.getRhs() == b &&
             (isGreater || isUnsigned || predicate == arith::CmpIPredicate::slt);
    }
    return false;
  };
  auto areEqual = [&](Value condition) {
    if (auto cmp = condition.getDefiningOp<arith::CmpFOp>())
      return cmp.getLhs() == value && cmp.getRhs() == otherValue &&
             cmp.getPredicate() == arith::CmpFPredicate::OEQ;
    auto cmp = condition.getDefiningOp<arith::CmpIOp>();
    return cmp && cmp.getLhs() == value && cmp.getRhs() == otherValue &&
           cmp.getPredicate() == arith::CmpIPredicate::eq;
  };
  // value > other || (value == other && index < otherIndex), in either order.
  auto either = first.getCondition().getDefiningOp<arith::OrIOp>();
  if (!either)
    return std::nullopt;
  for (auto [better, tie] :
       {std::pair(either.getLhs(), either.getRhs()), std::pair(either.getRhs(), either.getLhs())}) {
    auto both = tie.getDefiningOp<arith::AndIOp>();
    if (!both || !compares(better, value, otherValue, result.isMax, result.isUnsigned))
      continue;
    for (auto [equal, lower] :
         {std::pair(both.getLhs(), both.getRhs()), std::pair(both.getRhs(), both.getLhs())}) {
      bool isHigher = false;
      if (!areEqual(equal) || !compares(lower, index, otherIndex, isHigher, result.isIndexUnsigned))
        continue;
      result.isFloat = isa<FloatType>(value.getType());
      result.hasLowerIndex = !isHigher;
      return result;
    }
  }
  return std::nullopt;
}

bool isCommutative(Block &block) {
  return getCommutativeCombiner(block) || ArgMinMax::get(block).has_value();
}

} // namespace triton_metal
