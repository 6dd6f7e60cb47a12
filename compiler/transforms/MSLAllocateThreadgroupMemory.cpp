#include "dialect/msl/MSL.h"
#include "transforms/Budget.h"
#include "transforms/Passes.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLALLOCATETHREADGROUPMEMORY
#include "transforms/Passes.h.inc"

namespace {

/// Allocations of at most this size do not share their bytes, because sharing costs barriers.
constexpr int64_t kOwnBytes = 1024;
/// The alignment of allocations, for accesses of 16 bytes.
constexpr int64_t kAlignment = 16;

struct Allocation {
  msl::AllocOp op;
  int64_t bytes = 0, offset = 0;
  /// The first and the last operation that may touch the allocation, numbered in program order.
  unsigned first = ~0u, last = 0;
  /// The innermost loop around all operations that touch it.
  Operation *loop = nullptr;
  /// Atomics take no pointer that was made from one to bytes (docs/apple-quirks.md, row 21): the
  /// allocation lies behind the others and shares nothing.
  bool isAtomic = false;

  bool meets(const Allocation &other) const { return first <= other.last && other.first <= last; }
  bool overlaps(const Allocation &other) const {
    return offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

/// Whether two allocations are used in one loop. If they shared bytes, each iteration would need
/// barriers.
bool shareLoop(const Allocation &a, const Allocation &b) {
  return a.loop && b.loop &&
         (a.loop == b.loop || a.loop->isAncestor(b.loop) || b.loop->isAncestor(a.loop) || [&] {
           for (Operation *loop = a.loop; loop; loop = loop->getParentOfType<LoopLikeOpInterface>())
             if (loop->isAncestor(b.loop))
               return true;
           return false;
         }());
}

struct MSLAllocateThreadgroupMemoryPass
    : impl::MSLAllocateThreadgroupMemoryBase<MSLAllocateThreadgroupMemoryPass> {
  void runOnOperation() override {
    for (msl::KernelOp kernel : getOperation().getOps<msl::KernelOp>())
      if (failed(allocate(kernel)))
        return signalPassFailure();
  }

private:
  /// All operations that may touch the allocation: users of its pointer or of a pointer computed
  /// from it.
  static void collectAccesses(Value pointer, SmallVectorImpl<Operation *> &accesses) {
    for (Operation *user : pointer.getUsers())
      if (isa<msl::PtrAddOp, msl::PtrCastOp, msl::SlotOp>(user))
        collectAccesses(user->getResult(0), accesses);
      else
        accesses.push_back(user);
  }

  LogicalResult allocate(msl::KernelOp kernel) {
    DenseMap<Operation *, std::pair<unsigned, unsigned>> ranges;
    unsigned next = 0;
    std::function<void(Operation *)> number = [&](Operation *op) {
      unsigned begin = next++;
      for (Region &region : op->getRegions())
        for (Operation &inner : region.getOps())
          number(&inner);
      ranges[op] = {begin, next++};
    };
    number(kernel);

    SmallVector<Allocation> allocations;
    kernel.walk([&](msl::AllocOp op) {
      Allocation allocation{op};
      allocation.bytes = llvm::alignTo(op.getBytes(), kAlignment);
      SmallVector<Operation *> accesses;
      collectAccesses(op.getResult(), accesses);
      if (accesses.empty())
        return;
      // The innermost loop around all accesses. Loops between it and an access are part of the
      // lifetime.
      Operation *loop = accesses.front()->getParentOfType<LoopLikeOpInterface>();
      while (loop &&
             !llvm::all_of(accesses, [&](Operation *access) { return loop->isAncestor(access); }))
        loop = loop->getParentOfType<LoopLikeOpInterface>();
      allocation.loop = loop;
      allocation.isAtomic = llvm::any_of(accesses, llvm::IsaPred<msl::AtomicOpInterface>);
      for (Operation *access : accesses) {
        Operation *outermost = access;
        for (Operation *parent = access->getParentOfType<LoopLikeOpInterface>();
             parent && parent != loop; parent = parent->getParentOfType<LoopLikeOpInterface>())
          outermost = parent;
        allocation.first = std::min(allocation.first, ranges[outermost].first);
        allocation.last = std::max(allocation.last, ranges[outermost].second);
      }
      allocations.push_back(allocation);
    });
    // Placing the largest allocation first leaves the fewest gaps. Allocations of the same size
    // keep the order of the program.
    SmallVector<Allocation *> order;
    for (Allocation &allocation : allocations)
      order.push_back(&allocation);
    llvm::stable_sort(order, [](Allocation *a, Allocation *b) {
      return a->isAtomic == b->isAtomic ? a->bytes > b->bytes : b->isAtomic;
    });

    Budget budget = Budget::of(kernel);
    int64_t limit = budget.getThreadgroupBytes(), threads = kernel.getThreads();
    // Where a core holds enough threads, allocations in one loop do not share their bytes.
    int64_t total = place(order, /*shareAll=*/false);
    int64_t held = Budget::getThreadsInFlight(total, threads);
    if (total > limit || held < Budget::kEnoughThreads) {
      int64_t shared = place(order, /*shareAll=*/true);
      if (total > limit || Budget::getThreadsInFlight(shared, threads) > held)
        total = shared;
      else
        place(order, /*shareAll=*/false);
    }
    Builder builder(kernel.getContext());
    kernel.setThreadgroupBytesAttr(builder.getI64IntegerAttr(total));
    if (total > limit)
      return refuse(kernel, order, total, limit);
    kernel.walk([&](msl::AllocOp op) {
      if (op.use_empty())
        op.erase();
    });
    for (Allocation &allocation : allocations)
      allocation.op.setOffsetAttr(builder.getI64IntegerAttr(allocation.offset));
    return success();
  }

  int64_t place(ArrayRef<Allocation *> order, bool shareAll) {
    int64_t total = 0;
    for (size_t index = 0; index < order.size(); ++index) {
      Allocation &allocation = *order[index];
      auto conflicts = [&](const Allocation &other) {
        bool own = !shareAll && (std::min(allocation.bytes, other.bytes) <= kOwnBytes ||
                                 shareLoop(allocation, other));
        return own || allocation.meets(other);
      };
      if (allocation.isAtomic) {
        allocation.offset = total;
        total += allocation.bytes;
        continue;
      }
      // The lowest offset at which it does not collide with an allocation that is placed already.
      SmallVector<int64_t> candidates{0};
      for (Allocation *other : order.take_front(index))
        candidates.push_back(other->offset + other->bytes);
      llvm::sort(candidates);
      for (int64_t candidate : candidates) {
        allocation.offset = candidate;
        if (llvm::none_of(order.take_front(index), [&](Allocation *other) {
              return conflicts(*other) && allocation.overlaps(*other);
            }))
          break;
      }
      total = std::max(total, allocation.offset + allocation.bytes);
    }
    return total;
  }

  LogicalResult refuse(msl::KernelOp kernel, ArrayRef<Allocation *> order, int64_t total,
                       int64_t limit) {
    InFlightDiagnostic diagnostic =
        kernel.emitError("needs ")
        << total << " bytes of threadgroup memory, and the target (or set_kernel_config) has "
        << limit << ": use smaller blocks";
    for (Allocation *allocation : order)
      diagnostic.attachNote(allocation->op.getLoc())
          << "'" << allocation->op.getName() << "' takes " << allocation->bytes << " of them";
    return diagnostic;
  }
};

} // namespace
} // namespace triton_metal
