// What all accesses of a loop add to a pointer is added before it.

#include "dialect/msl/MSL.h"
#include "transforms/Erase.h"
#include "transforms/IntegerRanges.h"
#include "transforms/MSLBefore.h"
#include "transforms/MSLPointerOffsets.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLHOISTOFFSETS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// An access: a pointer that the loop has from before, or carries, plus several terms.
struct Access {
  Operation *op;
  SmallVector<Value> terms;
};

/// Moves terms of addresses out of one loop.
class OffsetHoisting {
public:
  explicit OffsetHoisting(scf::ForOp loop) : loop(loop) {}

  bool run() {
    llvm::MapVector<Value, SmallVector<Access>> roots;
    loop.getBody()->walk([&](Operation *op) {
      if (getBase(op)) {
        auto [root, terms] = decompose(op);
        roots[root].push_back({op, std::move(terms)});
      }
    });
    bool changes = false;
    for (auto &[root, accesses] : roots)
      changes |= hoist(root, accesses);
    return changes;
  }

private:
  bool isInside(Value value) const { return Before(loop).isInside(value); }

  /// The terms that an access adds, and the pointer that it adds them to: one from before the loop,
  /// or that it carries, or `root`.
  std::pair<Value, SmallVector<Value>> decompose(Operation *op, Value root = {}) const {
    SmallVector<Value> terms;
    for (OpOperand &offset : getOffset(op))
      terms.push_back(offset.get());
    Value base = getBase(op)->get();
    while (auto add = base.getDefiningOp<PtrAddOp>()) {
      if (root ? base == root : !isInside(base))
        break;
      terms.push_back(add.getOffset());
      base = add.getBase();
    }
    return {base, terms};
  }

  /// Whether two values are computed in the same way.
  bool areSame(Value a, Value b) const {
    if (a == b)
      return true;
    if (!isInside(a) && !isInside(b))
      return areComputedAlike(a, b);
    Operation *one = a.getDefiningOp(), *other = b.getDefiningOp();
    if (!one || !other || !isInside(a) || !isInside(b) || !isPure(one))
      return false;
    return OperationEquivalence::isEquivalentTo(
        one, other, [&](Value x, Value y) { return success(areSame(x, y)); },
        /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
  }

  /// The yielded sum of a pointer that the loop moves; null where there is none.
  PtrAddOp getMove(Value root) const {
    BlockArgument argument = cast<BlockArgument>(root);
    auto move = loop.getTiedLoopYieldedValue(argument)->get().getDefiningOp<PtrAddOp>();
    return move && move.getBase() == root && move->hasOneUse() ? move : PtrAddOp();
  }

  /// Whether nothing but these accesses sees the pointer within the loop.
  bool areAll(Value root, ArrayRef<Access> accesses, PtrAddOp move) const {
    SmallVector<Value> pointers{root};
    while (!pointers.empty())
      for (Operation *user : pointers.pop_back_val().getUsers()) {
        if (user == move || !loop->isProperAncestor(user) || getBase(user))
          continue;
        if (!isa<PtrAddOp>(user))
          return false;
        pointers.push_back(user->getResult(0));
      }
    return true;
  }

  bool hoist(Value root, ArrayRef<Access> accesses) {
    auto type = cast<PtrType>(root.getType());
    if (!mayAddTwice(type))
      return false;
    PtrAddOp move;
    if (isInside(root)) {
      if (!isa<BlockArgument>(root) || root.getParentBlock() != loop.getBody() ||
          !(move = getMove(root)) || !areAll(root, accesses, move))
        return false;
    }
    SmallVector<Value> common;
    for (Value term : accesses.front().terms)
      if (Before(loop).isKnown(term) && !matchPattern(term, m_Constant()) &&
          llvm::all_of(accesses.drop_front(), [&](const Access &access) {
            return llvm::any_of(access.terms, [&](Value other) { return areSame(term, other); });
          }))
        common.push_back(term);
    if (common.empty())
      return false;
    // An access adds one number by itself. Where one of them adds more to a pointer that the loop
    // moves, that begins with all that they have in common: it has its two registers anyhow. So it
    // does where it goes on behind the loop, where the other one has such accesses. Where the whole
    // address is known before the loop, it is computed there anyhow.
    auto addsOne = [](const Access &access) { return access.terms.size() < 2; };
    if (move ? llvm::all_of(accesses, addsOne) &&
                   loop.getTiedLoopResult(cast<BlockArgument>(root)).use_empty()
             : common.size() > 1 || llvm::any_of(accesses, addsOne))
      return false;
    Value term = common.front();
    OpBuilder builder(loop);
    Value before = Before(loop).compute(term, builder);
    Value from = move ? loop.getTiedLoopInit(cast<BlockArgument>(root))->get() : root;
    Value moved = move ? takeBack(from, before) : Value();
    if (!moved)
      moved = PtrAddOp::create(builder, root.getLoc(), type, from, before);
    if (move) {
      loop.getTiedLoopInit(cast<BlockArgument>(root))->set(moved);
      moveBack(loop.getTiedLoopResult(cast<BlockArgument>(root)), before);
      moved = root;
    }
    sums.clear();
    for (const Access &access : accesses)
      rewrite(access.op, root, moved, term);
    return true;
  }

  /// The pointer plus the term, where the term has been taken from it behind another loop: what it
  /// was there. Null elsewhere.
  static Value takeBack(Value pointer, Value term) {
    auto add = pointer.getDefiningOp<PtrAddOp>();
    if (!add)
      return {};
    if (auto opposite = add.getOffset().getDefiningOp<arith::SubIOp>();
        opposite && matchPattern(opposite.getLhs(), m_Zero())) {
      Value taken = opposite.getRhs();
      if (auto wide = taken.getDefiningOp<arith::ExtSIOp>();
          wide && taken.getType() != term.getType())
        taken = wide.getIn();
      // The least number has no opposite of its type.
      bool isExact = taken.getType() != opposite.getType() || taken.getType().isInteger(64) ||
                     !triton_metal::ValueRanges().get(taken).smin().isMinSignedValue();
      if (isExact && areComputedAlike(taken, term))
        return add.getBase();
    }
    Value base = takeBack(add.getBase(), term);
    if (!base)
      return {};
    OpBuilder builder(add);
    builder.setInsertionPointAfter(add);
    return PtrAddOp::create(builder, add.getLoc(), add.getType(), base, add.getOffset());
  }

  /// What reads the pointer behind the loop gets it without the term. Accesses that add the term
  /// themselves, as those of a single step behind the loop do, have it already.
  void moveBack(Value result, Value term) {
    if (result.use_empty())
      return;
    Value added = term;
    OpBuilder builder(loop.getContext());
    builder.setInsertionPointAfter(loop);
    Location loc = result.getLoc();
    // The least number has no opposite of its type.
    if (term.getType().getIntOrFloatBitWidth() < 64 &&
        triton_metal::ValueRanges().get(term).smin().isMinSignedValue())
      term = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), term);
    Value zero = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(term.getType(), 0));
    Value opposite = arith::SubIOp::create(builder, loc, zero, term);
    Value back = PtrAddOp::create(builder, loc, result.getType(), result, opposite);
    result.replaceAllUsesExcept(back, back.getDefiningOp());
    sums.clear();
    SmallVector<Operation *> accesses;
    addAccesses(back, accesses);
    for (Operation *op : accesses)
      if (llvm::any_of(decompose(op, back).second,
                       [&](Value other) { return areSame(added, other); }))
        rewrite(op, back, result, added);
  }

  /// Collects what accesses memory at a pointer, or at sums of it.
  static void addAccesses(Value pointer, SmallVectorImpl<Operation *> &accesses) {
    for (OpOperand &use : pointer.getUses())
      if (OpOperand *base = getBase(use.getOwner()); base && &use == base)
        accesses.push_back(use.getOwner());
      else if (isa<PtrAddOp>(use.getOwner()))
        addAccesses(use.getOwner()->getResult(0), accesses);
  }

  /// Takes the term from an access, whose pointer comes from `moved` now.
  void rewrite(Operation *op, Value root, Value moved, Value term) {
    OpOperand *base = getBase(op);
    MutableOperandRange offset = getOffset(op);
    bool isTaken = !offset.empty() && areSame(offset[0].get(), term);
    base->set(rebuild(base->get(), root, moved, isTaken ? Value() : term));
    if (!isTaken)
      return;
    // The last sum takes the place of the offset.
    offset.clear();
    if (auto add = base->get().getDefiningOp<PtrAddOp>(); add && add != moved.getDefiningOp()) {
      getOffset(op).assign(add.getOffset());
      getBase(op)->set(add.getBase());
    }
  }

  /// The pointer without the term; `term` is null where the pointer keeps all it has.
  Value rebuild(Value pointer, Value root, Value moved, Value term) {
    if (pointer == root)
      return moved;
    auto add = pointer.getDefiningOp<PtrAddOp>();
    if (term && areSame(add.getOffset(), term))
      return rebuild(add.getBase(), root, moved, Value());
    Value base = rebuild(add.getBase(), root, moved, term);
    if (base == add.getBase())
      return pointer;
    Value &sum = sums[{add, base}];
    if (!sum) {
      OpBuilder builder(add);
      sum = PtrAddOp::create(builder, add.getLoc(), add.getType(), base, add.getOffset());
    }
    return sum;
  }

  mutable scf::ForOp loop;
  DenseMap<std::pair<Operation *, Value>, Value> sums;
};

struct HoistOffsets : triton_metal::impl::MSLHoistOffsetsBase<HoistOffsets> {
  void runOnOperation() override {
    bool changes = false;
    // Inner loops come first: what they add before them may go on.
    getOperation().walk([&](scf::ForOp loop) {
      while (OffsetHoisting(loop).run())
        changes = true;
    });
    if (!changes)
      return markAllAnalysesPreserved();
    triton_metal::eraseDead(getOperation());
  }
};

} // namespace
