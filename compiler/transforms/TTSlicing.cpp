#include "transforms/TTSlicing.h"

#include "analysis/AxisInfo.h"
#include "analysis/TileDims.h"
#include "dialect/ttg/TTG.h"
#include "dialect/ttm/LocationNames.h"
#include "transforms/BlockPlaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;

namespace triton_metal {

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

/// The most operations of a tree of leaves: copies of all its parts for each use stay few.
static constexpr int kMostLeaves = 24;

/// Whether a tile has one dimension: what a row, or a column, has once.
static bool isVector(RankedTensorType type) {
  return llvm::count_if(type.getShape(), [](int64_t size) { return size > 1; }) <= 1;
}

/// The operations that compute a place in a tile, a mask, a constant, or what each row has once:
/// none that costs much. 0 for all others.
static int leavesOf(Operation *op, const llvm::DenseMap<Operation *, int> &known) {
  if (op->getNumResults() != 1)
    return 0;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type)
    return 0;
  if (isa<arith::ConstantOp, tt::MakeRangeOp, tt::SplatOp>(op))
    return 1;
  bool isComputed =
      (op->hasTrait<OpTrait::Elementwise>() || isa<tt::ExpandDimsOp, tt::BroadcastOp>(op)) &&
      isMemoryEffectFree(op);
  auto load = dyn_cast<tt::LoadOp>(op);
  bool isLoaded = load && !load.getIsVolatile() && isVector(type);
  if (!isLoaded && (!isComputed || !(type.getElementType().isInteger() || isVector(type))))
    return 0;
  int leaves = 1;
  for (Value operand : op->getOperands())
    if (Operation *maker = operand.getDefiningOp())
      leaves += known.lookup(maker);
  return leaves <= kMostLeaves ? leaves : 0;
}

void spreadLeaves(tt::FuncOp kernel) {
  llvm::DenseMap<Operation *, int> known;
  SmallVector<Operation *> leaves;
  kernel.walk([&](Operation *op) {
    if (int count = leavesOf(op, known)) {
      known[op] = count;
      leaves.push_back(op);
    }
  });
  // Users come before what they use: each copy asks for operands of its own.
  for (Operation *op : llvm::reverse(leaves)) {
    SmallVector<OpOperand *> uses =
        llvm::map_to_vector(op->getResult(0).getUses(), [](OpOperand &use) { return &use; });
    for (OpOperand *use : ArrayRef(uses).drop_front(uses.empty() ? 0 : 1))
      use->set(OpBuilder(op).clone(*op)->getResult(0));
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {

/// The arguments of a kernel that a pointer may be made of.
struct Bases {
  llvm::SmallSetVector<unsigned, 2> arguments;
  bool isUnknown = false;
};

bool isPointer(Value value) { return isa<tt::PtrType>(getElementTypeOrSelf(value.getType())); }

/// The values that a value is, or is made of, one operation before. Nothing if that is not known.
std::optional<SmallVector<Value>> sourcesOf(Value pointer) {
  if (auto argument = dyn_cast<BlockArgument>(pointer)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return std::nullopt;
    return SmallVector<Value>{loop.getTiedLoopInit(argument)->get(),
                              loop.getTiedLoopYieldedValue(argument)->get()};
  }
  Operation *op = pointer.getDefiningOp();
  unsigned number = cast<OpResult>(pointer).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return SmallVector<Value>{loop.getInitArgs()[number], loop.getYieldedValues()[number]};
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return SmallVector<Value>{branch.thenYield().getOperand(number),
                              branch.elseYield().getOperand(number)};
  if (op->getNumRegions() || !isMemoryEffectFree(op))
    return std::nullopt;
  SmallVector<Value> sources = llvm::filter_to_vector(op->getOperands(), isPointer);
  if (sources.empty())
    return std::nullopt;
  return sources;
}

Bases basesOf(Value pointer, tt::FuncOp kernel) {
  Bases bases;
  llvm::SmallSetVector<Value, 16> seen;
  seen.insert(pointer);
  for (unsigned i = 0; i < seen.size(); ++i) {
    auto argument = dyn_cast<BlockArgument>(seen[i]);
    if (argument && argument.getOwner() == &kernel.getBody().front()) {
      bases.arguments.insert(argument.getArgNumber());
      continue;
    }
    std::optional<SmallVector<Value>> sources = sourcesOf(seen[i]);
    if (!sources)
      bases.isUnknown = true;
    else
      seen.insert(sources->begin(), sources->end());
  }
  return bases;
}

/// Whether two pointers may point into one array, or into arrays that a launch marks as
/// overlapping.
bool mayOverlap(const Bases &a, const Bases &b, tt::FuncOp kernel) {
  if (a.isUnknown || b.isUnknown)
    return true;
  for (unsigned one : a.arguments) {
    if (b.arguments.contains(one))
      return true;
    Attribute memory = kernel.getArgAttr(one, tt::memoryAttrName);
    if (memory && llvm::any_of(b.arguments, [&](unsigned other) {
          return kernel.getArgAttr(other, tt::memoryAttrName) == memory;
        }))
      return true;
  }
  return false;
}

/// A load, a store or a sum in memory.
struct Access {
  Operation *op;
  Value pointers;
  Bases bases;
  /// Runs in several steps of a slice.
  bool isRepeated = false;
  bool isSum = false;
};

/// Of an array's begin, while only places relative to it are asked for.
constexpr int64_t kBaseDivisibility = int64_t(1) << 20;

/// Tells how pointers lie relative to the begins of the kernel's arrays.
class RelativePlaces {
public:
  explicit RelativePlaces(tt::FuncOp kernel) {
    Builder builder(kernel.getContext());
    StringRef name = tt::divisibilityAttrName;
    SmallVector<Attribute> before;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      before.push_back(kernel.getArgAttr(i, name));
      if (isPointer(kernel.getArgument(i)))
        kernel.setArgAttr(i, name, builder.getI32IntegerAttr(kBaseDivisibility));
    }
    axes.emplace(kernel);
    // What a program says of addresses is not relative to anything.
    kernel.walk([&](Operation *op) {
      isKnown &= llvm::none_of(op->getResults(), isPointer) ||
                 !(op->hasAttr(name) || op->hasAttr(tt::testedDivisibilityAttrName));
    });
    for (auto [i, attr] : llvm::enumerate(before)) {
      if (attr)
        kernel.setArgAttr(i, name, attr);
      else
        kernel.removeArgAttr(i, name);
    }
  }

  /// Whether the `size` elements along a dimension fill a block of memory that begins at a multiple
  /// of its size, wherever the pointers are.
  bool fillBlocks(Value pointers, unsigned dim, int64_t size) const {
    AxisInfo info = axes->get(pointers);
    int64_t bytes = getElementBytes(pointers.getType());
    return isKnown && llvm::all_of(info.needs, isAlwaysMet) && llvm::isPowerOf2_64(size) &&
           info.contiguity[dim] % size == 0 &&
           info.divisibilityOf(dim, size, bytes) % (size * bytes) == 0;
  }

private:
  /// Whether a sum is below 2^31 in all launches: indices of programs are.
  static bool isAlwaysMet(const GridSum &sum) {
    return sum.most == 0 && llvm::count(sum.perProgram, 0) == 2 &&
           llvm::is_contained(sum.perProgram, 1);
  }

  std::optional<AxisInfoAnalysis> axes;
  bool isKnown = true;
};

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

class Slicer {
public:
  Slicer(tt::FuncOp kernel, ArrayRef<TileDim> members) : kernel(kernel), members(members) {
    for (const TileDim &place : members)
      tiles.insert(place.tile);
    kernel.walk([&](tt::DotOp dot) {
      if (isSummedIn(dot))
        sums.push_back(dot);
    });
  }

  /// Finds the operations of a slice, and brings them together.
  bool gather();
  /// Whether they may run once for each slice.
  bool mayRepeat();
  void rewrite(int64_t parts);

private:
  /// The loop of which the slices are all that a step does: it adds up what they give. Null if
  /// there is none.
  scf::ForOp findStepLoop();
  /// Has each step of the loop work on one slice. Both return the index of a slice.
  Value joinSteps(scf::ForOp loop, int64_t parts);
  /// Puts the operations of a slice into a loop over slices.
  Value makeLoop(int64_t parts);
  bool isTouched(Operation *op) const {
    auto isMember = [&](Value value) { return tiles.contains(value); };
    return llvm::any_of(op->getOperands(), isMember) || llvm::any_of(op->getResults(), isMember);
  }
  bool isInvolved(Operation *op) const {
    return op
        ->walk([&](Operation *inner) {
          return isTouched(inner) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }
  bool isInRange(Operation *op) const {
    Operation *outer = block->findAncestorOpInBlock(*op);
    return outer && !outer->isBeforeInBlock(first) && !last->isBeforeInBlock(outer);
  }
  /// How long the blocks of its array are of which an access touches the same part: as long as the
  /// sliced dimension. No other slice touches that part. 0 if it does not keep to such places.
  int64_t getBlock(const Access &access);
  /// Whether an operation runs in several steps of a slice. The slices of another dimension are one
  /// step: together, they are the operation on the whole tile.
  bool isRepeated(Operation *op) const;
  /// Whether a product adds up along the sliced dimensions.
  bool isSummedIn(tt::DotOp dot) const {
    unsigned column = unsigned(dot.getA().getType().getRank()) - 1;
    return llvm::any_of(members, [&](const TileDim &place) {
      return place.tile == dot.getA() && place.dim == column;
    });
  }
  /// Whether the slices of a product can add to each other: nothing of a slice makes or uses sums.
  bool mayAddUp(tt::DotOp dot) const {
    Operation *accumulator = dot.getC().getDefiningOp();
    Type element = dot.getType().getElementType();
    return dot->getBlock() == block && (element.isF32() || element.isInteger(32)) &&
           !(accumulator && isInRange(accumulator)) &&
           llvm::none_of(dot->getUsers(), [&](Operation *user) { return isInRange(user); });
  }
  /// Moves what no slice needs behind all slices.
  void moveBehind();
  /// Whether two accesses touch the same places of one tensor along the sliced dimension, in all
  /// steps of a slice: no slice then touches those of another one.
  bool haveSameSlices(const Access &a, const Access &b);
  /// Whether accesses of two slices may touch the same memory.
  bool mayMeet(const Access &a, const Access &b);
  auto range() { return llvm::make_range(first->getIterator(), std::next(last->getIterator())); }

  tt::FuncOp kernel;
  ArrayRef<TileDim> members;
  llvm::SmallSetVector<Value, 32> tiles;
  /// The products that add up along the sliced dimensions.
  SmallVector<tt::DotOp> sums;
  Block *block = nullptr;
  Operation *first = nullptr, *last = nullptr;
  std::optional<RelativePlaces> places;
};

bool Slicer::gather() {
  auto isComputed = [](Operation *op) { return !op->getNumRegions() && isMemoryEffectFree(op); };
  SmallVector<Operation *> touched;
  kernel.walk([&](Operation *op) {
    if (isTouched(op))
      touched.push_back(op);
  });
  // The innermost block around all that is not only computed.
  for (Operation *op : touched) {
    if (isComputed(op))
      continue;
    block = block ? block : op->getBlock();
    while (!block->findAncestorOpInBlock(*op))
      block = block->getParentOp()->getBlock();
  }
  if (!block)
    return false;
  // What is computed in this block or around it moves to its first user.
  for (Operation *op : llvm::reverse(touched)) {
    Operation *around = block->findAncestorOpInBlock(*op);
    if (!isComputed(op) || (around && around != op))
      continue;
    Operation *user = nullptr;
    for (Operation *other : op->getUsers()) {
      Operation *outer = block->findAncestorOpInBlock(*other);
      if (!outer)
        return false;
      if (!user || outer->isBeforeInBlock(user))
        user = outer;
    }
    if (user)
      op->moveBefore(user);
    else if (!around)
      return false;
  }
  for (Operation &op : *block)
    if (isInvolved(&op)) {
      first = first ? first : &op;
      last = &op;
    }
  // What does not depend on the rows comes before all slices; loads do where nothing is written
  // before them.
  bool isUnwritten = true;
  for (Operation &op : llvm::make_early_inc_range(range())) {
    auto load = dyn_cast<tt::LoadOp>(op);
    bool isLoad = load && !load.getIsVolatile(), isPure = isMemoryEffectFree(&op);
    bool mayMove = isPure || (isLoad && isUnwritten);
    isUnwritten &= isPure || isLoad;
    if (&op == first || isInvolved(&op) || !mayMove)
      continue;
    bool isFree = true;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *maker = operand.getDefiningOp();
        isFree &= !maker || op.isAncestor(maker) || !isInRange(maker);
      }
    });
    if (isFree)
      op.moveBefore(first);
  }
  moveBehind();
  return true;
}

int64_t Slicer::getBlock(const Access &access) {
  if (access.bases.isUnknown || access.bases.arguments.size() != 1)
    return 0;
  if (!places)
    places.emplace(kernel);
  for (const TileDim &place : members) {
    if (place.tile != access.pointers)
      continue;
    int64_t size = place.getSize();
    return places->fillBlocks(place.tile, place.dim, size) ? size : 0;
  }
  return 0;
}

bool Slicer::isRepeated(Operation *op) const {
  for (Operation *parent = op->getParentOp(); block->findAncestorOpInBlock(*parent);
       parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (isa<LoopLikeOpInterface>(parent) && !(loop && getSlices(loop)))
      return true;
  }
  return false;
}

/// The accesses of an operation, if they and computations are all that it does.
static bool collectAccesses(Operation *op, tt::FuncOp kernel, SmallVectorImpl<Access> &loads,
                            SmallVectorImpl<Access> &stores) {
  return !op->walk([&](Operation *inner) {
              auto load = dyn_cast<tt::LoadOp>(inner);
              auto store = dyn_cast<tt::StoreOp>(inner);
              if (load && !load.getIsVolatile())
                loads.push_back({load, load.getPtr(), basesOf(load.getPtr(), kernel)});
              else if (store)
                stores.push_back({store, store.getPtr(), basesOf(store.getPtr(), kernel)});
              else if (!inner->getNumRegions() && !isMemoryEffectFree(inner))
                return WalkResult::interrupt();
              return WalkResult::advance();
            }).wasInterrupted();
}

void Slicer::moveBehind() {
  SmallVector<Operation *> ops = llvm::map_to_vector(range(), [](Operation &op) { return &op; });
  // What remains behind the operation: its accesses, and whether it does anything else to memory.
  SmallVector<Access> loads, stores;
  bool isKnown = true;
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<Access> ownLoads, ownStores;
    bool isSimple = collectAccesses(op, kernel, ownLoads, ownStores);
    auto crosses = [&](ArrayRef<Access> own, ArrayRef<Access> others) {
      return llvm::any_of(own, [&](const Access &a) {
        return llvm::any_of(others,
                            [&](const Access &b) { return mayOverlap(a.bases, b.bases, kernel); });
      });
    };
    bool isNeeded = isInvolved(op) ||
                    llvm::any_of(op->getUsers(), [&](Operation *user) { return isInRange(user); });
    bool isFree = isSimple && (isKnown || (ownLoads.empty() && ownStores.empty())) &&
                  !crosses(ownLoads, stores) && !crosses(ownStores, stores) &&
                  !crosses(ownStores, loads);
    if (!isNeeded && isFree) {
      op->moveAfter(last);
      continue;
    }
    isKnown &= isSimple;
    loads.append(ownLoads);
    stores.append(ownStores);
  }
}

bool Slicer::haveSameSlices(const Access &a, const Access &b) {
  auto getPlace = [&](const Access &access) {
    return llvm::find_if(members,
                         [&](const TileDim &place) { return place.tile == access.pointers; });
  };
  const TileDim *place = getPlace(a), *other = getPlace(b);
  if (place == members.end() || other == members.end() || place->dim != other->dim ||
      place->getSize() != other->getSize())
    return false;
  int depth = getLoopDepth(first, [](Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    return !loop || !getSlices(loop);
  });
  return haveSameOffset(a.op, b.op, place->dim, depth);
}

bool Slicer::mayMeet(const Access &a, const Access &b) {
  if (!mayOverlap(a.bases, b.bases, kernel) || haveSameSlices(a, b))
    return false;
  // In one array, a slice has the same part of each block. Another shape may have other blocks.
  int64_t block = getBlock(a);
  return block == 0 || getBlock(b) != block ||
         a.bases.arguments.front() != b.bases.arguments.front() ||
         getElementTypeOrSelf(a.pointers.getType()) != getElementTypeOrSelf(b.pointers.getType());
}

bool Slicer::mayRepeat() {
  SmallVector<Access> loads, stores;
  if (!llvm::all_of(sums, [&](tt::DotOp dot) { return mayAddUp(dot); }))
    return false;
  for (Operation &op : range()) {
    // Nothing that a slice computes is used behind it, but for sums.
    for (Operation *user : op.getUsers())
      if (!isInRange(user) && !llvm::is_contained(sums, &op))
        return false;
    bool isAllowed = true;
    op.walk([&](Operation *inner) {
      // Barriers order what the threads of a program do, and slices do not meet.
      if (inner->getNumRegions() || isMemoryEffectFree(inner) || isa<ttg::BarrierOp>(inner))
        return;
      if (auto load = dyn_cast<tt::LoadOp>(inner); load && !load.getIsVolatile()) {
        loads.push_back({load, load.getPtr(), basesOf(load.getPtr(), kernel)});
        return;
      }
      auto store = dyn_cast<tt::StoreOp>(inner);
      auto atomic = dyn_cast<tt::AtomicRMWOp>(inner);
      bool isSum =
          atomic && atomic.getResult().use_empty() && atomic.getAtomicRmwOp() != tt::RMWOp::XCHG;
      isAllowed &= isTouched(inner) && (store || isSum);
      if (!isAllowed)
        return;
      Value pointers = store ? store.getPtr() : atomic.getPtr();
      stores.push_back({inner, pointers, basesOf(pointers, kernel), isRepeated(inner), isSum});
    });
    if (!isAllowed)
      return false;
  }
  for (auto [i, store] : llvm::enumerate(stores)) {
    // What is stored in several steps may overlap: later steps of a slice would come before earlier
    // ones of the next. Sums come in any order.
    if (store.isRepeated && !store.isSum && mayMeet(store, store))
      return false;
    auto meets = [&](const Access &other) { return mayMeet(store, other); };
    if (llvm::any_of(loads, meets) || llvm::any_of(ArrayRef(stores).drop_front(i + 1), meets))
      return false;
  }
  return true;
}

/// A slice begins at a multiple of its own length, not at one of the whole tile's.
void limitDivisibility(Operation *op, unsigned dim, int64_t length) {
  for (StringRef name :
       {StringRef(tt::divisibilityAttrName), StringRef(tt::testedDivisibilityAttrName)}) {
    Attribute attr = op->getAttr(name);
    if (auto integer = dyn_cast_or_null<IntegerAttr>(attr)) {
      op->setAttr(name, IntegerAttr::get(integer.getType(), std::gcd(integer.getInt(), length)));
    } else if (auto dense = dyn_cast_or_null<DenseIntElementsAttr>(attr)) {
      SmallVector<APInt> values(dense.getValues<APInt>());
      if (dim < values.size())
        values[dim] =
            APInt(values[dim].getBitWidth(), std::gcd(values[dim].getSExtValue(), length));
      op->setAttr(name, DenseElementsAttr::get(dense.getType(), values));
    }
  }
}

scf::ForOp Slicer::findStepLoop() {
  auto loop = dyn_cast<scf::ForOp>(block->getParentOp());
  if (!loop || sums.empty() || getSlices(loop))
    return {};
  for (Operation &op : *block)
    if (!isInRange(&op) && !isMemoryEffectFree(&op))
      return {};
  auto isSum = [&](Value argument, Value next) {
    auto dot = next.getDefiningOp<tt::DotOp>();
    return dot && llvm::is_contained(sums, dot) && dot.getC() == argument && argument.hasOneUse() &&
           next.hasOneUse();
  };
  unsigned count = 0;
  for (auto [argument, next] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (isSum(argument, next))
      ++count;
    else if (isa<ShapedType>(argument.getType()))
      return {};
  return count == sums.size() ? loop : scf::ForOp();
}

/// A number that is not negative as one of another type.
static Value convert(OpBuilder &builder, Location loc, Value number, Type type) {
  Type from = number.getType();
  if (from == type)
    return number;
  if (from.isIndex() || type.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, number);
  if (from.getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(builder, loc, type, number);
  return arith::ExtSIOp::create(builder, loc, type, number);
}

/// What a loop adds to an integer in each step, if that is the same in all of them; otherwise null.
static Value getIncrement(scf::ForOp loop, Value argument, Value next) {
  auto sum = next.getDefiningOp<arith::AddIOp>();
  if (!sum || !isa<IntegerType>(argument.getType()))
    return {};
  for (unsigned side : {0, 1})
    if (Value more = sum->getOperand(1 - side);
        sum->getOperand(side) == argument && loop.isDefinedOutsideOfLoop(more))
      return more;
  return {};
}

Value Slicer::joinSteps(scf::ForOp loop, int64_t parts) {
  OpBuilder builder(loop);
  Location loc = unnamed(loop.getLoc());
  Type type = loop.getInductionVar().getType();
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  // Differences of numbers whose order is known are exact as unsigned numbers.
  Value one = integer(1), zero = integer(0), count = integer(parts);
  Value distance = builder.createOrFold<arith::SubIOp>(loc, upper, lower);
  Value last = builder.createOrFold<arith::SubIOp>(loc, distance, one);
  Value steps = builder.createOrFold<arith::DivUIOp>(loc, last, step);
  steps = builder.createOrFold<arith::AddIOp>(loc, steps, one);
  auto isBelow = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value some = builder.createOrFold<arith::CmpIOp>(loc, isBelow, lower, upper);
  steps = builder.createOrFold<arith::SelectOp>(loc, some, steps, zero);
  loop.setLowerBound(zero);
  loop.setUpperBound(builder.createOrFold<arith::MulIOp>(loc, steps, count));
  loop.setStep(one);
  loop->setAttr(kStepSlicesAttr, builder.getI32IntegerAttr(int32_t(parts * getStepSlices(loop))));

  builder.setInsertionPointToStart(block);
  Value index = loop.getInductionVar();
  Value whole = arith::ShRUIOp::create(builder, loc, index, integer(llvm::Log2_64(parts)));
  Value slice = arith::AndIOp::create(builder, loc, index, integer(parts - 1));
  Value place = builder.createOrFold<arith::MulIOp>(loc, whole, step);
  place = builder.createOrFold<arith::AddIOp>(loc, lower, place);
  index.replaceUsesWithIf(place, [&](OpOperand &use) {
    return use.getOwner() != whole.getDefiningOp() && use.getOwner() != slice.getDefiningOp() &&
           use.getOwner() != place.getDefiningOp();
  });
  // What the loop carries beside the sums changes behind the last slice of a step. Where that is a
  // counter, its value follows from the step.
  Value isLast;
  for (auto [argument, init, result, next] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs(), loop.getResults(),
                       block->getTerminator()->getOpOperands())) {
    if (isa<ShapedType>(argument.getType()))
      continue;
    Value more = result.use_empty() ? getIncrement(loop, argument, next.get()) : Value();
    if (more) {
      builder.setInsertionPointAfterValue(whole);
      Value steps = convert(builder, loc, whole, argument.getType());
      Value added = builder.createOrFold<arith::MulIOp>(loc, steps, more);
      argument.replaceAllUsesWith(builder.createOrFold<arith::AddIOp>(loc, init, added));
      next.set(argument);
      continue;
    }
    builder.setInsertionPoint(block->getTerminator());
    if (!isLast)
      isLast =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slice, integer(parts - 1));
    next.set(arith::SelectOp::create(builder, loc, isLast, next.get(), argument));
  }
  builder.setInsertionPointAfterValue(slice);
  return convert(builder, loc, slice, builder.getI32Type());
}

Value Slicer::makeLoop(int64_t parts) {
  OpBuilder builder(first);
  Location loc = unnamed(first->getLoc());
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };
  SmallVector<Value> accumulators =
      llvm::map_to_vector(sums, [](tt::DotOp dot) -> Value { return dot.getC(); });
  auto loop =
      scf::ForOp::create(builder, loc, integer(0), integer(parts), integer(1), accumulators);
  loop->moveAfter(last);
  loop->setAttr(kSlicesAttr, builder.getI32IntegerAttr(parts));
  // A loop without results has its end already.
  Block *body = loop.getBody();
  auto end = body->empty() ? body->end() : body->getTerminator()->getIterator();
  for (Operation &op : llvm::make_early_inc_range(range()))
    op.moveBefore(body, end);
  SmallVector<Value> added;
  for (auto [dot, accumulator, result] :
       llvm::zip_equal(sums, loop.getRegionIterArgs(), loop.getResults())) {
    dot.getD().replaceAllUsesWith(result);
    dot.getCMutable().assign(accumulator);
    added.push_back(dot.getD());
  }
  if (!added.empty()) {
    builder.setInsertionPointToEnd(body);
    scf::YieldOp::create(builder, loc, added);
  }
  return loop.getInductionVar();
}

void Slicer::rewrite(int64_t parts) {
  scf::ForOp steps = findStepLoop();
  Value index = steps ? joinSteps(steps, parts) : makeLoop(parts);
  OpBuilder builder(kernel.getContext());
  for (auto [tile, dim] : members) {
    auto type = cast<RankedTensorType>(tile.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] /= parts;
    RankedTensorType part = type.clone(shape);
    tile.setType(part);
    Operation *maker = tile.getDefiningOp();
    if (maker)
      limitDivisibility(maker, dim, shape[dim]);
    if (auto constant = dyn_cast_or_null<arith::ConstantOp>(maker)) {
      auto elements = cast<DenseElementsAttr>(constant.getValue());
      constant.setValueAttr(elements.resizeSplat(part));
    } else if (auto place = dyn_cast_or_null<tt::MakeRangeOp>(maker)) {
      // The rows of a slice begin behind those of the slices before it.
      place.setEnd(place.getStart() + shape[dim]);
      builder.setInsertionPointAfter(place);
      Location loc = unnamed(place.getLoc());
      Value length = arith::ConstantIntOp::create(builder, loc, shape[dim], 32);
      Value start = arith::MulIOp::create(builder, loc, index, length);
      Value starts = tt::SplatOp::create(builder, loc, part, start);
      auto rows = arith::AddIOp::create(builder, place.getLoc(), place, starts);
      place.getResult().replaceAllUsesExcept(rows, rows);
    }
  }
}

} // namespace

bool slice(tt::FuncOp kernel, unsigned id, int64_t parts) {
  TileDims dims(kernel);
  if (!(dims.isFree(id) || dims.isSummed(id)) || !dims.isDivisible(id, parts))
    return false;
  for (auto [tile, dim] : dims.getMembers(id))
    if (auto range = tile.getDefiningOp<tt::MakeRangeOp>();
        range && !getElementTypeOrSelf(tile.getType()).isInteger(32))
      return false;
  Slicer slicer(kernel, dims.getMembers(id));
  if (!slicer.gather() || !slicer.mayRepeat())
    return false;
  slicer.rewrite(parts);
  return true;
}

} // namespace triton_metal
