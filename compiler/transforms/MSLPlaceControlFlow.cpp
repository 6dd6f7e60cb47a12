// Loops and branches carry no tiles: what they carried lives in variables.

#include "transforms/MSLArrays.h"
#include "transforms/MSLPlaceTiles.h"
#include "transforms/MSLTiles.h"

using namespace mlir;
using namespace triton_metal::msl;

//===----------------------------------------------------------------------===//
// Assignments
//===----------------------------------------------------------------------===//

/// The variable that a tile is read from, under whatever order; null where it has none.
static Value getSource(Value tile) {
  while (auto permute = tile.getDefiningOp<PermuteRegistersOp>())
    tile = permute.getValue();
  auto read = tile.getDefiningOp<ReadTileOp>();
  return read ? Value(read.getArray()) : Value();
}

void TilePlacement::assign(ValueRange tiles, ArrayRef<Value> targets) {
  // Variables that change places are copied by one loop, which reads before it writes. Apple's
  // compiler has got loops wrong that copied each by a loop of its own (docs/apple-quirks.md, row
  // 6). What reads a variable that is written here in another order is put aside first.
  SmallVector<std::pair<Value, Value>> aside, last;
  SmallVector<std::pair<unsigned, Value>> kept;
  for (auto [tile, target] : llvm::zip_equal(tiles, targets)) {
    if (getVariable(tile) == target)
      continue;
    if (llvm::is_contained(targets, getSource(tile)) && !getVariable(tile)) {
      Value variable = VarOp::create(builder, tile.getLoc(), getArrayType(target));
      aside.push_back({tile, variable});
      kept.push_back({last.size(), variable});
    }
    last.push_back({tile, target});
  }
  copy(aside);
  SmallVector<ReadTileOp> reads;
  for (auto [index, variable] : kept) {
    auto &[tile, target] = last[index];
    reads.push_back(ReadTileOp::create(builder, target.getLoc(), tile.getType(), variable));
    tile = reads.back();
  }
  copy(last);
  for (ReadTileOp read : reads)
    read.erase();
}

void TilePlacement::passOn(Operation *terminator, MutableOperandRange operands,
                           ArrayRef<Value> targets) {
  SmallVector<Value> tiles;
  for (OpOperand &operand : operands)
    if (isTile(operand.get()))
      tiles.push_back(operand.get());
  builder.setInsertionPoint(terminator);
  assign(tiles, targets);
  for (int64_t index = int64_t(operands.size()) - 1; index >= 0; --index)
    if (isTile(operands[index].get()))
      operands.erase(index);
}

//===----------------------------------------------------------------------===//
// Operations with regions
//===----------------------------------------------------------------------===//

/// Replaces the results of `op` that are no tiles by those of `replacement`.
static void replaceNumbers(Operation *op, Operation *replacement) {
  unsigned number = 0;
  for (Value result : op->getResults())
    if (!isTile(result))
      result.replaceAllUsesWith(replacement->getResult(number++));
}

static SmallVector<Type> getNumberTypes(TypeRange types) {
  return llvm::filter_to_vector(types, [](Type type) { return !isTile(type); });
}

static void eraseTileArguments(Block &block) {
  block.eraseArguments([](BlockArgument argument) { return isTile(argument); });
}

void TilePlacement::visitFor(scf::ForOp loop) {
  SmallVector<Value> numbers, targets;
  SmallVector<unsigned> tiles;
  for (auto [index, init] : llvm::enumerate(loop.getInitArgs())) {
    if (!isTile(init)) {
      numbers.push_back(init);
      continue;
    }
    BlockArgument argument = loop.getRegionIterArg(index);
    Value variable = getVariable(init);
    auto isReadInside = [&](Operation *reader) { return loop->isProperAncestor(reader); };
    if (!variable || !isAsInProduct(variable, argument) || llvm::is_contained(targets, variable) ||
        llvm::count(loop->getOperands(), init) != 1 || !isDeadAfter(init, loop) ||
        llvm::any_of(getReaders(init), isReadInside)) {
      Location where = isa<NameLoc>(argument.getLoc()) ? argument.getLoc() : loop.getLoc();
      variable = createVariableOf(argument, where, kLargestChunk);
      copy(init, variable);
    }
    tiles.push_back(index);
    targets.push_back(variable);
    variables[argument] = variable;
  }
  builder.setInsertionPointToStart(loop.getBody());
  for (auto [index, variable] : llvm::zip_equal(tiles, targets)) {
    BlockArgument argument = loop.getRegionIterArg(index);
    place(argument, variable, argument.getLoc());
  }
  visitBlock(*loop.getBody());
  if (targets.empty())
    return;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  passOn(yield, yield.getResultsMutable(), targets);
  builder.setInsertionPoint(loop);
  auto placedLoop =
      scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                         loop.getStep(), numbers, nullptr, loop.getUnsignedCmp());
  placedLoop->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  placedLoop.getRegion().takeBody(loop.getRegion());
  eraseTileArguments(*placedLoop.getBody());
  replaceNumbers(loop, placedLoop);
  for (auto [index, variable] : llvm::zip_equal(tiles, targets))
    place(loop.getResult(index), variable, loop.getLoc());
  loop.erase();
}

void TilePlacement::visitIf(scf::IfOp op) {
  SmallVector<Value> targets;
  for (OpResult result : op.getResults()) {
    if (!isTile(result))
      continue;
    // All results share the operation's location; what is yielded has a name of its own.
    Location where = getTileLoc(op.thenYield().getOperand(result.getResultNumber()));
    targets.push_back(createVariableOf(result, where, kLargestChunk));
    variables[result] = targets.back();
  }
  for (Region &region : op->getRegions())
    if (!region.empty()) {
      visitBlock(region.front());
      auto yield = cast<scf::YieldOp>(region.front().getTerminator());
      passOn(yield, yield.getResultsMutable(), targets);
    }
  if (targets.empty())
    return;
  builder.setInsertionPoint(op);
  auto placedIf = scf::IfOp::create(builder, op.getLoc(), getNumberTypes(op.getResultTypes()),
                                    op.getCondition(), /*withElseRegion=*/true);
  placedIf.getThenRegion().takeBody(op.getThenRegion());
  placedIf.getElseRegion().takeBody(op.getElseRegion());
  replaceNumbers(op, placedIf);
  unsigned tile = 0;
  for (Value result : op.getResults())
    if (isTile(result))
      place(result, targets[tile++], op.getLoc());
  op.erase();
}

void TilePlacement::visitWhile(scf::WhileOp loop) {
  SmallVector<Value> numbers, before, after;
  for (auto [init, argument] : llvm::zip_equal(loop.getInits(), loop.getBeforeArguments())) {
    if (!isTile(init)) {
      numbers.push_back(init);
      continue;
    }
    before.push_back(createVariable(builder, argument.getLoc(), init.getType(), kLargestChunk));
    copy(init, before.back());
    variables[argument] = before.back();
  }
  scf::ConditionOp condition = loop.getConditionOp();
  for (Value value : condition.getArgs()) {
    if (!isTile(value))
      continue;
    // What the condition passes on unchanged stays where it is.
    Value variable = isa<BlockArgument>(value) && value.getParentBlock() == loop.getBeforeBody()
                         ? variables.lookup(value)
                         : Value();
    if (!variable || llvm::is_contained(after, variable))
      variable = createVariable(builder, loop.getLoc(), value.getType(), kLargestChunk);
    after.push_back(variable);
  }
  auto placeArguments = [&](Block &block, ArrayRef<Value> targets) {
    builder.setInsertionPointToStart(&block);
    unsigned tile = 0;
    for (BlockArgument argument : block.getArguments())
      if (isTile(argument))
        place(argument, targets[tile++], argument.getLoc());
    visitBlock(block);
  };
  placeArguments(*loop.getBeforeBody(), before);
  passOn(condition, condition.getArgsMutable(), after);
  placeArguments(*loop.getAfterBody(), after);
  passOn(loop.getYieldOp(), loop.getYieldOp().getResultsMutable(), before);
  if (before.empty() && after.empty())
    return;
  builder.setInsertionPoint(loop);
  auto placedLoop =
      scf::WhileOp::create(builder, loop.getLoc(), getNumberTypes(loop.getResultTypes()), numbers);
  placedLoop.getBefore().takeBody(loop.getBefore());
  placedLoop.getAfter().takeBody(loop.getAfter());
  eraseTileArguments(*placedLoop.getBeforeBody());
  eraseTileArguments(*placedLoop.getAfterBody());
  replaceNumbers(loop, placedLoop);
  unsigned tile = 0;
  for (Value result : loop.getResults())
    if (isTile(result))
      place(result, after[tile++], loop.getLoc());
  loop.erase();
}
