// Kernels with updates that Metal cannot do while another thread does one: no thread does.

#include "transforms/MSLSerializePrograms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace triton_metal::msl;

namespace {

class Serializer {
public:
  explicit Serializer(KernelOp kernel)
      : kernel(kernel), entry(&kernel.getBody().front()), builder(kernel.getContext()),
        loc(builder.getUnknownLoc()) {}

  void run() {
    // Before the body moves, which has what the turns need at its top.
    llvm::SetVector<Operation *> steps;
    kernel.walk([&](AtomicOpInterface atomic) {
      // One threadgroup keeps the order of its accesses by its barriers.
      atomic.setMemoryOrder(MemoryOrder::Relaxed);
      if (atomic.getAtomicForm() != AtomicForm::Alone)
        return;
      Operation *step = atomic;
      while (auto threads = dyn_cast<InThreadsOp>(step->getParentOp()))
        step = threads;
      steps.insert(step);
    });
    loopOverPrograms();
    for (Operation *step : steps)
      takeTurns(step);
  }

private:
  Value constant(int64_t number) {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
  }

  void wait() { BarrierOp::create(builder, loc).setDevice(true); }

  /// The kernel's body becomes that of three loops over the grid, in the first threadgroup.
  void loopOverPrograms() {
    SmallVector<Operation *> body;
    Operation *top = &entry->front();
    for (Operation &op : llvm::make_early_inc_range(entry->without_terminator())) {
      // What passes look for at the kernel's top.
      if (!isa<AllocOp, LaneOp, SimdgroupOp>(op))
        body.push_back(&op);
      else if (&op == top)
        top = op.getNextNode();
      else
        op.moveBefore(top);
    }
    builder.setInsertionPoint(top);
    Value isFirst;
    for (int axis = 0; axis < 3; ++axis) {
      Value isZero = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                           ProgramIdOp::create(builder, loc, axis), constant(0));
      isFirst = isFirst ? arith::AndIOp::create(builder, loc, isFirst, isZero).getResult() : isZero;
    }
    Value counts[3], zero = constant(0), one = constant(1);
    for (int axis = 0; axis < 3; ++axis)
      counts[axis] = NumProgramsOp::create(builder, loc, axis);
    auto conditional = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(conditional.thenBlock());
    Value indices[3];
    for (int axis = 2; axis >= 0; --axis) {
      auto loop = scf::ForOp::create(builder, loc, zero, counts[axis], one);
      indices[axis] = loop.getInductionVar();
      builder.setInsertionPointToStart(loop.getBody());
    }
    // Threads of the next program see what this one has stored.
    wait();
    Operation *end = builder.getInsertionBlock()->getTerminator();
    for (Operation *op : body) {
      op->moveBefore(end);
      op->walk([&](ProgramIdOp id) {
        id.getResult().replaceAllUsesWith(indices[id.getAxis()]);
        id.erase();
      });
    }
  }

  /// The index of this thread among those that are left free, as an i32, and how many there are.
  /// Bits of the set's mask are fixed.
  std::pair<Value, unsigned> getTurn(ThreadSet threads) {
    unsigned all = kernel.getThreads() - 1;
    unsigned free = all & ~(threads.laneMask | threads.simdgroupMask << 5);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    Value lane = getPosition<LaneOp>(), simdgroup = getPosition<SimdgroupOp>();
    builder.setInsertionPointAfter(lane.getDefiningOp()->isBeforeInBlock(simdgroup.getDefiningOp())
                                       ? simdgroup.getDefiningOp()
                                       : lane.getDefiningOp());
    Value thread = arith::AddIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, simdgroup, constant(32)), lane);
    Value turn;
    // Runs of neighbouring bits move together.
    for (unsigned bit = 0, count = 0; bit < 10;) {
      unsigned length = llvm::countr_one(free >> bit);
      if (!length) {
        ++bit;
        continue;
      }
      unsigned mask = ((1u << length) - 1) << bit;
      Value part = mask == all
                       ? thread
                       : arith::AndIOp::create(builder, loc, thread, constant(mask)).getResult();
      if (bit != count)
        part = arith::ShRUIOp::create(builder, loc, part, constant(bit - count));
      turn = turn ? arith::OrIOp::create(builder, loc, turn, part).getResult() : part;
      bit += length;
      count += length;
    }
    return {turn, 1u << llvm::popcount(free)};
  }

  template <typename Position> Value getPosition() {
    for (auto position : entry->getOps<Position>())
      return position;
    return Position::create(builder, loc);
  }

  /// One thread after the other runs `step`, between barriers.
  void takeTurns(Operation *step) {
    ThreadSet threads;
    if (auto region = dyn_cast<InThreadsOp>(step))
      threads = region.getThreadSet();
    bool isUsed = !step->use_empty();
    TypeRange types = isUsed ? TypeRange(step->getResultTypes()) : TypeRange();
    builder.setInsertionPoint(step);
    if (threads.isOne(kernel.getThreads())) {
      wait();
      builder.setInsertionPointAfter(step);
      return wait();
    }
    auto [turn, count] = getTurn(threads);
    SmallVector<Value> none;
    for (Type type : types)
      none.push_back(arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)));
    auto loop = scf::ForOp::create(builder, loc, constant(0), constant(count), constant(1), none);
    step->getResults().replaceAllUsesWith(isUsed ? loop.getResults()
                                                 : ResultRange(step->getResults()));
    builder.setInsertionPointToStart(loop.getBody());
    wait();
    Value isMine =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, turn, loop.getInductionVar());
    auto mine = scf::IfOp::create(builder, loc, types, isMine, /*withElseRegion=*/isUsed);
    if (isUsed) {
      builder.setInsertionPointToStart(mine.elseBlock());
      scf::YieldOp::create(builder, loc, loop.getRegionIterArgs());
      builder.setInsertionPointToStart(mine.thenBlock());
      auto yield = scf::YieldOp::create(builder, loc, step->getResults());
      step->moveBefore(yield);
      builder.setInsertionPointToEnd(loop.getBody());
      scf::YieldOp::create(builder, loc, mine.getResults());
    } else {
      step->moveBefore(mine.thenBlock()->getTerminator());
    }
    builder.setInsertionPointAfter(loop);
    wait();
  }

  KernelOp kernel;
  Block *entry;
  OpBuilder builder;
  Location loc;
};

} // namespace

void triton_metal::msl::serializePrograms(KernelOp kernel) { Serializer(kernel).run(); }
