// Loops over registers: see Passes.td.

#include "transforms/Erase.h"
#include "transforms/MSLArrays.h"
#include "transforms/MSLRegisterLoops.h"
#include "transforms/MSLTileStep.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLFORMLOOPS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

/// The conjunction of uniform conditions, each once.
static Value createConjunction(OpBuilder &builder, Location loc, ArrayRef<Value> conditions) {
  SmallVector<Value> work(llvm::reverse(conditions));
  llvm::SetVector<Value> terms;
  while (!work.empty()) {
    Value condition = work.pop_back_val();
    if (auto both = condition.getDefiningOp<arith::AndIOp>())
      work.append({both.getRhs(), both.getLhs()});
    else
      terms.insert(condition);
  }
  Value all;
  for (Value term : terms)
    all = all ? arith::AndIOp::create(builder, loc, all, term).getResult() : term;
  return all;
}

namespace {

/// Gives accesses the condition under which their mask is true for the whole tile, if another one
/// of the loop has it: the loop has a body without masks for that one, and vectors, which did not
/// ask for a test of their own, need none in it.
void shareConditions(TileLoopOp loop) {
  llvm::DenseMap<Value, Value> conditions;
  for (Operation &op : loop.getBody().front())
    if (std::optional<Access> access = Access::get(&op); access && access->mask && access->full)
      conditions.try_emplace(access->mask, access->full);
  for (Operation &op : loop.getBody().front()) {
    std::optional<Access> access = Access::get(&op);
    if (!access || !access->mask || access->full)
      continue;
    Value condition = conditions.lookup(access->mask);
    if (!condition)
      continue;
    if (auto load = dyn_cast<LoadOp>(op))
      load.getFullMutable().assign(condition);
    else if (auto store = dyn_cast<StoreOp>(op))
      store.getFullMutable().assign(condition);
  }
}

/// The uniform conditions of one tile loop, and its choices whose mask is true under them; the
/// masks that each step tests as a whole.
struct Certainty {
  SmallVector<Value> conditions, masks;
  llvm::DenseSet<Operation *> choices;

  explicit Certainty(TileLoopOp loop)
      : conditions(getFullConditions(loop)), masks(getRunMasks(loop, *loop.getStep())) {
    for (auto select : loop.getBody().front().getOps<arith::SelectOp>())
      if (getFullCondition(select, loop))
        choices.insert(select);
  }
};

/// Writes the loops of one tile loop.
class TileLoopLowering {
public:
  TileLoopLowering(TileLoopOp loop, const Certainty &certainty)
      : loop(loop), builder(loop), registers(loop.getRegisters()), items(getItems(loop)),
        conditions(certainty.conditions), masks(certainty.masks), certain(certainty.choices),
        groups(masks.empty() ? SmallVector<ItemGroup>() : getItemGroups(items, masks)) {
    for (Operation &op : llvm::make_early_inc_range(loop.getBody().front())) {
      if (auto read = dyn_cast<ReadTileOp>(op)) {
        if (getNumRegisters(read.getType()) == registers)
          variables.push_back(read.getArray());
      } else if (auto write = dyn_cast<WriteTileOp>(op)) {
        variables.push_back(write.getArray());
      } else if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
        variables.push_back(accumulate.getArray());
      }
    }
    for (Operation *item : items)
      llvm::append_range(roots, item->getOperands());
  }

  void run() {
    // Reads of variables move before the loop. The chunks of their results are read where they are
    // needed.
    for (Operation &op : llvm::make_early_inc_range(loop.getBody().front()))
      if (isa<ReadTileOp, PermuteRegistersOp>(op))
        op.moveBefore(loop);
    int64_t step = *loop.getStep();
    if (step == registers && registers <= kLargestChunk && conditions.empty() && masks.empty() &&
        !getWholeMask(loop, step))
      return createChunk();
    if (conditions.empty())
      return createLoops(step, /*guarded=*/true);
    Location loc = loop.getLoc();
    auto conditional = scf::IfOp::create(builder, loc, createConjunction(builder, loc, conditions),
                                         /*withElseRegion=*/true);
    builder.setInsertionPoint(conditional.thenBlock()->getTerminator());
    createLoops(step, /*guarded=*/false);
    builder.setInsertionPoint(conditional.elseBlock()->getTerminator());
    createLoops(masks.empty() ? getGuardedStep(loop, step) : step, /*guarded=*/true);
  }

private:
  /// One chunk needs no loop.
  void createChunk() {
    TileStep body(builder, Coord(), registers, /*guarded=*/true, /*writtenOut=*/false);
    lowerItems(body, items);
    Operation *yield = loop.getBody().front().getTerminator();
    for (auto [result, value] : llvm::zip_equal(loop.getResults(), yield->getOperands()))
      if (!result.use_empty())
        result.replaceAllUsesWith(
            AsTileOp::create(builder, value.getLoc(), body.get(value, 0, registers)));
  }

  void createLoops(int64_t step, bool guarded) {
    // If a step takes fewer registers than the variables' vectors have, a loop ends at the size of
    // a vector, and another one goes over its components.
    SmallVector<int64_t> breaks;
    for (Value variable : variables)
      if (getWidth(variable) > step)
        breaks.push_back(llvm::Log2_64(getWidth(variable)));
    LoopNest nest = getLoopNest(roots, registers, step, breaks);
    Value whole = guarded && masks.empty() ? getWholeMask(loop, step) : Value();
    createLoopNest(builder, loop.getLoc(), nest, registers, step,
                   [&](const Coord &at) { createStep(at, step, guarded, nest.writtenOut, whole); });
  }

  /// One step. Where masks are tested, accesses that have nothing to do with each other are tested
  /// one after the other, so that one at the end of its row leaves the other one whole vectors.
  /// A step does nothing where `whole`, a mask that its registers have in common, is false.
  void createStep(const Coord &at, int64_t step, bool guarded, bool writtenOut, Value whole) {
    if (!guarded || masks.empty()) {
      TileStep body(builder, at, step, guarded, writtenOut, &certain);
      if (!whole)
        return lowerItems(body, items);
      OpBuilder::InsertionGuard guard(builder);
      auto conditional = scf::IfOp::create(builder, loop.getLoc(),
                                           triton_metal::msl::createChunk(builder, whole, at, 1),
                                           /*withElseRegion=*/false);
      builder.setInsertionPointToStart(conditional.thenBlock());
      body.assume(whole, true);
      return lowerItems(body, items);
    }
    for (const ItemGroup &group : groups)
      createGuardedStep(group, at, step, writtenOut);
  }

  /// A step for registers that are all inside, one for those at the end of a row, and one for those
  /// behind it.
  void createGuardedStep(const ItemGroup &group, const Coord &at, int64_t step, bool writtenOut) {
    auto create = [&](std::optional<bool> value) {
      TileStep body(builder, at, step, /*guarded=*/true, writtenOut, &certain);
      if (value)
        body.assume(group.masks, *value);
      lowerItems(body, group.items);
    };
    // All lanes must come to an exchange, and a mask differs between them.
    if (group.masks.empty() || llvm::any_of(group.items, crossesLanes))
      return create(std::nullopt);
    Location loc = loop.getLoc();
    auto test = [&](int64_t part) {
      Value all;
      for (Value mask : group.masks) {
        Value one = triton_metal::msl::createChunk(builder, mask, at.plus(part), 1);
        all = all ? arith::AndIOp::create(builder, loc, all, one).getResult() : one;
      }
      return all;
    };
    auto branch = [&](Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
      auto conditional = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(conditional.thenBlock()->getTerminator());
      then();
      builder.setInsertionPoint(conditional.elseBlock()->getTerminator());
      otherwise();
    };
    branch(
        test(step - 1), [&] { create(true); },
        [&] {
          // Of several masks, one may be false and another one not.
          if (group.masks.size() > 1)
            return create(std::nullopt);
          branch(test(0), [&] { create(std::nullopt); }, [&] { create(false); });
        });
  }

  /// Variables may change places: a step reads all of them before it writes the first one.
  void lowerItems(TileStep &body, ArrayRef<Operation *> items) {
    if (llvm::count_if(items, llvm::IsaPred<WriteTileOp>) > 1 &&
        llvm::all_of(items, llvm::IsaPred<WriteTileOp>))
      for (Operation *item : items)
        body.read(cast<WriteTileOp>(item).getValue());
    for (Operation *item : items)
      body.lower(item);
  }

  TileLoopOp loop;
  OpBuilder builder;
  int64_t registers;
  SmallVector<Operation *> items;
  SmallVector<Value> roots, variables;
  ArrayRef<Value> conditions, masks;
  const llvm::DenseSet<Operation *> &certain;
  /// What a step with masks tests one after the other.
  SmallVector<ItemGroup> groups;
};

struct FormLoops : triton_metal::impl::MSLFormLoopsBase<FormLoops> {
  void runOnOperation() override {
    SmallVector<TileLoopOp> loops;
    SmallVector<Operation *> numbers, atomics;
    getOperation().walk([&](Operation *op) {
      if (auto loop = dyn_cast<TileLoopOp>(op))
        loops.push_back(loop);
      else if (isa<LoadOp, StoreOp, LoadAddressOp, StoreAddressOp>(op) &&
               !isa<TileLoopOp>(op->getParentOp()))
        numbers.push_back(op);
      else if (isa<AtomicOpInterface>(op) && !isa<TileLoopOp>(op->getParentOp()))
        atomics.push_back(op);
    });
    llvm::for_each(loops, shareConditions);
    // All of them before the accesses are gone whose masks are the conditions of choices.
    std::vector<Certainty> certainties(loops.begin(), loops.end());
    for (auto [loop, certainty] : llvm::zip_equal(loops, certainties)) {
      TileLoopLowering(loop, certainty).run();
      if (failed(triton_metal::eraseUnread(loop)))
        return signalPassFailure();
    }
    for (Operation *op : numbers) {
      OpBuilder builder(op);
      TileStep body(builder, Coord(), 1, /*guarded=*/true, /*writtenOut=*/false);
      body.lower(op);
      for (Value result : op->getResults())
        result.replaceAllUsesWith(body.get(result, 0, 1));
      op->erase();
    }
    for (Operation *op : atomics) {
      OpBuilder builder(op);
      addAtomicBase(builder, op);
    }
  }
};

} // namespace
