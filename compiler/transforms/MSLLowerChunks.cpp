// Computes the chunks of tiles that are needed, and no others: see Passes.td.

#include "transforms/Erase.h"
#include "transforms/MSLArrays.h"
#include "transforms/MSLConstantBits.h"
#include "transforms/MSLTiles.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Iterators.h"
#include "llvm/ADT/MapVector.h"
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
    return createConstantChunk(builder, loc, cast<DenseElementsAttr>(constant.getValue()), at,
                               width);
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

/// An index with these bits inverted.
static Value invertBits(OpBuilder &builder, Location loc, Value index, int64_t bits) {
  return bits ? arith::XOrIOp::create(builder, loc, index,
                                      createConstant(builder, loc, bits, builder.getI32Type()))
                    .getResult()
              : index;
}

Coord ChunkLowering::permute(PermuteRegistersOp op, const Coord &at) {
  Location loc = builder.getUnknownLoc();
  Type i32 = builder.getI32Type();
  struct Source {
    Coord::Term term;
    SmallVector<int64_t> bases;
    int64_t used = 0;
  };
  Coord inner;
  inner.constant = op.getSource(at.constant);
  // Register bits that several bits of the indices contribute to, which is an exclusive or.
  SmallVector<Source> sources;
  int64_t seen = 0, shared = 0;
  for (const Coord::Term &term : at.terms) {
    if (!at.isFirstOfIndex(term))
      continue;
    Source &source = sources.emplace_back(Source{term, {}, 0});
    for (unsigned bit = 0, count = llvm::Log2_64(term.trip); bit < count; ++bit) {
      int64_t base = op.getSource(at.getBase(term.index, bit)) ^ op.getOffset();
      source.bases.push_back(base);
      source.used |= base;
      shared |= seen & base;
      seen |= base;
    }
  }
  // A bit of the constant under a bit of an index inverts it.
  int64_t inverted = inner.constant & seen;
  inner.constant ^= inverted;

  llvm::MapVector<int64_t, Value> sums;
  for (const Source &source : sources) {
    ArrayRef<int64_t> bases = source.bases;
    bool regular = bases[0] == 0 || llvm::isPowerOf2_64(bases[0]);
    for (unsigned bit = 1; bit < bases.size(); ++bit)
      regular &= bases[bit] == bases[0] << bit;
    if (regular && !(source.used & shared)) {
      if (bases[0])
        inner.terms.push_back(
            {invertBits(builder, loc, source.term.index, (inverted & source.used) / bases[0]),
             bases[0], source.term.trip});
      continue;
    }
    for (unsigned bit = 0; bit < bases.size(); ++bit) {
      int64_t base = bases[bit];
      if (!base)
        continue;
      Value index = source.term.index;
      if (bit)
        index = arith::ShRUIOp::create(builder, loc, index, createConstant(builder, loc, bit, i32));
      // The terms of one index keep one form, so that they can be recognised.
      if (bases.size() > 1)
        index = arith::AndIOp::create(builder, loc, index, createConstant(builder, loc, 1, i32));
      Value inverse;
      for (int64_t power = 1; power <= base; power <<= 1) {
        if (!(base & power))
          continue;
        if (shared & power) {
          Value &sum = sums[power];
          sum = sum ? arith::XOrIOp::create(builder, loc, sum, index).getResult() : index;
          continue;
        }
        if (inverted & power && !inverse)
          inverse = invertBits(builder, loc, index, 1);
        inner.terms.push_back({inverted & power ? inverse : index, power, 2});
      }
    }
  }
  for (auto [power, sum] : sums)
    inner.terms.push_back({invertBits(builder, loc, sum, inverted & power ? 1 : 0), power, 2});
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
  for (const Coord::Term &term : inner.terms)
    same &= term.stride >= width;
  Type type = getChunkType(op.getType(), width);
  if (repeated)
    return SplatOp::create(builder, loc, type, get(source, inner, 1));
  if (same)
    return get(source, inner, width);
  SmallVector<Value> parts;
  for (int64_t part = 0; part < width; ++part) {
    parts.push_back(get(source, permute(op, at.plus(part)), 1));
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
