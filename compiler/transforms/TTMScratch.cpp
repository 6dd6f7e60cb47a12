#include "transforms/TTMScratch.h"

#include "dialect/msl/ScalarTypes.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Budget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal::ttm {

Scratch::Scratch(tt::FuncOp func) : func(func) {
  unsigned next = 0;
  SmallVector<AllocTileOp> tiles;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    positions[op] = next++;
    if (auto tile = dyn_cast<AllocTileOp>(op))
      tiles.push_back(tile);
  });
  for (AllocTileOp tile : tiles) {
    // What a loop around a use, but not around the allocation, does comes between two uses.
    Lifetime lifetime{~0u, 0, tile.getTile().getType().getBytes()};
    for (Operation *user : tile->getUsers()) {
      Operation *outermost = tile->getBlock()->findAncestorOpInBlock(*user);
      lifetime.first = std::min(lifetime.first, positions[outermost]);
      unsigned last = 0;
      outermost->walk([&](Operation *op) { last = std::max(last, positions[op]); });
      lifetime.last = std::max(lifetime.last, last);
    }
    lifetimes.push_back(lifetime);
  }
}

int64_t Scratch::freeBytes(Operation *op) const {
  unsigned position = positions.lookup(op);
  int64_t live = 0;
  for (const Lifetime &tile : lifetimes)
    if (tile.first <= position && position <= tile.last)
      live += tile.bytes;
  return Budget::of(func).getExchangeBytes(live);
}

Value Scratch::allocate(TileType type, StringRef name) {
  OpBuilder builder(func.getContext());
  if (lastAllocation)
    builder.setInsertionPointAfter(lastAllocation);
  else
    builder.setInsertionPointToStart(&func.getBody().front());
  auto tile =
      AllocTileOp::create(builder, builder.getUnknownLoc(), type, builder.getStringAttr(name));
  lastAllocation = tile;
  return tile;
}

Value toStorage(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!type.getElementType().isInteger(1))
    return value;
  return arith::ExtUIOp::create(builder, loc, type.clone(builder.getI8Type()), value);
}

Value fromStorage(OpBuilder &builder, Location loc, Value value, Type elementType) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == elementType)
    return value;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value, zero);
}

/// Registers from register 0 on, in powers of two, that hold consecutive elements; at most 16 bytes
/// of them.
static int64_t consecutive(const LinearLayout &layout, int64_t bytes) {
  int64_t count = 1;
  for (uint32_t base : layout.getRegisterBases()) {
    if (base != count || 2 * count * bytes > 16)
      break;
    count *= 2;
  }
  return count;
}

Value Scratch::convert(OpBuilder &builder, Operation *at, Value value, const LinearLayout &to,
                       StringRef name) {
  Location loc = at->getLoc();
  Type element = getElementTypeOrSelf(value.getType());
  LinearLayout from = *getLayout(value);
  value = toStorage(builder, loc, value);
  Type storage = getElementTypeOrSelf(value.getType());
  int64_t bytes = msl::getElementBytes(storage);
  int64_t count = from.getNumElements();

  // 128 bytes pass all 32 banks; what follows starts some banks on, at an address that vectors can
  // begin at.
  int64_t columns = std::min(count, 128 / bytes), rows = count / columns;
  int64_t storeWidth = consecutive(from, bytes), loadWidth = consecutive(to, bytes);
  int64_t pad = std::max({storeWidth, loadWidth, 4 / std::min<int64_t>(bytes, 4)});
  if (rows == 1 || (storeWidth > 1 && storeWidth == loadWidth && storeWidth * bytes == 16))
    pad = 0;
  int64_t rounds = 1, budget = freeBytes(at);
  while (rounds < rows && rows / rounds * (columns + pad) * bytes > budget)
    rounds *= 2;
  auto tileType = TileType::get(builder.getContext(), {rows / rounds, columns}, storage, pad, 1);
  Value tile = allocate(tileType, name);

  value = reshape(builder, loc, value, {rows, columns});
  auto type = getTensorType(to.reshape({rows, columns}), storage);
  Value result;
  if (rounds == 1) {
    StoreTileOp::create(builder, loc, value, tile, Value(), DenseI64ArrayAttr());
    result = LoadTileOp::create(builder, loc, type, tile, Value());
  } else {
    auto bound = [&](int64_t number) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
    };
    Value nothing = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
    auto loop = scf::ForOp::create(builder, loc, bound(0), bound(rounds), bound(1), nothing);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value round = loop.getInductionVar();
    StoreTileOp::create(builder, loc, value, tile, Value(), round, DenseI64ArrayAttr());
    // What earlier rounds brought stays.
    Value sofar = LoadTileOp::create(builder, loc, type, tile, Value(), Value(), round,
                                     loop.getRegionIterArg(0));
    scf::YieldOp::create(builder, loc, sofar);
    result = loop.getResult(0);
  }
  return fromStorage(builder, loc, reshape(builder, loc, result, to.getShape()), element);
}

} // namespace triton_metal::ttm
