#include "transforms/MSLLoopEffects.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace triton_metal::msl;

std::optional<StepElements> StepElements::get(Value index, Value step) {
  if (!index)
    return StepElements();
  if (index == step)
    return StepElements{1, 0, 0};
  APInt number;
  if (matchPattern(index, m_ConstantInt(&number)))
    return StepElements{0, number.getSExtValue(), number.getSExtValue()};
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<UnrollOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return std::nullopt;
    return StepElements{0, loop.getLower(), int64_t(loop.getUpper()) - 1};
  }
  Operation *op = index.getDefiningOp();
  if (!isa<arith::AddIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<StepElements> a = get(op->getOperand(0), step), b = get(op->getOperand(1), step);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return StepElements{a->perStep + b->perStep, a->low + b->low, a->high + b->high};
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&number)) || number.isNegative())
    return std::nullopt;
  int64_t factor = number.getSExtValue();
  return StepElements{a->perStep * factor, a->low * factor, a->high * factor};
}

/// Whether a read is made each time that it is executed, and in this order.
static bool isVolatile(Operation *op) {
  return isa<ReadOp>(op) && !hasSingleEffect<MemoryEffects::Read>(op);
}

void LoopEffects::addMemory(MemoryAccessOpInterface op) {
  SmallVector<MemoryAccess> accesses;
  op.getAccesses(accesses);
  kernel = op->getParentOfType<KernelOp>();
  PointerOrigins pointers(kernel);
  for (const MemoryAccess &access : accesses)
    memory.push_back({pointers.get(access.getOrigin()), access.writes()});
}

bool LoopEffects::conflictsOutsideOfArrays(const LoopEffects &other) const {
  auto doesMore = [](const LoopEffects &effects) {
    return effects.opaque || !effects.memory.empty();
  };
  if ((opaque && doesMore(other)) || (other.opaque && doesMore(*this)))
    return true;
  // Threadgroup memory is one place for all.
  auto isShared = [](const Origins &origins) { return !origins.allocations.empty(); };
  return llvm::any_of(memory, [&](const MemoryEffect &one) {
    return llvm::any_of(other.memory, [&](const MemoryEffect &two) {
      return (one.writes || two.writes) &&
             ((isShared(one.origins) && isShared(two.origins)) ||
              PointerOrigins(kernel).mayOverlap(one.origins, two.origins));
    });
  });
}

void LoopEffects::add(Operation *root) {
  root->walk([&](Operation *op) {
    if (auto get = dyn_cast<GetOp>(op)) {
      arrays[get.getArray()].push_back({StepElements::get(get.getIndex(), step), true, false});
    } else if (auto set = dyn_cast<SetOp>(op)) {
      arrays[set.getArray()].push_back({StepElements::get(set.getIndex(), step), false, true});
    } else if (isa<ReadOp, WriteOp, AtomicOpInterface>(op) && !isVolatile(op)) {
      addMemory(cast<MemoryAccessOpInterface>(op));
    } else if (isa<UnrollOp, scf::IfOp, VarOp>(op)) {
      // What is inside is visited by itself.
    } else {
      for (Value operand : op->getOperands())
        if (isa<ArrayType>(operand.getType()))
          arrays[operand].push_back({std::nullopt, true, true});
      opaque |= !isMemoryEffectFree(op);
    }
  });
}

bool LoopEffects::writes(Value array) const {
  auto it = arrays.find(array);
  return it != arrays.end() &&
         llvm::any_of(it->second, [](const Access &access) { return access.writes; });
}

bool LoopEffects::writesByStep(Value array) const {
  auto it = arrays.find(array);
  return it != arrays.end() && llvm::all_of(it->second, [](const Access &access) {
           return access.elements == StepElements{1, 0, 0};
         });
}

bool LoopEffects::conflictsWith(const LoopEffects &other) const {
  if (conflictsOutsideOfArrays(other))
    return true;
  return llvm::any_of(arrays, [&](auto &array) {
    return other.touches(array.first) && (writes(array.first) || other.writes(array.first));
  });
}

bool LoopEffects::leavesFor(const LoopEffects &other) const {
  return llvm::any_of(arrays, [&](auto &array) {
    auto it = other.arrays.find(array.first);
    return writes(array.first) && it != other.arrays.end() &&
           llvm::any_of(it->second, [](const Access &access) { return access.reads; });
  });
}

bool LoopEffects::stepsCommuteWith(const LoopEffects &other) const {
  if (conflictsOutsideOfArrays(other))
    return false;
  for (auto &[array, accesses] : arrays) {
    auto it = other.arrays.find(array);
    if (it == other.arrays.end() || !(writes(array) || other.writes(array)))
      continue;
    // All accesses of a step are within elements of its own.
    std::optional<StepElements> all;
    for (ArrayRef<Access> some : {ArrayRef(accesses), ArrayRef(it->second)})
      for (const Access &access : some) {
        if (!access.elements || (all && all->perStep != access.elements->perStep))
          return false;
        if (!all)
          all = access.elements;
        all->low = std::min(all->low, access.elements->low);
        all->high = std::max(all->high, access.elements->high);
      }
    if (all->high - all->low >= all->perStep)
      return false;
  }
  return true;
}
