// Turns the results of loops and branches into variables of the text.

#include "dialect/msl/MSL.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/PatternMatch.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLFORMVARIABLES
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

class VariableFormer {
public:
  explicit VariableFormer(MLIRContext *context) : rewriter(context) {}

  /// Returns whether anything was changed.
  bool form(KernelOp kernel) {
    // Inner operations come first, because their reads and assignments move with them.
    SmallVector<Operation *> operations;
    kernel.walk([&](Operation *op) {
      if (isa<VarOp, scf::ForOp, scf::IfOp, scf::WhileOp>(op))
        operations.push_back(op);
    });
    for (Operation *op : operations) {
      if (auto variable = dyn_cast<VarOp>(op))
        takeFirstValue(variable);
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        formFor(loop);
      else if (auto conditional = dyn_cast<scf::IfOp>(op))
        formIf(conditional);
      else
        formWhile(cast<scf::WhileOp>(op));
    }
    return !operations.empty();
  }

private:
  IRRewriter rewriter;

  VarOp declare(Location loc, Value init, Type type) {
    if (init && init.getDefiningOp<ub::PoisonOp>())
      init = {};
    return VarOp::create(rewriter, loc, ArrayType::get(1, type), StringAttr(), init);
  }
  Value get(VarOp variable) {
    return GetOp::create(rewriter, variable.getLoc(), variable.getType().getElementType(), variable,
                         Value(), Value());
  }
  void set(VarOp variable, Value value) {
    // A variable that gets its own value needs no assignment, and neither does one that gets
    // poison.
    auto same = value.getDefiningOp<GetOp>();
    if (!value.getDefiningOp<ub::PoisonOp>() && !(same && same.getArray() == variable.getResult()))
      SetOp::create(rewriter, variable.getLoc(), value, variable, Value(), Value());
  }

  /// An assignment directly after the declaration becomes the initial value.
  void takeFirstValue(VarOp variable) {
    auto set = dyn_cast_or_null<SetOp>(variable->getNextNode());
    if (!set || set.getArray() != variable.getResult() || set.getElement() ||
        variable.getType().getCount() != 1 || variable.getType().isMatrix())
      return;
    variable.getInitMutable().assign(set.getValue());
    rewriter.eraseOp(set);
  }

  void formFor(scf::ForOp loop) {
    rewriter.setInsertionPoint(loop);
    SmallVector<VarOp> variables;
    for (auto [argument, init, result] :
         llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs(), loop.getResults())) {
      Location loc = getSourceName(argument.getLoc()).empty() ? result.getLoc() : argument.getLoc();
      variables.push_back(declare(loc, init, argument.getType()));
    }
    auto counted = msl::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(),
                                      loop.getUpperBound(), loop.getStep(), loop.getUnsignedCmp());
    Block *body = loop.getBody(), *target = &counted.getBody().front();
    target->getArgument(0).setLoc(loop.getInductionVar().getLoc());
    rewriter.setInsertionPointToStart(target);
    SmallVector<Value> arguments{target->getArgument(0)};
    for (VarOp variable : variables)
      arguments.push_back(get(variable));
    auto yield = cast<scf::YieldOp>(body->getTerminator());
    rewriter.inlineBlockBefore(body, target->getTerminator(), arguments);
    assign(yield, variables);
    replace(loop, variables);
  }

  void formIf(scf::IfOp conditional) {
    if (conditional.getNumResults() == 0)
      return;
    rewriter.setInsertionPoint(conditional);
    SmallVector<VarOp> variables;
    for (OpResult result : conditional.getResults())
      variables.push_back(declare(result.getLoc(), {}, result.getType()));
    auto bare = scf::IfOp::create(rewriter, conditional.getLoc(), TypeRange(),
                                  conditional.getCondition(), /*addThenBlock=*/false,
                                  /*addElseBlock=*/false);
    for (auto [from, to] : llvm::zip(conditional->getRegions(), bare->getRegions())) {
      to.takeBody(from);
      auto yield = cast<scf::YieldOp>(to.front().getTerminator());
      assign(yield, variables);
      rewriter.setInsertionPointToEnd(&to.front());
      scf::YieldOp::create(rewriter, conditional.getLoc());
    }
    replace(conditional, variables);
  }

  void formWhile(scf::WhileOp loop) {
    if (loop.getNumResults() == 0 && loop.getNumOperands() == 0)
      return;
    rewriter.setInsertionPoint(loop);
    SmallVector<VarOp> carried, passed;
    for (auto [argument, init] : llvm::zip_equal(loop.getBeforeArguments(), loop.getInits()))
      carried.push_back(declare(argument.getLoc(), init, argument.getType()));
    // A value that the condition passes on either is a carried variable or gets a variable of its
    // own.
    scf::ConditionOp condition = loop.getConditionOp();
    for (auto [value, result] : llvm::zip_equal(condition.getArgs(), loop.getResults())) {
      auto argument = dyn_cast<BlockArgument>(value);
      passed.push_back(argument && argument.getOwner() == loop.getBeforeBody()
                           ? carried[argument.getArgNumber()]
                           : declare(result.getLoc(), {}, result.getType()));
    }
    auto bare = scf::WhileOp::create(rewriter, loop.getLoc(), TypeRange(), ValueRange());
    auto begin = [&](Region &region, ArrayRef<VarOp> variables) {
      Block *block = rewriter.createBlock(&region);
      SmallVector<Value> values;
      for (VarOp variable : variables)
        values.push_back(get(variable));
      return std::pair(block, values);
    };
    auto [before, values] = begin(bare.getBefore(), carried);
    rewriter.inlineBlockBefore(loop.getBeforeBody(), before, before->end(), values);
    rewriter.setInsertionPoint(condition);
    for (auto [value, variable] : llvm::zip_equal(condition.getArgs(), passed))
      set(variable, value);
    rewriter.replaceOpWithNewOp<scf::ConditionOp>(condition, condition.getCondition(),
                                                  ValueRange());

    auto yield = loop.getYieldOp();
    auto [after, received] = begin(bare.getAfter(), passed);
    rewriter.inlineBlockBefore(loop.getAfterBody(), after, after->end(), received);
    assign(yield, carried);
    rewriter.setInsertionPointToEnd(after);
    scf::YieldOp::create(rewriter, loop.getLoc());
    replace(loop, passed);
  }

  /// Ends a region with assignments. All of them use values that were read before the first
  /// assignment.
  void assign(scf::YieldOp yield, ArrayRef<VarOp> variables) {
    rewriter.setInsertionPoint(yield);
    for (auto [value, variable] : llvm::zip_equal(yield.getOperands(), variables))
      set(variable, value);
    rewriter.eraseOp(yield);
  }

  void replace(Operation *op, ArrayRef<VarOp> variables) {
    rewriter.setInsertionPointAfter(op);
    SmallVector<Value> values;
    for (VarOp variable : variables)
      values.push_back(get(variable));
    rewriter.replaceOp(op, values);
  }
};

struct MSLFormVariablesPass : impl::MSLFormVariablesBase<MSLFormVariablesPass> {
  using Base::Base;

  void runOnOperation() override {
    bool changes = false;
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      changes |= VariableFormer(&getContext()).form(kernel);
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
