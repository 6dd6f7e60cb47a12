// Tiles in threadgroup memory and products of simdgroup matrices.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

/// The value of `flat`'s coordinates within a part of the tile of this shape, as a place in rows of
/// `stride` elements.
static uint32_t placeInPart(const LinearLayout &layout, ArrayRef<int64_t> part, int64_t stride,
                            uint32_t flat) {
  auto coordinates = layout.toCoordinates(flat);
  uint32_t row = 0;
  for (auto [coordinate, extent] : llvm::drop_end(llvm::zip(coordinates, part)))
    row = row * extent + (coordinate & (extent - 1));
  return row * stride + (coordinates.back() & (part.back() - 1));
}

/// The bits of the element's flat index that say in which part of the tile it is.
static uint32_t partMask(const LinearLayout &layout, ArrayRef<int64_t> part) {
  uint32_t mask = 0;
  for (auto [dim, extent] : llvm::enumerate(part))
    mask |= uint32_t(layout.getShape()[dim] - extent) << layout.dimShift(dim);
  return mask;
}

/// Registers that hold neighbours in one row; at most 16 bytes of them, at an address that divides
/// by as much.
static int32_t rowWidth(const LinearLayout &layout, ArrayRef<int64_t> part, int64_t stride,
                        int64_t bytes) {
  int64_t count = 1;
  for (uint32_t base : layout.getRegisterBases()) {
    if (base != count || 2 * count > part.back() || 2 * count * bytes > 16 || stride % (2 * count))
      break;
    count *= 2;
  }
  return count;
}

Value Lowering::slotOf(Value tile, Value slot) {
  auto type = cast<ttm::TileType>(tile.getType());
  Value memory = tiles.lookup(tile);
  if (!slot || type.getSlots() == 1)
    return memory;
  return msl::SlotOp::create(builder, named(tileName(tile) + "_slot"), memory, get(slot));
}

std::string Lowering::tileName(Value tile) { return nameOf(tile.getLoc(), "tile"); }

LogicalResult Lowering::storeTile(ttm::StoreTileOp op) {
  ttm::TileType tile = op.getTile().getType();
  Value value = get(op.getSrc());
  LinearLayout layout = layoutOf(op.getSrc());
  if (!layout.isPermutation()) {
    LinearLayout blocked = LinearLayout::defaultBlocked(layout.getShape(), numSimdgroups);
    FailureOr<Value> converted = convertLayout(value, layout, blocked, "spread");
    if (failed(converted))
      return failure();
    value = *converted;
    layout = blocked;
  }
  ArrayRef<int64_t> part = tile.getShape();
  uint32_t mask = partMask(layout, part), wanted = 0;
  if (auto offsets = op.getOffsets())
    for (auto [dim, offset] : llvm::enumerate(*offsets))
      wanted |= uint32_t(offset) << layout.dimShift(dim);

  // Registers of this part, without repeats.
  SmallVector<int64_t> bases;
  SmallVector<uint32_t> registers;
  int64_t first = 0;
  for (auto [bit, base] : llvm::enumerate(layout.getRegisterBases())) {
    if (base & mask) {
      first |= (base & wanted) ? int64_t(1) << bit : 0;
    } else if (base) {
      bases.push_back(int64_t(1) << bit);
      registers.push_back(base);
    }
  }
  value = permute(value, bases, first);
  // Threads of this part, and of those that hold the same only one.
  uint32_t laneFixed = layout.freeMask(InDim::Lane),
           simdgroupFixed = layout.freeMask(InDim::Simdgroup);
  uint32_t laneWanted = 0, simdgroupWanted = 0;
  auto fix = [&](InDim dim, uint32_t &fixed, uint32_t &bits) {
    for (auto [bit, base] : llvm::enumerate(layout.getBases(dim)))
      if (base & mask) {
        fixed |= 1u << bit;
        bits |= (base & wanted) ? 1u << bit : 0;
      }
  };
  fix(InDim::Lane, laneFixed, laneWanted);
  fix(InDim::Simdgroup, simdgroupFixed, simdgroupWanted);
  Value owner = threadBitsAre(laneFixed, laneWanted, simdgroupFixed, simdgroupWanted);

  Type element = tile.getElementType();
  if (getElementTypeOrSelf(value.getType()) != element) {
    auto type = VectorType::get(cast<VectorType>(value.getType()).getShape(), element);
    value = arith::SIToFPOp::create(builder, loc, type, value);
  }
  int64_t stride = tile.getRowStride(), bytes = getStorageBytes(element);
  auto place = [&](uint32_t flat) { return placeInPart(layout, part, stride, flat); };
  auto through = [&](ArrayRef<uint32_t> bases) { return llvm::map_to_vector(bases, place); };
  Value thread = threadSum(through(layout.getLaneBases()), through(layout.getSimdgroupBases()),
                           "place_in_" + tileName(op.getTile()));
  SmallVector<int32_t> places;
  for (uint32_t index = 0; index < (1u << registers.size()); ++index) {
    uint32_t flat = 0;
    for (auto [bit, base] : llvm::enumerate(registers))
      flat |= (index >> bit & 1) ? base : 0;
    places.push_back(place(flat));
  }
  Value offsets = splat(thread, places.size());
  if (places.size() > 1) {
    auto type = VectorType::get(places.size(), builder.getI32Type());
    Value dense = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef<int32_t>(places)));
    offsets = arith::AddIOp::create(builder, loc, offsets, dense);
  }
  int32_t width = 1;
  for (uint32_t base : registers) {
    if (base != uint32_t(width) || 2 * width > part.back() || 2 * width * bytes > 16 ||
        stride % (2 * width))
      break;
    width *= 2;
  }
  Value memory = slotOf(op.getTile(), op.getSlot());
  predicated(owner, [&] {
    msl::StoreOp::create(builder, loc, value, memory, offsets, Value(), Value(), width, 1);
  });
  return success();
}

LogicalResult Lowering::loadTile(ttm::LoadTileOp op) {
  ttm::TileType tile = op.getTile().getType();
  LinearLayout layout = layoutOf(op);
  int64_t stride = tile.getRowStride();
  Value offsets = paddedIndices(layout, llvm::Log2_64(tile.getShape().back()), tile.getRowPad());
  int32_t width = rowWidth(layout, tile.getShape(), stride, getStorageBytes(tile.getElementType()));
  Type type = registersOf(layout, tile.getElementType());
  Value memory = slotOf(op.getTile(), op.getSlot());
  if (op.getRow()) {
    Value row = get(op.getRow());
    Value first = arith::MulIOp::create(
        builder, loc, row,
        constant(row.getType(), tile.getSlotElements() / tile.getShape().front()));
    memory = msl::PtrAddOp::create(builder, named(tileName(op.getTile()) + "_row"), memory, first);
  }
  map(op, msl::LoadOp::create(builder, loc, type, memory, offsets, Value(), Value(), Value(), width,
                              1));
  return success();
}

LogicalResult Lowering::mma(ttm::MMAOp op) {
  LinearLayout layout = layoutOf(op.getAcc());
  auto tiling = ttm::getSimdgroupMatrixTiling(layout);
  int64_t m = op.getM() / 8 / tiling->first, n = op.getN() / 8 / tiling->second, k = op.getK() / 8;

  struct Operand {
    Value value;
    int32_t stride = 0;
  };
  auto operand = [&](Value value, Value slot, bool transposed, unsigned dim) -> Operand {
    if (auto tile = dyn_cast<ttm::TileType>(value.getType())) {
      // Where this SIMD-group's rows (of a) or columns (of b) begin.
      int64_t step = (dim == 0) != transposed ? tile.getRowStride() : 1;
      auto begins = llvm::map_to_vector(layout.getSimdgroupBases(), [&](uint32_t base) {
        return uint32_t(layout.toCoordinates(base)[dim] * step);
      });
      std::string name = tileName(value) + (dim == 0 ? "_rows" : "_columns");
      Value begin = threadSum(SmallVector<uint32_t>(5, 0), begins);
      Value memory = slotOf(value, slot);
      if (!matchPattern(begin, m_Zero()))
        memory = msl::PtrAddOp::create(builder, named(name), memory, begin);
      return {memory, int32_t(tile.getRowStride())};
    }
    // Registers: the fragments of this operation's part of K. They are inner for a, outer for b.
    Value registers = get(value);
    int64_t allK = cast<RankedTensorType>(value.getType()).getShape()[dim == 0 ? 1 : 0] / 8;
    if (allK == k)
      return {registers, 0};
    int64_t inner = dim == 0 ? k : n, innerStride = dim == 0 ? allK : n, outer = dim == 0 ? m : k;
    SmallVector<int64_t> bases{1};
    for (int64_t fragment = 1; fragment < inner; fragment *= 2)
      bases.push_back(2 * fragment);
    for (int64_t fragment = 1; fragment < outer; fragment *= 2)
      bases.push_back(2 * fragment * innerStride);
    return {permute(registers, bases, 2 * int64_t(op.getKOffset()) / 8 * (dim == 0 ? 1 : n)), 0};
  };
  Operand a = operand(op.getA(), op.getASlot(), op.getATransposed(), 0);
  Operand b = operand(op.getB(), op.getBSlot(), op.getBTransposed(), 1);
  Value acc = get(op.getAcc());
  map(op, msl::MmaOp::create(builder, loc, acc.getType(), acc, a.value, b.value, m, n, k, a.stride,
                             b.stride, op.getATransposed(), op.getBTransposed()));
  return success();
}

Lowering::Handled Lowering::lowerTiles(Operation *op) {
  if (auto alloc = dyn_cast<ttm::AllocTileOp>(op)) {
    ttm::TileType type = alloc.getTile().getType();
    std::string name = nameOf(loc);
    Value memory = allocate(name.empty() ? "tile" : name + "_tile", type.getElementType(),
                            type.getSlotElements());
    memory.getDefiningOp<msl::AllocOp>().setSlots(type.getSlots());
    tiles[alloc] = memory;
    return success();
  }
  if (auto next = dyn_cast<ttm::NextSlotOp>(op)) {
    map(next, msl::NextSlotOp::create(builder, loc, next.getType(), get(next.getSlot()),
                                      next.getSlotsAttr()));
    return success();
  }
  if (auto storeOp = dyn_cast<ttm::StoreTileOp>(op))
    return storeTile(storeOp);
  if (auto loadOp = dyn_cast<ttm::LoadTileOp>(op))
    return loadTile(loadOp);
  if (auto mmaOp = dyn_cast<ttm::MMAOp>(op))
    return mma(mmaOp);
  if (auto convert = dyn_cast<ttm::ConvertLayoutOp>(op)) {
    LinearLayout from = layoutOf(convert.getSrc()), to = layoutOf(convert);
    if (isa<tt::PtrType>(getElementTypeOrSelf(convert.getType()))) {
      // The base stays, the offsets move.
      Address address = addressOf(convert.getSrc());
      FailureOr<Value> moved = convertLayout(address.offsets, from, to, "exchange");
      if (failed(moved))
        return failure();
      addresses[convert] = {address.base, *moved};
      return success();
    }
    FailureOr<Value> moved = convertLayout(get(convert.getSrc()), from, to, "exchange");
    if (failed(moved))
      return failure();
    map(convert, *moved);
    return success();
  }
  return std::nullopt;
}

} // namespace triton_metal
