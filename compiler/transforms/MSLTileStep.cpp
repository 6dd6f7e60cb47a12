#include "transforms/MSLTileStep.h"

#include "transforms/MSLArrays.h"
#include "transforms/MSLReductions.h"
#include "transforms/MSLTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace triton_metal::msl;

int64_t TileStep::getChunkWidth() const { return std::min(step, kLargestChunk); }

Value TileStep::get(Value value, const StepPart &part, int64_t width) {
  auto it = computed.find(value);
  if (it == computed.end()) {
    if (!isTile(value))
      return value;
    Coord from = at.plus(part.part);
    return createChunk(builder, value, part.index ? from.plus(part.index, 1, part.trip) : from,
                       width);
  }
  int64_t chunkWidth = getChunkWidth();
  Value chunk = it->second[part.part / chunkWidth];
  if (part.index)
    return ElementOp::create(builder, value.getLoc(), getElementTypeOrSelf(value.getType()), chunk,
                             part.index);
  return createSwizzle(builder, value.getLoc(), chunk, part.part % chunkWidth, width);
}

void TileStep::read(Value tile) {
  if (!isTile(tile) || computed.contains(tile))
    return;
  SmallVector<Value, 1> chunks;
  int64_t width = getChunkWidth();
  for (int64_t part = 0; part < step; part += width)
    chunks.push_back(get(tile, part, width));
  computed[tile] = std::move(chunks);
}

void TileStep::lower(Operation *op) {
  if (isa<LoadOp, LoadAddressOp>(op))
    return lowerLoad(op);
  if (isa<StoreOp, StoreAddressOp>(op))
    return lowerStore(op);
  if (isa<AtomicRMWOp, AtomicCASOp>(op))
    return lowerAtomic(op);
  if (auto write = dyn_cast<WriteTileOp>(op))
    return lowerWrite(write);
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return lowerAccumulate(accumulate);
  lowerElementwise(op);
}

void TileStep::lowerElementwise(Operation *op) {
  int64_t width = getChunkWidth();
  SmallVector<Value, 1> chunks;
  auto select = dyn_cast<arith::SelectOp>(op);
  std::optional<bool> choice = select ? getKnown(select.getCondition()) : std::nullopt;
  if (!guarded && certain && certain->contains(op))
    choice = true;
  if (choice) {
    Value chosen = *choice ? select.getTrueValue() : select.getFalseValue();
    for (int64_t part = 0; part < step; part += width)
      chunks.push_back(get(chosen, part, width));
    computed[op->getResult(0)] = std::move(chunks);
    return;
  }
  for (int64_t part = 0; part < step; part += width) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, get(operand, part, width));
    Operation *chunk = builder.clone(*op, mapping);
    chunk->getResult(0).setType(getChunkType(op->getResult(0).getType(), width));
    chunks.push_back(chunk->getResult(0));
  }
  computed[op->getResult(0)] = std::move(chunks);
}

void TileStep::lowerWrite(WriteTileOp op) {
  Value variable = op.getArray();
  Location loc = op.getLoc();
  if (MatrixType matrix = getMatrixType(variable))
    if (Value number = getNumber(builder, loc, op.getValue())) {
      for (int64_t part = 0; part < step; part += matrix.getNumRegisters())
        FillOp::create(builder, loc, number, variable,
                       createElementIndex(builder, loc, variable, at.plus(part)));
      return;
    }
  int64_t width = getChunkWidth();
  for (int64_t part = 0; part < step; part += width)
    writeArray(builder, loc, variable, at.plus(part), width, get(op.getValue(), part, width));
}

void TileStep::lowerAccumulate(AccumulateOp op) {
  // The accumulator has one vector, whatever the register.
  Value variable = op.getArray();
  Location loc = op.getLoc();
  int64_t width = std::min(getWidth(variable), step);
  for (int64_t part = 0; part < step; part += width) {
    Coord component = getComponentCoord(builder, at.plus(part), getWidth(variable));
    Value chunk = get(op.getValue(), part, width);
    Value old = readArray(builder, loc, variable, component, width);
    Value sum = combine(builder, loc, op.getCombine().front(), {old}, {chunk})[0];
    writeArray(builder, loc, variable, component, width, sum);
  }
}
