// Locks: loops that wait, but not for what only a later program does.

#include "transforms/TTLocks.h"

#include "dialect/tt/TT.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace triton_metal {

/// The number that a scalar is; nothing where it is not known.
static std::optional<APInt> getNumber(Value value) {
  APInt number;
  if (auto unsplat = value.getDefiningOp<tt::UnsplatOp>())
    value = unsplat.getSrc();
  return matchPattern(value, m_ConstantInt(&number)) ? std::optional(number) : std::nullopt;
}

/// The number that an operation always leaves at `pointer`, if it does.
static std::optional<APInt> getLeft(Operation *op, Value pointer) {
  auto always = [](Value mask) { return !mask || tt::isConstantBool(mask, true); };
  if (auto update = dyn_cast<tt::AtomicRMWOp>(op)) {
    if (update.getPtr() == pointer && update.getAtomicRmwOp() == tt::RMWOp::XCHG &&
        always(update.getMask()))
      return getNumber(update.getVal());
  } else if (auto store = dyn_cast<tt::AtomicStoreOp>(op)) {
    if (store.getPtr() == pointer && always(store.getMask()))
      return getNumber(store.getValue());
  } else if (auto store = dyn_cast<tt::StoreOp>(op)) {
    if (store.getPtr() == pointer && always(store.getMask()))
      return getNumber(store.getValue());
  }
  return std::nullopt;
}

/// Whether the loop goes on when `wait` finds `number`; nothing where that is not known.
static std::optional<bool> goesOn(Value condition, Operation *wait, const APInt &number) {
  if (condition == wait->getResult(0))
    return number.getBoolValue();
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  bool isLeft = compare.getLhs() == wait->getResult(0);
  if (!isLeft && compare.getRhs() != wait->getResult(0))
    return std::nullopt;
  std::optional<APInt> other = getNumber(isLeft ? compare.getRhs() : compare.getLhs());
  if (!other)
    return std::nullopt;
  return isLeft ? arith::applyCmpPredicate(compare.getPredicate(), number, *other)
                : arith::applyCmpPredicate(compare.getPredicate(), *other, number);
}

bool isLock(scf::WhileOp loop, Operation *wait) {
  auto cas = dyn_cast<tt::AtomicCASOp>(wait);
  auto exchange = dyn_cast<tt::AtomicRMWOp>(wait);
  if (!cas && !(exchange && exchange.getAtomicRmwOp() == tt::RMWOp::XCHG))
    return false;
  Value pointer = cas ? cas.getPtr() : exchange.getPtr();
  if (!isa<tt::PtrType>(pointer.getType()) || wait->getBlock() != loop.getBeforeBody() ||
      loop->isAncestor(pointer.getParentBlock()->getParentOp()))
    return false;
  // Nothing else in the loop has an effect.
  for (Operation &op : *loop.getBeforeBody())
    if (&op != wait && !op.hasTrait<OpTrait::IsTerminator>() && !isMemoryEffectFree(&op))
      return false;
  for (Operation &op : loop.getAfterBody()->without_terminator())
    if (!isMemoryEffectFree(&op))
      return false;
  // What the program leaves there at the end, whatever it does in between, must end the loop of the
  // next one.
  std::optional<APInt> left;
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
    if (std::optional<APInt> number = getLeft(op, pointer))
      left = number;
  if (!left)
    return false;
  if (cas) {
    std::optional<APInt> compared = getNumber(cas.getCmp());
    if (!compared || *compared != *left)
      return false;
  }
  std::optional<bool> waits = goesOn(loop.getConditionOp().getCondition(), wait, *left);
  return waits && !*waits;
}

} // namespace triton_metal
