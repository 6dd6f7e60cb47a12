// Exchanges between SIMD-groups that are written with exclusive ors: see TTMPasses.td.

#include "analysis/CombineRegion.h"
#include "dialect/msl/ScalarTypes.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Passes.h"
#include "transforms/TTMScratch.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMFOLDEXCHANGES
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// The bit of the row-major index along which `op` is the exclusive or of the elements of two
/// SIMD-groups; 0 if it is something else.
uint32_t getPairBit(tt::ReduceOp op) {
  if (op.getSrcs().size() != 1 ||
      !isa_and_nonnull<arith::XOrIOp>(getCommutativeCombiner(op.getCombineOp().front())))
    return 0;
  LinearLayout layout = *getLayout(op.getSrcs()[0]);
  unsigned axis = op.getAxis();
  uint32_t bit = layout.dimMask(axis);
  bool isBetweenSimdgroups = layout.getShape()[axis] == 2 && layout.isPermutation() &&
                             llvm::is_contained(layout.getSimdgroupBases(), bit);
  return isBetweenSimdgroups ? bit : 0;
}

/// The reduction, if `pairs` repeats its results along its axis: each element of the reduced tile
/// meets the exclusive or of itself and of its partner.
tt::ReduceOp getRepeated(Value pairs) {
  auto broadcast = pairs.getDefiningOp<tt::BroadcastOp>();
  if (!broadcast)
    return {};
  SmallVector<int64_t> kept(broadcast.getType().getShape());
  auto source = broadcast.getSrc();
  // Dimensions of size 1 are put in; other elements stay in their places.
  Operation *op = source.getDefiningOp();
  while (isa_and_nonnull<tt::ExpandDimsOp, tt::ReshapeOp, ConvertLayoutOp>(op)) {
    if (auto reshaped = dyn_cast<tt::ReshapeOp>(op); reshaped && reshaped.getAllowReorder())
      return {};
    op = op->getOperand(0).getDefiningOp();
  }
  auto reduce = dyn_cast_or_null<tt::ReduceOp>(op);
  if (!reduce || reduce.getAxis() >= kept.size())
    return {};
  kept[reduce.getAxis()] = 1;
  return source.getType().getShape() == ArrayRef(kept) ? reduce : tt::ReduceOp();
}

/// Exchanges of one function through tiles, in the order of the program.
class Exchanges {
public:
  explicit Exchanges(tt::FuncOp func) : scratch(func) {}

  /// What each thread's partner along a bit has of the elements that `reduce` combines; null if no
  /// tile has room for them.
  Value exchange(tt::ReduceOp reduce, uint32_t bit) {
    Value value = reduce.getSrcs()[0];
    if (Value again = computeAgain(reduce, bit))
      return again;
    auto type = cast<RankedTensorType>(value.getType());
    Type storage = type.getElementType().isInteger(1) ? IntegerType::get(type.getContext(), 8)
                                                      : type.getElementType();
    if (type.getNumElements() * msl::getElementBytes(storage) > scratch.freeBytes(reduce))
      return {};
    OpBuilder builder(reduce);
    Location loc = reduce.getLoc();
    Value stored = reshape(builder, loc, toStorage(builder, loc, value), {type.getNumElements()});
    auto flat = cast<RankedTensorType>(stored.getType());
    Value tile = scratch.allocate(
        TileType::get(builder.getContext(), flat.getShape(), flat.getElementType(), 0, 1),
        "partial");
    StoreTileOp::create(builder, loc, stored, tile, Value(), DenseI64ArrayAttr());
    last = {value, {}, bit, {}};
    last.partners = read(builder, tile, type, flat, bit);
    return last.partners;
  }

private:
  /// An exchange: what is stored in the tile, and what is read from it first.
  struct Exchange {
    Value elements, partners;
    uint32_t bit = 0;
    LoadTileOp load;
  };

  /// The operations on elements that are computed twice, rather than that their result goes through
  /// a tile.
  static constexpr unsigned kMostOperations = 8;
  /// The most bytes of a thread's elements where that is done: it holds those of three others, too.
  static constexpr int64_t kMostBytes = 32;

  Scratch scratch;
  Exchange last;

  Value read(OpBuilder &builder, Value tile, RankedTensorType type, RankedTensorType flat,
             uint32_t across) {
    Location loc = tile.getLoc();
    auto load =
        LoadTileOp::create(builder, loc, flat, tile, Value(), Value(), Value(), Value(), across);
    if (!last.load)
      last.load = load;
    return fromStorage(builder, loc, reshape(builder, loc, load, type.getShape()),
                       type.getElementType());
  }

  /// What a second exchange would bring of numbers that are computed element by element from those
  /// of the last one: it is computed from what the tile has of the partner and of the partner's
  /// partner.
  Value computeAgain(tt::ReduceOp reduce, uint32_t bit) {
    Value value = reduce.getSrcs()[0];
    if (!last.load || last.load->getBlock() != reduce->getBlock() || bit == last.bit)
      return {};
    RankedTensorType flat = last.load.getType();
    if (getLayout(flat)->getNumRegisters() * msl::getElementBytes(flat.getElementType()) >
        kMostBytes)
      return {};
    SmallVector<Operation *> operations;
    if (!collect(value, reduce.getAxis(), operations) || operations.empty())
      return {};
    // The tile is read at once, so that it is in use no longer.
    OpBuilder builder(last.load->getContext());
    builder.setInsertionPointAfterValue(last.partners);
    auto type = cast<RankedTensorType>(last.elements.getType());
    IRMapping across;
    across.map(last.elements, read(builder, last.load.getTile(), type, flat, bit));
    across.map(last.partners, read(builder, last.load.getTile(), type, flat, bit | last.bit));
    builder.setInsertionPoint(reduce);
    for (Operation *op : operations)
      builder.clone(*op, across);
    last = {};
    return across.lookup(value);
  }

  /// Collects, in their order, the operations between the last exchange and a value. False where
  /// its partner's value along the axis follows from something else.
  bool collect(Value value, unsigned axis, SmallVectorImpl<Operation *> &operations) {
    if (value == last.elements || value == last.partners || isAlike(value, axis))
      return true;
    Operation *op = value.getDefiningOp();
    if (llvm::is_contained(operations, op))
      return true;
    if (!op || op->getBlock() != last.load->getBlock() || op->getNumResults() != 1 ||
        !op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op) ||
        op->getNumRegions() != 0 || op->isBeforeInBlock(last.load))
      return false;
    for (Value operand : op->getOperands())
      if (!collect(operand, axis, operations))
        return false;
    operations.push_back(op);
    return operations.size() <= kMostOperations;
  }

  /// Whether all elements along an axis are one.
  static bool isAlike(Value value, unsigned axis) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    DenseElementsAttr constant;
    if (!type || type.getDimSize(axis) == 1 ||
        (matchPattern(value, m_Constant(&constant)) && constant.isSplat()) ||
        value.getDefiningOp<tt::SplatOp>())
      return true;
    auto broadcast = value.getDefiningOp<tt::BroadcastOp>();
    return broadcast && broadcast.getSrc().getType().getDimSize(axis) == 1;
  }
};

struct TTMFoldExchangesPass : impl::TTMFoldExchangesBase<TTMFoldExchangesPass> {
  void runOnOperation() override {
    bool changed = false;
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      SmallVector<arith::XOrIOp> ops;
      func.walk([&](arith::XOrIOp op) {
        if (isa<RankedTensorType>(op.getType()))
          ops.push_back(op);
      });
      std::optional<Exchanges> exchanges;
      for (arith::XOrIOp op : ops)
        changed |= fold(func, exchanges, op);
    }
    if (!changed)
      markAllAnalysesPreserved();
  }

  static bool fold(tt::FuncOp func, std::optional<Exchanges> &exchanges, arith::XOrIOp op) {
    for (bool swap : {false, true}) {
      Value tile = op->getOperand(swap), pairs = op->getOperand(!swap);
      tt::ReduceOp reduce = getRepeated(pairs);
      // Both are in one block: a tile is passed on at the place of the reduction.
      if (!reduce || reduce.getSrcs()[0] != tile || reduce->getBlock() != op->getBlock())
        continue;
      uint32_t bit = getPairBit(reduce);
      if (!bit)
        continue;
      if (!exchanges)
        exchanges.emplace(func);
      Value partners = exchanges->exchange(reduce, bit);
      if (!partners)
        continue;
      op->replaceAllUsesWith(ValueRange(partners));
      eraseIfUnread(op);
      return true;
    }
    return false;
  }

  /// Erases an operation and what was computed for it alone.
  static void eraseIfUnread(Operation *op) {
    if (!op->use_empty() || !isMemoryEffectFree(op))
      return;
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      if (Operation *defining = operand.getDefiningOp();
          isa_and_nonnull<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, ConvertLayoutOp,
                          tt::ReduceOp>(defining))
        eraseIfUnread(defining);
  }
};

} // namespace
} // namespace triton_metal
