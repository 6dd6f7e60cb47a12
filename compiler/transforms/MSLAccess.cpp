#include "transforms/MSLAccess.h"

#include "analysis/AccessPlaces.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace triton_metal::msl;

std::optional<Access> Access::get(Operation *op) {
  auto registers = dyn_cast<RegisterAccessOpInterface>(op);
  if (!registers)
    return std::nullopt;
  Access access;
  access.mask = registers.getAccessMask();
  access.full = registers.getFullCondition();
  access.width = registers.getAccessWidth();
  access.maskWidth = registers.getAccessMaskWidth();
  access.maskRun = registers.getAccessMaskRun();
  access.unaligned = registers.isUnalignedAccess();
  SmallVector<MemoryAccess> memory;
  cast<MemoryAccessOpInterface>(op).getAccesses(memory);
  access.base = memory.front().pointer;
  access.addresses = memory.front().offsets;
  access.reads = memory.front().reads();
  access.writes = memory.front().writes();
  access.isAtomic = memory.front().kind == MemoryAccess::Atomic;
  llvm::TypeSwitch<Operation *>(op)
      .Case<LoadOp, LoadAddressOp>([&](auto load) {
        access.other = load.getOther();
        access.isVolatile = load.getIsVolatile();
        // A volatile access counts as a write, so that volatile accesses keep their order.
        access.writes |= access.isVolatile;
      })
      .Case<StoreOp, StoreAddressOp>([&](auto store) { access.value = store.getValue(); });
  Type type = access.value ? access.value.getType() : op->getResult(0).getType();
  access.element = getElementTypeOrSelf(type);
  return access;
}

/// Whether two uniform bases, or addresses where they are null, may point into the same memory.
static bool mayShareMemory(Value base, Value other, PointerOrigins &origins) {
  auto getSpace = [](Value pointer) {
    return pointer ? cast<PtrType>(pointer.getType()).getSpace() : AddressSpace::Device;
  };
  if (getSpace(base) != getSpace(other))
    return false;
  if (!base || !other)
    return true;
  const Origins &first = origins.get(base), &second = origins.get(other);
  if (getSpace(base) != AddressSpace::Threadgroup)
    return origins.mayOverlap(first, second);
  return first.allocations.empty() || second.allocations.empty() ||
         llvm::any_of(first.allocations, [&](Operation *allocation) {
           return second.allocations.contains(allocation);
         });
}

bool Access::conflictsWith(const Access &other, PointerOrigins &origins) const {
  if (!writes && !other.writes)
    return false;
  if (base == other.base && addresses == other.addresses && !isAtomic && !other.isAtomic)
    return false;
  if (!mayShareMemory(base, other.base, origins))
    return false;
  // The same offsets from bases that are far apart: a loop over both has the same form.
  if (!base || !other.base || addresses != other.addresses || isAtomic || other.isAtomic ||
      isVolatile || other.isVolatile)
    return true;
  std::optional<Place> place = Place::get(base, addresses, mask),
                       otherPlace = Place::get(other.base, other.addresses, other.mask);
  return !place || !otherPlace || !place->isDisjointFrom(*otherPlace);
}
