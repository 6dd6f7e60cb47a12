#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Budget.h"
#include "transforms/Erase.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMPIPELINE
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// A tile that each iteration of the loop stores once, with data that it loads.
struct Staged {
  AllocTileOp alloc;
  StoreTileOp store;
};

/// Gives the tiles of one loop two slots. The computation of what the next iteration stores has
/// three parts: addresses and masks; the loads; and operations on the loaded tensors.
class LoopPipeline {
public:
  explicit LoopPipeline(scf::ForOp loop) : loop(loop), body(loop.getBody()) {}

  /// Whether the loop can be pipelined; changes nothing.
  bool analyse();
  int64_t addedBytes() const;
  LogicalResult rewrite();

private:
  /// Collects everything in the body that a value is computed from. Returns false if it cannot be
  /// computed one iteration early.
  bool collect(Value value, SetVector<Operation *> &slice, bool loadsAllowed);
  /// The operations of `slice`, in the order of the body.
  SmallVector<Operation *> inOrder(const SetVector<Operation *> &slice);
  /// Creates the loads for the iteration that `mapping` describes, under a condition if there is
  /// one. The mapping gets the values that the stores need.
  void load(OpBuilder &builder, IRMapping &mapping, Value condition);
  bool isStaged(Operation *store) const {
    return llvm::any_of(staged, [&](const Staged &tile) { return tile.store == store; });
  }
  /// Creates the operations on the loaded tensors whose results are stored.
  void finish(OpBuilder &builder, IRMapping &mapping);

  scf::ForOp loop;
  Block *body;
  SmallVector<Staged> staged;
  /// The three parts of the computation of the stored tensors.
  SmallVector<Operation *> addresses, loads, rest;
  /// The operations that compute the carried values of the next iteration.
  SmallVector<Operation *> advance;
  /// The carried values that the three parts need.
  SetVector<unsigned> carried;
};

bool LoopPipeline::collect(Value value, SetVector<Operation *> &slice, bool loadsAllowed) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == body && argument.getArgNumber() > 0)
      carried.insert(argument.getArgNumber() - 1);
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != body)
    return true;
  if (slice.contains(op))
    return true;
  if (op->getNumRegions())
    return false;
  if (auto load = dyn_cast<tt::LoadOp>(op)) {
    if (!loadsAllowed || load.getIsVolatile())
      return false;
  } else if (!isPure(op) || isa<MMAOp>(op)) {
    return false;
  }
  for (Value operand : op->getOperands())
    if (!collect(operand, slice, loadsAllowed))
      return false;
  slice.insert(op);
  return true;
}

SmallVector<Operation *> LoopPipeline::inOrder(const SetVector<Operation *> &slice) {
  SmallVector<Operation *> result(slice.begin(), slice.end());
  llvm::sort(result, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return result;
}

bool LoopPipeline::analyse() {
  // Loads must not move across writes to device memory, barriers, or unknown operations.
  WalkResult result = body->walk([&](Operation *op) {
    bool known = isa<tt::LoadOp, AllocTileOp, StoreTileOp, LoadTileOp, MMAOp>(op) ||
                 op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op);
    return known ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return false;

  SetVector<Operation *> slice;
  for (Operation &op : *body) {
    auto store = dyn_cast<StoreTileOp>(op);
    if (!store)
      continue;
    auto alloc = store.getTile().getDefiningOp<AllocTileOp>();
    // A tile for slices of K is stored more than once, and a tile outside of the loop stays as it
    // is.
    if (!alloc || alloc->getBlock() != body || store.getOffsets())
      continue;
    bool simple = llvm::all_of(alloc->getUsers(), [&](Operation *user) {
      return user == store ||
             (isa<MMAOp>(user) && user->getBlock() == body && store->isBeforeInBlock(user));
    });
    SetVector<Operation *> own;
    if (!simple || !collect(store.getSrc(), own, /*loadsAllowed=*/true) ||
        llvm::none_of(own, llvm::IsaPred<tt::LoadOp>))
      continue;
    staged.push_back({alloc, store});
    slice.insert(own.begin(), own.end());
  }
  if (staged.empty())
    return false;

  // The carried values of the next iteration must be available before the products of this one.
  SetVector<Operation *> next;
  Operation *yield = body->getTerminator();
  for (unsigned index = 0; index < carried.size(); ++index)
    if (!collect(yield->getOperand(carried[index]), next, /*loadsAllowed=*/false))
      return false;
  advance = inOrder(next);

  DenseSet<Operation *> afterLoad;
  for (Operation *op : inOrder(slice)) {
    bool fromLoad = llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && afterLoad.contains(operand.getDefiningOp());
    });
    bool isLoad = isa<tt::LoadOp>(op);
    // The address of such a load is only known after another load.
    if (isLoad && fromLoad)
      return false;
    // Loaded tensors, and everything computed from them, belong to the next iteration. Nothing else
    // in this iteration may use them, not even in a region of the body.
    if ((isLoad || fromLoad) && llvm::any_of(op->getUsers(), [&](Operation *user) {
          return !slice.contains(user) && !isStaged(user);
        }))
      return false;
    if (isLoad) {
      loads.push_back(op);
      afterLoad.insert(op);
    } else if (fromLoad) {
      rest.push_back(op);
      afterLoad.insert(op);
    } else {
      addresses.push_back(op);
    }
  }
  return true;
}

int64_t LoopPipeline::addedBytes() const {
  int64_t bytes = 0;
  for (const Staged &tile : staged)
    bytes += AllocTileOp(tile.alloc).getTile().getType().getBytes();
  return bytes;
}

void LoopPipeline::load(OpBuilder &builder, IRMapping &mapping, Value condition) {
  for (Operation *op : addresses)
    builder.clone(*op, mapping);
  if (!condition) {
    for (Operation *op : loads)
      builder.clone(*op, mapping);
    return;
  }
  SmallVector<Type> types =
      llvm::map_to_vector(loads, [](Operation *op) { return op->getResult(0).getType(); });
  auto ifOp = scf::IfOp::create(builder, loads.front()->getLoc(), types, condition,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  SmallVector<Value> loaded, none;
  for (Operation *op : loads)
    loaded.push_back(builder.clone(*op, mapping)->getResult(0));
  scf::YieldOp::create(builder, loop.getLoc(), loaded);
  // The last iteration loads nothing for a next one, and nothing reads the result.
  builder.setInsertionPointToStart(ifOp.elseBlock());
  for (Type type : types)
    none.push_back(ub::PoisonOp::create(builder, loop.getLoc(), type));
  scf::YieldOp::create(builder, loop.getLoc(), none);
  for (auto [op, result] : llvm::zip(loads, ifOp.getResults()))
    mapping.map(op->getResult(0), result);
}

void LoopPipeline::finish(OpBuilder &builder, IRMapping &mapping) {
  for (Operation *op : rest)
    builder.clone(*op, mapping);
}

/// Whether the index plus the step may pass the largest number of its type. Only constants can
/// exclude that.
static bool mayWrap(scf::ForOp loop) {
  APInt upper, step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return true;
  if (step.isOne())
    return false;
  bool overflow = true;
  if (matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)))
    (void)(loop.getUnsignedCmp() ? upper.uadd_ov(step, overflow) : upper.sadd_ov(step, overflow));
  return overflow;
}

LogicalResult LoopPipeline::rewrite() {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value zero = constant(0);

  // The tiles move before the loop and get two slots.
  for (Staged &tile : staged) {
    TileType type = tile.alloc.getTile().getType();
    tile.alloc->moveBefore(loop);
    tile.alloc.getTile().setType(TileType::get(type.getContext(), type.getShape(),
                                               type.getElementType(), type.getRowPad(), 2));
  }

  // The tiles of the first iteration, if there is one.
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  APInt lower, upper;
  Value any;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) || !lower.slt(upper))
    any =
        arith::CmpIOp::create(builder, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
  {
    OpBuilder::InsertionGuard guard(builder);
    if (any) {
      auto ifOp = scf::IfOp::create(builder, loc, any, /*withElseRegion=*/false);
      builder.setInsertionPointToStart(ifOp.thenBlock());
    }
    load(builder, first, Value());
    finish(builder, first);
    for (Staged &tile : staged)
      StoreTileOp::create(builder, tile.store.getLoc(), first.lookup(tile.store.getSrc()),
                          tile.alloc, zero, DenseI64ArrayAttr());
  }

  // The loop carries the number of the slot.
  SmallVector<Value> inits(loop.getInitArgs());
  inits.push_back(zero);
  auto pipelined = scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(),
                                      loop.getStep(), inits, nullptr, loop.getUnsignedCmp());
  pipelined->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *block = pipelined.getBody();
  Value slot = block->getArguments().back();
  slot.setLoc(NameLoc::get(builder.getStringAttr("slot"), loc));
  for (auto [from, to] : llvm::zip(body->getArguments(), block->getArguments()))
    to.setLoc(from.getLoc());
  if (!block->empty())
    block->back().erase();
  builder.setInsertionPointToStart(block);

  // The loads of the next iteration. Their addresses use the carried values that this iteration
  // passes on.
  IRMapping current, next;
  current.map(body->getArguments(), block->getArguments().drop_back());
  next.map(body->getArguments(), block->getArguments().drop_back());
  for (Operation *op : advance)
    builder.clone(*op, next);
  auto named = [&](StringRef name) -> Location {
    return NameLoc::get(builder.getStringAttr(name), loc);
  };
  Value index = pipelined.getInductionVar(), step = pipelined.getStep();
  Value nextIndex = arith::AddIOp::create(builder, named("next"), index, step);
  // The index is below the upper bound here, so the difference is a valid unsigned number. The next
  // index itself may wrap around.
  Value more;
  if (mayWrap(loop)) {
    Value left = arith::SubIOp::create(builder, named("left"), pipelined.getUpperBound(), index);
    more = arith::CmpIOp::create(builder, named("more"), arith::CmpIPredicate::ugt, left, step);
  } else {
    more = arith::CmpIOp::create(builder, named("more"), predicate, nextIndex,
                                 pipelined.getUpperBound());
  }
  IRMapping ahead;
  ahead.map(loop.getInductionVar(), nextIndex);
  for (unsigned index : carried)
    ahead.map(loop.getRegionIterArg(index),
              next.lookupOrDefault(body->getTerminator()->getOperand(index)));
  load(builder, ahead, more);

  // The rest of this iteration reads its slot.
  DenseSet<Operation *> gone;
  for (Staged &tile : staged)
    gone.insert(tile.store);
  gone.insert(loads.begin(), loads.end());
  gone.insert(rest.begin(), rest.end());
  for (Operation &op : body->without_terminator()) {
    if (gone.contains(&op))
      continue;
    Operation *copy = builder.clone(op, current);
    if (auto mma = dyn_cast<MMAOp>(copy))
      for (Staged &tile : staged) {
        if (mma.getA() == tile.alloc.getTile())
          mma.getASlotMutable().assign(slot);
        if (mma.getB() == tile.alloc.getTile())
          mma.getBSlotMutable().assign(slot);
      }
  }

  // The loaded tensors are stored to the other slot.
  Value other = NextSlotOp::create(builder, named("next_slot"), builder.getI32Type(), slot,
                                   builder.getI32IntegerAttr(2));
  auto ifOp = scf::IfOp::create(builder, loc, more, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(ifOp.thenBlock());
    finish(builder, ahead);
    for (Staged &tile : staged)
      StoreTileOp::create(builder, tile.store.getLoc(), ahead.lookup(tile.store.getSrc()),
                          tile.alloc, other, DenseI64ArrayAttr());
  }
  SmallVector<Value> yielded;
  for (Value operand : body->getTerminator()->getOperands())
    yielded.push_back(current.lookupOrDefault(operand));
  yielded.push_back(other);
  scf::YieldOp::create(builder, loc, yielded);
  loop->replaceAllUsesWith(pipelined.getResults().drop_back());
  return eraseUnread(loop);
}

struct TTMPipelinePass : impl::TTMPipelineBase<TTMPipelinePass> {
  using Base::Base;

  void runOnOperation() override {
    // An option stays as it is: the pass runs again, for another kernel.
    int64_t most = numStages;
    if (!most)
      if (auto chosen =
              getOperation()->getAttrOfType<IntegerAttr>(TTMDialect::getNumStagesAttrName()))
        most = chosen.getInt();
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      int64_t bytes = 0;
      SmallVector<scf::ForOp> loops;
      func.walk([&](Operation *op) {
        if (auto alloc = dyn_cast<AllocTileOp>(op))
          bytes += alloc.getTile().getType().getBytes();
        if (auto loop = dyn_cast<scf::ForOp>(op))
          loops.push_back(loop);
      });
      for (scf::ForOp loop : loops) {
        int64_t stages = most;
        if (auto attr = loop->getAttrOfType<IntegerAttr>("tt.num_stages"); attr && obeyLoops)
          stages = attr.getInt();
        LoopPipeline pipeline(loop);
        if (stages < 2 || !pipeline.analyse() ||
            bytes + pipeline.addedBytes() > Budget::of(func).getPipelinedBytes())
          continue;
        bytes += pipeline.addedBytes();
        if (failed(pipeline.rewrite()))
          return signalPassFailure();
        getOperation()->setAttr(TTMDialect::getPipelineStagesAttrName(),
                                Builder(&getContext()).getI32IntegerAttr(2));
      }
    }
  }
};

} // namespace
} // namespace triton_metal
