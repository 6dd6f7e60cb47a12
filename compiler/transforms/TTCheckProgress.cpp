// Refuses loops that wait for other programs: see Passes.td.

#include "dialect/tt/TT.h"
#include "transforms/Passes.h"
#include "transforms/TTLocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTCHECKPROGRESS
#include "transforms/Passes.h.inc"

namespace {

/// Analyses the condition of a loop.
class LoopCondition {
public:
  explicit LoopCondition(scf::WhileOp loop) : loop(loop) {}

  /// The access through which the loop waits for other programs; null if the loop may end by
  /// itself.
  Operation *findWait() { return findWait(loop.getConditionOp().getCondition()); }

private:
  Operation *findWait(Value condition);
  /// Whether the value is the same in each iteration, as long as memory does not change.
  bool isInvariant(Value value);
  /// The value that an argument of the loop has in the next iteration.
  Value getNext(BlockArgument argument);
  /// Whether the access only gives another result if another program changes memory.
  bool isPolling(Operation *op);
  bool dependsOn(Value value, Value other);
  /// Adds the values that the value is computed from; false if they are not known.
  bool addSources(Value value, SetVector<Value> &slice);
  bool isOutside(Value value) { return !loop->isAncestor(value.getParentBlock()->getParentOp()); }
  bool isCarried(Value value) { return value.getParentBlock() == loop.getBeforeBody(); }

  scf::WhileOp loop;
};

Value LoopCondition::getNext(BlockArgument argument) {
  if (argument.getOwner() != loop.getBeforeBody())
    return loop.getConditionOp().getArgs()[argument.getArgNumber()];
  Value next = loop.getYieldOp().getOperand(argument.getArgNumber());
  if (auto after = dyn_cast<BlockArgument>(next); after && after.getOwner() == loop.getAfterBody())
    next = loop.getConditionOp().getArgs()[after.getArgNumber()];
  return next;
}

bool LoopCondition::isInvariant(Value value) {
  if (isOutside(value))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == loop.getAfterBody())
      return isInvariant(getNext(argument));
    return argument.getOwner() == loop.getBeforeBody() && getNext(argument) == value;
  }
  Operation *op = value.getDefiningOp();
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isInvariant(operand); });
}

/// The argument of the kernel that a pointer, or a tile of pointers, is computed from; null if
/// unknown.
Value rootOf(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (!isa<tt::AddPtrOp, tt::SplatOp, tt::BroadcastOp, tt::ExpandDimsOp, tt::BitcastOp>(op))
      return {};
    pointer = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(pointer);
  return isa<tt::FuncOp>(argument.getOwner()->getParentOp()) ? pointer : Value();
}

bool LoopCondition::isPolling(Operation *op) {
  auto invariant = [&] {
    return llvm::all_of(op->getOperands(), [&](Value operand) { return isInvariant(operand); });
  };
  if (auto rmw = dyn_cast<tt::AtomicRMWOp>(op)) {
    // A sum that grows, and bits that flip, reach the end without other programs.
    tt::RMWOp kind = rmw.getAtomicRmwOp();
    if (kind == tt::RMWOp::ADD || kind == tt::RMWOp::FADD || kind == tt::RMWOp::XOR)
      return invariant() &&
             (matchPattern(rmw.getVal(), m_Zero()) || matchPattern(rmw.getVal(), m_AnyZeroFloat()));
    return invariant();
  }
  if (isa<tt::AtomicCASOp, tt::AtomicLoadOp>(op))
    return invariant();
  auto load = dyn_cast<tt::LoadOp>(op);
  if (!load || !invariant())
    return false;
  // The loop itself may change what it reads.
  Value root = rootOf(load.getPtr());
  WalkResult walked = loop->walk([&](Operation *other) {
    if (!isa<tt::StoreOp, tt::AtomicRMWOp, tt::AtomicCASOp, tt::AtomicStoreOp>(other))
      return WalkResult::advance();
    Value written = rootOf(other->getOperand(0));
    return !root || !written || root == written ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !walked.wasInterrupted();
}

Operation *LoopCondition::findWait(Value condition) {
  // Both sides of an `and` must hold for another iteration, so it is enough that one of them ends.
  // Each side of an `or` can keep the loop going.
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    Operation *left = findWait(both.getLhs());
    return left ? findWait(both.getRhs()) : nullptr;
  }
  if (auto either = condition.getDefiningOp<arith::OrIOp>()) {
    Operation *left = findWait(either.getLhs());
    return left ? left : findWait(either.getRhs());
  }
  Operation *wait = nullptr;
  SetVector<Value> slice;
  slice.insert(condition);
  for (unsigned index = 0; index < slice.size(); ++index) {
    Value value = slice[index];
    if (isOutside(value))
      continue;
    if (Operation *op = value.getDefiningOp()) {
      if (isPolling(op)) {
        wait = op;
        continue;
      }
      // A result at another address, or after a change by the loop, may end the loop.
      if (op->getNumRegions() == 0 && !isMemoryEffectFree(op))
        return nullptr;
    } else if (isCarried(value) && getNext(cast<BlockArgument>(value)) == value) {
      continue;
    } else if (isCarried(value) && dependsOn(getNext(cast<BlockArgument>(value)), value)) {
      // A value that changes from iteration to iteration may also end it.
      return nullptr;
    }
    if (!addSources(value, slice))
      return nullptr;
  }
  return wait;
}

bool LoopCondition::dependsOn(Value value, Value other) {
  SetVector<Value> slice;
  slice.insert(value);
  for (unsigned index = 0; index < slice.size(); ++index) {
    Value source = slice[index];
    if (source == other)
      return true;
    if (!isOutside(source) && !addSources(source, slice))
      return true;
  }
  return false;
}

bool LoopCondition::addSources(Value value, SetVector<Value> &slice) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner()->getParentOp() != loop)
      return false;
    slice.insert(getNext(argument));
    return true;
  }
  Operation *op = value.getDefiningOp();
  slice.insert(op->operand_begin(), op->operand_end());
  if (op->getNumRegions() == 0)
    return true;
  auto conditional = dyn_cast<scf::IfOp>(op);
  if (!conditional)
    return false;
  unsigned number = cast<OpResult>(value).getResultNumber();
  slice.insert(conditional.thenYield().getOperand(number));
  slice.insert(conditional.elseYield().getOperand(number));
  return true;
}

StringRef nameOf(Operation *op) {
  if (isa<tt::AtomicCASOp>(op))
    return "tl.atomic_cas";
  if (isa<tt::LoadOp>(op))
    return "tl.load";
  if (isa<tt::AtomicPollOp>(op))
    return "tl.atomic_poll";
  return "the atomic access";
}

LogicalResult refuse(Operation *op) {
  return op->emitError()
         << nameOf(op)
         << " waits here until another program changes memory, and Metal does not promise "
            "that another program runs meanwhile: the kernel may hang. Let each program "
            "write memory of its own and combine it in a second launch (or in the last "
            "program, which an atomic counter tells), or use tl.atomic_add";
}

struct TTCheckProgressPass : impl::TTCheckProgressBase<TTCheckProgressPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    WalkResult walked = getOperation().walk([&](Operation *op) {
      auto loop = dyn_cast<scf::WhileOp>(op);
      auto poll = dyn_cast<tt::AtomicPollOp>(op);
      Operation *wait = poll && !poll.getTimeoutNs() ? op : nullptr;
      if (loop)
        wait = LoopCondition(loop).findWait();
      if (loop && wait && isLock(loop, wait)) {
        // The kernel runs its programs one after the other: each finds the lock free.
        loop->getParentOfType<tt::FuncOp>()->setAttr(kSerialFunctionAttr,
                                                     LocationAttr(wait->getLoc()));
        return WalkResult::advance();
      }
      return wait ? WalkResult(refuse(wait)) : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
