#include "transforms/TTPointerAnalysis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace triton_metal {

bool isPointerTile(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<tt::PtrType>(tensor.getElementType());
}

std::optional<UniformValue> getUniformValue(Value value) {
  if (auto splat = value.getDefiningOp<tt::SplatOp>())
    return UniformValue{splat.getSrc(), {}};
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  auto splat = dyn_cast<SplatElementsAttr>(attr);
  if (!splat || !isa<IntegerType>(splat.getElementType()))
    return std::nullopt;
  return UniformValue{{}, splat.getSplatValue<IntegerAttr>()};
}

bool keepsElementSize(tt::BitcastOp op) {
  auto bytes = [](Type type) {
    auto pointer = cast<tt::PtrType>(getElementTypeOrSelf(type));
    return (tt::getBitWidth(pointer.getPointeeType()) + 7) / 8;
  };
  return bytes(op.getSrc().getType()) == bytes(op.getType());
}

PointerAnalysis::PointerAnalysis(Operation *root) {
  // The analysis is optimistic: a value is unknown until something that defines it is known. Kinds
  // and widths only grow, so the iteration ends.
  do {
    changed = false;
    root->walk<WalkOrder::PreOrder>([&](Operation *op) { visit(op); });
  } while (changed);
}

PointerTile PointerAnalysis::get(Value value) const { return tiles.lookup(value); }

void PointerAnalysis::join(Value value, PointerTile tile) {
  if (!isPointerTile(value.getType()) || tile.kind == PointerTile::Unknown)
    return;
  PointerTile &known = tiles[value];
  PointerTile joined = tile;
  if (known.kind == PointerTile::Whole || tile.kind == PointerTile::Whole)
    joined = PointerTile::whole();
  else if (known.kind == PointerTile::Split)
    joined = PointerTile::split(std::max(known.width, tile.width));
  if (joined == known)
    return;
  known = joined;
  changed = true;
}

void PointerAnalysis::joinAll(ValueRange values, ValueRange from) {
  for (auto [value, source] : llvm::zip_equal(values, from))
    join(value, get(source));
}

void PointerAnalysis::visit(Operation *op) {
  // Arguments of all other regions stay whole tiles of pointers.
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      bool known = isa<scf::ForOp, scf::WhileOp>(op) && block.isEntryBlock();
      if (!known)
        for (Value argument : block.getArguments())
          join(argument, PointerTile::whole());
    }

  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tt::SplatOp splat) { join(splat, PointerTile::split(0)); })
      .Case([&](ub::PoisonOp poison) { join(poison, PointerTile::split(0)); })
      .Case([&](tt::AddPtrOp add) {
        PointerTile tile = get(add.getPtr());
        if (tile.kind == PointerTile::Split && !getUniformValue(add.getOffset())) {
          unsigned width = tt::getBitWidth(add.getOffset().getType()) > 32 ? 64 : 32;
          // A sum may need more bits than its operands.
          tile.width = tile.width == 0 ? width : 64;
        }
        join(add, tile);
      })
      .Case([&](tt::BitcastOp cast) {
        if (isPointerTile(cast.getType()))
          join(cast, keepsElementSize(cast) ? get(cast.getSrc()) : PointerTile::whole());
      })
      .Case<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp>(
          [&](auto shape) { join(shape, get(shape.getSrc())); })
      .Case([&](arith::SelectOp select) {
        // An elementwise choice between two bases has no base.
        if (isPointerTile(select.getType()) &&
            isa<RankedTensorType>(select.getCondition().getType()) &&
            !getUniformValue(select.getCondition()))
          return join(select, PointerTile::whole());
        join(select, get(select.getTrueValue()));
        join(select, get(select.getFalseValue()));
      })
      .Case([&](scf::ForOp loop) {
        joinAll(loop.getRegionIterArgs(), loop.getInitArgs());
        joinAll(loop.getRegionIterArgs(), loop.getYieldedValues());
        joinAll(loop.getResults(), loop.getRegionIterArgs());
        // A result and its carried value have the same form.
        joinAll(loop.getRegionIterArgs(), loop.getResults());
      })
      .Case([&](scf::WhileOp loop) {
        joinAll(loop.getBeforeArguments(), loop.getInits());
        joinAll(loop.getBeforeArguments(), loop.getYieldOp().getResults());
        joinAll(loop.getAfterArguments(), loop.getConditionOp().getArgs());
        joinAll(loop.getResults(), loop.getConditionOp().getArgs());
      })
      .Case<scf::IfOp, scf::ExecuteRegionOp>([&](Operation *branch) {
        for (Region &region : branch->getRegions())
          if (region.hasOneBlock())
            joinAll(branch->getResults(), region.front().getTerminator()->getOperands());
          else if (!region.empty())
            for (Value result : branch->getResults())
              join(result, PointerTile::whole());
      })
      .Default([&](Operation *other) {
        for (Value result : other->getResults())
          join(result, PointerTile::whole());
      });
}

} // namespace triton_metal
