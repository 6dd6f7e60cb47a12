// Turns values of one register into numbers: see Passes.td.

#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLSCALARIZE
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// Changes the type of a vector of one register to its element type.
static void scalarize(Value value) {
  if (auto type = dyn_cast<VectorType>(value.getType()); type && type.getNumElements() == 1)
    value.setType(type.getElementType());
}

/// The register of a tile, or of a number, at a constant index.
static Value getRegister(OpBuilder &builder, Location loc, Value tile, int64_t index) {
  auto type = dyn_cast<VectorType>(tile.getType());
  if (!type)
    return tile;
  return ChunkOp::create(builder, loc, type.getElementType(), tile, ValueRange(),
                         ArrayRef<int64_t>(), index);
}

/// The replacement of an operation that treats vectors of one register specially; null if there is
/// none.
static Value replace(Operation *op) {
  OpBuilder builder(op);
  if (auto uniform = dyn_cast<UniformOp>(op))
    return uniform.getValue();
  if (auto extract = dyn_cast<vector::ExtractOp>(op)) {
    if (extract.hasDynamicPosition() || extract.getStaticPosition().size() != 1)
      return {};
    return getRegister(builder, op->getLoc(), extract.getSource(), extract.getStaticPosition()[0]);
  }
  // Any number is correct.
  if (isa<ub::PoisonOp>(op))
    return isTile(op->getResult(0))
               ? Value()
               : arith::ConstantOp::create(
                     builder, op->getLoc(),
                     cast<TypedAttr>(builder.getZeroAttr(op->getResult(0).getType())));
  if (auto splat = dyn_cast<SplatOp>(op))
    return isa<VectorType>(op->getResult(0).getType()) ? Value() : splat.getValue();
  auto permute = cast<PermuteRegistersOp>(op);
  Value source = op->getOperand(0), result = op->getResult(0);
  if (!isa<VectorType>(result.getType()))
    return getRegister(builder, op->getLoc(), source, permute.getOffset());
  if (isa<VectorType>(source.getType()))
    return {};
  return SplatOp::create(builder, op->getLoc(), result.getType(), source);
}

struct Scalarize : triton_metal::impl::MSLScalarizeBase<Scalarize> {
  void runOnOperation() override {
    SmallVector<Operation *> special;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value result : op->getResults())
        scalarize(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          llvm::for_each(block.getArguments(), scalarize);
      if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
        auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
        if (dense && dense.getNumElements() == 1)
          constant.setValueAttr(cast<TypedAttr>(*dense.getValues<Attribute>().begin()));
      }
      // `msl.uniform` is dropped: only the placement of barriers, which is done, needs it.
      if (isa<UniformOp, vector::ExtractOp, SplatOp, PermuteRegistersOp, ub::PoisonOp>(op))
        special.push_back(op);
    });
    for (Operation *op : special)
      if (Value value = replace(op)) {
        op->getResult(0).replaceAllUsesWith(value);
        op->erase();
      }
  }
};

} // namespace
