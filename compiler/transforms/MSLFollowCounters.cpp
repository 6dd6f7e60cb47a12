// A pointer that moves as its loop's counter does stays where it is, and accesses add the counter.
// So they do with another number that the loop carries.

#include "dialect/msl/MSL.h"
#include "transforms/MSLBefore.h"
#include "transforms/MSLPointerOffsets.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLFOLLOWCOUNTERS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// Each place that accesses have before a loop takes two registers. A pointer that moves takes two,
/// too, and each offset one.
constexpr int64_t kMostPlaces = 2;
/// Where a carried number moves a pointer, it stays in its register anyhow, and each step adds it.
constexpr int64_t kMostPlacesOfNumbers = 4;

/// The pointers of one loop.
class FollowedCounter {
public:
  explicit FollowedCounter(scf::ForOp loop) : loop(loop), before(loop) {}

  /// Returns whether accesses add a number that the loop carries, where a step has added it to
  /// their pointer.
  bool addNumbers() {
    SmallVector<PtrAddOp> sums;
    for (Operation &op : loop.getBody()->without_terminator())
      if (auto sum = dyn_cast<PtrAddOp>(op); sum && isMovedByNumber(sum))
        sums.push_back(sum);
    for (PtrAddOp sum : sums) {
      addLast(sum.getResult(), sum.getBase(), sum.getOffset());
      sum.erase();
    }
    return !sums.empty();
  }

  /// Returns whether a pointer stays now.
  bool run() {
    // The counter is an offset, which has a sign, and is 0 in the first step.
    if (loop.getUnsignedCmp() || !matchPattern(loop.getLowerBound(), m_Zero()))
      return false;
    llvm::BitVector kept(loop.getNumRegionIterArgs());
    for (unsigned index = 0; index < kept.size(); ++index)
      if (follows(index)) {
        stay(index);
        kept.set(index);
      }
    if (kept.none())
      return false;
    drop(kept);
    return true;
  }

private:
  /// Whether the numbers are the same constant or the same value.
  static bool areEqual(Value a, Value b) {
    APInt x, y;
    return a == b || (matchPattern(a, m_ConstantInt(&x)) && matchPattern(b, m_ConstantInt(&y)) &&
                      x.getSExtValue() == y.getSExtValue());
  }

  static OpOperand *getOffset(Operation *op) {
    if (auto sum = dyn_cast<PtrAddOp>(op))
      return &sum.getOffsetMutable();
    MutableOperandRange offset = isa<ReadOp>(op) ? cast<ReadOp>(op).getOffsetMutable()
                                                 : cast<WriteOp>(op).getOffsetMutable();
    return offset.empty() ? nullptr : &offset[0];
  }

  /// Whether a value within the loop is the index of an unrolled one.
  static bool isIndex(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isa<UnrollOp>(argument.getOwner()->getParentOp());
  }

  /// Whether an offset is the same in all steps, in each step of the unrolled loops that it is in;
  /// adds these.
  bool isFixed(Value value, SmallPtrSetImpl<Operation *> &unrolled, unsigned depth = 0) const {
    if (!before.isInside(value))
      return true;
    if (isIndex(value)) {
      unrolled.insert(cast<BlockArgument>(value).getOwner()->getParentOp());
      return true;
    }
    Operation *op = value.getDefiningOp();
    return op && depth < 8 && op->getNumRegions() == 0 && isPure(op) &&
           llvm::all_of(
               op->getOperands(),
               [&](Value operand) { return isFixed(operand, unrolled, depth + 1); });
  }

  /// Whether an offset is a constant in each step of unrolled loops: an access adds it by itself.
  static bool isConstant(Value value) {
    if (isIndex(value) || matchPattern(value, m_Constant()))
      return true;
    Operation *op = value.getDefiningOp();
    return isa_and_nonnull<arith::AddIOp, arith::MulIOp, arith::ShLIOp>(op) &&
           isConstant(op->getOperand(0)) && isConstant(op->getOperand(1));
  }

  /// Whether two offsets are the same numbers, where unrolled loops have the same steps.
  bool areSame(Value a, Value b) const {
    if (a == b)
      return true;
    if (isIndex(a) && isIndex(b)) {
      auto one = cast<UnrollOp>(cast<BlockArgument>(a).getOwner()->getParentOp());
      auto other = cast<UnrollOp>(cast<BlockArgument>(b).getOwner()->getParentOp());
      return one.getLower() == other.getLower() && one.getUpper() == other.getUpper();
    }
    Operation *one = a.getDefiningOp(), *other = b.getDefiningOp();
    if (!one || !other || !isPure(one) || one->getNumRegions())
      return false;
    return OperationEquivalence::isEquivalentTo(
        one, other, [&](Value x, Value y) { return success(areSame(x, y)); },
        /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
  }

  /// Whether the loop moves the pointer by its step, nothing reads it behind the loop, and its
  /// accesses have few places.
  bool follows(unsigned index) const {
    BlockArgument pointer = loop.getRegionIterArg(index);
    auto type = dyn_cast<PtrType>(pointer.getType());
    if (!type || !mayAddTwice(type) || !loop.getResult(index).use_empty())
      return false;
    auto move = loop.getTiedLoopYieldedValue(pointer)->get().getDefiningOp<PtrAddOp>();
    if (!move || move.getBase() != pointer || !move->hasOneUse() ||
        !areEqual(move.getOffset(), loop.getStep()))
      return false;
    int64_t places = countPlaces(pointer, move);
    return places > 0 && places <= kMostPlaces;
  }

  /// Whether a number that the loop carries, and that is not its counter, is added to a pointer
  /// from before the loop, at which accesses have several places.
  bool isMovedByNumber(PtrAddOp sum) const {
    auto number = dyn_cast<BlockArgument>(sum.getOffset());
    if (!number || number.getOwner() != loop.getBody() || number == loop.getInductionVar() ||
        before.isInside(sum.getBase()) || !mayAddTwice(sum.getType()))
      return false;
    int64_t places = countPlaces(sum.getResult(), PtrAddOp());
    return places > 1 && places <= kMostPlacesOfNumbers;
  }

  /// The places of a pointer's accesses, the same ones in all steps of the loop; -1 for others, or
  /// where something else than them and `move` reads the pointer.
  int64_t countPlaces(Value pointer, PtrAddOp move) const {
    int64_t places = 0;
    SmallVector<Value> offsets;
    for (OpOperand &use : pointer.getUses()) {
      Operation *user = use.getOwner();
      if (user == move)
        continue;
      if (!isa<ReadOp, WriteOp, PtrAddOp>(user) || use.getOperandNumber() != getBaseNumber(user))
        return -1;
      OpOperand *offset = getOffset(user);
      Value value = offset && !isConstant(offset->get()) ? offset->get() : Value();
      if (llvm::any_of(offsets, [&](Value other) {
            return value && other ? areSame(value, other) : value == other;
          }))
        continue;
      SmallPtrSet<Operation *, 4> unrolled;
      if (value && !isFixed(value, unrolled))
        return -1;
      int64_t steps = 1;
      for (Operation *op : unrolled)
        steps *= int64_t(cast<UnrollOp>(op).getUpper()) - int64_t(cast<UnrollOp>(op).getLower());
      offsets.push_back(value);
      places += steps;
    }
    return places;
  }

  /// Which operand is the pointer.
  static unsigned getBaseNumber(Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op))
      return read.getBaseMutable().getOperandNumber();
    if (auto write = dyn_cast<WriteOp>(op))
      return write.getBaseMutable().getOperandNumber();
    return cast<PtrAddOp>(op).getBaseMutable().getOperandNumber();
  }

  /// Has all accesses add the counter to the pointer that the loop begins with.
  void stay(unsigned index) {
    BlockArgument pointer = loop.getRegionIterArg(index);
    Value first = loop.getInitArgs()[index], counter = loop.getInductionVar();
    auto move = loop.getTiedLoopYieldedValue(pointer)->get().getDefiningOp<PtrAddOp>();
    loop.getTiedLoopYieldedValue(pointer)->set(pointer);
    move.erase();
    addLast(pointer, first, counter);
  }

  /// Has the accesses at `pointer`, which is `first` plus a number, add that number last.
  void addLast(Value pointer, Value first, Value counter) {
    for (OpOperand &use : llvm::make_early_inc_range(pointer.getUses())) {
      Operation *user = use.getOwner();
      if (user == loop.getBody()->getTerminator())
        continue;
      OpBuilder builder(user);
      OpOperand *offset = getOffset(user);
      if (offset && isConstant(offset->get())) {
        use.set(PtrAddOp::create(builder, user->getLoc(), first.getType(), first, counter));
        continue;
      }
      use.set(offset
                  ? PtrAddOp::create(builder, user->getLoc(), first.getType(), first, offset->get())
                  : first);
      if (offset)
        offset->set(counter);
      else if (auto read = dyn_cast<ReadOp>(user))
        read.getOffsetMutable().assign(counter);
      else
        cast<WriteOp>(user).getOffsetMutable().assign(counter);
    }
  }

  /// Replaces the loop by one that does not carry these numbers, which no step changes.
  void drop(const llvm::BitVector &dropped) {
    OpBuilder builder(loop);
    SmallVector<Value> inits, yielded;
    Operation *yield = loop.getBody()->getTerminator();
    for (unsigned index = 0; index < dropped.size(); ++index)
      if (!dropped[index]) {
        inits.push_back(loop.getInitArgs()[index]);
        yielded.push_back(yield->getOperand(index));
      }
    yield->setOperands(yielded);
    auto rest = scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(),
                                   loop.getUpperBound(), loop.getStep(), inits);
    rest->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    Block *body = rest.getBody();
    body->erase();
    rest.getRegion().takeBody(loop.getRegion());
    llvm::BitVector arguments(1 + dropped.size());
    unsigned place = 0;
    for (unsigned index = 0; index < dropped.size(); ++index)
      if (dropped[index])
        arguments.set(1 + index);
      else
        loop.getResult(index).replaceAllUsesWith(rest.getResult(place++));
    rest.getBody()->eraseArguments(arguments);
    loop.erase();
  }

  mutable scf::ForOp loop;
  Before before;
};

struct FollowCounters : triton_metal::impl::MSLFollowCountersBase<FollowCounters> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    bool changes = false;
    for (scf::ForOp loop : loops) {
      changes |= FollowedCounter(loop).addNumbers();
      changes |= FollowedCounter(loop).run();
    }
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
