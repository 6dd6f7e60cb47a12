#include "transforms/MSLRegisterLoops.h"

#include "transforms/MSLAccess.h"
#include "transforms/MSLArrays.h"
#include "transforms/MSLBefore.h"
#include "transforms/MSLConstantBits.h"
#include "transforms/MSLTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {

/// Finds the register bits at which loops over the visited tiles must end.
class BreakFinder {
public:
  /// The first `stepBits` bits of a register are constants in every step.
  explicit BreakFinder(unsigned stepBits) : stepBits(stepBits) {}

  uint64_t breaks = 0;
  /// Bits whose loops have to be written out.
  uint64_t writtenOutBits = 0;
  /// Bits that contribute by exclusive or, or by decisions.
  uint64_t intricateBits = 0;

  void visit(ArrayRef<Value> roots, int64_t registers) {
    RegisterMap identity = RegisterMap::identity(registers);
    for (Value root : roots)
      if (getNumRegisters(root.getType()) == registers)
        visit(root, identity, /*isIdentity=*/true);
  }

private:
  void visit(Value value, const RegisterMap &map, bool isIdentity) {
    if (!isTile(value))
      return;
    if (isIdentity ? !seen.insert(value).second : !isNew(value, map))
      return;
    if (!isIdentity) {
      intricateBits |= getSharedBits(map);
      breakWhere(map.bases);
    }
    Operation *op = value.getDefiningOp();
    if (!op)
      return;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto dense = cast<DenseElementsAttr>(constant.getValue());
      if (dense.isSplat())
        return;
      if (auto strides = getLinearStrides(dense, map))
        breakWhere(*strides);
      else if (auto bits = getComputedBits(dense, map))
        intricateBits |= *bits;
      else
        writeOutWhere(dense, map);
      return;
    }
    if (auto permute = dyn_cast<PermuteRegistersOp>(op)) {
      RegisterMap inner{SmallVector<int64_t>(permute.getBases()), int64_t(permute.getOffset())};
      visit(permute.getValue(), map.then(inner), /*isIdentity=*/false);
      return;
    }
    if (isElementwise(op))
      for (Value operand : op->getOperands())
        visit(operand, map, isIdentity);
  }

  /// The bits of the outer index that meet another one, or the offset, in a bit of the inner index.
  static uint64_t getSharedBits(const RegisterMap &map) {
    int64_t seen = map.offset, shared = 0;
    for (int64_t base : map.bases) {
      shared |= seen & base;
      seen |= base;
    }
    uint64_t bits = 0;
    for (auto [bit, base] : llvm::enumerate(map.bases))
      if (base & shared)
        bits |= uint64_t(1) << bit;
    return bits;
  }

  void breakWhere(ArrayRef<int64_t> strides) {
    for (size_t bit = 1; bit < strides.size(); ++bit)
      if (strides[bit] != strides[bit - 1] * 2)
        breaks |= uint64_t(1) << bit;
  }

  /// Adds the bits that select an element of the constant and differ from step to step.
  void writeOutWhere(DenseElementsAttr constant, const RegisterMap &map) {
    int64_t registers = int64_t(1) << map.bases.size();
    SmallVector<int64_t> elements;
    for (int64_t index = 0; index < registers; ++index)
      elements.push_back(getConstantElement(constant, map.apply(index)));
    for (int64_t bit = int64_t(1) << stepBits; bit < registers; bit <<= 1)
      for (int64_t index = 0; index < registers; ++index)
        if (elements[index] != elements[index ^ bit]) {
          writtenOutBits |= bit;
          break;
        }
  }

  bool isNew(Value value, const RegisterMap &map) {
    for (const auto &[other, otherMap] : mapped)
      if (other == value && otherMap.bases == map.bases && otherMap.offset == map.offset)
        return false;
    mapped.push_back({value, map});
    return true;
  }

  unsigned stepBits;
  llvm::DenseSet<Value> seen;
  /// Tiles that are visited under another order of registers. A kernel has few of them.
  SmallVector<std::pair<Value, RegisterMap>> mapped;
};

} // namespace

LoopNest triton_metal::msl::getLoopNest(ArrayRef<Value> roots, int64_t registers, int64_t step,
                                        ArrayRef<int64_t> breaks) {
  BreakFinder finder(llvm::Log2_64(step));
  for (int64_t bit : breaks)
    finder.breaks |= uint64_t(1) << bit;
  finder.visit(roots, registers);
  LoopNest nest;
  uint64_t writtenOut = finder.writtenOutBits;
  // As text, few steps are easier to read than what an index needs to choose between them.
  constexpr int64_t kFewSteps = 4;
  if (registers / step <= kFewSteps)
    writtenOut |= finder.intricateBits;
  for (int64_t stride = step; stride < registers;) {
    int64_t end = stride * 2;
    bool out = writtenOut & stride;
    while (end < registers && !(finder.breaks >> llvm::Log2_64(end) & 1) &&
           bool(writtenOut & end) == out)
      end *= 2;
    nest.dims.insert(nest.dims.begin(), LoopDim{stride, end / stride, out});
    stride = end;
  }
  return nest;
}

bool LoopNest::hasLoopsOnly() const {
  return !writtenOut && llvm::none_of(dims, [](const LoopDim &dim) { return dim.writtenOut; });
}

bool triton_metal::msl::canBeIndexed(ArrayRef<Value> roots, int64_t registers) {
  BreakFinder finder(/*stepBits=*/0);
  finder.visit(roots, registers);
  return !finder.writtenOutBits && !finder.intricateBits;
}

/// Creates the loops of `dims`, the outermost first.
static void createLoops(OpBuilder &builder, Location loc, ArrayRef<LoopDim> dims, const Coord &at,
                        function_ref<void(const Coord &)> body) {
  if (dims.empty())
    return body(at);
  const LoopDim &dim = dims.front();
  if (dim.writtenOut) {
    for (int64_t index = 0; index < dim.trip; ++index)
      createLoops(builder, loc, dims.drop_front(), at.plus(index * dim.stride), body);
    return;
  }
  OpBuilder::InsertionGuard guard(builder);
  auto loop = UnrollOp::create(builder, loc, 0, dim.trip);
  builder.setInsertionPoint(loop.getBody().front().getTerminator());
  createLoops(builder, loc, dims.drop_front(), at.plus(loop.getIndex(), dim.stride, dim.trip),
              body);
}

void triton_metal::msl::createLoopNest(OpBuilder &builder, Location loc, const LoopNest &nest,
                                       int64_t registers, int64_t step,
                                       function_ref<void(const Coord &)> body) {
  if (nest.writtenOut) {
    for (int64_t first = 0; first < registers; first += step)
      body(Coord().plus(first));
    return;
  }
  createLoops(builder, loc, nest.dims, Coord(), body);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {

/// Widens a step such that it takes whole vectors of the variables that are read under another
/// order of registers. The components of a vector are then constants, and not selected by an index.
/// So are the sides of constant choices that are computed on demand under another order.
class StepWidener {
public:
  /// A step that would become longer than this stays as it was.
  static constexpr int64_t kLongest = 4 * kLargestChunk;

  StepWidener(int64_t registers, int64_t step) : registers(registers), step(step) {}

  void visit(Value value, const RegisterMap &map, bool isIdentity) {
    if (!isTile(value) || (isIdentity && !seen.insert(value).second))
      return;
    Operation *op = value.getDefiningOp();
    if (auto read = dyn_cast_or_null<ReadTileOp>(op)) {
      if (!isIdentity)
        widen(map, getWidth(read.getArray()) - 1);
    } else if (auto permute = dyn_cast_or_null<PermuteRegistersOp>(op)) {
      RegisterMap inner{SmallVector<int64_t>(permute.getBases()), int64_t(permute.getOffset())};
      visit(permute.getValue(), map.then(inner), /*isIdentity=*/false);
    } else if (op && isElementwise(op)) {
      if (auto select = dyn_cast<arith::SelectOp>(op); select && !isIdentity)
        widen(map, getChoosingBits(select));
      for (Value operand : op->getOperands())
        visit(operand, map, isIdentity);
    }
  }

  int64_t get() const { return step; }

private:
  /// The bits of a register's number that decide which side of a constant choice it takes.
  static int64_t getChoosingBits(arith::SelectOp select) {
    DenseElementsAttr choice;
    if (!matchPattern(select.getCondition(), m_Constant(&choice)) || choice.isSplat())
      return 0;
    SmallVector<bool> sides(choice.getValues<bool>());
    int64_t bits = 0;
    for (size_t bit = 1; bit < sides.size(); bit <<= 1)
      for (size_t index = 0; index < sides.size(); ++index)
        if (sides[index] != sides[index ^ bit])
          bits |= bit;
    return bits;
  }

  /// Widens the step to all registers that differ in these bits of the other order.
  void widen(const RegisterMap &map, int64_t bits) {
    int64_t wide = step;
    for (auto [bit, base] : llvm::enumerate(map.bases))
      if (base & bits)
        wide = std::max(wide, int64_t(2) << bit);
    if (wide <= std::min(kLongest, registers))
      step = wide;
  }

  int64_t registers, step;
  llvm::DenseSet<Value> seen;
};

} // namespace

static int64_t widenStep(ArrayRef<Operation *> ops, int64_t registers, int64_t step) {
  StepWidener widener(registers, step);
  RegisterMap identity = RegisterMap::identity(registers);
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (getNumRegisters(operand.getType()) == registers)
        widener.visit(operand, identity, /*isIdentity=*/true);
  return widener.get();
}

int64_t triton_metal::msl::getStep(ArrayRef<Operation *> ops, int64_t registers) {
  int64_t step = 0;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work;
  for (Operation *op : ops) {
    if (std::optional<Access> access = Access::get(op))
      if (!access->isAtomic)
        step = std::max(step, access->width);
    llvm::append_range(work, op->getOperands());
  }
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (getNumRegisters(value.getType()) != registers || !seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (auto read = dyn_cast_or_null<ReadTileOp>(op))
      step = std::max(step, getWidth(read.getArray()));
    else if (isa_and_nonnull<TileLoopOp, ReduceRegistersOp, AsTileOp>(op) &&
             registers <= kLargestChunk)
      step = registers;
    else if (op && !isa<PermuteRegistersOp>(op) && (isElementwise(op) || isOnDemand(value)))
      llvm::append_range(work, op->getOperands());
  }
  if (step == 0)
    step = llvm::any_of(ops, isAccess) ? 1 : kLargestChunk;
  return std::min(widenStep(ops, registers, step), registers);
}

SmallVector<Value> triton_metal::msl::getRunMasks(TileLoopOp loop, int64_t step) {
  llvm::SetVector<Value> masks;
  bool better = false;
  auto add = [&](Value mask, const Access &access) {
    if (access.isAtomic || access.maskRun < step || !isOnDemand(mask))
      return;
    masks.insert(mask);
    better |= access.maskWidth < std::min(access.width, step);
  };
  for (Operation &op : loop.getBody().front()) {
    if (std::optional<Access> access = Access::get(&op); access && access->mask)
      add(access->mask, *access);
    // A choice by the mask of an access, wherever that is.
    if (auto select = dyn_cast<arith::SelectOp>(op); select && isTile(select.getCondition()))
      for (Operation *user : select.getCondition().getUsers())
        if (std::optional<Access> access = Access::get(user);
            access && access->mask == select.getCondition())
          add(access->mask, *access);
  }
  if (step == 1 || !better)
    return {};
  return SmallVector<Value>(masks.getArrayRef());
}

Value triton_metal::msl::getWholeMask(TileLoopOp loop, int64_t step) {
  Value whole;
  bool loads = false, stores = false;
  for (Operation &op : loop.getBody().front().without_terminator()) {
    std::optional<Access> access = Access::get(&op);
    if (!access) {
      if (!isMemoryEffectFree(&op) || isa<WriteTileOp, AccumulateOp>(op) || crossesLanes(&op))
        return {};
      continue;
    }
    if (access->isAtomic || access->isVolatile || (access->writes && !access->mask))
      return {};
    if (!access->mask)
      continue;
    if ((whole && access->mask != whole) || access->maskWidth < step || access->maskRun < step)
      return {};
    whole = access->mask;
    (access->writes ? stores : loads) = true;
  }
  return loads && stores && loop.getNumResults() == 0 && isOnDemand(whole) ? whole : Value();
}

int64_t triton_metal::msl::getGuardedStep(TileLoopOp loop, int64_t step) {
  if (!getRunMasks(loop, step).empty())
    return step;
  int64_t widest = 0;
  bool anyMasked = false;
  for (Operation &op : loop.getBody().front()) {
    std::optional<Access> access = Access::get(&op);
    if (!access)
      continue;
    bool masked = access->mask && !access->isAtomic;
    anyMasked |= masked;
    widest = std::max(widest, masked ? std::min(access->width, access->maskWidth) : access->width);
  }
  return anyMasked ? std::min(step, widest) : step;
}

Value triton_metal::msl::getFullCondition(arith::SelectOp op, TileLoopOp loop) {
  Value mask = op.getCondition();
  if (!isTile(mask))
    return {};
  for (Operation *user : mask.getUsers())
    if (std::optional<Access> access = Access::get(user); access && access->mask == mask)
      if (access->full && isComputedBefore(access->full, loop))
        return access->full;
  return {};
}

SmallVector<Value> triton_metal::msl::getFullConditions(TileLoopOp loop) {
  llvm::SetVector<Value> conditions;
  for (Operation &op : loop.getBody().front()) {
    if (std::optional<Access> access = Access::get(&op); access && access->full)
      conditions.insert(access->full);
    if (auto select = dyn_cast<arith::SelectOp>(op))
      if (Value full = getFullCondition(select, loop))
        conditions.insert(full);
  }
  return conditions.takeVector();
}

SmallVector<Operation *> triton_metal::msl::getItems(TileLoopOp loop) {
  SmallVector<Operation *> items;
  for (Operation &op : loop.getBody().front().without_terminator())
    if (!isa<ReadTileOp, PermuteRegistersOp>(op))
      items.push_back(&op);
  return items;
}

SmallVector<ItemGroup> triton_metal::msl::getItemGroups(ArrayRef<Operation *> items,
                                                        ArrayRef<Value> masks) {
  llvm::EquivalenceClasses<Operation *> classes;
  llvm::DenseMap<Value, Operation *> readers;
  for (Operation *item : items) {
    classes.insert(item);
    for (Value operand : item->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (definition && llvm::is_contained(items, definition))
        classes.unionSets(item, definition);
      if (llvm::is_contained(masks, operand))
        classes.unionSets(item, readers.try_emplace(operand, item).first->second);
    }
  }
  // What only reads and computes may change its order.
  bool canMove = llvm::all_of(items, [](Operation *item) {
    return isa<LoadOp, LoadAddressOp>(item) ? !hasEffect<MemoryEffects::Write>(item)
                                            : isMemoryEffectFree(item);
  });
  llvm::MapVector<Operation *, ItemGroup> byLeader;
  Operation *last = nullptr;
  bool isInOrder = true;
  for (Operation *item : items) {
    Operation *leader = classes.getLeaderValue(item);
    isInOrder &= leader == last || !byLeader.contains(leader);
    byLeader[leader].items.push_back(item);
    last = leader;
  }
  if (!isInOrder && !canMove)
    return {ItemGroup{SmallVector<Operation *>(items), SmallVector<Value>(masks)}};
  SmallVector<ItemGroup> groups;
  for (auto &[leader, group] : byLeader)
    groups.push_back(std::move(group));
  for (ItemGroup &group : groups)
    for (Value mask : masks)
      if (llvm::any_of(group.items, [&](Operation *item) {
            return llvm::is_contained(item->getOperands(), mask);
          }))
        group.masks.push_back(mask);
  return groups;
}
