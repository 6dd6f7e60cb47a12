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

/// The registers of a tile, in float32, from which on it counts: an operand of halves costs a GPU
/// nothing, but a text with few of them had better say once what they are.
constexpr int64_t kLeastRegisters = 8;

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
  // Another order of the registers, as of a row that all rows of a tile read, is made of halves,
  // too.
  SmallVector<Operation *> users(loop.getResult(index).getUsers());
  for (unsigned i = 0; i != users.size(); ++i) {
    if (isa<PermuteRegistersOp>(users[i]) && !getTileLoop(users[i])) {
      llvm::append_range(users, users[i]->getUsers());
      continue;
    }
    TileLoopOp reader = getTileLoop(users[i]);
    if (!reader || isa<YieldOp>(users[i]) || !runsNoMoreOften(reader, loop) || leavesFloats(reader))
      return nullptr;
  }
  return widened.getIn();
}

/// Makes halves of a tile in float32, and widens them in the loops that read it.
static void narrow(Value tile, Type halves) {
  Type wide = tile.getType();
  Location loc = getTileLoc(tile);
  llvm::SmallMapVector<Operation *, SmallVector<OpOperand *>, 4> uses;
  SmallVector<PermuteRegistersOp> orders;
  for (OpOperand &use : tile.getUses())
    if (TileLoopOp reader = getTileLoop(use.getOwner()))
      uses[reader].push_back(&use);
    else
      orders.push_back(cast<PermuteRegistersOp>(use.getOwner()));
  tile.setType(halves);
  for (auto &[reader, operands] : uses) {
    auto builder = OpBuilder::atBlockBegin(&cast<TileLoopOp>(reader).getBody().front());
    Value again = arith::ExtFOp::create(builder, loc, wide, tile);
    for (OpOperand *operand : operands)
      operand->set(again);
  }
  for (PermuteRegistersOp order : orders)
    narrow(order.getResult(),
           cast<ShapedType>(order.getType()).clone(getElementTypeOrSelf(halves)));
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
  for (unsigned i : changed)
    narrow(loop.getResult(i), yielded[i].getType());
}

struct KeepHalves : triton_metal::impl::MSLKeepHalvesBase<KeepHalves> {
  void runOnOperation() override {
    getOperation().walk([](TileLoopOp loop) { keepHalves(loop); });
  }
};

} // namespace
