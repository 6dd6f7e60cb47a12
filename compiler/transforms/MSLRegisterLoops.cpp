#include "transforms/MSLRegisterLoops.h"

#include "transforms/MSLAccess.h"
#include "transforms/MSLArrays.h"
#include "transforms/MSLTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
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
  uint64_t breaks = 0;
  bool writtenOut = false;

  void visit(Value value, const RegisterMap &map, bool isIdentity) {
    if (!isTile(value))
      return;
    if (isIdentity ? !seen.insert(value).second : !isNew(value, map))
      return;
    if (!isIdentity) {
      writtenOut |= !map.isDisjoint();
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
      else
        writtenOut = true;
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

private:
  void breakWhere(ArrayRef<int64_t> strides) {
    for (size_t bit = 1; bit < strides.size(); ++bit)
      if (strides[bit] != strides[bit - 1] * 2)
        breaks |= uint64_t(1) << bit;
  }

  bool isNew(Value value, const RegisterMap &map) {
    for (const auto &[other, otherMap] : mapped)
      if (other == value && otherMap.bases == map.bases && otherMap.offset == map.offset)
        return false;
    mapped.push_back({value, map});
    return true;
  }

  llvm::DenseSet<Value> seen;
  /// Tiles that are visited under another order of registers. A kernel has few of them.
  SmallVector<std::pair<Value, RegisterMap>> mapped;
};

} // namespace

LoopNest triton_metal::msl::getLoopNest(ArrayRef<Value> roots, int64_t registers, int64_t step,
                                        ArrayRef<int64_t> breaks) {
  BreakFinder finder;
  for (int64_t bit : breaks)
    finder.breaks |= uint64_t(1) << bit;
  RegisterMap identity = RegisterMap::identity(registers);
  for (Value root : roots)
    if (getNumRegisters(root.getType()) == registers)
      finder.visit(root, identity, /*isIdentity=*/true);
  LoopNest nest;
  nest.writtenOut = finder.writtenOut;
  for (int64_t stride = step; stride < registers;) {
    int64_t end = stride * 2;
    while (end < registers && !(finder.breaks >> llvm::Log2_64(end) & 1))
      end *= 2;
    nest.dims.insert(nest.dims.begin(), LoopDim{stride, end / stride});
    stride = end;
  }
  return nest;
}

void triton_metal::msl::createLoopNest(OpBuilder &builder, Location loc, const LoopNest &nest,
                                       int64_t registers, int64_t step,
                                       function_ref<void(const Coord &)> body) {
  if (nest.writtenOut) {
    for (int64_t first = 0; first < registers; first += step)
      body(Coord().plus(first));
    return;
  }
  OpBuilder::InsertionGuard guard(builder);
  Coord at;
  for (const LoopDim &dim : nest.dims) {
    auto loop = UnrollOp::create(builder, loc, 0, dim.trip);
    builder.setInsertionPoint(loop.getBody().front().getTerminator());
    at = at.plus(loop.getIndex(), dim.stride, dim.trip);
  }
  body(at);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

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
  return std::min(step, registers);
}

int64_t triton_metal::msl::getGuardedStep(TileLoopOp loop, int64_t step) {
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

SmallVector<Value> triton_metal::msl::getFullConditions(TileLoopOp loop) {
  llvm::SetVector<Value> conditions;
  for (Operation &op : loop.getBody().front())
    if (std::optional<Access> access = Access::get(&op); access && access->full)
      conditions.insert(access->full);
  return conditions.takeVector();
}

SmallVector<Operation *> triton_metal::msl::getItems(TileLoopOp loop) {
  SmallVector<Operation *> items;
  for (Operation &op : loop.getBody().front().without_terminator())
    if (!isa<ReadTileOp, PermuteRegistersOp>(op))
      items.push_back(&op);
  return items;
}
