// Gives tiles their variables: see Passes.td.

#include "transforms/MSLPlaceTiles.h"

#include "transforms/MSLArrays.h"
#include "transforms/MSLMatrixTiles.h"
#include "transforms/MSLReductions.h"
#include "transforms/MSLRegisterLoops.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/MapVector.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLPLACETILES
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

TilePlacement::TilePlacement(KernelOp kernel)
    : kernel(kernel), builder(kernel.getContext()), matrices(findMatrixTiles(kernel)) {}

void TilePlacement::run() {
  visitBlock(kernel.getBody().front());
  for (ReadTileOp read : llvm::reverse(placed))
    if (read->use_empty())
      read.erase();
}

void TilePlacement::visitBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    builder.setInsertionPoint(&op);
    if (auto loop = dyn_cast<TileLoopOp>(op))
      visitTileLoop(loop);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      visitFor(loop);
    else if (auto conditional = dyn_cast<scf::IfOp>(op))
      visitIf(conditional);
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      visitWhile(loop);
    else if (auto reduce = dyn_cast<ReduceRegistersOp>(op))
      visitReduce(reduce);
    else if (auto mma = dyn_cast<MmaOp>(op))
      visitMma(mma);
    else if (isa<ChunkOp>(op))
      rereadOperands(&op);
  }
}

//===----------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------===//

Value TilePlacement::getVariable(Value tile) {
  auto read = tile.getDefiningOp<ReadTileOp>();
  return read ? Value(read.getArray()) : Value();
}

void TilePlacement::place(Value tile, Value variable, Location loc) {
  auto read = ReadTileOp::create(builder, loc, tile.getType(), variable);
  placed.push_back(read);
  tile.replaceAllUsesWith(read);
}

Value TilePlacement::reread(Value tile) {
  if (auto read = tile.getDefiningOp<ReadTileOp>()) {
    Value again = ReadTileOp::create(builder, read.getLoc(), read.getType(), read.getArray());
    rereads[again] = tile;
    return again;
  }
  auto permute = tile.getDefiningOp<PermuteRegistersOp>();
  if (!permute)
    return tile;
  Value source = reread(permute.getValue());
  if (source == permute.getValue())
    return tile;
  return PermuteRegistersOp::create(builder, permute.getLoc(), permute.getType(), source,
                                    permute.getBases(), permute.getOffset());
}

void TilePlacement::rereadOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (isTile(operand.get()))
      operand.set(reread(operand.get()));
}

void TilePlacement::copy(ArrayRef<std::pair<Value, Value>> tiles) {
  llvm::MapVector<int64_t, SmallVector<std::pair<Value, Value>>> bySize;
  for (auto [tile, variable] : tiles)
    // Nobody reads what is poison.
    if (getVariable(tile) != variable && !tile.getDefiningOp<ub::PoisonOp>())
      bySize[getNumRegisters(tile.getType())].push_back({tile, variable});
  for (auto &[registers, group] : bySize) {
    int64_t step = 1;
    for (auto [tile, variable] : group) {
      Value from = getVariable(tile);
      step = std::max({step, getWidth(variable), from ? getWidth(from) : 1});
    }
    auto loop = TileLoopOp::create(builder, group.front().first.getLoc(), TypeRange(), registers,
                                   builder.getI64IntegerAttr(std::min(step, registers)));
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&loop.getBody());
    SmallVector<Value> read;
    for (auto [tile, variable] : group)
      read.push_back(reread(tile));
    for (auto [value, copy] : llvm::zip_equal(read, group))
      WriteTileOp::create(builder, copy.first.getLoc(), value, copy.second);
    YieldOp::create(builder, loop.getLoc());
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Whether a step that has computed its registers may overwrite them in the variable that `read`
/// reads: no other step, and no other operation than those that take the same registers, reads it.
static bool mayOverwrite(TileLoopOp loop, ReadTileOp read) {
  for (Operation &op : loop.getBody().front()) {
    // Another read is one under another order; another write is another tile's.
    if (auto other = dyn_cast<ReadTileOp>(op); other && other != read)
      if (other.getArray() == read.getArray())
        return false;
    if (auto write = dyn_cast<WriteTileOp>(op); write && write.getArray() == read.getArray())
      return false;
  }
  return llvm::all_of(read->getUsers(), [](Operation *user) {
    return isElementwise(user) || isa<StoreOp, StoreAddressOp, ReduceRegistersOp>(user);
  });
}

bool TilePlacement::isAsInProduct(Value variable, Value tile) const {
  MatrixType matrix = getMatrices(tile);
  return getMatrixType(variable) == matrix &&
         (matrix || !isInProduct(tile) || getWidth(variable) == kLargestChunk);
}

Value TilePlacement::createVariableOf(Value tile, Location loc, int64_t width) {
  if (isInProduct(tile))
    return createProductVariable(tile, getMatrices(tile), loc);
  return createVariable(builder, loc, tile.getType(), width);
}

Value TilePlacement::createProductVariable(Value tile, MatrixType matrix, Location loc) {
  return matrix ? createVariable(builder, loc, tile.getType(), matrix)
                : createVariable(builder, loc, tile.getType(), kLargestChunk);
}

Value TilePlacement::chooseVariable(Value tile, Operation *op, TileLoopOp loop, int64_t width) {
  // The variable of the branch's result.
  Operation *parent = loop->getParentOp();
  OpOperand *yielded = nullptr;
  for (OpOperand &use : tile.getUses())
    if (isa<scf::YieldOp>(use.getOwner()) && use.getOwner()->getBlock() == loop->getBlock())
      yielded = &use;
  if (auto conditional = dyn_cast<scf::IfOp>(parent); conditional && yielded && tile.hasOneUse())
    if (Value variable = variables.lookup(conditional.getResult(yielded->getOperandNumber())))
      return variable;
  // The variable of an operand that nothing reads any more: a tile that a loop carries stays where
  // it is, and so do matrices.
  Value carried;
  if (auto outer = dyn_cast<scf::ForOp>(parent); outer && yielded)
    carried = variables.lookup(outer.getRegionIterArg(yielded->getOperandNumber()));
  if (isElementwiseOrShuffle(op) && (carried || isInProduct(tile)))
    for (Value operand : op->getOperands()) {
      Value variable = getVariable(operand);
      if (!variable || operand.getType() != tile.getType() || !isAsInProduct(variable, tile) ||
          (carried && carried != variable))
        continue;
      if (isDeadAfter(rereads.lookup(operand), loop) &&
          mayOverwrite(loop, operand.getDefiningOp<ReadTileOp>()))
        return variable;
    }
  return createVariableOf(tile, op->getLoc(), width);
}

void TilePlacement::visitTileLoop(TileLoopOp loop) {
  Block &body = loop.getBody().front();
  // One read of each tile, before the operations.
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&body);
    llvm::DenseMap<Value, Value> reads;
    for (Operation &op : llvm::make_early_inc_range(body))
      for (OpOperand &operand : op.getOpOperands()) {
        Value tile = operand.get();
        if (!isTile(tile) || tile.getParentBlock() == &body)
          continue;
        Value &read = reads[tile];
        if (!read)
          read = reread(tile);
        operand.set(read);
      }
  }
  SmallVector<Operation *> items = getItems(loop);
  int64_t registers = loop.getRegisters(), step = getStep(items, registers);
  for (Value result : loop.getResults())
    if (MatrixType matrix = getMatrices(result))
      step = std::max(step, matrix.getNumRegisters());
    else if (isInProduct(result))
      step = std::max(step, kLargestChunk);
  bool branches = !getFullConditions(loop).empty() || !getRunMasks(loop, step).empty();
  if (!branches)
    step = getGuardedStep(loop, step);
  loop.setStep(step);

  // What is read outside needs a variable, unless all registers are one chunk.
  bool isChunk = step == registers && registers <= kLargestChunk && !branches;
  Operation *yield = body.getTerminator();
  struct Written {
    Value result, variable;
    Location loc;
  };
  SmallVector<Written> written;
  SmallVector<Value> kept, keptResults;
  for (auto [value, result] : llvm::zip_equal(yield->getOperands(), loop.getResults())) {
    if (!isTile(result) || (isChunk && !isInProduct(result))) {
      kept.push_back(value);
      keptResults.push_back(result);
      continue;
    }
    Operation *op = value.getDefiningOp();
    Value variable = chooseVariable(result, op, loop, std::min(step, kLargestChunk));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(yield);
    WriteTileOp::create(builder, value.getLoc(), value, variable);
    written.push_back({result, variable, value.getLoc()});
  }
  if (written.empty())
    return;
  auto placedLoop = TileLoopOp::create(builder, loop.getLoc(), TypeRange(ValueRange(kept)),
                                       registers, loop.getStepAttr());
  yield->setOperands(kept);
  for (auto [index, result] : llvm::enumerate(keptResults))
    result.replaceAllUsesWith(placedLoop.getResult(index));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(loop);
  for (const Written &tile : written)
    place(tile.result, tile.variable, tile.loc);
  placedLoop.getBody().takeBody(loop.getBody());
  loop.erase();
}

//===----------------------------------------------------------------------===//
// Operations by themselves
//===----------------------------------------------------------------------===//

void TilePlacement::visitReduce(ReduceRegistersOp op) {
  rereadOperands(op);
  if (!isTile(op.getResult(0)))
    return;
  ReductionShape shape = ReductionShape::get(op);
  if (shape.isChunk)
    return;
  SmallVector<Value> results;
  for (Value result : op.getResults())
    results.push_back(createVariable(builder, op.getLoc(), result.getType(), shape.width));
  builder.setInsertionPointAfter(op);
  for (auto [result, variable] : llvm::zip_equal(op.getResults(), results)) {
    place(result, variable, op.getLoc());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(placed.back());
    WriteTileOp::create(builder, op.getLoc(), result, variable);
  }
}

Value TilePlacement::getFragments(Value tile, MatrixType matrix) {
  Value variable = getVariable(tile);
  if (variable && getMatrixType(variable) == matrix &&
      (matrix || getWidth(variable) == kLargestChunk))
    return variable;
  variable = createProductVariable(tile, matrix, tile.getLoc());
  copy(tile, variable);
  return variable;
}

void TilePlacement::visitMma(MmaOp op) {
  MatrixShape shape = op.getInstruction();
  const MatrixInstruction *instruction = MatrixInstruction::get(shape);
  bool isOfVectors = instruction && instruction->inRegisters;
  auto getMatrix = [&](FragmentShape fragment, Value tile) {
    return isOfVectors ? MatrixType()
                       : MatrixType::get(fragment, getElementTypeOrSelf(tile.getType()));
  };
  Value acc = op.getAcc(), product = getVariable(acc);
  MatrixType matrix = getMatrix(shape.getAccumulator(), op.getResult());
  if (!product || getMatrixType(product) != matrix ||
      (isOfVectors && getWidth(product) != kLargestChunk) || !isDeadAfter(acc, op) ||
      acc == op.getA() || acc == op.getB()) {
    product = createProductVariable(acc, matrix, op.getLoc());
    copy(acc, product);
  }
  auto getOperand = [&](Value operand, unsigned index) {
    return isa<PtrType>(operand.getType())
               ? operand
               : getFragments(operand, getMatrix(shape.getOperand(index), operand));
  };
  Value a = getOperand(op.getA(), 0), b = getOperand(op.getB(), 1);
  MatrixProductOp::create(builder, op.getLoc(), product, a, b, shape, op.getM(), op.getN(),
                          op.getK(), op.getAStride(), op.getBStride(), op.getATransposed(),
                          op.getBTransposed(), op.getRelaxed(), op.getBatches(), op.getBatch(),
                          op.getFirstBatch(), op.getABatchStride(), op.getBBatchStride());
  place(op.getResult(), product, op.getLoc());
  op.erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct PlaceTiles : triton_metal::impl::MSLPlaceTilesBase<PlaceTiles> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      TilePlacement(kernel).run();
      shareVariables(kernel);
    }
  }
};
} // namespace
