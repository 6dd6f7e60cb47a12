#include "transforms/MSLPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;
using namespace triton_metal::msl;

bool triton_metal::msl::isElementwise(Operation *op) {
  if (isa<MulhiOp, PreciseDivOp, PreciseSqrtOp>(op))
    return true;
  if (isa<arith::ConstantOp>(op) || op->getNumResults() != 1 || op->getNumRegions() != 0)
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
}

bool triton_metal::msl::isAccess(Operation *op) {
  return isa<LoadOp, StoreOp, LoadAddressOp, StoreAddressOp, AtomicRMWOp, AtomicCASOp>(op);
}

TypedAttr triton_metal::msl::getNeutralElement(ReduceRegistersOp reduce) {
  if (reduce.getNumOperands() != 1)
    return {};
  Block &block = reduce.getCombine().front();
  auto yield = cast<YieldOp>(block.getTerminator());
  Operation *op = yield.getOperand(0).getDefiningOp();
  if (!op || op != &block.front() || op->getNumOperands() != 2 || op->getNextNode() != yield)
    return {};
  Value a = block.getArgument(0), b = block.getArgument(1);
  if (!(op->getOperand(0) == a && op->getOperand(1) == b) &&
      !(op->getOperand(0) == b && op->getOperand(1) == a))
    return {};
  Type type = a.getType();
  Builder builder(type.getContext());
  if (auto floating = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floating.getFloatSemantics();
    auto attr = [&](APFloat value) { return FloatAttr::get(type, value); };
    // x + -0 is x for every x, and maxnum(NaN, x) is x; 0 and an infinity are not as exact.
    if (isa<arith::AddFOp>(op))
      return attr(APFloat::getZero(semantics, /*Negative=*/true));
    if (isa<arith::MulFOp>(op))
      return attr(APFloat::getOne(semantics));
    if (isa<arith::MaxNumFOp, arith::MinNumFOp>(op))
      return attr(APFloat::getNaN(semantics));
    if (isa<arith::MaximumFOp>(op))
      return attr(APFloat::getInf(semantics, /*Negative=*/true));
    if (isa<arith::MinimumFOp>(op))
      return attr(APFloat::getInf(semantics));
    return {};
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  auto attr = [&](APInt value) { return IntegerAttr::get(type, value); };
  if (isa<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(op))
    return attr(APInt::getZero(bits));
  if (isa<arith::MulIOp>(op))
    return attr(APInt(bits, 1));
  if (isa<arith::AndIOp, arith::MinUIOp>(op))
    return attr(APInt::getAllOnes(bits));
  if (isa<arith::MaxSIOp>(op))
    return attr(APInt::getSignedMinValue(bits));
  if (isa<arith::MinSIOp>(op))
    return attr(APInt::getSignedMaxValue(bits));
  return {};
}

//===----------------------------------------------------------------------===//
// What is computed again
//===----------------------------------------------------------------------===//

int Plan::getCost(Value value) {
  if (getNumRegisters(value.getType()) == 1)
    return 0;
  auto it = costs.find(value);
  if (it != costs.end())
    return it->second;
  constexpr int never = 1 << 20;
  costs[value] = never;
  int cost = never;
  Operation *op = value.getDefiningOp();
  if (!op)
    return never;
  if (isa<arith::ConstantOp, SplatOp, ub::PoisonOp>(op)) {
    cost = 0;
  } else if (auto permute = dyn_cast<PermuteRegistersOp>(op)) {
    cost = getCost(permute.getValue());
  } else if (isElementwise(op) && isa<arith::ArithDialect>(op->getDialect()) &&
             !isa<arith::DivFOp, arith::RemFOp>(op)) {
    cost = isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op) ? 6 : 1;
    for (Value operand : op->getOperands())
      cost = std::min(never, cost + getCost(operand));
  }
  return costs[value] = cost;
}

bool Plan::isLazy(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<VectorType>(value.getType()))
    return false;
  if (isa<PermuteRegistersOp, arith::ConstantOp, SplatOp, ub::PoisonOp>(op))
    return true;
  return getNumRegisters(value.getType()) > 1 && isCheap(value);
}

SmallVector<Operation *> Plan::getUsers(Value value) {
  SetVector<Operation *> users;
  SmallVector<Value> work{value};
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (user->getNumResults() == 1 && isLazy(user->getResult(0)))
        work.push_back(user->getResult(0));
      else
        users.insert(user);
    }
  return users.takeVector();
}

int Plan::getEntryIndex(Operation *op) const {
  auto it = index.find(op);
  return it == index.end() ? -1 : it->second;
}

bool Plan::isDeadAfter(Value value, Block *block, int last, bool beforeLast) {
  if (value.getParentBlock() != block)
    return false;
  for (Operation *user : getUsers(value)) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    if (!ancestor || ancestor == block->getTerminator())
      return false;
    int at = getEntryIndex(ancestor);
    if (at < 0 || at > last || (beforeLast && at == last))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

namespace {
/// What an operation on memory touches.
struct Access {
  Value root, base, offsets;
  AddressSpace space = AddressSpace::Device;
  bool reads = false, writes = false;
};
} // namespace

static std::optional<Access> getAccess(Operation *op) {
  Access access;
  auto fill = [&](Value base, Value offsets, bool reads, bool writes) {
    access.base = base;
    access.offsets = offsets;
    access.reads = reads;
    access.writes = writes;
    if (!base)
      return;
    access.space = cast<PtrType>(base.getType()).getSpace();
    while (Operation *def = base.getDefiningOp()) {
      if (!isa<PtrAddOp, PtrCastOp>(def))
        break;
      base = def->getOperand(0);
    }
    Operation *def = base.getDefiningOp();
    if (isa_and_nonnull<AllocOp>(def) ||
        (!def && isa<KernelOp>(base.getParentBlock()->getParentOp())))
      access.root = base;
  };
  if (auto load = dyn_cast<LoadOp>(op))
    fill(load.getBase(), load.getOffsets(), true, load.getIsVolatile());
  else if (auto store = dyn_cast<StoreOp>(op))
    fill(store.getBase(), store.getOffsets(), false, true);
  else if (auto load = dyn_cast<LoadAddressOp>(op))
    fill({}, load.getAddresses(), true, load.getIsVolatile());
  else if (auto store = dyn_cast<StoreAddressOp>(op))
    fill({}, store.getAddresses(), false, true);
  else if (auto atomic = dyn_cast<AtomicRMWOp>(op))
    fill(atomic.getBase(), {}, true, true);
  else if (auto atomic = dyn_cast<AtomicCASOp>(op))
    fill(atomic.getBase(), {}, true, true);
  else
    return std::nullopt;
  return access;
}

/// Two allocations, or two kernel arguments, unless the launcher found that their arrays overlap.
static bool areDistinct(Value root, Value other) {
  return root != other &&
         (root.getDefiningOp() || other.getDefiningOp() || !mayOverlap(root, other));
}

bool Plan::conflicts(Operation *op, const Segment &segment) {
  std::optional<Access> a = getAccess(op);
  if (!a)
    return false;
  for (Operation *item : segment.items) {
    std::optional<Access> b = getAccess(item);
    if (!b || (!a->writes && !b->writes) || a->space != b->space)
      continue;
    if (a->root && b->root && areDistinct(a->root, b->root))
      continue;
    if (a->base == b->base && a->offsets && a->offsets == b->offsets)
      continue;
    return true;
  }
  return false;
}

Plan::Dependence Plan::getDependence(Value value, const Segment &segment, bool sameRegister) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return Dependence::None;
  if (home.lookup(op) == &segment)
    return sameRegister && !isa<ReduceRegistersOp>(op) ? Dependence::SameRegister
                                                       : Dependence::Other;
  if (!isLazy(value))
    return Dependence::None;
  auto permute = dyn_cast<PermuteRegistersOp>(op);
  Dependence result = Dependence::None;
  for (Value operand : op->getOperands())
    result = std::max(result, getDependence(operand, segment, sameRegister && !permute));
  return result;
}

Plan::Plan(KernelOp kernel) {
  kernel.walk([&](Block *block) {
    Operation *parent = block->getParentOp();
    if (!isa<ReduceRegistersOp>(parent))
      planBlock(*block);
  });
}

void Plan::planBlock(Block &block) {
  SmallVector<Entry> &steps = entries[&block];
  Segment *open = nullptr;
  auto close = [&] {
    if (!open)
      return;
    for (Operation *item : open->items)
      index[item] = steps.size();
    steps.push_back({nullptr, open});
    open = nullptr;
  };
  auto depends = [&](Operation *op, bool sameRegister) {
    Dependence result = Dependence::None;
    for (Value operand : op->getOperands())
      result = std::max(result, getDependence(operand, *open, sameRegister));
    return result;
  };
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (op.getNumResults() == 1 && isLazy(op.getResult(0)))
      continue;
    int64_t registers = 1;
    for (Value operand : op.getOperands())
      registers = std::max(registers, getNumRegisters(operand.getType()));
    auto reduce = dyn_cast<ReduceRegistersOp>(&op);
    bool item = registers > 1 && (isElementwise(&op) || isAccess(&op) ||
                                  isa<SimdReduceOp, SimdShuffleXorOp, SimdShuffleOp>(op));
    item |= reduce && int64_t(reduce.getBits()) == registers - 1 && registers > 1 &&
            getNeutralElement(reduce);
    if (!item) {
      // A step of its own. It goes before the open loop, unless one needs the other's effects or
      // results.
      bool movable = op.getNumRegions() == 0 && (isMemoryEffectFree(&op) || isa<AllocOp>(op));
      if (auto access = getAccess(&op); access && open)
        movable = !access->writes && !conflicts(&op, *open);
      if (open && (!movable || depends(&op, false) != Dependence::None))
        close();
      index[&op] = steps.size();
      steps.push_back({&op, nullptr});
      continue;
    }
    if (open && (open->registers != registers || depends(&op, true) == Dependence::Other ||
                 conflicts(&op, *open)))
      close();
    if (!open) {
      open = segments.emplace_back(std::make_unique<Segment>()).get();
      open->registers = registers;
    }
    home[&op] = open;
    open->items.push_back(&op);
    if (auto load = dyn_cast<LoadOp>(&op); load && load.getFull())
      open->fulls.insert(load.getFull());
    if (auto store = dyn_cast<StoreOp>(&op); store && store.getFull())
      open->fulls.insert(store.getFull());
    if (auto load = dyn_cast<LoadAddressOp>(&op); load && load.getFull())
      open->fulls.insert(load.getFull());
    if (auto store = dyn_cast<StoreAddressOp>(&op); store && store.getFull())
      open->fulls.insert(store.getFull());
  }
  close();
}
