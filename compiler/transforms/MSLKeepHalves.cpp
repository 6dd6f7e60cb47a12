// Tiles that wait between loops wait as halves where that is what they are: see Passes.td.

#include "dialect/msl/MSL.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLKEEPHALVES
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// The registers of a tile, in float32, from which on they decide how many threads a core holds.
/// What has fewer waits as it is: to widen it once more is an operation on each register.
constexpr int64_t kLeastRegisters = 32;

/// The loop over registers that an operation is in; null if it is in none.
static TileLoopOp getTileLoop(Operation *op) { return dyn_cast<TileLoopOp>(op->getParentOp()); }

/// Whether `loop` runs at most once for each time that `before`, which comes first, does.
static bool runsNoMoreOften(TileLoopOp loop, TileLoopOp before) {
  Operation *op = loop;
  while (op->getBlock() != before->getBlock()) {
    op = op->getParentOp();
    if (!isa_and_nonnull<scf::IfOp>(op))
      return false;
  }
  return true;
}

/// Whether the loop leaves a tile of float32. It can take the place of one that the loop is the
/// last to read, so that this one in halves would save no registers.
static bool leavesFloats(TileLoopOp loop) {
  return llvm::any_of(loop.getResultTypes(),
                      [](Type type) { return isTile(type) && getElementTypeOrSelf(type).isF32(); });
}

/// The tile of halves that result `index` is a copy of in float32, if that takes fewer registers
/// and all that read the result are in loops over registers, where each can make the copy itself;
/// null otherwise.
static Value getHalves(TileLoopOp loop, unsigned index) {
  Block &body = loop.getBody().front();
  auto widened = body.getTerminator()->getOperand(index).getDefiningOp<arith::ExtFOp>();
  if (!widened || widened.getIn().getParentBlock() != &body ||
      getNumRegisters(widened.getType()) < kLeastRegisters ||
      !getElementTypeOrSelf(widened.getIn()).isF16() ||
      !getElementTypeOrSelf(widened.getType()).isF32())
    return nullptr;
  for (Operation *user : loop.getResult(index).getUsers()) {
    TileLoopOp reader = getTileLoop(user);
    if (!reader || isa<YieldOp>(user) || !runsNoMoreOften(reader, loop) || leavesFloats(reader))
      return nullptr;
  }
  return widened.getIn();
}

/// Gives the loop halves as results, and widens them where they are read.
static void keepHalves(TileLoopOp loop) {
  Operation *terminator = loop.getBody().front().getTerminator();
  SmallVector<Value> yielded(terminator->getOperands());
  SmallVector<unsigned> changed;
  for (unsigned i = 0; i != yielded.size(); ++i)
    if (Value halves = getHalves(loop, i)) {
      yielded[i] = halves;
      changed.push_back(i);
    }
  if (changed.empty())
    return;
  terminator->setOperands(yielded);
  OpBuilder builder(loop);
  for (unsigned i : changed) {
    Value result = loop.getResult(i);
    Type wide = result.getType();
    Location loc = getTileLoc(result);
    llvm::SmallMapVector<Operation *, SmallVector<OpOperand *>, 4> uses;
    for (OpOperand &use : result.getUses())
      uses[getTileLoop(use.getOwner())].push_back(&use);
    result.setType(yielded[i].getType());
    for (auto &[reader, operands] : uses) {
      builder.setInsertionPointToStart(&cast<TileLoopOp>(reader).getBody().front());
      Value again = arith::ExtFOp::create(builder, loc, wide, result);
      for (OpOperand *operand : operands)
        operand->set(again);
    }
  }
}

struct KeepHalves : triton_metal::impl::MSLKeepHalvesBase<KeepHalves> {
  void runOnOperation() override {
    getOperation().walk([](TileLoopOp loop) { keepHalves(loop); });
  }
};

} // namespace
