#include "transforms/TTMLookups.h"

#include "dialect/msl/ScalarTypes.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Constants.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal::ttm {

/// The indices as i32. None of them is negative.
static Value toI32(OpBuilder &builder, Location loc, Value indices) {
  Type i32 = cast<RankedTensorType>(indices.getType()).clone(builder.getI32Type());
  unsigned width = getElementTypeOrSelf(indices.getType()).getIntOrFloatBitWidth();
  if (width < 32)
    return arith::ExtUIOp::create(builder, loc, i32, indices);
  return width > 32 ? arith::TruncIOp::create(builder, loc, i32, indices).getResult() : indices;
}

/// Parts of a row of elements that take their turn in a tile.
struct Parts {
  int64_t number = 1, elements;

  /// `elements` of `bytes` each, where only `budget` bytes are left.
  Parts(int64_t elements, int64_t bytes, int64_t budget) : elements(elements) {
    while (this->elements > 1 && this->elements * bytes > budget) {
      this->elements /= 2;
      number *= 2;
    }
  }
};

/// Runs `body` for each part, with its number (null if there is only one) and the result so far.
static Value forParts(OpBuilder &builder, Location loc, const Parts &parts, Value init,
                      function_ref<Value(Value part, Value sofar)> body) {
  if (parts.number == 1)
    return body(Value(), init);
  auto bound = [&](int64_t number) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
  };
  auto loop = scf::ForOp::create(builder, loc, bound(0), bound(parts.number), bound(1), init);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(builder, loc, body(loop.getInductionVar(), loop.getRegionIterArg(0)));
  return loop.getResult(0);
}

/// Places within the part with this number, and whether they are in it.
static std::pair<Value, Value> placesIn(OpBuilder &builder, Location loc, const Parts &parts,
                                        Value part, Value places) {
  Type type = places.getType();
  if (part) {
    Value first = arith::MulIOp::create(
        builder, loc, part, makeConstantLike(builder, loc, part.getType(), parts.elements));
    places =
        arith::SubIOp::create(builder, loc, places, tt::SplatOp::create(builder, loc, type, first));
  }
  Value isInside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, places,
                                         makeConstantLike(builder, loc, type, parts.elements));
  Value zero = makeConstantLike(builder, loc, type, 0);
  return {arith::SelectOp::create(builder, loc, isInside, places, zero), isInside};
}

/// Where the elements that a gather chooses are in its source's row-major order.
static Value placesInSource(OpBuilder &builder, tt::GatherOp op, Value indices) {
  Location loc = op.getLoc();
  unsigned axis = op.getAxis();
  auto source = cast<RankedTensorType>(op.getSrc().getType());
  auto type = cast<RankedTensorType>(indices.getType());
  int64_t stride = 1;
  for (unsigned dim = axis + 1; dim < source.getRank(); ++dim)
    stride *= source.getDimSize(dim);
  int64_t extent = type.getDimSize(axis), rows = source.getDimSize(axis);
  int64_t count = type.getNumElements();
  auto flatType = getTensorType(getLayout(indices)->reshape({count}), type.getElementType());
  Value flat = tt::MakeRangeOp::create(builder, loc, flatType, 0, uint32_t(count));
  auto constant = [&](int64_t number) { return makeConstantLike(builder, loc, flatType, number); };
  Value before =
      arith::ShRUIOp::create(builder, loc, flat, constant(llvm::Log2_64(stride * extent)));
  before = arith::MulIOp::create(builder, loc, before, constant(stride * rows));
  Value behind = arith::AndIOp::create(builder, loc, flat, constant(stride - 1));
  Value along = reshape(builder, loc, indices, {count});
  along = arith::MulIOp::create(builder, loc, along, constant(stride));
  Value start = arith::AddIOp::create(builder, loc, before, behind);
  return arith::AddIOp::create(builder, loc, start, along);
}

Value lowerGather(Scratch &scratch, tt::GatherOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  if (getGatherFromLanes(*getLayout(op.getSrc()), *getLayout(op.getResult()), op.getAxis())) {
    op.getIndicesMutable().assign(toI32(builder, loc, op.getIndices()));
    return op;
  }
  Value source = toStorage(builder, loc, op.getSrc());
  auto type = cast<RankedTensorType>(source.getType());
  Type storage = type.getElementType();
  auto resultType = cast<RankedTensorType>(op.getType()).clone(storage);
  Value indices = toI32(builder, loc, op.getIndices()), gathered;
  Parts parts(type.getNumElements(), msl::getElementBytes(storage), scratch.freeBytes(op));
  if (parts.number == 1) {
    Value tile = scratch.allocate(TileType::get(builder.getContext(), type.getShape(), storage,
                                                /*rowPad=*/0, /*slots=*/1),
                                  "gathered");
    StoreTileOp::create(builder, loc, source, tile, Value(), DenseI64ArrayAttr());
    gathered = GatherTileOp::create(builder, loc, resultType, tile, indices, op.getAxis());
  } else {
    Value tile = scratch.allocate(TileType::get(builder.getContext(), {1, parts.elements}, storage,
                                                /*rowPad=*/0, /*slots=*/1),
                                  "gathered");
    source = reshape(builder, loc, source, {parts.number, parts.elements});
    int64_t count = resultType.getNumElements();
    Value places = reshape(builder, loc, placesInSource(builder, op, indices), {1, count});
    auto row = cast<RankedTensorType>(places.getType()).clone(storage);
    Value nothing = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(row));
    gathered = forParts(builder, loc, parts, nothing, [&](Value part, Value sofar) -> Value {
      StoreTileOp::create(builder, loc, source, tile, Value(), part, DenseI64ArrayAttr());
      auto [place, isInside] = placesIn(builder, loc, parts, part, places);
      Value found = GatherTileOp::create(builder, loc, row, tile, place, /*axis=*/1);
      return arith::SelectOp::create(builder, loc, isInside, found, sofar);
    });
    gathered = reshape(builder, loc, gathered, resultType.getShape());
  }
  return fromStorage(builder, loc, gathered, getElementTypeOrSelf(op.getType()));
}

Value lowerHistogram(Scratch &scratch, tt::HistogramOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value numbers = op.getSrc(), mask = op.getMask();
  auto type = cast<RankedTensorType>(numbers.getType());
  auto resultType = cast<RankedTensorType>(op.getType());
  int64_t bins = resultType.getNumElements();
  Type i32 = builder.getI32Type();
  unsigned width = type.getElementTypeBitWidth();
  if (width > 32) {
    // What has no bin must have none in 32 bits either.
    Value isBin = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, numbers,
                                        makeConstantLike(builder, loc, type, bins));
    mask = mask ? arith::AndIOp::create(builder, loc, mask, isBin).getResult() : isBin;
  }
  numbers = toI32(builder, loc, numbers);

  Parts parts(bins, msl::getElementBytes(i32), scratch.freeBytes(op));
  Value tile = scratch.allocate(
      TileType::get(builder.getContext(), {1, parts.elements}, i32, /*rowPad=*/0, /*slots=*/1),
      "counts");
  auto zeros = getTensorType(
      LinearLayout::defaultBlocked({1, parts.elements}, getLayout(type)->getNumSimdgroups()), i32);
  auto rows = getTensorType(getLayout(resultType)->reshape({parts.number, parts.elements}), i32);
  Value nothing = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(rows));
  Value counts = forParts(builder, loc, parts, nothing, [&](Value part, Value sofar) -> Value {
    Value empty = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(zeros));
    StoreTileOp::create(builder, loc, empty, tile, Value(), DenseI64ArrayAttr());
    auto [place, isInside] = placesIn(builder, loc, parts, part, numbers);
    if (mask)
      isInside = arith::AndIOp::create(builder, loc, isInside, mask);
    CountInTileOp::create(builder, loc, tile, place, isInside);
    if (!part)
      return LoadTileOp::create(builder, loc, rows, tile, Value());
    return LoadTileOp::create(builder, loc, rows, tile, Value(), Value(), part, sofar);
  });
  return reshape(builder, loc, counts, resultType.getShape());
}

} // namespace triton_metal::ttm
