#include "analysis/AccessPlaces.h"
#include "analysis/PointerOrigins.h"
#include "analysis/Uniformity.h"
#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLINSERTBARRIERS
#include "transforms/Passes.h.inc"

namespace {

/// What an operation touches: an allocation of threadgroup memory, one of its two slots, or an
/// argument's memory.
struct Access {
  Operation *op = nullptr;
  msl::MemoryAccess::Kind kind = msl::MemoryAccess::Read;
  msl::AllocOp memory;
  /// The slot's number, where it is known that this is all that is touched.
  Value slot;
  /// Device memory, and what it is found from: a pointer, or addresses.
  bool isDevice = false;
  Value pointer;
  /// Where in device memory, in each thread. Two accesses in the same places need no barrier: each
  /// thread meets itself.
  Value base, offsets;
  /// The threads that do it, of those that meet the conditions around it.
  msl::ThreadSet threads;
  bool isConditional = false;
  /// The loop in whose earlier steps this access was.
  scf::ForOp before;
  /// The loop, of which all steps are over, in whose steps this access was.
  scf::ForOp behind;
  /// The last barrier since, of those in the fewest loops, which orders threadgroup memory alone:
  /// it can be told to order this access, too.
  msl::BarrierOp crossed;

  bool operator==(const Access &) const = default;
};

/// Accesses since the last barrier on some path.
using Pending = SmallVector<Access>;

void add(Pending &pending, const Access &access) {
  if (!llvm::is_contained(pending, access))
    pending.push_back(access);
}

/// Whether a barrier is in a loop that another one is outside of: all of its steps would order what
/// the other one can order once.
bool isInLoopBehind(msl::BarrierOp barrier, msl::BarrierOp other) {
  auto loop = barrier->getParentOfType<LoopLikeOpInterface>();
  return loop && !loop->isAncestor(other);
}

bool isOther(Value slot, Value other) {
  auto next = other.getDefiningOp<msl::NextSlotOp>();
  return next && next.getSlot() == slot;
}

/// Finds what operations access, and which accesses of different threads may meet.
class Hazards {
public:
  explicit Hazards(msl::KernelOp kernel) : origins(kernel), numThreads(kernel.getThreads()) {}

  /// Whether another thread's access may meet this one, and their order matters.
  bool conflict(const Access &a, const Access &b);
  /// What `op` itself accesses; `parting` is the operation around it at which threads part ways.
  void collect(Operation *op, Operation *parting, SmallVectorImpl<Access> &accesses);

private:
  bool conflictInDevice(const Access &a, const Access &b);

  msl::PointerOrigins origins;
  int32_t numThreads;
};

/// The mask of a load or store; null where it has none.
Value getMask(Operation *op) {
  if (auto load = dyn_cast<msl::LoadOp>(op))
    return load.getMask();
  auto store = dyn_cast<msl::StoreOp>(op);
  return store ? store.getMask() : Value();
}

bool Hazards::conflictInDevice(const Access &a, const Access &b) {
  if (!origins.mayOverlap(a.pointer, b.pointer))
    return false;
  if (!a.base || !b.base)
    return true;
  if (!a.before && !a.behind && a.base == b.base && a.offsets == b.offsets &&
      a.threads == b.threads && !a.isConditional && !b.isConditional)
    return false;
  std::optional<msl::Place> place = msl::Place::get(a.base, a.offsets, getMask(a.op)),
                            other = msl::Place::get(b.base, b.offsets, getMask(b.op));
  return !place || !other ||
         (!(a.behind ? place->isDisjointBehind(*other, a.behind)
                     : place->isDisjointFrom(*other, a.before)) &&
          !place->meetsOnlyItself(*other, numThreads / 32, a.behind ? a.behind : a.before));
}

bool Hazards::conflict(const Access &a, const Access &b) {
  if (a.kind == b.kind && a.kind != msl::MemoryAccess::Write)
    return false;
  if (a.isDevice != b.isDevice)
    return false;
  // One thread's writes stay in order. How an atomic and another access of one thread follow each
  // other is not left to the GPU.
  if (a.kind == msl::MemoryAccess::Write && b.kind == msl::MemoryAccess::Write &&
      a.threads == b.threads && a.threads.isOne(numThreads))
    return false;
  if (a.isDevice)
    return conflictInDevice(a, b);
  if (a.memory == b.memory)
    return !(a.slot && b.slot && (isOther(a.slot, b.slot) || isOther(b.slot, a.slot)));
  msl::AllocOp first = a.memory, second = b.memory;
  if (!first || !second)
    return true;
  if (!first.getOffset() || !second.getOffset())
    return false;
  int64_t begin = *first.getOffset(), otherBegin = *second.getOffset();
  return begin < otherBegin + second.getBytes() && otherBegin < begin + first.getBytes();
}

/// The slot that a pointer into threadgroup memory points to; null where it has none.
Value slotOf(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (auto slot = dyn_cast<msl::SlotOp>(op))
      return slot.getSlot();
    if (!isa<msl::PtrAddOp, msl::PtrCastOp>(op))
      break;
    pointer = op->getOperand(0);
  }
  return {};
}

void Hazards::collect(Operation *op, Operation *parting, SmallVectorImpl<Access> &accesses) {
  auto touches = dyn_cast<msl::MemoryAccessOpInterface>(op);
  if (!touches)
    return;
  SmallVector<msl::MemoryAccess> found;
  touches.getAccesses(found);
  msl::ThreadSet threads = msl::InThreadsOp::getThreadsIn(op->getBlock());
  for (const msl::MemoryAccess &touched : found) {
    Access access;
    access.op = op;
    access.kind = touched.kind;
    access.threads = threads;
    access.isConditional = touched.pointer && isa_and_nonnull<scf::IfOp>(parting);
    auto type = touched.pointer ? cast<msl::PtrType>(touched.pointer.getType()) : msl::PtrType();
    if (!type || type.getSpace() == msl::AddressSpace::Device) {
      access.isDevice = true;
      access.pointer = touched.getOrigin();
      // Atomics of many threads meet in one place: none of them meets only itself.
      if (type && touched.kind != msl::MemoryAccess::Atomic) {
        access.base = touched.pointer;
        access.offsets = touched.offsets;
      }
    } else if (type.getSpace() == msl::AddressSpace::Threadgroup) {
      access.memory = origins.get(touched.pointer).getAllocation();
      if (access.memory)
        access.slot = slotOf(touched.pointer);
    } else {
      // No other thread sees it.
      continue;
    }
    accesses.push_back(access);
  }
}

/// What happens within an operation at which threads part ways.
SmallVector<Access> collectWithin(Operation *op, Hazards &hazards) {
  SmallVector<Access> accesses;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) { hazards.collect(inner, op, accesses); });
  return accesses;
}

/// Within `parting` no barrier can stand: the operation before which there would have to be one.
/// Patterns that merge branches make such places.
Operation *findHazardWithin(Operation *parting, Hazards &hazards) {
  SmallVector<Access> accesses = collectWithin(parting, hazards);
  /// A loop around both, so that what comes later comes before the next step, too.
  auto shareLoop = [&](Operation *a, Operation *b) {
    for (Operation *op = a->getParentOp(); op != parting->getParentOp(); op = op->getParentOp())
      if (isa<LoopLikeOpInterface>(op) && op->isAncestor(b))
        return true;
    return false;
  };
  for (auto [index, access] : llvm::enumerate(accesses))
    for (auto [number, other] : llvm::enumerate(accesses)) {
      if (shareLoop(access.op, other.op)
              ? hazards.conflict(other, access)
              // A thread that comes to the same place again meets itself.
              : number < index && hazards.conflict(other, access) &&
                    !(other.base && other.base == access.base && other.offsets == access.offsets))
        return access.op;
    }
  return nullptr;
}

/// The block of an `msl.in_threads`, or both of an `scf.if`, of which the second may be missing.
SmallVector<Block *, 2> getSides(Operation *branch) {
  SmallVector<Block *, 2> sides;
  for (Region &region : branch->getRegions())
    sides.push_back(region.empty() ? nullptr : &region.front());
  return sides;
}

/// An operation that the same threads run, with other results and without terminators.
Operation *createPart(Operation *branch, TypeRange results) {
  OpBuilder builder(branch);
  if (auto inThreads = dyn_cast<msl::InThreadsOp>(branch)) {
    auto alike =
        msl::InThreadsOp::create(builder, branch->getLoc(), inThreads.getThreadSet(), results);
    if (results.empty())
      alike.getBodyBlock()->getTerminator()->erase();
    return alike;
  }
  return scf::IfOp::create(builder, branch->getLoc(), results,
                           cast<scf::IfOp>(branch).getCondition(), /*addThenBlock=*/true,
                           /*addElseBlock=*/true);
}

/// Cuts `branch`, an `scf.if` or an `msl.in_threads`, in two in front of `at`, which is in one of
/// its blocks: the first part is its blocks up to there, the second one the rest. Returns the
/// second part.
Operation *splitBranch(Operation *branch, Operation *at) {
  Location loc = branch->getLoc();
  Block *cut = at->getBlock();
  SmallVector<Block *, 2> sides = getSides(branch);
  bool inElse = cut != sides.front();
  // What the second part needs of what the first one read.
  SmallVector<Value> crossing;
  SmallVector<bool> crossingElse;
  auto moved = [&](Block *block) {
    SmallVector<Operation *> ops;
    for (Operation &op : block->without_terminator()) {
      if (&op == at)
        break;
      ops.push_back(&op);
    }
    return ops;
  };
  SmallVector<SmallVector<Operation *>> parts;
  parts.push_back(moved(sides[0]));
  if (inElse)
    parts.push_back(moved(sides[1]));
  for (auto [isElse, ops] : llvm::enumerate(parts)) {
    DenseSet<Operation *> first(ops.begin(), ops.end());
    for (Operation *op : ops) {
      bool isPure = op->getNumRegions() == 0 && isMemoryEffectFree(op);
      for (Value result : op->getResults())
        if (!isPure && llvm::any_of(result.getUsers(), [&](Operation *user) {
              Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
              return !first.contains(ancestor) ||
                     (ancestor->getNumRegions() == 0 && isMemoryEffectFree(ancestor));
            })) {
          crossing.push_back(result);
          crossingElse.push_back(isElse);
        }
    }
  }
  Operation *first = createPart(branch, ValueRange(crossing).getTypes());
  for (auto [isElse, side] : llvm::enumerate(llvm::zip_equal(getSides(first), sides))) {
    auto [block, rest] = side;
    SmallVector<Operation *> ops =
        isElse < parts.size() ? parts[isElse] : SmallVector<Operation *>();
    // What computes without memory is computed again in the second part.
    OpBuilder again(rest == cut ? at : rest ? rest->getTerminator() : branch);
    IRMapping copies;
    for (Operation *op : ops) {
      if (op->getNumRegions() == 0 && isMemoryEffectFree(op))
        again.clone(*op, copies);
      op->moveBefore(block, block->end());
    }
    DenseSet<Operation *> inFirst(ops.begin(), ops.end());
    for (auto [from, to] : copies.getValueMap())
      from.replaceUsesWithIf(to, [&](OpOperand &use) {
        return !inFirst.contains(block->findAncestorOpInBlock(*use.getOwner()));
      });
    for (Operation *op : llvm::reverse(ops))
      if (Operation *copy = copies.lookupOrNull(op); copy && copy->use_empty())
        copy->erase();
    OpBuilder yield = OpBuilder::atBlockEnd(block);
    SmallVector<Value> yielded;
    for (auto [value, fromElse] : llvm::zip_equal(crossing, crossingElse))
      yielded.push_back(fromElse == isElse ? value
                                           : ub::PoisonOp::create(yield, loc, value.getType()));
    if (isa<scf::IfOp>(first))
      scf::YieldOp::create(yield, loc, yielded);
    else
      msl::YieldOp::create(yield, loc, yielded);
  }
  for (auto [value, result] : llvm::zip_equal(crossing, first->getResults()))
    value.replaceUsesWithIf(
        result, [&](OpOperand &use) { return !first->isProperAncestor(use.getOwner()); });
  if (auto ifOp = dyn_cast<scf::IfOp>(first);
      ifOp && crossing.empty() && ifOp.elseBlock()->without_terminator().empty())
    ifOp.getElseRegion().getBlocks().clear();
  return branch;
}

/// Splits everything around `at` up to `outermost`, so that a barrier can stand in front of it.
LogicalResult splitAround(Operation *outermost, Operation *at) {
  while (true) {
    Operation *parent = at->getParentOp();
    if (!isa<scf::IfOp, msl::InThreadsOp>(parent))
      return at->emitOpError(
          "needs all threads of its program to have come this far, in a loop that "
          "not all of them run equally often");
    // Nothing comes before the first operation of a region.
    bool isFirst = isa<msl::InThreadsOp>(parent) && at == &at->getBlock()->front();
    at = isFirst ? parent : splitBranch(parent, at);
    if (parent == outermost)
      return success();
  }
}

/// The first of the device reads whose results `store` puts into threadgroup memory, if a barrier
/// can stand before it as well as before `store`; otherwise `store`. Behind the barrier, what was
/// read goes to its place at once, and waits in no registers.
Operation *findStaging(Operation *store, Hazards &hazards) {
  Block *block = store->getBlock();
  SetVector<Operation *> sources;
  sources.insert(store);
  // Grows while it is walked.
  for (size_t index = 0; index < sources.size(); ++index)
    for (Value operand : sources[index]->getOperands())
      if (Operation *op = operand.getDefiningOp(); op && op->getBlock() == block)
        sources.insert(op);
  Operation *first = store;
  for (Operation *op = store->getPrevNode(); op; op = op->getPrevNode()) {
    SmallVector<Access> accesses = collectWithin(op, hazards);
    if (isa<msl::BarrierOp>(op) || llvm::any_of(accesses, [](const Access &access) {
          return !access.isDevice || access.kind != msl::MemoryAccess::Read;
        }))
      break;
    if (!accesses.empty() && sources.contains(op))
      first = op;
  }
  return first;
}

/// Brings `store` and what it puts into threadgroup memory together, behind `barrier`: what has
/// nothing to do with it is computed before, and other reads come after. Nothing in between touches
/// threadgroup memory.
void gatherStaging(msl::BarrierOp barrier, Operation *store) {
  Block *block = store->getBlock();
  DenseSet<Operation *> behind;
  for (Operation *op = barrier->getNextNode(), *next; op != store; op = next) {
    next = op->getNextNode();
    auto isBehind = [&](Value value) {
      Operation *source = value.getDefiningOp();
      return source && behind.contains(source);
    };
    if (op->getNumRegions() || !isMemoryEffectFree(op) || llvm::any_of(op->getOperands(), isBehind))
      behind.insert(op);
    else
      op->moveBefore(barrier);
  }
  if (store->getNumRegions())
    return;
  Operation *last = barrier;
  for (Value operand : store->getOperands())
    if (Operation *source = operand.getDefiningOp();
        source && source->getBlock() == block && last->isBeforeInBlock(source))
      last = source;
  store->moveAfter(last);
}

class BarrierInsertion {
public:
  BarrierInsertion(const msl::Uniformity &uniformity, Hazards &hazards)
      : uniformity(uniformity), hazards(hazards) {}

  void visit(Block &block, Pending &pending) {
    for (Operation &op : llvm::make_early_inc_range(block))
      visit(&op, pending);
  }

private:
  void visit(Operation *op, Pending &pending) {
    if (auto barrier = dyn_cast<msl::BarrierOp>(op)) {
      // One that orders threadgroup memory alone leaves what was done in device memory pending.
      llvm::erase_if(pending,
                     [&](const Access &access) { return !access.isDevice || barrier.getDevice(); });
      for (Access &access : pending)
        if (!access.crossed || !isInLoopBehind(barrier, access.crossed))
          access.crossed = barrier;
      return;
    }
    bool parts = uniformity.partsThreads(op);
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && !parts)
      return visitLoop(loop, {&loop.getRegion()}, pending);
    if (auto loop = dyn_cast<scf::WhileOp>(op); loop && !parts)
      return visitLoop({}, {&loop.getBefore(), &loop.getAfter()}, pending);
    if (auto ifOp = dyn_cast<scf::IfOp>(op); ifOp && !parts) {
      Pending otherwise = pending;
      visit(*ifOp.thenBlock(), pending);
      if (Block *block = ifOp.elseBlock())
        visit(*block, otherwise);
      for (const Access &access : otherwise)
        add(pending, access);
      return;
    }
    // Where threads part ways there can be no barrier: what happens inside counts as one access.
    SmallVector<Access> accesses = collectWithin(op, hazards);
    SmallVector<Access> met;
    for (const Access &access : accesses)
      for (const Access &earlier : pending)
        if (hazards.conflict(earlier, access))
          add(met, earlier);
    // Where a barrier for threadgroup memory stands in between already, it takes device memory on
    // itself.
    bool needed = llvm::any_of(met, [](const Access &access) { return !access.crossed; });
    bool onDevice = llvm::any_of(met, [](const Access &access) { return access.isDevice; });
    if (!needed) {
      for (Access &access : met)
        access.crossed.setDevice(true);
      llvm::erase_if(pending,
                     [](Access access) { return access.crossed && access.crossed.getDevice(); });
    }
    if (needed) {
      Operation *at = onDevice ? op : findStaging(op, hazards);
      OpBuilder builder(at);
      auto barrier = msl::BarrierOp::create(builder, op->getLoc());
      barrier.setDevice(onDevice);
      // What is read between the barrier and here comes after it.
      Pending behind;
      for (const Access &access : pending)
        if (Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*access.op);
            ancestor && !ancestor->isBeforeInBlock(at) && ancestor->isBeforeInBlock(op))
          behind.push_back(access);
      visit(barrier, pending);
      for (const Access &access : behind)
        add(pending, access);
      if (at != op)
        gatherStaging(barrier, op);
    }
    for (const Access &access : accesses)
      add(pending, access);
  }

  void visitLoop(scf::ForOp loop, ArrayRef<Region *> regions, Pending &pending) {
    if (loop && loop->hasAttr(msl::kAtMostOnceAttr)) {
      Pending inside = pending;
      for (Region *region : regions)
        visit(region->front(), inside);
      for (const Access &access : inside)
        add(pending, access);
      return;
    }
    while (true) {
      Pending inside = pending;
      for (Region *region : regions)
        visit(region->front(), inside);
      // The next step has slots and places of its own: what is known of this step's is that they
      // were before.
      size_t before = pending.size();
      for (Access access : inside) {
        if (llvm::is_contained(pending, access))
          continue;
        access.slot = Value();
        if (loop && access.base && !access.before && !access.behind)
          access.before = loop;
        else
          access.base = access.offsets = Value(), access.before = access.behind = {};
        add(pending, access);
      }
      if (pending.size() == before)
        break;
    }
    // After the loop nothing is known of its last steps' places, but where another loop goes on.
    for (Access &access : pending)
      if (loop && access.before == loop) {
        if (loop->hasAttr(msl::kWholeStepsAttr))
          access.behind = loop;
        else
          access.base = access.offsets = Value();
        access.before = {};
      }
  }

  const msl::Uniformity &uniformity;
  Hazards &hazards;
};

struct MSLInsertBarriersPass : impl::MSLInsertBarriersBase<MSLInsertBarriersPass> {
  void runOnOperation() override {
    for (msl::KernelOp kernel : getOperation().getOps<msl::KernelOp>()) {
      if (failed(splitBranches(kernel)))
        return signalPassFailure();
      Pending pending;
      msl::Uniformity uniformity(kernel);
      Hazards hazards(kernel);
      BarrierInsertion(uniformity, hazards).visit(kernel.getBody().front(), pending);
    }
  }

private:
  /// Until no hazard is left where no barrier can stand.
  static LogicalResult splitBranches(msl::KernelOp kernel) {
    while (true) {
      msl::Uniformity uniformity(kernel);
      Hazards hazards(kernel);
      Operation *parting = nullptr, *hazard = nullptr;
      kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (!uniformity.partsThreads(op))
          return WalkResult::advance();
        hazard = findHazardWithin(parting = op, hazards);
        return hazard ? WalkResult::interrupt() : WalkResult::skip();
      });
      if (!hazard)
        return success();
      if (failed(splitAround(parting, hazard)))
        return failure();
    }
  }
};

} // namespace
} // namespace triton_metal
