// Turns reductions over registers into accumulators and loops: see Passes.td.

#include "transforms/MSLArrays.h"
#include "transforms/MSLReductions.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLLOWERREDUCTIONS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

//===----------------------------------------------------------------------===//
// Reductions that share a loop
//===----------------------------------------------------------------------===//

/// A variable of one chunk that starts with the neutral element.
static Value createAccumulator(OpBuilder &builder, ReduceRegistersOp op, int64_t width) {
  Type type = getChunkType(op.getOperand(0).getType(), width);
  Value variable = createVariable(builder, op.getLoc(), type, width);
  TypedAttr neutral = getNeutralElement(op);
  if (width > 1)
    neutral = DenseElementsAttr::get(cast<ShapedType>(type), Attribute(neutral));
  writeWhole(builder, op.getLoc(), variable,
             arith::ConstantOp::create(builder, op.getLoc(), neutral));
  return variable;
}

/// Takes the reductions out of a loop. The loop accumulates chunks, and their components are
/// combined after it. A loop of one step needs no accumulator.
static void lowerReductions(TileLoopOp loop) {
  int64_t registers = loop.getRegisters(), step = *loop.getStep();
  bool isChunk = step == registers && registers <= kLargestChunk &&
                 getFullConditions(loop).empty() && getRunMasks(loop, step).empty();
  int64_t width = std::min(step, kLargestChunk);
  Operation *yield = loop.getBody().front().getTerminator();
  OpBuilder builder(loop);

  // The chunk that remains of each reduction after the loop: in a variable, or among the results of
  // the loop.
  struct Reduction {
    Value result, accumulator;
    ReduceRegistersOp op;
    unsigned index = 0;
  };
  SmallVector<Reduction> reductions;
  SmallVector<Value> kept, results(loop.getResults());
  for (auto [value, result] : llvm::zip_equal(yield->getOperands(), results)) {
    if (auto op = value.getDefiningOp<ReduceRegistersOp>()) {
      Reduction reduction{result, Value(), op, unsigned(kept.size())};
      if (isChunk)
        kept.push_back(op.getOperand(0));
      else
        reduction.accumulator = createAccumulator(builder, op, width);
      reductions.push_back(reduction);
    } else {
      kept.push_back(value);
    }
  }
  auto lowered = TileLoopOp::create(builder, loop.getLoc(), TypeRange(ValueRange(kept)),
                                    loop.getRegistersAttr(), loop.getStepAttr());
  yield->setOperands(kept);
  unsigned index = 0;
  for (Value result : results) {
    bool isReduction = llvm::any_of(
        reductions, [&](const Reduction &reduction) { return reduction.result == result; });
    if (!isReduction)
      result.replaceAllUsesWith(lowered.getResult(index++));
    else if (isChunk)
      ++index;
  }
  lowered.getBody().takeBody(loop.getBody());
  for (Reduction &reduction : reductions) {
    ReduceRegistersOp op = reduction.op;
    Block &combination = op.getCombine().front();
    Value chunk = isChunk
                      ? createChunk(builder, lowered.getResult(reduction.index), Coord(), registers)
                      : readWhole(builder, op.getLoc(), reduction.accumulator);
    chunk = combineComponents(builder, op.getLoc(), combination, {chunk}, width - 1)[0];
    reduction.result.replaceAllUsesWith(chunk);
    if (reduction.accumulator) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(op);
      auto accumulate =
          AccumulateOp::create(builder, op.getLoc(), op.getOperand(0), reduction.accumulator);
      accumulate.getCombine().takeBody(op.getCombine());
    }
    op.erase();
  }
  loop.erase();
}

//===----------------------------------------------------------------------===//
// Reductions that have loops of their own
//===----------------------------------------------------------------------===//

namespace {

class ReductionLowering {
public:
  explicit ReductionLowering(ReduceRegistersOp op)
      : op(op), loc(op.getLoc()), combination(op.getCombine().front()), builder(op),
        shape(ReductionShape::get(op)) {
    for (Value result : op.getResults())
      writes.push_back(getOwnWrite(result));
  }

  void run() {
    if (shape.nest.writtenOut)
      writeOut();
    else
      createLoopNest(builder, loc, shape.nest, shape.registers, shape.step,
                     [&](const Coord &at) { accumulate(at); });
    for (WriteTileOp write : writes)
      if (write)
        write.erase();
    op.erase();
  }

private:
  /// The write for which `msl-place-tiles` has made a variable of the result's own. A chunk has
  /// none: where it is written to, as what a loop carries, it stays a value until then.
  WriteTileOp getOwnWrite(Value result) {
    if (shape.isChunk)
      return {};
    for (Operation *user : result.getUsers())
      if (auto write = dyn_cast<WriteTileOp>(user))
        return write;
    return {};
  }

  SmallVector<Value> getChunks(const Coord &at) {
    SmallVector<Value> chunks;
    for (Value operand : op.getOperands())
      chunks.push_back(createChunk(builder, operand, at, shape.step));
    return chunks;
  }

  void finish(SmallVector<Value> chunks, const Coord &at) {
    chunks = combineComponents(builder, loc, combination, chunks, shape.inside);
    for (auto [result, write, chunk] : llvm::zip_equal(op.getResults(), writes, chunks)) {
      if (write)
        writeArray(builder, loc, write.getArray(), shape.compress(at), shape.width, chunk);
      else
        result.replaceAllUsesWith(isTile(chunk) ? AsTileOp::create(builder, loc, chunk).getResult()
                                                : chunk);
    }
  }

  /// Writes out the steps, register by register, in order.
  void writeOut() {
    for (int64_t first = 0; first < shape.registers; first += shape.step) {
      if (first & shape.bits & ~(shape.step - 1))
        continue;
      Coord at = Coord().plus(first);
      SmallVector<Value> chunks = getChunks(at);
      for (int64_t k = 1; k < shape.trip; ++k)
        chunks = combine(builder, loc, combination, chunks, getChunks(at.plus(k << shape.loopLow)));
      finish(chunks, at);
    }
  }

  /// Combines the registers that reduce to those at `at`.
  void accumulate(const Coord &at) {
    // The outermost loop takes all registers alike, so that it can be one with that which leaves
    // them (msl-fuse-loops).
    bool fromNeutral = shape.trip > 1 && shape.nest.dims.empty() && getNeutralElement(op);
    SmallVector<Value> chunks;
    if (!fromNeutral)
      chunks = getChunks(at);
    if (shape.trip > 1) {
      SmallVector<Value> accumulators;
      if (fromNeutral)
        accumulators.push_back(createAccumulator(builder, op, shape.step));
      for (Value chunk : chunks) {
        accumulators.push_back(createVariable(builder, loc, chunk.getType(), shape.step));
        writeWhole(builder, loc, accumulators.back(), chunk);
      }
      auto readAll = [&] {
        return llvm::map_to_vector(
            accumulators, [&](Value variable) { return readWhole(builder, loc, variable); });
      };
      auto loop = UnrollOp::create(builder, loc, fromNeutral ? 0 : 1, shape.trip);
      {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(loop.getBody().front().getTerminator());
        SmallVector<Value> next =
            getChunks(at.plus(loop.getIndex(), int64_t(1) << shape.loopLow, shape.trip));
        next = combine(builder, loc, combination, readAll(), next);
        for (auto [variable, value] : llvm::zip_equal(accumulators, next))
          writeWhole(builder, loc, variable, value);
      }
      chunks = readAll();
    }
    finish(chunks, at);
  }

  ReduceRegistersOp op;
  Location loc;
  Block &combination;
  OpBuilder builder;
  ReductionShape shape;
  /// The writes of the results to their variables; null for a chunk.
  SmallVector<WriteTileOp> writes;
};

struct LowerReductions : triton_metal::impl::MSLLowerReductionsBase<LowerReductions> {
  void runOnOperation() override {
    SmallVector<TileLoopOp> loops;
    SmallVector<ReduceRegistersOp> reductions;
    getOperation().walk([&](ReduceRegistersOp op) {
      if (op.use_empty())
        return op.erase();
      auto loop = dyn_cast<TileLoopOp>(op->getParentOp());
      if (!loop)
        reductions.push_back(op);
      else if (loops.empty() || loops.back() != loop)
        loops.push_back(loop);
    });
    llvm::for_each(loops, lowerReductions);
    for (ReduceRegistersOp op : reductions)
      ReductionLowering(op).run();
  }
};

} // namespace
