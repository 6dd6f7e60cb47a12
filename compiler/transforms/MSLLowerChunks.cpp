// Computes the chunks of tiles that are needed, and no others: see Passes.td.

#include "transforms/Erase.h"
#include "transforms/MSLArrays.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Iterators.h"
#include "llvm/Support/MathExtras.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLLOWERCHUNKS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// The chunks that are available at one place: those computed before it in the blocks around it.
class KnownChunks {
public:
  struct Scope {
    KnownChunks &known;
    size_t size;
    explicit Scope(KnownChunks &known) : known(known), size(known.order.size()) {}
    ~Scope() {
      for (; known.order.size() > size; known.order.pop_back())
        known.chunks[known.order.back()].pop_back();
    }
  };

  void add(Value tile, const Coord &at, int64_t width, Value chunk) {
    chunks[tile].push_back({at, width, chunk});
    order.push_back(tile);
  }

  Value find(Value tile, const Coord &at, int64_t width) const {
    auto it = chunks.find(tile);
    if (it == chunks.end())
      return {};
    for (const Entry &entry : llvm::reverse(it->second))
      if (entry.width == width && entry.at == at)
        return entry.chunk;
    return {};
  }

private:
  struct Entry {
    Coord at;
    int64_t width;
    Value chunk;
  };
  llvm::DenseMap<Value, SmallVector<Entry, 2>> chunks;
  SmallVector<Value> order;
};

/// Computes chunks at the builder's place.
class ChunkLowering {
public:
  explicit ChunkLowering(MLIRContext *context) : builder(context) {}

  LogicalResult lowerBlock(Block &block) {
    KnownChunks::Scope scope(known);
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto chunk = dyn_cast<ChunkOp>(op)) {
        builder.setInsertionPoint(chunk);
        chunk.replaceAllUsesWith(
            get(chunk.getValue(), getCoord(chunk), getNumRegisters(chunk.getType())));
        chunk.erase();
        if (isFailed)
          return failure();
        continue;
      }
      // The registers of a tile are computed where they are needed.
      auto select = dyn_cast<arith::SelectOp>(op);
      if (select && !llvm::all_of(getReaders(select), llvm::IsaPred<ChunkOp>)) {
        if (Value picked = pickComponents(select)) {
          select.replaceAllUsesWith(picked);
          select.erase();
        }
        continue;
      }
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          if (failed(lowerBlock(inner)))
            return failure();
    }
    return success();
  }

private:
  static Coord getCoord(ChunkOp op) {
    Coord at;
    for (auto [index, stride] : llvm::zip_equal(op.getIndices(), op.getStrides())) {
      auto loop = cast<UnrollOp>(cast<BlockArgument>(index).getOwner()->getParentOp());
      at.terms.push_back({index, stride, loop.getUpper()});
    }
    at.constant = op.getOffset();
    return at;
  }

  Value get(Value tile, const Coord &at, int64_t width);
  /// Makes the chunk from chunks that are available: a part of a larger one, or two halves. Null if
  /// there are none.
  Value assemble(Value tile, const Coord &at, int64_t width);
  Value compute(Value tile, const Coord &at, int64_t width);
  Value computeConstant(arith::ConstantOp op, const Coord &at, int64_t width);
  Value computePermuted(PermuteRegistersOp op, const Coord &at, int64_t width);
  Value computeOfVector(Value vector, Location loc, const Coord &at, int64_t width);
  Value computeElementwise(Operation *op, const Coord &at, int64_t width);
  Coord permute(PermuteRegistersOp op, const Coord &at);
  Value pickComponents(arith::SelectOp op);
  Value fail(Value tile, const Twine &message, int64_t width);

  OpBuilder builder;
  KnownChunks known;
  bool isFailed = false;
};

} // namespace

Value ChunkLowering::fail(Value tile, const Twine &message, int64_t width) {
  isFailed = true;
  emitError(tile.getLoc(), message);
  return ub::PoisonOp::create(builder, tile.getLoc(), getChunkType(tile.getType(), width));
}

Value ChunkLowering::get(Value tile, const Coord &at, int64_t width) {
  if (!isTile(tile))
    return tile;
  if (Value chunk = known.find(tile, at, width))
    return chunk;
  if (Value chunk = assemble(tile, at, width))
    return chunk;
  Value chunk = compute(tile, at, width);
  known.add(tile, at, width, chunk);
  return chunk;
}

Value ChunkLowering::assemble(Value tile, const Coord &at, int64_t width) {
  // Outside of loops, a chunk would stay in registers from one use in the block to the next.
  if (isOnDemand(tile) &&
      !builder.getInsertionBlock()->getParentOp()->getParentOfType<UnrollOp>() &&
      !isa<UnrollOp>(builder.getInsertionBlock()->getParentOp()))
    return {};
  Location loc = tile.getLoc();
  for (int64_t wide = width * 2; wide <= kLargestChunk; wide *= 2) {
    Coord outer, inner;
    outer.constant = at.constant / wide * wide;
    inner.constant = at.constant % wide;
    bool crosses = false;
    for (const Coord::Term &term : at.terms) {
      crosses |= term.stride < wide && term.stride * term.trip > wide;
      (term.stride < wide ? inner : outer).terms.push_back(term);
    }
    // The index selects registers beyond this chunk.
    if (crosses)
      continue;
    Value chunk = known.find(tile, outer, wide);
    if (!chunk)
      continue;
    if (inner.terms.empty())
      return createSwizzle(builder, loc, chunk, inner.constant, width);
    // A tile that is computed on demand is computed at the index. A vector that is indexed would go
    // from registers to memory.
    if (width == 1 && !isOnDemand(tile))
      return ElementOp::create(builder, loc, getElementTypeOrSelf(tile.getType()), chunk,
                               createIndex(builder, inner, 1));
  }
  if (width == 1)
    return {};
  Value low = known.find(tile, at, width / 2);
  Value high = low ? known.find(tile, at.plus(width / 2), width / 2) : Value();
  if (!high)
    return {};
  return VectorOp::create(builder, loc, getChunkType(tile.getType(), width), ValueRange{low, high});
}

Value ChunkLowering::compute(Value tile, const Coord &at, int64_t width) {
  Location loc = tile.getLoc();
  Type type = getChunkType(tile.getType(), width);
  Operation *op = tile.getDefiningOp();
  if (auto read = dyn_cast_or_null<ReadTileOp>(op))
    return readArray(builder, loc, read.getArray(), at, width);
  if (auto vector = dyn_cast_or_null<AsTileOp>(op))
    return computeOfVector(vector.getValue(), loc, at, width);
  if (!isOnDemand(tile))
    return fail(tile, "cannot be turned into Metal: no value of this operation is known at its use",
                width);
  if (auto splat = dyn_cast<SplatOp>(op))
    return width == 1 ? splat.getValue()
                      : SplatOp::create(builder, loc, type, splat.getValue()).getResult();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return computeConstant(constant, at, width);
  if (isa<ub::PoisonOp>(op))
    return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
  if (auto permute = dyn_cast<PermuteRegistersOp>(op))
    return computePermuted(permute, at, width);
  return computeElementwise(op, at, width);
}

Value ChunkLowering::computeOfVector(Value vector, Location loc, const Coord &at, int64_t width) {
  if (at.terms.empty())
    return createSwizzle(builder, loc, vector, at.constant, width);
  Type element = getElementTypeOrSelf(vector.getType());
  SmallVector<Value> parts;
  for (int64_t part = 0; part < width; ++part)
    parts.push_back(
        ElementOp::create(builder, loc, element, vector, createIndex(builder, at.plus(part), 1)));
  if (width == 1)
    return parts[0];
  return VectorOp::create(builder, loc, getChunkType(element, width), parts);
}

Value ChunkLowering::computeElementwise(Operation *op, const Coord &at, int64_t width) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, get(operand, at, width));
  Operation *chunk = builder.clone(*op, mapping);
  chunk->getResult(0).setType(getChunkType(op->getResult(0).getType(), width));
  auto select = dyn_cast<arith::SelectOp>(chunk);
  if (Value picked = select ? pickComponents(select) : Value()) {
    select.erase();
    return picked;
  }
  return chunk->getResult(0);
}

/// Whether the elements depend only on the last bits of `asked`, those of a chunk's components.
static bool isSameInSteps(DenseElementsAttr constant, const RegisterMap &asked, int64_t width) {
  unsigned terms = asked.bases.size() - llvm::Log2_64(width);
  for (int64_t index = 0, e = int64_t(1) << asked.bases.size(); index < e; ++index)
    if (getConstantElement(constant, asked.apply(index)) !=
        getConstantElement(constant, asked.apply(index >> terms << terms)))
      return false;
  return true;
}

Value ChunkLowering::computeConstant(arith::ConstantOp op, const Coord &at, int64_t width) {
  auto dense = cast<DenseElementsAttr>(op.getValue());
  Location loc = op.getLoc();
  Type type = getChunkType(op.getType(), width);
  Type element = dense.getElementType();
  auto at0 = [&](int64_t index) { return dense.getValues<Attribute>()[index]; };
  auto chunkOf = [&](int64_t first) -> Value {
    if (width == 1)
      return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(at0(first)));
    SmallVector<Attribute> values;
    for (int64_t index = 0; index < width; ++index)
      values.push_back(at0(first + index));
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(cast<ShapedType>(type), values));
  };
  if (dense.isSplat())
    return chunkOf(0);
  if (at.terms.empty())
    return chunkOf(at.constant);
  // Only the registers that the loop visits must be linear in its indices; getLoopNest has chosen
  // the loop accordingly. The last bases are those of the chunk's components.
  RegisterMap asked;
  asked.offset = at.constant;
  for (const Coord::Term &term : at.terms)
    for (unsigned bit = 0, count = llvm::Log2_64(term.trip); bit < count; ++bit)
      asked.bases.push_back(at.isFirstOfIndex(term) ? at.getBase(term.index, bit) : 0);
  for (int64_t bit = 1; bit < width; bit <<= 1)
    asked.bases.push_back(bit);
  auto strides = getLinearStrides(dense, asked);
  if (!strides && isSameInSteps(dense, asked, width))
    return chunkOf(at.constant);
  if (!strides)
    return fail(op,
                "internal error: a constant without linear structure was asked for at a loop index",
                width);
  // Adds up what each loop index contributes. The components of a vector differ from the first by
  // constants.
  auto nsw = arith::IntegerOverflowFlags::nsw;
  Value sum;
  auto add = [&](Value value) {
    sum = sum ? arith::AddIOp::create(builder, loc, sum, value, nsw) : value;
  };
  auto cast = [&](Value index) -> Value {
    unsigned bits = element.getIntOrFloatBitWidth();
    if (bits == 32)
      return index;
    return bits > 32 ? arith::ExtUIOp::create(builder, loc, element, index).getResult()
                     : arith::TruncIOp::create(builder, loc, element, index).getResult();
  };
  unsigned low = 0;
  for (const Coord::Term &term : at.terms) {
    unsigned count = llvm::Log2_64(term.trip);
    ArrayRef<int64_t> ofTerm = ArrayRef(*strides).slice(low, count);
    low += count;
    bool regular = true;
    for (unsigned bit = 1; bit < count; ++bit)
      regular &= ofTerm[bit] == ofTerm[0] << bit;
    for (unsigned bit = 0; bit < (regular ? 1 : count); ++bit) {
      int64_t stride = ofTerm[bit];
      if (stride == 0)
        continue;
      Value index = term.index;
      if (!regular) {
        Value one = createConstant(builder, loc, 1, builder.getI32Type());
        index =
            bit ? arith::ShRUIOp::create(builder, loc, index,
                                         createConstant(builder, loc, bit, builder.getI32Type()))
                      .getResult()
                : index;
        index = arith::AndIOp::create(builder, loc, index, one);
      }
      index = cast(index);
      add(stride == 1 ? index
                      : arith::MulIOp::create(builder, loc, index,
                                              createConstant(builder, loc, stride, element), nsw));
    }
  }
  int64_t first = getConstantElement(dense, at.constant);
  if (!sum)
    return chunkOf(at.constant);
  if (width == 1) {
    if (first)
      add(createConstant(builder, loc, first, element));
    return sum;
  }
  Value wide = SplatOp::create(builder, loc, type, sum);
  return arith::AddIOp::create(builder, loc, wide, chunkOf(at.constant), nsw);
}

Coord ChunkLowering::permute(PermuteRegistersOp op, const Coord &at) {
  Location loc = builder.getUnknownLoc();
  Coord inner;
  inner.constant = op.getSource(at.constant);
  Type i32 = builder.getI32Type();
  auto getSourceBase = [&](int64_t base) { return op.getSource(base) ^ op.getOffset(); };
  for (const Coord::Term &term : at.terms) {
    if (!at.isFirstOfIndex(term))
      continue;
    unsigned count = llvm::Log2_64(term.trip);
    SmallVector<int64_t> found;
    for (unsigned bit = 0; bit < count; ++bit)
      found.push_back(getSourceBase(at.getBase(term.index, bit)));
    bool regular = found[0] == 0 || llvm::isPowerOf2_64(found[0]);
    for (unsigned bit = 1; bit < count; ++bit)
      regular &= found[bit] == found[0] << bit;
    if (regular) {
      if (found[0])
        inner.terms.push_back({term.index, found[0], term.trip});
      continue;
    }
    for (unsigned bit = 0; bit < count; ++bit) {
      int64_t base = found[bit];
      if (!base)
        continue;
      Value index = term.index;
      if (bit)
        index = arith::ShRUIOp::create(builder, loc, index, createConstant(builder, loc, bit, i32));
      // The terms of one index keep one form, so that they can be recognised.
      if (count > 1)
        index = arith::AndIOp::create(builder, loc, index, createConstant(builder, loc, 1, i32));
      for (int64_t power = 1; power <= base; power <<= 1)
        if (base & power)
          inner.terms.push_back({index, power, 2});
    }
  }
  return inner;
}

Value ChunkLowering::computePermuted(PermuteRegistersOp op, const Coord &at, int64_t width) {
  Location loc = op.getLoc();
  ArrayRef<int64_t> bases = op.getBases();
  Value source = op.getValue();
  Coord inner = permute(op, at);
  if (width == 1)
    return get(source, inner, 1);
  bool repeated = true, same = true;
  for (int64_t bit = 0; (int64_t(1) << bit) < width; ++bit) {
    repeated &= bases[bit] == 0;
    same &= bases[bit] == int64_t(1) << bit;
  }
  same &= inner.constant % width == 0;
  Type type = getChunkType(op.getType(), width);
  if (repeated)
    return SplatOp::create(builder, loc, type, get(source, inner, 1));
  if (same)
    return get(source, inner, width);
  SmallVector<Value> parts;
  for (int64_t part = 0; part < width; ++part) {
    Coord component = inner;
    component.constant ^= op.getSource(part) ^ op.getOffset();
    parts.push_back(get(source, component, 1));
  }
  return VectorOp::create(builder, loc, type, parts);
}

/// The components of a select whose condition is a constant, which is how two tiles become one;
/// otherwise null.
Value ChunkLowering::pickComponents(arith::SelectOp op) {
  DenseElementsAttr choice;
  if (!matchPattern(op.getCondition(), m_Constant(&choice)) || choice.isSplat())
    return {};
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  SmallVector<Value> parts;
  for (auto [component, isTrue] : llvm::enumerate(choice.getValues<bool>()))
    parts.push_back(createSwizzle(builder, op.getLoc(),
                                  isTrue ? op.getTrueValue() : op.getFalseValue(), component, 1));
  return VectorOp::create(builder, op.getLoc(), op.getType(), parts);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct LowerChunks : triton_metal::impl::MSLLowerChunksBase<LowerChunks> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      if (failed(ChunkLowering(&getContext()).lowerBlock(kernel.getBody().front())))
        return signalPassFailure();
      // Tiles as values have no users left.
      kernel.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
        if (op->getNumResults() == 1 && op->use_empty() && isTile(op->getResult(0)) &&
            (isa<ReadTileOp, AsTileOp>(op) || isOnDemand(op->getResult(0))))
          op->erase();
      });
    }
  }
};
} // namespace
