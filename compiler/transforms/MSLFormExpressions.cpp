// Chooses which values get a variable in the text, and their names. All other values are written
// where they are used.

#include "dialect/msl/MSL.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "transforms/MSLTiles.h"
#include "transforms/MSLValueNames.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLFORMEXPRESSIONS
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

/// The length of the longest expression, in operators and functions.
constexpr unsigned kLongest = 6, kLongestRead = 9;

bool isLoop(Operation *op) { return isa<LoopLikeOpInterface, UnrollOp, msl::ForOp>(op); }

/// Whether a value only depends on the indices of unrolled loops and constants.
bool isLoopIndex(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<UnrollOp>(argument.getOwner()->getParentOp());
  Operation *op = value.getDefiningOp();
  return matchPattern(op, m_Constant()) ||
         (isa<BinaryOp>(op) && llvm::all_of(op->getOperands(), isLoopIndex));
}

/// Whether C++ needs no parentheses around the text in front of `.x` and `[i]`.
bool isPrimary(Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op))
    return false;
  return !isa<BinaryOp, UnaryOp, arith::SelectOp, PtrAddOp, PtrCastOp>(op);
}

class ExpressionFormer {
public:
  explicit ExpressionFormer(MLIRContext *context) : builder(context) {}

  void form(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      for (Region &region : op.getRegions())
        for (Block &nested : region)
          form(nested);
      if (isExpression(&op))
        form(&op);
    }
  }

private:
  /// Whether an operation can be written either where it is used or in a variable.
  static bool isExpression(Operation *op) {
    return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
           !isa<LetOp, VarOp, AllocOp>(op) && !op->hasTrait<OpTrait::ConstantLike>();
  }

  void form(Operation *op) {
    Value value = op->getResult(0);
    if (op->use_empty()) {
      auto read = dyn_cast<ReadOp>(op);
      if (isMemoryEffectFree(op) || isa<GetOp>(op) || (read && !read.getIsVolatile()))
        return op->erase();
      // An atomic whose result is unused is a statement already.
      if (isa<AtomicRMWOp, AtomicCASOp>(op))
        return;
    }
    weights[op] = weigh(op);
    if (!op->use_empty() && isNested(op, value))
      return;
    builder.setInsertionPointAfter(op);
    auto let = LetOp::create(builder, op->getLoc(), value.getType(),
                             builder.getStringAttr(getValueName(value)), value);
    value.replaceAllUsesExcept(let, let);
  }

  /// How many operators and functions the text of an operation has.
  unsigned weigh(Operation *op) {
    if (isLoopIndex(op->getResult(0)))
      return 0;
    unsigned weight = isa<GetOp, SwizzleOp, LaneOp, SimdgroupOp, ProgramIdOp, NumProgramsOp>(op) ? 0
                      : isa<ReadOp>(op) ? 2
                                        : 1;
    for (Value operand : op->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        if (auto it = weights.find(definition); it != weights.end())
          weight += it->second;
    return weight;
  }

  bool isNested(Operation *op, Value value) {
    if (isa<LaneOp, SimdgroupOp>(op))
      return true;
    // Operations in which lanes or threads meet stay statements of their own, outside of `?:` and
    // `&&`.
    if (isa<AtomicRMWOp, AtomicCASOp>(op))
      return false;
    if (crossesLanes(op))
      return false;
    if (auto read = dyn_cast<ReadOp>(op); read && read.getIsVolatile())
      return false;
    // A component of a variable can be written again at no cost.
    if (auto swizzle = dyn_cast<SwizzleOp>(op)) {
      Operation *source = swizzle.getValue().getDefiningOp();
      auto get = dyn_cast_or_null<GetOp>(source);
      if (isa_and_nonnull<LetOp>(source) ||
          (get && isSimple(get) && llvm::all_of(value.getUsers(), [&](Operation *user) {
             return user->getBlock() == op->getBlock() && isUndisturbed(get, user);
           })))
        return true;
    }
    // The same holds for a variable, or for an element of one at a simple index,
    if (auto get = dyn_cast<GetOp>(op);
        get && isSimple(get) && (!value.hasOneUse() || isScalar(get)))
      return llvm::all_of(value.getUsers(), [&](Operation *user) {
        return (isScalar(get) || user->getBlock() == op->getBlock()) && isUndisturbed(op, user);
      });
    // and for a multiple of a loop's index.
    if (isShortIndex(op))
      return true;
    if (!value.hasOneUse())
      return false;
    Operation *user = *value.user_begin();
    if (isa<GetOp, ReadOp>(op) && !isUndisturbed(op, user))
      return false;
    // An expression does not move into a loop, where it would be computed again and again.
    Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    for (Operation *at = user; at != ancestor; at = at->getParentOp())
      if (isLoop(at->getParentOp()))
        return false;
    // An operand of `.x` or `[i]` must be a name.
    if (isa<ElementOp, SwizzleOp>(user) && !isPrimary(op))
      return false;
    // The bound of a loop is computed once, before the loop.
    if (auto loop = dyn_cast<msl::ForOp>(user); loop && value == loop.getUpper() && !isPrimary(op))
      return false;
    return weights[op] <= (isa<ReadOp>(op) && !isa<WriteOp>(user) ? kLongestRead : kLongest);
  }

  static bool isShortIndex(Operation *op) {
    auto isLeaf = [](Value value) { return !value.getDefiningOp<BinaryOp>(); };
    return isLoopIndex(op->getResult(0)) && llvm::all_of(op->getOperands(), [&](Value operand) {
             return isLeaf(operand) || llvm::all_of(operand.getDefiningOp()->getOperands(), isLeaf);
           });
  }

  /// Whether the whole of a variable that is not an array is read.
  static bool isScalar(GetOp get) {
    return get.getArray().getType().getCount() == 1 && !get.getElement();
  }
  static bool isSimple(GetOp get) {
    auto isShort = [](Value index) {
      return !index || isa<BlockArgument>(index) || matchPattern(index, m_Constant());
    };
    return isShort(get.getElement()) &&
           (get.getArray().getType().getCount() == 1 || isShort(get.getIndex()));
  }

  /// Whether an operation, or one inside of it, changes memory.
  static bool changesMemory(Operation *op) {
    return op
        ->walk([](Operation *inner) {
          auto loop = dyn_cast<msl::ForOp>(inner);
          return isa<WriteOp, AtomicRMWOp, AtomicCASOp, BarrierOp, FenceOp>(inner) ||
                         (loop && loop.getWaits())
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Whether a variable is assigned after `op` and before `end`, or inside of `end` if `last` is
  /// nested in it.
  static bool isAssigned(GetOp op, Operation *end, Operation *last) {
    return llvm::any_of(op.getArray().getUsers(), [&](Operation *user) {
      if (!isa<SetOp, FillOp, MultiplyAccumulateOp, TensorMultiplyOp>(user))
        return false;
      Operation *place = op->getBlock()->findAncestorOpInBlock(*user);
      if (!place || place->isBeforeInBlock(op))
        return false;
      return place == end ? end != last : place->isBeforeInBlock(end);
    });
  }

  /// Whether nothing between `op` and the statement in which its user is written changes what it
  /// reads.
  static bool isUndisturbed(Operation *op, Operation *user) {
    // The user may itself be written where it is used, so follow the uses as far as they may go.
    Operation *last = user;
    while (last->getNumResults() == 1 && last->getResult(0).hasOneUse() && !last->getNumRegions() &&
           op->getBlock()->findAncestorOpInBlock(**last->getResult(0).user_begin()))
      last = *last->getResult(0).user_begin();
    Operation *end = op->getBlock()->findAncestorOpInBlock(*last);
    if (!end)
      return false;
    // Each iteration of a loop reads a variable again, so the loop must not change it.
    auto get = dyn_cast<GetOp>(op);
    if (end != last && isLoop(end) && !(get && isScalar(get)))
      return false;
    if (get)
      return !isAssigned(get, end, last);
    if (end != last && changesMemory(end))
      return false;
    for (Operation *between = op->getNextNode(); between && between != end;
         between = between->getNextNode())
      if (changesMemory(between))
        return false;
    return true;
  }

  OpBuilder builder;
  llvm::DenseMap<Operation *, unsigned> weights;
};

struct MSLFormExpressionsPass : impl::MSLFormExpressionsBase<MSLFormExpressionsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      Builder builder(&getContext());
      kernel.walk([&](VarOp variable) {
        if (!variable.getName())
          variable.setNameAttr(builder.getStringAttr(getVariableName(variable)));
      });
      ExpressionFormer(&getContext()).form(kernel.getBody().front());
    }
  }
};

} // namespace
} // namespace triton_metal
