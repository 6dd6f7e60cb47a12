// A product that is only added to a tile starts from that tile.

#include "dialect/tt/TT.h"
#include "dialect/ttm/LocationNames.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTACCUMULATEDOTS
#include "transforms/Passes.h.inc"

namespace {

bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

/// The dot that made a summand, if the sum is all that reads it and it starts from zero. One of
/// another block stays there: it may have left a loop.
tt::DotOp dotOf(Value summand, Operation *sum) {
  auto dot = summand.getDefiningOp<tt::DotOp>();
  return dot && dot->hasOneUse() && dot->getBlock() == sum->getBlock() && isZero(dot.getC())
             ? dot
             : tt::DotOp();
}

/// Of two dots the later one takes the other as its start, so that neither moves.
void accumulate(Operation *sum) {
  Value left = sum->getOperand(0), right = sum->getOperand(1);
  tt::DotOp dot = dotOf(right, sum), other = dotOf(left, sum);
  if (!dot || (other && dot->isBeforeInBlock(other)))
    std::swap(dot, other), std::swap(left, right);
  if (!dot)
    return;
  // The start may have been computed behind the dot.
  dot->moveBefore(sum);
  if (std::string name = nameOf(sum->getLoc()); !name.empty())
    dot->setLoc(NameLoc::get(StringAttr::get(dot->getContext(), name), unnamed(dot->getLoc())));
  dot.getCMutable().assign(left);
  sum->getResult(0).replaceAllUsesWith(dot);
  sum->erase();
}

struct TTAccumulateDotsPass : impl::TTAccumulateDotsBase<TTAccumulateDotsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> sums;
    getOperation().walk([&](Operation *op) {
      if (isa<arith::AddFOp, arith::AddIOp>(op))
        sums.push_back(op);
    });
    for (Operation *sum : sums)
      accumulate(sum);
  }
};

} // namespace
} // namespace triton_metal
