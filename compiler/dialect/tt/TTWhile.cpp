// A canonical form of loops, with which MLIR's own forms of them are right.

#include "dialect/tt/TT.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::tt;

namespace {

/// Where a condition passes one value twice, the loop uses the first of the two.
///
/// LLVM 22 moves an `scf.if` that stands before the condition into the loop's body
/// (WhileMoveIfDown). If the condition passes one result of it twice, only the first is replaced by
/// what the `then` block yields, and the second by what the `else` block yields. It matches after
/// this pattern, whose benefit is greater, and the second has no uses then.
struct UniteConditionOperands : OpRewritePattern<scf::WhileOp> {
  explicit UniteConditionOperands(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/10) {}

  LogicalResult matchAndRewrite(scf::WhileOp loop, PatternRewriter &rewriter) const override {
    llvm::SmallDenseMap<Value, unsigned> places;
    bool changed = false;
    auto unite = [&](Value value, Value first) {
      if (value.use_empty())
        return;
      rewriter.replaceAllUsesWith(value, first);
      changed = true;
    };
    for (auto [index, value] : llvm::enumerate(loop.getConditionOp().getArgs())) {
      unsigned first = places.try_emplace(value, index).first->second;
      if (first == index)
        continue;
      unite(loop.getAfterArguments()[index], loop.getAfterArguments()[first]);
      unite(loop.getResult(index), loop.getResult(first));
    }
    return success(changed);
  }
};

} // namespace

void TTDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<UniteConditionOperands>(getContext());
}
