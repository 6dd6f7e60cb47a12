#include "transforms/MSLJoins.h"

#include "transforms/MSLTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// The choice that an operation makes, if it chooses each register for itself.
std::optional<DenseElementsAttr> getChoice(arith::SelectOp select) {
  DenseElementsAttr choice;
  if (!isTile(select.getResult()) || !matchPattern(select.getCondition(), m_Constant(&choice)) ||
      choice.isSplat())
    return std::nullopt;
  return choice;
}

int64_t getBits(Value tile) {
  return getNumRegisters(tile.getType()) * getElementTypeOrSelf(tile).getIntOrFloatBitWidth();
}

/// What one choice puts together.
class Join {
public:
  explicit Join(arith::SelectOp last) : last(last) {}

  /// Collects the operations that may be computed with the last choice; false if that would take
  /// more registers, or compute a number twice.
  bool collect() {
    if (!collect(last) || arithmetic.empty())
      return false;
    int64_t needed = 0;
    for (Value source : sources)
      needed += getBits(source);
    return needed < made;
  }

  void addTo(llvm::DenseSet<Operation *> &members) const {
    members.insert_range(choices);
    members.insert_range(arithmetic);
  }

private:
  bool collect(arith::SelectOp select) {
    std::optional<DenseElementsAttr> choice = getChoice(select);
    return choice && collect(select.getTrueValue(), *choice, true) &&
           collect(select.getFalseValue(), *choice, false);
  }

  /// The registers of one side of a choice, those where the choice has this value.
  bool collect(Value side, DenseElementsAttr choice, bool isTaken) {
    SmallVector<int64_t> taken;
    for (auto [index, isTrue] : llvm::enumerate(choice.getValues<bool>()))
      if (isTrue == isTaken)
        taken.push_back(index);
    while (auto permute = side.getDefiningOp<PermuteRegistersOp>()) {
      if (!isInside(permute))
        return false;
      for (int64_t &index : taken)
        index = permute.getSource(index);
      side = permute.getValue();
    }
    llvm::SmallDenseSet<int64_t> once(taken.begin(), taken.end());
    if (once.size() != taken.size())
      return false;
    Operation *op = side.getDefiningOp();
    auto inner = dyn_cast_or_null<arith::SelectOp>(op);
    if (inner && isInside(inner) && getChoice(inner)) {
      choices.push_back(inner);
      return collect(inner);
    }
    made += getBits(side);
    collectArithmetic(side);
    return true;
  }

  /// What a tile is computed of, number by number.
  void collectArithmetic(Value tile) {
    Operation *op = tile.getDefiningOp();
    if (isa_and_nonnull<arith::ConstantOp, SplatOp, ub::PoisonOp>(op))
      return;
    if (!op || !isInside(op) || !isElementwise(op) || !isa<arith::ArithDialect>(op->getDialect()) ||
        isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::DivFOp,
            arith::RemFOp>(op)) {
      sources.insert(tile);
      return;
    }
    arithmetic.push_back(op);
    for (Value operand : op->getOperands())
      if (isTile(operand))
        collectArithmetic(operand);
  }

  /// Whether nothing else needs the operation, and it runs as often as the last choice.
  bool isInside(Operation *op) const {
    return op->hasOneUse() && op->getBlock() == last->getBlock();
  }

  arith::SelectOp last;
  SmallVector<Operation *> choices, arithmetic;
  llvm::SetVector<Value> sources;
  /// The bits of the numbers that are put together.
  int64_t made = 0;
};

} // namespace

Joins::Joins(KernelOp kernel) {
  // Those of the last choices come first, with all choices before them.
  SmallVector<arith::SelectOp> selects;
  kernel.walk([&](arith::SelectOp select) { selects.push_back(select); });
  for (arith::SelectOp select : llvm::reverse(selects)) {
    if (members.contains(select))
      continue;
    Join join(select);
    if (join.collect())
      join.addTo(members);
  }
}
