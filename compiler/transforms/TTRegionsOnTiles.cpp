// Functions that are called for each element: see Passes.td.

#include "dialect/tt/TT.h"
#include "transforms/Passes.h"
#include "transforms/RegionOnTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTREGIONSONTILES
#include "transforms/Passes.h.inc"

namespace {

ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

Value reshape(OpBuilder &builder, Location loc, Value tile, ArrayRef<int64_t> shape) {
  if (shapeOf(tile) == shape)
    return tile;
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(tile.getType()));
  return tt::ReshapeOp::create(builder, loc, type, tile);
}

/// The elements with an even and with an odd place in the last dimension.
std::pair<Value, Value> halve(OpBuilder &builder, Location loc, Value tile) {
  SmallVector<int64_t> shape(shapeOf(tile));
  shape.back() /= 2;
  shape.push_back(2);
  auto split = tt::SplitOp::create(builder, loc, reshape(builder, loc, tile, shape));
  return {split.getResult(0), split.getResult(1)};
}

//===----------------------------------------------------------------------===//
// map_elementwise
//===----------------------------------------------------------------------===//

/// A tile of rows, as the tiles of its columns.
void separate(OpBuilder &builder, Location loc, Value rows, MutableArrayRef<Value> columns,
              size_t stride = 1) {
  if (shapeOf(rows).back() == 1) {
    columns[0] = reshape(builder, loc, rows, shapeOf(rows).drop_back());
    return;
  }
  auto [even, odd] = halve(builder, loc, rows);
  separate(builder, loc, even, columns, 2 * stride);
  separate(builder, loc, odd, columns.drop_front(stride), 2 * stride);
}

/// The inverse: every `stride`th of the columns, as the rows of one tile.
Value gatherUp(OpBuilder &builder, Location loc, ArrayRef<Value> columns, size_t stride = 1) {
  SmallVector<int64_t> shape(shapeOf(columns[0]));
  shape.push_back(columns.size() > stride ? (columns.size() + stride - 1) / stride : 1);
  if (shape.back() == 1)
    return reshape(builder, loc, columns[0], shape);
  Value even = gatherUp(builder, loc, columns, 2 * stride);
  Value odd = gatherUp(builder, loc, columns.drop_front(stride), 2 * stride);
  return reshape(builder, loc, tt::JoinOp::create(builder, loc, even, odd), shape);
}

LogicalResult expand(tt::MapElementwiseOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<int64_t> shape(shapeOf(op.getSrcs()[0]));
  int64_t pack = op.getPack(), elements = ShapedType::getNumElements(shape);
  if (!llvm::isPowerOf2_64(pack) || pack > elements)
    return op.emitOpError("packs ")
           << pack << " elements of a tile of " << elements
           << "; the number must be a power of two that is not larger than the tile";
  SmallVector<int64_t> packed = pack == 1 ? shape : SmallVector<int64_t>{elements / pack};
  SmallVector<Value> arguments;
  for (Value tile : op.getSrcs()) {
    if (pack == 1) {
      arguments.push_back(tile);
      continue;
    }
    SmallVector<Value> columns(pack);
    separate(builder, loc, reshape(builder, loc, tile, {elements / pack, pack}), columns);
    llvm::append_range(arguments, columns);
  }
  RegionOnTiles region(builder, loc, ArrayRef(packed));
  FailureOr<SmallVector<Value>> values =
      region.build(op.getScalarOp().front(), arguments, /*mask=*/Value());
  if (failed(values))
    return failure();
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    ArrayRef<Value> columns = ArrayRef(*values).slice(index * pack, pack);
    Value value = pack == 1 ? columns[0] : gatherUp(builder, loc, columns);
    result.replaceAllUsesWith(reshape(builder, loc, value, shape));
  }
  op.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// reduce and scan
//===----------------------------------------------------------------------===//

/// Whether later passes take a combine function as it is.
bool isSimple(Block &block) {
  return llvm::all_of(block.without_terminator(), [](Operation &op) {
    return op.getNumRegions() == 0 && isa<arith::ArithDialect, math::MathDialect>(op.getDialect());
  });
}

/// Replaces branches by selections, if that is all that is needed.
LogicalResult straighten(Region &region) {
  Block &block = region.front();
  if (!RegionOnTiles::isStraight(block))
    return success();
  Operation *terminator = block.getTerminator();
  OpBuilder builder(terminator);
  SmallVector<Location> locs = llvm::map_to_vector(
      block.getArguments(), [](BlockArgument argument) { return argument.getLoc(); });
  Block *made = builder.createBlock(&region, region.end(), block.getArgumentTypes(), locs);
  FailureOr<SmallVector<Value>> values = RegionOnTiles(builder, terminator->getLoc(), std::nullopt)
                                             .build(block, made->getArguments(), /*mask=*/Value());
  if (failed(values))
    return failure();
  builder.clone(*terminator)->setOperands(*values);
  block.dropAllReferences();
  block.erase();
  return success();
}

/// Moves the axis of all operands to the end.
SmallVector<Value> moveLast(OpBuilder &builder, Location loc, ValueRange tiles, unsigned axis,
                            SmallVector<int32_t> &order) {
  unsigned rank = shapeOf(tiles[0]).size();
  for (unsigned dim = 0; dim < rank; ++dim)
    if (dim != axis)
      order.push_back(dim);
  order.push_back(axis);
  return llvm::map_to_vector(tiles, [&](Value tile) -> Value {
    return axis + 1 == rank ? tile : tt::TransOp::create(builder, loc, tile, order).getResult();
  });
}

template <typename Op>
FailureOr<SmallVector<Value>> combine(OpBuilder &builder, Op op, ValueRange first,
                                      ValueRange second, Value mask) {
  SmallVector<Value> arguments(first);
  llvm::append_range(arguments, second);
  SmallVector<int64_t> shape(shapeOf(first[0]));
  RegionOnTiles region(builder, op.getLoc(), ArrayRef(shape));
  return region.build(op.getCombineOp().front(), arguments, mask);
}

/// Neighbours in pairs, until one element is left.
LogicalResult expand(tt::ReduceOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<int32_t> order;
  SmallVector<Value> values = moveLast(builder, loc, op.getSrcs(), op.getAxis(), order);
  while (shapeOf(values[0]).back() > 1) {
    SmallVector<Value> first, second;
    for (Value value : values) {
      auto [even, odd] = halve(builder, loc, value);
      first.push_back(even);
      second.push_back(odd);
    }
    FailureOr<SmallVector<Value>> combined = combine(builder, op, first, second, Value());
    if (failed(combined))
      return failure();
    values = *combined;
  }
  for (auto [result, value] : llvm::zip(op.getResults(), values)) {
    if (auto type = dyn_cast<RankedTensorType>(result.getType()))
      value = reshape(builder, loc, value, type.getShape());
    else
      value = tt::UnsplatOp::create(builder, loc, result.getType(), value);
    result.replaceAllUsesWith(value);
  }
  op.erase();
  return success();
}

/// Each element with the one that is 1, 2, 4, ... places before it.
LogicalResult expand(tt::ScanOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<int32_t> order;
  SmallVector<Value> values = moveLast(builder, loc, op.getSrcs(), op.getAxis(), order);
  SmallVector<int64_t> shape(shapeOf(values[0])), row(shape.size(), 1);
  int64_t extent = row.back() = shape.back();
  Type i32 = builder.getI32Type();
  auto numbers = RankedTensorType::get(shape, i32);
  Value place = tt::MakeRangeOp::create(builder, loc, RankedTensorType::get({extent}, i32), 0,
                                        uint32_t(extent));
  place = reshape(builder, loc, place, row);
  if (shape != row)
    place = tt::BroadcastOp::create(builder, loc, numbers, place);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(numbers, builder.getI32IntegerAttr(value)));
  };
  for (int64_t distance = 1; distance < extent; distance *= 2) {
    Value other, exists;
    if (op.getReverse()) {
      other = arith::AddIOp::create(builder, loc, place, number(distance));
      exists =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, other, number(extent));
    } else {
      other = arith::SubIOp::create(builder, loc, place, number(distance));
      exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, other, number(0));
    }
    other = arith::SelectOp::create(builder, loc, exists, other, place);
    SmallVector<Value> before = llvm::map_to_vector(values, [&](Value value) -> Value {
      return tt::GatherOp::create(builder, loc, value.getType(), value, other,
                                  uint32_t(shape.size() - 1), /*efficient_layout=*/false);
    });
    FailureOr<SmallVector<Value>> combined = combine(builder, op, before, values, exists);
    if (failed(combined))
      return failure();
    for (auto [value, both] : llvm::zip(values, *combined))
      value = arith::SelectOp::create(builder, loc, exists, both, value);
  }
  SmallVector<int32_t> inverse(order.size());
  for (auto [index, dim] : llvm::enumerate(order))
    inverse[dim] = index;
  for (auto [result, value] : llvm::zip(op.getResults(), values)) {
    if (op.getAxis() + 1 != order.size())
      value = tt::TransOp::create(builder, loc, value, inverse);
    result.replaceAllUsesWith(value);
  }
  op.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

template <typename Op> LogicalResult simplify(Op op) {
  Region &region = op.getCombineOp();
  if (isSimple(region.front()))
    return success();
  if (llvm::any_of(op.getElementTypes(), llvm::IsaPred<tt::PtrType>))
    return op.emitOpError("combines pointers; combine their offsets instead");
  if (failed(straighten(region)))
    return failure();
  return isSimple(region.front()) ? success() : expand(op);
}

struct TTRegionsOnTilesPass : impl::TTRegionsOnTilesBase<TTRegionsOnTilesPass> {
  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<tt::MapElementwiseOp, tt::ReduceOp, tt::ScanOp>(op))
        operations.push_back(op);
    });
    if (operations.empty())
      return markAllAnalysesPreserved();
    for (Operation *op : operations) {
      LogicalResult done = llvm::TypeSwitch<Operation *, LogicalResult>(op)
                               .Case([](tt::MapElementwiseOp map) { return expand(map); })
                               .Case([](tt::ReduceOp reduction) { return simplify(reduction); })
                               .Case([](tt::ScanOp scan) { return simplify(scan); });
      if (failed(done))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace triton_metal
