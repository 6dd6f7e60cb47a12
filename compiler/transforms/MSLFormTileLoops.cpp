// Decides which operations on tiles share a loop: see Passes.td.

#include "transforms/MSLAccess.h"
#include "transforms/MSLJoins.h"
#include "transforms/MSLReductions.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLFORMTILELOOPS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// The costs of computing a tile again, in operations on a register.
class Costs {
public:
  /// A tile of at most this cost is computed again at each use and not kept in a variable.
  static constexpr int kLargest = 24;

  bool isCheap(Value value) { return get(value) <= kLargest; }

private:
  static constexpr int kNever = 1 << 20;

  /// The cost of the operation alone. A division by a constant is a multiplication and shifts. One
  /// by another number is some 20 instructions, more than a register is worth.
  static int costOf(Operation *op) {
    if (!isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
      return 1;
    Value divisor = op->getOperand(1);
    if (auto splat = divisor.getDefiningOp<SplatOp>())
      divisor = splat.getValue();
    return matchPattern(divisor, m_Constant()) ? 6 : kLargest + 1;
  }

  /// The bits of a tile that a thread holds.
  static int64_t bitsOf(Value value) {
    Type type = value.getType();
    return getNumRegisters(type) * std::max(1u, getElementTypeOrSelf(type).getIntOrFloatBitWidth());
  }

  int get(Value value) {
    if (!isTile(value))
      return 0;
    Operation *op = value.getDefiningOp();
    if (!op)
      return kNever;
    auto it = costs.find(value);
    if (it != costs.end())
      return it->second;
    int cost = kNever;
    if (isa<arith::ConstantOp, SplatOp, ub::PoisonOp>(op))
      cost = 0;
    else if (isa<PermuteRegistersOp>(op))
      cost = sumOf(op, 0);
    else if (isElementwise(op) && !isa<arith::DivFOp, arith::RemFOp>(op) &&
             (isa<arith::ArithDialect>(op->getDialect()) || isa<math::FmaOp>(op)))
      cost = sumOf(op, costOf(op));
    return costs[value] = cost;
  }

  /// The cost of an operation and its operands. Operands that are kept in variables cost nothing if
  /// the result is larger than they are: the smaller ones are kept, not what is made of them.
  int sumOf(Operation *op, int cost) {
    int kept = 0;
    int64_t keptBits = 0;
    for (Value operand : op->getOperands()) {
      int part = get(operand);
      if (part >= kNever)
        return kNever;
      (part > kLargest ? kept : cost) += part;
      keptBits += part > kLargest ? bitsOf(operand) : 0;
    }
    return bitsOf(op->getResult(0)) > keptBits ? cost : std::min(kNever, cost + kept);
  }

  llvm::DenseMap<Value, int> costs;
};

/// A loop that the next operations of a block may join.
struct OpenLoop {
  int64_t registers = 0;
  SmallVector<Operation *> items;
  SmallVector<Access> accesses;
  /// Tiles that are computed on demand from results of the loop, such as other orders of registers.
  /// They come after the loop.
  SmallVector<Operation *> later;
  /// The operations of both lists.
  llvm::SmallPtrSet<Operation *, 8> members;

  bool contains(Value value) const { return members.contains(value.getDefiningOp()); }

  bool isNeededBy(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return contains(operand); });
  }

  bool conflictsWith(const Access &access, PointerOrigins &origins) const {
    return llvm::any_of(accesses,
                        [&](const Access &other) { return access.conflictsWith(other, origins); });
  }

  /// Whether the operation needs more of an operand than the registers that one step of the loop
  /// computes.
  bool mustEndBefore(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *member = operand.getDefiningOp();
      return contains(operand) &&
             (isa<ReduceRegistersOp>(member) || llvm::is_contained(later, member));
    });
  }
};

/// Forms the loops of one block.
class LoopFormer {
public:
  LoopFormer(Block &block, Costs &costs, const Joins &joins, PointerOrigins &origins)
      : block(block), costs(costs), joins(joins), origins(origins) {}

  LogicalResult run() {
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
      if (op.getNumResults() == 1 && isOnDemandHere(op.getResult(0))) {
        addOnDemand(op);
        continue;
      }
      if (int64_t registers = getLoopRegisters(op)) {
        addItem(op, registers);
        continue;
      }
      if (!isSupported(op))
        return op.emitOpError("this operation on tiles cannot be turned into Metal");
      addStep(op);
    }
    close(open.size(), block.getTerminator());
    return success();
  }

private:
  bool isOnDemandHere(Value value) {
    return isOnDemand(value) && (isa<PermuteRegistersOp>(value.getDefiningOp()) ||
                                 joins.contains(value.getDefiningOp()) || costs.isCheap(value));
  }

  /// The number of registers of a loop over the operation; 0 if the operation is not computed in a
  /// loop.
  static int64_t getLoopRegisters(Operation &op) {
    int64_t registers = 1;
    for (Value operand : op.getOperands())
      registers = std::max(registers, getNumRegisters(operand.getType()));
    if (registers == 1)
      return 0;
    if (auto reduce = dyn_cast<ReduceRegistersOp>(op))
      return int64_t(reduce.getBits()) == registers - 1 && getNeutralElement(reduce) ? registers
                                                                                     : 0;
    return isElementwiseOrShuffle(&op) || isAccess(&op) ? registers : 0;
  }

  static bool isSupported(Operation &op) {
    if (isa<scf::ForOp, scf::IfOp, scf::WhileOp, ReduceRegistersOp, MmaOp, ChunkOp>(op))
      return true;
    auto isScalar = [](Type type) { return !isTile(type); };
    return op.getNumRegions() == 0 && llvm::all_of(op.getOperandTypes(), isScalar) &&
           llvm::all_of(op.getResultTypes(), isScalar);
  }

  /// Adds an operation that is computed on demand. It comes after the open loops whose results it
  /// uses.
  void addOnDemand(Operation &op) {
    for (OpenLoop &loop : llvm::reverse(open))
      if (llvm::any_of(op.getOperands(), [&](Value operand) { return loop.contains(operand); })) {
        loop.later.push_back(&op);
        loop.members.insert(&op);
        return;
      }
  }

  /// Adds an operation that is in no loop. It stays before the open loops, but for those whose
  /// effects or results it depends on.
  void addStep(Operation &op) {
    bool movable = op.getNumRegions() == 0 && (isMemoryEffectFree(&op) || isa<AllocOp>(op));
    std::optional<Access> access = Access::get(&op);
    if (access)
      movable = !access->writes;
    size_t count = open.size();
    while (movable && count > 0 && !open[count - 1].isNeededBy(&op) &&
           !(access && open[count - 1].conflictsWith(*access, origins)))
      --count;
    close(count, &op);
  }

  /// Adds an operation to the loop of what it uses, or to that of its neighbour. Where neither has
  /// its size and may take it, it begins a loop behind the others, which stay open.
  void addItem(Operation &op, int64_t registers) {
    std::optional<Access> access = Access::get(&op);
    OpenLoop *chosen = findLoop(&op, registers, access);
    if (!chosen) {
      size_t ended = open.size();
      while (ended > 0 && !open[ended - 1].mustEndBefore(&op) &&
             !(access && open[ended - 1].conflictsWith(*access, origins)))
        --ended;
      close(ended, &op);
      chosen = &open.emplace_back();
      chosen->registers = registers;
    }
    last = &op;
    chosen->items.push_back(&op);
    chosen->members.insert(&op);
    if (access)
      chosen->accesses.push_back(*access);
  }

  /// The open loop that an operation may join, behind all that the operation depends on; null if
  /// there is none.
  OpenLoop *findLoop(Operation *op, int64_t registers, const std::optional<Access> &access) {
    size_t behind = 0;
    for (size_t number = open.size(); number-- > 0;) {
      OpenLoop &loop = open[number];
      bool needed = loop.isNeededBy(op);
      bool ends = loop.mustEndBefore(op) || (access && loop.conflictsWith(*access, origins));
      if (!ends && loop.registers == registers && (needed || loop.items.back() == last))
        return moveBehind(number, std::max(number + 1, behind));
      if ((needed || ends) && !behind)
        behind = number + 1;
    }
    return nullptr;
  }

  /// Moves a loop behind those before `end`; null if one of them depends on it.
  OpenLoop *moveBehind(size_t number, size_t end) {
    const OpenLoop &loop = open[number];
    for (const OpenLoop &other : ArrayRef(open).slice(number + 1, end - number - 1))
      if (llvm::any_of(other.members, [&](Operation *op) { return loop.isNeededBy(op); }) ||
          llvm::any_of(other.accesses,
                       [&](const Access &access) { return loop.conflictsWith(access, origins); }))
        return nullptr;
    std::rotate(open.begin() + number, open.begin() + number + 1, open.begin() + end);
    return &open[end - 1];
  }

  /// Forms the first open loops before `next`.
  void close(size_t count, Operation *next) {
    for (OpenLoop &loop : MutableArrayRef(open).take_front(count))
      form(loop, next);
    open.erase(open.begin(), open.begin() + count);
  }

  void form(OpenLoop &open, Operation *next) {
    llvm::SmallPtrSet<Operation *, 16> items(open.items.begin(), open.items.end());
    SmallVector<Value> yielded;
    for (Operation *item : open.items)
      for (Value result : item->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !items.contains(user); }))
          yielded.push_back(result);
    OpBuilder builder(next);
    Location loc = open.items.front()->getLoc();
    auto loop = TileLoopOp::create(builder, loc, TypeRange(ValueRange(yielded)), open.registers,
                                   IntegerAttr());
    Block *body = builder.createBlock(&loop.getBody());
    for (Operation *item : open.items)
      item->moveBefore(body, body->end());
    YieldOp::create(builder, loc, yielded);
    for (auto [value, result] : llvm::zip_equal(yielded, loop.getResults()))
      value.replaceUsesWithIf(result,
                              [&](OpOperand &use) { return use.getOwner()->getBlock() != body; });
    for (Operation *op : open.later)
      op->moveBefore(next);
  }

  Block &block;
  Costs &costs;
  const Joins &joins;
  PointerOrigins &origins;
  /// In the order in which they run.
  SmallVector<OpenLoop, 2> open;
  /// The operation that was added last.
  Operation *last = nullptr;
};

struct FormTileLoops : triton_metal::impl::MSLFormTileLoopsBase<FormTileLoops> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      // Collects all blocks before loops are formed, which have blocks of their own.
      SmallVector<Block *> blocks;
      kernel.walk([&](Operation *op) {
        if (isa<KernelOp, scf::ForOp, scf::IfOp, scf::WhileOp>(op))
          for (Region &region : op->getRegions())
            for (Block &block : region)
              blocks.push_back(&block);
      });
      Costs costs;
      Joins joins(kernel);
      PointerOrigins origins(kernel);
      for (Block *block : blocks)
        if (failed(LoopFormer(*block, costs, joins, origins).run()))
          return signalPassFailure();
    }
  }
};

} // namespace
