// Tiles that a loop moves by one number become carried numbers: see Passes.td.

#include "dialect/msl/MSL.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLCARRYNUMBERS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// Carries a number in place of argument `index` if the loop only adds a number to it.
static void carryNumber(scf::ForOp loop, unsigned index) {
  Value init = loop.getInitArgs()[index];
  auto type = dyn_cast<VectorType>(init.getType());
  if (!type || !isTile(type) || !isa<IntegerType>(type.getElementType()))
    return;
  BlockArgument argument = loop.getRegionIterArg(index);
  OpOperand &yielded = *loop.getTiedLoopYieldedValue(argument);
  auto sum = yielded.get().getDefiningOp<arith::AddIOp>();
  if (!sum || (sum.getLhs() != argument && sum.getRhs() != argument))
    return;
  Location loc = argument.getLoc();
  OpBuilder builder(yielded.getOwner());
  Value number = getNumber(builder, loc, sum.getLhs() == argument ? sum.getRhs() : sum.getLhs());
  if (!number)
    return;
  yielded.set(arith::AddIOp::create(builder, loc, argument, number));

  // Uses of the argument and of the result read the initial tile plus the carried number instead.
  Type element = type.getElementType();
  auto replace = [&](Value carried) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : carried.getUses())
      if (use.getOwner() != yielded.get().getDefiningOp())
        uses.push_back(&use);
    carried.setType(element);
    if (uses.empty())
      return;
    Value splat = SplatOp::create(builder, loc, type, carried);
    Value tile = arith::AddIOp::create(builder, loc, init, splat);
    for (OpOperand *use : uses)
      use->set(tile);
  };
  builder.setInsertionPointToStart(loop.getBody());
  replace(argument);
  builder.setInsertionPointAfter(loop);
  replace(loop.getResult(index));
  yielded.get().setType(element);
  if (sum.use_empty())
    sum.erase();
  builder.setInsertionPoint(loop);
  Value zero =
      arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(element)));
  loop.getInitArgsMutable()[index].assign(zero);
}

struct CarryNumbers : triton_metal::impl::MSLCarryNumbersBase<CarryNumbers> {
  void runOnOperation() override {
    // Inner loops come first: the outer loop may then find that a result is a tile plus a number.
    getOperation().walk([](scf::ForOp loop) {
      for (unsigned index = 0, e = loop.getNumRegionIterArgs(); index < e; ++index)
        carryNumber(loop, index);
    });
  }
};

} // namespace
