#include "analysis/PointerOrigins.h"

using namespace mlir;
using namespace triton_metal::msl;

AllocOp Origins::getAllocation() const {
  return allocations.size() == 1 && arguments.empty() && !isUnknown ? cast<AllocOp>(allocations[0])
                                                                    : AllocOp();
}

const Origins &PointerOrigins::get(Value pointer) {
  std::unique_ptr<Origins> &found = known[pointer];
  if (!found)
    found = std::make_unique<Origins>(compute(pointer));
  return *found;
}

/// Adds the values that flow into a result or a block argument of an operation with regions.
static void addFlow(RegionBranchOpInterface op, Value value, llvm::SetVector<Value> &reached) {
  for (RegionBranchPoint point : op.getAllRegionBranchPoints()) {
    SmallVector<RegionSuccessor> successors;
    op.getSuccessorRegions(point, successors);
    for (RegionSuccessor successor : successors) {
      OperandRange sources =
          point.isParent()
              ? op.getEntrySuccessorOperands(successor)
              : cast<RegionBranchTerminatorOpInterface>(point.getTerminatorPredecessorOrNull())
                    .getSuccessorOperands(successor);
      for (auto [input, source] : llvm::zip(successor.getSuccessorInputs(), sources))
        if (input == value)
          reached.insert(source);
    }
  }
}

Origins PointerOrigins::compute(Value pointer) {
  Origins origins;
  llvm::SetVector<Value> reached;
  reached.insert(pointer);
  for (unsigned index = 0; index < reached.size(); ++index) {
    Value value = reached[index];
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *parent = argument.getOwner()->getParentOp();
      if (parent == kernel) {
        if (isa<PtrType>(argument.getType()))
          origins.arguments.insert(argument.getArgNumber());
        else if (index == 0)
          origins.isUnknown = true;
      } else if (auto branch = dyn_cast<RegionBranchOpInterface>(parent)) {
        addFlow(branch, value, reached);
      } else {
        origins.isUnknown = true;
      }
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (auto branch = dyn_cast<RegionBranchOpInterface>(op)) {
      addFlow(branch, value, reached);
    } else if (isa<AllocOp>(op)) {
      origins.allocations.insert(op);
    } else if (auto get = dyn_cast<GetOp>(op)) {
      reached.insert(get.getArray());
    } else if (auto variable = dyn_cast<VarOp>(op)) {
      if (variable.getInit())
        reached.insert(variable.getInit());
      for (Operation *user : variable->getUsers())
        if (auto set = dyn_cast<SetOp>(user))
          reached.insert(set.getValue());
    } else if (isa<MemoryAccessOpInterface>(op)) {
      // An address that is loaded from memory may point into any array.
      origins.isUnknown |= getElementTypeOrSelf(value.getType()).isInteger(64);
    } else if (isa<LetOp>(op)) {
      reached.insert(op->getOperand(0));
    } else if (isMemoryEffectFree(op)) {
      origins.isMadeOfAddress |= isa<IntToPtrOp>(op);
      // The offset does not change which memory a pointer points into.
      if (isa<PtrAddOp, SlotOp>(op))
        reached.insert(op->getOperand(0));
      else
        reached.insert(op->operand_begin(), op->operand_end());
    }
  }
  // An address that comes from no argument may point into any memory.
  if (origins.arguments.empty() && origins.allocations.empty())
    origins.isUnknown = true;
  return origins;
}

bool PointerOrigins::mayOverlap(const Origins &a, const Origins &b) const {
  if (a.isUnknown || b.isUnknown)
    return true;
  auto memoryOf = [&](unsigned argument) {
    return KernelOp(kernel).getArgAttrOfType<IntegerAttr>(argument, kMemoryAttr);
  };
  for (unsigned first : a.arguments)
    for (unsigned second : b.arguments) {
      IntegerAttr memory = memoryOf(first);
      if (first == second || (memory && memory == memoryOf(second)))
        return true;
    }
  return false;
}

SmallVector<MemoryUse> triton_metal::msl::getMemoryUses(KernelOp kernel) {
  PointerOrigins origins(kernel);
  SmallVector<MemoryUse> uses(kernel.getNumArguments());
  SmallVector<MemoryAccess> accesses;
  kernel.walk([&](MemoryAccessOpInterface op) { op.getAccesses(accesses); });
  for (const MemoryAccess &access : accesses) {
    if (access.pointer &&
        cast<PtrType>(access.pointer.getType()).getSpace() != AddressSpace::Device)
      continue;
    const Origins &from = origins.get(access.getOrigin());
    for (auto [index, use] : llvm::enumerate(uses))
      if (from.isUnknown || from.arguments.contains(index)) {
        use.reads |= access.reads();
        use.writes |= access.writes();
        use.isAtomic |= access.kind == MemoryAccess::Atomic;
      }
  }
  return uses;
}
