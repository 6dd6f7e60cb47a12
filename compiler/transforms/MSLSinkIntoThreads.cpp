// Reads of threadgroup memory run in the threads that need them: see MSLPasses.td.

#include "dialect/msl/MSL.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLSINKINTOTHREADS
#include "transforms/Passes.h.inc"

namespace {

using namespace msl;

bool isInThreadgroup(Type pointer) {
  return cast<PtrType>(pointer).getSpace() == AddressSpace::Threadgroup;
}

/// Whether a read of threadgroup memory may find something else behind the operation.
bool mayChangeThreadgroupMemory(Operation *op) {
  auto mayChange = [](Operation *inner) {
    if (inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(inner) ||
        isa<LoadOp, LoadAddressOp, AllocOp>(inner))
      return false;
    if (!isa<StoreOp, StoreAddressOp>(inner))
      return true;
    SmallVector<MemoryAccess> accesses;
    cast<MemoryAccessOpInterface>(inner).getAccesses(accesses);
    // Addresses are those of device memory.
    return llvm::any_of(accesses, [](const MemoryAccess &access) {
      return access.pointer && isInThreadgroup(access.pointer.getType());
    });
  };
  return op
      ->walk([&](Operation *inner) {
        return mayChange(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Moves what only the threads of a region use into it.
class Sinking {
public:
  explicit Sinking(InThreadsOp region) : region(region) {}

  void run() {
    if (!region.getLaneMask() && !region.getSimdgroupMask())
      return;
    for (Operation *op = region->getPrevNode(); op && !mayChangeThreadgroupMemory(op);
         op = op->getPrevNode())
      if (mayMove(op))
        needed.insert(op);
    // What does not come from a read costs little, and is often shared, or moves out of loops.
    for (Operation *op : llvm::reverse(needed))
      if (isRead(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
            return moved.contains(operand.getDefiningOp());
          }))
        moved.insert(op);
    for (Operation *op : llvm::reverse(moved))
      op->moveBefore(&region.getBodyBlock()->front());
  }

private:
  static bool isRead(Operation *op) {
    auto load = dyn_cast<LoadOp>(op);
    return load && !load.getIsVolatile() && isInThreadgroup(load.getBase().getType());
  }

  bool mayMove(Operation *op) {
    if (!isRead(op) && !isMemoryEffectFree(op))
      return false;
    // Lanes of which some run the region do not meet in it.
    bool meetsLanes =
        op->walk([](Operation *inner) {
            return crossesLanes(inner) ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted();
    if (meetsLanes && region.getLaneMask())
      return false;
    return !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
      return region->isProperAncestor(user) || needed.contains(user);
    });
  }

  InThreadsOp region;
  /// What the region alone uses, users before what they use; and what of it moves, in its order.
  SetVector<Operation *> needed, moved;
};

struct MSLSinkIntoThreadsPass : impl::MSLSinkIntoThreadsBase<MSLSinkIntoThreadsPass> {
  void runOnOperation() override {
    getOperation().walk([](InThreadsOp region) { Sinking(region).run(); });
  }
};

} // namespace
} // namespace triton_metal
