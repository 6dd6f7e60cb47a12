// Loops over registers that hand over arrays element by element become one: see Passes.td.

#include "dialect/msl/MSL.h"
#include "transforms/MSLArrays.h"
#include "transforms/MSLLoopEffects.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLFUSELOOPS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

//===----------------------------------------------------------------------===//
// Two loops
//===----------------------------------------------------------------------===//

/// Whether the second loop reads what the first one leaves, and each step of it may run right
/// behind the same step of the first one.
bool mayFuse(UnrollOp first, UnrollOp second) {
  if (first.getLower() != second.getLower() || first.getUpper() != second.getUpper())
    return false;
  LoopEffects one(first), two(second);
  return one.leavesFor(two) && one.stepsCommuteWith(two);
}

/// Puts the body of the second loop behind that of the first one, at the second one's place.
void fuse(UnrollOp first, UnrollOp second) {
  Block &body = first.getBody().front(), &rest = second.getBody().front();
  second.getIndex().replaceAllUsesWith(first.getIndex());
  rest.getTerminator()->erase();
  body.getOperations().splice(body.getTerminator()->getIterator(), rest.getOperations());
  first->moveBefore(second);
  second.erase();
}

/// The loop before this one that it can be fused with, and that may come down to it.
UnrollOp findFirst(UnrollOp second) {
  LoopEffects between;
  for (Operation *op = second->getPrevNode(); op; op = op->getPrevNode()) {
    if (auto first = dyn_cast<UnrollOp>(op);
        first && !LoopEffects(first).conflictsWith(between) && mayFuse(first, second))
      return first;
    between.add(op);
    if (between.isOpaque())
      return {};
  }
  return {};
}

//===----------------------------------------------------------------------===//
// A vector of what a loop leaves
//===----------------------------------------------------------------------===//

/// What the numbers of a vector are: those of an array in order, or one component of each of its
/// elements.
struct Numbers {
  Value array;
  Type element;
  std::optional<int64_t> component;
};

/// Nothing for a vector of other numbers than those that a loop of so many steps writes.
std::optional<Numbers> getNumbers(VectorOp vector, int64_t count) {
  std::optional<Numbers> all;
  if (int64_t(vector.getParts().size()) != count)
    return std::nullopt;
  for (auto [number, part] : llvm::enumerate(vector.getParts())) {
    if (isa<VectorType>(part.getType()))
      return std::nullopt;
    auto swizzle = part.getDefiningOp<SwizzleOp>();
    auto get = (swizzle ? swizzle.getValue() : part).getDefiningOp<GetOp>();
    APInt index;
    if (!get || get->getBlock() != vector->getBlock() || get.getElement() || !get.getIndex() ||
        !matchPattern(get.getIndex(), m_ConstantInt(&index)) || index != number)
      return std::nullopt;
    std::optional<int64_t> component;
    if (swizzle)
      component = swizzle.getPositions().front();
    if (!all)
      all = Numbers{get.getArray(), get.getType(), component};
    if (all->array != get.getArray() || all->component != component)
      return std::nullopt;
  }
  return all;
}

/// Arithmetic on vectors that ends in a variable, component by component in the loop that leaves
/// some of the numbers.
class Absorption {
public:
  explicit Absorption(SetOp set) : set(set) {}

  /// The loop that has taken it; null if none has.
  UnrollOp run() {
    auto type = dyn_cast<VectorType>(set.getValue().getType());
    Operation *root = set.getValue().getDefiningOp();
    if (!type || set.getElement() || !root || root->getBlock() != set->getBlock() ||
        !isElementwise(root))
      return {};
    collect(type.getNumElements());
    if (arithmetic.empty() || arrays.empty())
      return {};
    UnrollOp loop = findLoop(type.getNumElements());
    if (!loop)
      return {};
    loop->moveBefore(set);
    OpBuilder builder(loop.getBody().front().getTerminator());
    IRMapping components;
    Value component = compute(set.getValue(), loop.getIndex(), builder, components);
    SetOp::create(builder, set.getLoc(), component, set.getArray(), set.getIndex(),
                  loop.getIndex());
    eraseWhole();
    return loop;
  }

private:
  /// Collects the arithmetic that nothing but the variable needs, and the arrays whose numbers it
  /// takes.
  void collect(int64_t count) {
    // A constant whose numbers differ is no number of a step.
    auto isWhole = [&](Value value) {
      auto vector = dyn_cast<VectorType>(value.getType());
      DenseElementsAttr constant;
      return vector && vector.getNumElements() == count &&
             (!matchPattern(value, m_Constant(&constant)) || constant.isSplat());
    };
    auto isTaken = [&](Operation *user) { return user == set || arithmetic.contains(user); };
    for (Operation *op = set->getPrevNode(); op; op = op->getPrevNode()) {
      if (op->getNumResults() != 1 || op->use_empty() || !llvm::all_of(op->getUsers(), isTaken))
        continue;
      if (auto vector = dyn_cast<VectorOp>(op)) {
        if (std::optional<Numbers> numbers = getNumbers(vector, count)) {
          arrays.insert(numbers->array);
          whole.insert(op);
          for (Value part : vector.getParts()) {
            Operation *number = part.getDefiningOp();
            whole.insert(number);
            if (isa<SwizzleOp>(number))
              whole.insert(number->getOperand(0).getDefiningOp());
          }
        }
      } else if (auto get = dyn_cast<GetOp>(op)) {
        whole.insert(op);
        vectors.insert(get.getArray());
      } else if (isa<SplatOp>(op)) {
        whole.insert(op);
      } else if (isElementwise(op) && llvm::all_of(op->getOperands(), isWhole)) {
        arithmetic.insert(op);
        whole.insert(op);
      }
    }
  }

  /// The loop that writes one of the arrays, each number in the step of its own, and that may come
  /// down to the end of the arithmetic.
  UnrollOp findLoop(int64_t count) {
    LoopEffects between;
    for (Operation *op = set->getPrevNode(); op; op = op->getPrevNode()) {
      auto loop = dyn_cast<UnrollOp>(op);
      if (loop && loop.getLower() == 0 && loop.getUpper() == count) {
        LoopEffects effects(loop);
        if (llvm::any_of(arrays, [&](Value array) { return effects.writesByStep(array); }))
          return mayTake(effects, between) ? loop : UnrollOp();
      }
      // What nothing but the arithmetic reads is read in the loop instead.
      if (!whole.contains(op) || llvm::any_of(op->getUsers(), [&](Operation *user) {
            return user != set && !whole.contains(user);
          }))
        between.add(op);
      if (between.isOpaque() || llvm::any_of(whole, [&](Operation *each) {
            auto get = dyn_cast<GetOp>(each);
            return get && between.writes(get.getArray());
          }))
        return {};
    }
    return {};
  }

  /// Whether a loop with these effects may come down to the variable, and what the arithmetic reads
  /// in a step of it has been written then.
  bool mayTake(const LoopEffects &effects, const LoopEffects &between) {
    return !effects.touches(set.getArray()) && !effects.conflictsWith(between) &&
           llvm::none_of(vectors, [&](Value array) { return effects.writes(array); }) &&
           llvm::all_of(arrays, [&](Value array) {
             return !effects.writes(array) || effects.writesByStep(array);
           });
  }

  /// The component of a vector at the loop's index.
  Value compute(Value value, Value index, OpBuilder &builder, IRMapping &components) {
    if (Value known = components.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    Location loc = value.getLoc();
    Value result;
    if (op && arithmetic.contains(op)) {
      IRMapping operands;
      for (Value operand : op->getOperands())
        operands.map(operand, compute(operand, index, builder, components));
      Operation *copy = builder.clone(*op, operands);
      copy->getResult(0).setType(getElementTypeOrSelf(value.getType()));
      result = copy->getResult(0);
    } else if (op && whole.contains(op)) {
      Type element = getElementTypeOrSelf(value.getType());
      if (auto get = dyn_cast<GetOp>(op))
        result = GetOp::create(builder, loc, element, get.getArray(), get.getIndex(), index);
      else if (auto splat = dyn_cast<SplatOp>(op))
        result = splat.getValue();
      else
        result = compute(*getNumbers(cast<VectorOp>(op), count(value)), loc, index, builder);
    } else if (Value number = getNumber(builder, loc, value)) {
      result = number;
    } else {
      result = ElementOp::create(builder, loc, getElementTypeOrSelf(value.getType()), value, index);
    }
    components.map(value, result);
    return result;
  }

  static Value compute(const Numbers &numbers, Location loc, Value index, OpBuilder &builder) {
    Value element =
        GetOp::create(builder, loc, numbers.element, numbers.array, index, Value()).getResult();
    return numbers.component ? createSwizzle(builder, loc, element, *numbers.component, 1)
                             : element;
  }

  static int64_t count(Value value) { return cast<VectorType>(value.getType()).getNumElements(); }

  void eraseWhole() {
    set.erase();
    // Users first.
    SmallVector<Operation *> ops(whole.begin(), whole.end());
    llvm::sort(ops, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
    for (Operation *op : ops)
      if (op->use_empty())
        op->erase();
  }

  SetOp set;
  llvm::SetVector<Operation *> arithmetic;
  llvm::SetVector<Value> arrays;
  /// Arrays of which it takes whole vectors.
  llvm::SetVector<Value> vectors;
  /// What the loop computes instead, all in one block.
  llvm::SetVector<Operation *> whole;
};

//===----------------------------------------------------------------------===//
// What is handed over
//===----------------------------------------------------------------------===//

/// Takes what a step has written instead of reading it again.
void forward(UnrollOp loop) {
  SmallVector<GetOp> gets;
  loop.walk([&](GetOp get) { gets.push_back(get); });
  for (GetOp get : gets) {
    if (get.getElement())
      continue;
    std::optional<StepElements> place = StepElements::get(get.getIndex(), loop.getIndex());
    if (!place || !place->isOne())
      continue;
    // What is written inside of a branch or an inner loop stays there.
    Operation *outer = loop.getBody().front().findAncestorOpInBlock(*get);
    if (outer != get && LoopEffects(outer, loop.getIndex()).writes(get.getArray()))
      continue;
    for (Operation *before = outer->getPrevNode(); before; before = before->getPrevNode()) {
      auto set = dyn_cast<SetOp>(before);
      std::optional<StepElements> other;
      if (set && set.getArray() == get.getArray() && !set.getElement())
        other = StepElements::get(set.getIndex(), loop.getIndex());
      if (other && *other == *place) {
        get.replaceAllUsesWith(set.getValue());
        get.erase();
        break;
      }
      if (other && other->isOne() && other->perStep == place->perStep)
        continue;
      if (LoopEffects(before, loop.getIndex()).writes(get.getArray()))
        break;
    }
  }
}

/// Puts the body of a loop of one step in its place.
void inlineStep(UnrollOp loop) {
  OpBuilder builder(loop);
  Value index =
      arith::ConstantOp::create(builder, loop.getLoc(), builder.getI32IntegerAttr(loop.getLower()));
  loop.getIndex().replaceAllUsesWith(index);
  Block &body = loop.getBody().front();
  body.getTerminator()->erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(), body.getOperations());
  loop.erase();
}

/// Erases the arrays that nothing reads.
void eraseUnreadArrays(ModuleOp module) {
  SmallVector<VarOp> unread;
  module.walk([&](VarOp var) {
    if (llvm::all_of(var->getUsers(), [](Operation *user) { return isa<SetOp>(user); }))
      unread.push_back(var);
  });
  for (VarOp var : unread) {
    for (Operation *user : llvm::make_early_inc_range(var->getUsers()))
      user->erase();
    var.erase();
  }
}

struct FuseLoops : triton_metal::impl::MSLFuseLoopsBase<FuseLoops> {
  void runOnOperation() override {
    SmallVector<UnrollOp> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](UnrollOp loop) { loops.push_back(loop); });
    llvm::SetVector<Operation *> fused;
    auto fuseWithEarlier = [&](UnrollOp loop) {
      while (UnrollOp first = findFirst(loop)) {
        fused.remove(loop);
        fuse(first, loop);
        loop = first;
        fused.insert(loop);
      }
    };
    // Loops in the order of the text: those inside of two that become one come after these.
    llvm::for_each(loops, fuseWithEarlier);
    SmallVector<SetOp> sets;
    getOperation().walk([&](SetOp set) { sets.push_back(set); });
    for (SetOp set : sets)
      if (UnrollOp loop = Absorption(set).run()) {
        fused.insert(loop);
        // It reads more arrays now.
        fuseWithEarlier(loop);
      }
    for (Operation *op : fused) {
      SmallVector<UnrollOp> single;
      op->walk([&](UnrollOp inner) {
        if (inner.getUpper() - inner.getLower() == 1)
          single.push_back(inner);
      });
      llvm::for_each(single, inlineStep);
    }
    for (Operation *op : fused)
      forward(cast<UnrollOp>(op));
    eraseUnreadArrays(getOperation());
  }
};

} // namespace
