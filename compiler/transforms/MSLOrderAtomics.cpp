// What the order of an atomic access means for a threadgroup: see Passes.td.

#include "analysis/PointerOrigins.h"
#include "analysis/Uniformity.h"
#include "dialect/msl/MSL.h"
#include "transforms/MarkCoherent.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLORDERATOMICS
#include "transforms/Passes.h.inc"

namespace {

using namespace msl;

/// An access to memory that other programs of the launch may access, too.
struct SharedAccess {
  Operation *op = nullptr;
  Origins origins;
  bool isAtomic = false, writes = false;
  /// Atomic: what it found there is used, or what stays there depends on which one comes last.
  bool tells = false;
  AtomicKind kind = AtomicKind::Exchange;
  /// Atomic, on one element that is the same in all programs.
  Value element;
  MemoryOrder order = MemoryOrder::Relaxed;

  bool acquires() const { return order == MemoryOrder::Acquire || order == MemoryOrder::AcqRel; }
  bool releases() const { return order == MemoryOrder::Release || order == MemoryOrder::AcqRel; }
};

/// Which atomics of a kernel order something that a program of its launch can see. An atomic that
/// releases (X) tells whoever acquires it (Y) that what came before X has happened. That shows only
/// if something before X and something after Y touch the same memory, and not both just read it.
/// All programs run the same kernel, so both can be found in it.
class OrderAnalysis {
public:
  explicit OrderAnalysis(KernelOp kernel) : pointers(kernel), entry(&kernel.getBody().front()) {
    kernel.walk([&](Operation *op) {
      positions[op] = positions.size();
      collect(op);
    });
    connect();
  }

  bool isReleaseNeeded(Operation *op) const { return releases.contains(op); }
  bool isAcquireNeeded(Operation *op) const { return acquires.contains(op); }
  /// Memory in which programs meet.
  const Origins &getMeeting() const { return meeting; }

private:
  void collect(Operation *op);
  void connect();
  bool mayOverlap(const SharedAccess &a, const SharedAccess &b) const;
  bool mayPrecede(Operation *first, Operation *second) const;
  bool meet(const SharedAccess &a, const SharedAccess &b) const;

  PointerOrigins pointers;
  Block *entry;
  SmallVector<SharedAccess> accesses;
  DenseMap<Operation *, unsigned> positions;
  DenseSet<Operation *> releases, acquires;
  Origins meeting;
};

void OrderAnalysis::collect(Operation *op) {
  auto touches = dyn_cast<MemoryAccessOpInterface>(op);
  if (!touches)
    return;
  SmallVector<MemoryAccess> found;
  touches.getAccesses(found);
  auto atomic = dyn_cast<AtomicOpInterface>(op);
  for (const MemoryAccess &touched : found) {
    if (touched.pointer &&
        cast<PtrType>(touched.pointer.getType()).getSpace() != AddressSpace::Device)
      continue;
    SharedAccess access;
    access.op = op;
    access.origins = pointers.get(touched.getOrigin());
    access.writes = touched.writes();
    if (atomic) {
      access.isAtomic = true;
      access.order = atomic.getMemoryOrder();
      access.kind = atomic.getUpdateKind();
      access.tells = access.kind == AtomicKind::Exchange || !op->use_empty();
      auto base = dyn_cast_if_present<BlockArgument>(atomic.getBasePointer());
      Value offsets = atomic.getElementOffsets();
      if (base && base.getOwner() == entry && !isa<VectorType>(offsets.getType()) &&
          matchPattern(offsets, m_Zero()))
        access.element = base;
    }
    accesses.push_back(std::move(access));
  }
}

bool OrderAnalysis::mayOverlap(const SharedAccess &a, const SharedAccess &b) const {
  return pointers.mayOverlap(a.origins, b.origins);
}

/// On some way through the kernel.
bool OrderAnalysis::mayPrecede(Operation *first, Operation *second) const {
  for (auto loop = first->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>())
    if (loop->isAncestor(second))
      return true;
  return positions.lookup(first) < positions.lookup(second);
}

/// Whether it can matter to two programs in which order these come.
bool OrderAnalysis::meet(const SharedAccess &a, const SharedAccess &b) const {
  if ((!a.writes && !b.writes) || !mayOverlap(a, b))
    return false;
  if (!a.isAtomic || !b.isAtomic)
    return true;
  // Updates that commute, and of which nobody asks what they found; and those of one element, on
  // whose order all threads agree anyway.
  if (!a.tells && !b.tells && a.kind == b.kind)
    return false;
  return !a.element || a.element != b.element;
}

void OrderAnalysis::connect() {
  unsigned size = accesses.size();
  // Of each access: the releases that may come after it, and the acquires that may come before. Of
  // each release: the acquires that may find what it left.
  std::vector<llvm::BitVector> later(size, llvm::BitVector(size)), earlier = later, found = later;
  for (auto [index, access] : llvm::enumerate(accesses))
    for (auto [number, other] : llvm::enumerate(accesses)) {
      if (other.releases() && mayPrecede(access.op, other.op))
        later[index].set(number);
      if (other.acquires() && mayPrecede(other.op, access.op))
        earlier[index].set(number);
      if (access.releases() && other.acquires() && mayOverlap(access, other))
        found[index].set(number);
    }
  for (auto [index, before] : llvm::enumerate(accesses)) {
    if (later[index].none())
      continue;
    for (auto [number, after] : llvm::enumerate(accesses)) {
      if (earlier[number].none() || !meet(before, after))
        continue;
      bool connected = false;
      for (unsigned release : later[index].set_bits()) {
        llvm::BitVector both = found[release];
        both &= earlier[number];
        if (both.none())
          continue;
        connected = true;
        releases.insert(accesses[release].op);
        for (unsigned acquire : both.set_bits())
          acquires.insert(accesses[acquire].op);
      }
      if (!connected)
        continue;
      for (const SharedAccess *access : {&before, &after}) {
        if (access->isAtomic)
          continue;
        meeting.isUnknown |= access->origins.isUnknown;
        meeting.arguments.insert_range(access->origins.arguments);
      }
    }
  }
}

/// Neither reads memory that another thread may have written, nor writes device memory: what comes
/// after an atomic may still do this before its threads wait for one another.
bool isLocal(Operation *op) {
  if (isMemoryEffectFree(op) || isa<AllocOp>(op))
    return !isa<scf::WhileOp>(op);
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getBase().getType().getSpace() == AddressSpace::Threadgroup;
  if (!isa<scf::IfOp, InThreadsOp>(op))
    return false;
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      if (!isLocal(&inner))
        return false;
  return true;
}

struct MSLOrderAtomicsPass : impl::MSLOrderAtomicsBase<MSLOrderAtomicsPass> {
  void runOnOperation() override {
    changes = false;
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      if (failed(order(kernel)))
        return signalPassFailure();
    if (!changes)
      markAllAnalysesPreserved();
  }

private:
  bool changes = false;

  LogicalResult order(KernelOp kernel) {
    SmallVector<AtomicOpInterface> ordered;
    kernel.walk([&](AtomicOpInterface atomic) {
      if (atomic.getMemoryOrder() != MemoryOrder::Relaxed)
        ordered.push_back(atomic);
    });
    if (ordered.empty())
      return success();
    changes = true;
    OrderAnalysis analysis(kernel);
    Uniformity uniformity(kernel);
    for (AtomicOpInterface op : ordered) {
      bool release = analysis.isReleaseNeeded(op), acquire = analysis.isAcquireNeeded(op);
      if (release || acquire) {
        Operation *step = uniformity.getParting(op);
        if (step && !isa<scf::IfOp, InThreadsOp>(step))
          return op->emitOpError("orders memory in a loop that not all threads of its program run "
                                 "equally often");
        emit(op, step ? step : op.getOperation(), release, acquire);
      }
      op.setMemoryOrder(MemoryOrder::Relaxed);
    }
    markCoherent(kernel, analysis.getMeeting());
    return success();
  }

  /// `step` is the atomic, or what only some threads enter to do it.
  static void emit(Operation *op, Operation *step, bool release, bool acquire) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    auto wait = [&] { BarrierOp::create(builder, loc).setDevice(true); };
    if (release) {
      // Each thread fences what it has stored itself before it waits. Those that go on to the
      // atomic fence once more: that what the others stored comes before it, too, then follows from
      // the barrier and this fence alone, and does not rest on a barrier that reaches beyond the
      // threadgroup.
      builder.setInsertionPoint(step);
      FenceOp::create(builder, loc);
      wait();
      builder.setInsertionPoint(op);
      FenceOp::create(builder, loc);
    }
    if (acquire) {
      builder.setInsertionPointAfter(op);
      FenceOp::create(builder, loc);
      // What the atomic found goes to the other threads through threadgroup memory, for which they
      // wait anyway: they meet once for both.
      Operation *next = step->getNextNode();
      while (!next->hasTrait<OpTrait::IsTerminator>() && (isLocal(next) || isa<FenceOp>(next)))
        next = next->getNextNode();
      builder.setInsertionPoint(next);
      wait();
      FenceOp::create(builder, loc);
    }
  }
};

} // namespace
} // namespace triton_metal
