// Tiles in threadgroup memory and products of simdgroup matrices.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

namespace {

std::string tileName(Value memory) { return nameOf(memory.getLoc(), "tile"); }

Location named(RegisterBuilder &builder, const Twine &name) {
  return triton_metal::named(builder.getContext(), name);
}

Value slotOf(RegisterBuilder &builder, ttm::TileType type, Value memory, Value slot) {
  if (!slot || type.getSlots() == 1)
    return memory;
  OpBuilder &plain = builder;
  return msl::SlotOp::create(plain, named(builder, tileName(memory) + "_slot"), memory, slot);
}

/// Places of the elements in a tile with these columns, of which `pad` elements follow each row.
Value places(RegisterBuilder &builder, const LinearLayout &layout, int64_t columns, int64_t pad,
             const Twine &name) {
  unsigned shift = llvm::Log2_64(columns);
  return builder.registerIndices(
      layout, [&](uint32_t flat) { return flat + (flat >> shift) * pad; },
      [&](Value flat) -> Value {
        if (!pad)
          return flat;
        Type type = flat.getType();
        Value rows = arith::ShRUIOp::create(builder, flat, builder.constant(type, shift));
        rows = arith::MulIOp::create(builder, rows, builder.constant(type, pad));
        return arith::AddIOp::create(builder, flat, rows);
      },
      name);
}

/// Places in a tile without padding whose index differs in bits of the thread's part.
Value placesAcross(RegisterBuilder &builder, const LinearLayout &layout, uint32_t bits) {
  Value thread = builder.threadIndex(layout.getLaneBases(), layout.getSimdgroupBases(), "place");
  thread = arith::XOrIOp::create(builder, thread, builder.constant(thread.getType(), bits));
  SmallVector<int32_t> registers;
  for (uint32_t index = 0; index < layout.getNumRegisters(); ++index)
    registers.push_back(layout.apply(index, 0, 0));
  Value places = builder.splat(thread, registers.size());
  return registers.size() == 1
             ? places
             : arith::AddIOp::create(builder, places, builder.dense(registers)).getResult();
}

/// Registers that hold neighbours in one row; at most 16 bytes of them, at an address that divides
/// by as much.
int32_t rowWidth(ArrayRef<uint32_t> registers, ttm::TileType tile) {
  int64_t count = 1, bytes = msl::getElementBytes(tile.getElementType());
  for (uint32_t base : registers) {
    if (base != count || 2 * count > tile.getShape().back() || 2 * count * bytes > 16 ||
        tile.getRowStride() % (2 * count))
      break;
    count *= 2;
  }
  return count;
}

/// A part of a tensor's rows that takes its turn in a tile.
struct Turn {
  /// Where the tensor's elements go, each in the turn of its own.
  Value places;
  /// Whether it is the turn of an element.
  Value mask;

  Turn(RegisterBuilder &builder, const LinearLayout &layout, ttm::TileType tile, Value part) {
    int64_t columns = tile.getShape().back(), pad = tile.getRowPad(), elements = 1;
    for (int64_t extent : tile.getShape())
      elements *= extent;
    Value flat = builder.flatIndices(layout);
    Type type = flat.getType();
    places = arith::AndIOp::create(builder, flat, builder.constant(type, elements - 1));
    if (pad) {
      Value rows =
          arith::ShRUIOp::create(builder, places, builder.constant(type, llvm::Log2_64(columns)));
      rows = arith::MulIOp::create(builder, rows, builder.constant(type, pad));
      places = arith::AddIOp::create(builder, places, rows);
    }
    Value turn =
        arith::ShRUIOp::create(builder, flat, builder.constant(type, llvm::Log2_64(elements)));
    mask = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, turn,
                                 builder.splat(part, layout.getNumRegisters()));
  }
};

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

struct AllocTilePattern : RegisterPattern<ttm::AllocTileOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::AllocTileOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    // All of a kernel's memory is declared at its top, in the order of the program.
    auto kernel = op->getParentOfType<msl::KernelOp>();
    Block &top = kernel.getBody().front();
    auto place = llvm::find_if(top, [](Operation &other) { return !isa<msl::AllocOp>(other); });
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(&top, place);
    std::string name = nameOf(op.getLoc());
    if (op.getName())
      name = op.getName()->str();
    else
      name = name.empty() ? "tile" : name + "_tile";
    std::string unique = name;
    for (unsigned number = 2; isTaken(top, unique); ++number)
      unique = name + "_" + std::to_string(number);
    ttm::TileType tile = op.getTile().getType();
    int64_t count = tile.getSlotElements();
    // Nothing needs the padding behind the last row.
    if (tile.getSlots() == 1)
      count -= tile.getRowPad();
    rewriter.replaceOpWithNewOp<msl::AllocOp>(
        op, convert(tile), rewriter.getStringAttr(unique), rewriter.getI64IntegerAttr(count),
        rewriter.getI64IntegerAttr(tile.getSlots()), IntegerAttr());
    return success();
  }

private:
  static bool isTaken(Block &top, StringRef name) {
    return llvm::any_of(top.getOps<msl::AllocOp>(),
                        [&](msl::AllocOp other) { return other.getName() == name; });
  }
};

struct NextSlotPattern : RegisterPattern<ttm::NextSlotOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::NextSlotOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<msl::NextSlotOp>(op, op.getType(), adaptor.getSlot(),
                                                 op.getSlotsAttr());
    return success();
  }
};

struct StoreTilePattern : RegisterPattern<ttm::StoreTileOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::StoreTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    ttm::TileType tile = op.getTile().getType();
    LinearLayout layout = layoutOf(op.getSrc());
    Stored stored;
    stored.value = adaptor.getSrc();
    std::string name = nameOf(adaptor.getTile().getLoc());
    name = name.empty() ? "place" : "place_in_" + name;
    if (op.getOffsets()) {
      stored = storeOfPart(builder, *op.getOffsets(), layout, tile, adaptor.getSrc(), name);
    } else {
      stored.owners = builder.getOwners(layout);
      stored.width = rowWidth(layout.getRegisterBases(), tile);
      if (op.getPart()) {
        Turn turn(builder, layout, tile, adaptor.getPart());
        stored.places = turn.places;
        stored.mask = turn.mask;
      } else {
        stored.places = places(builder, layout, tile.getShape().back(), tile.getRowPad(), name);
      }
    }
    Type element = tile.getElementType();
    if (getElementTypeOrSelf(stored.value.getType()) != element)
      stored.value = arith::SIToFPOp::create(builder, withElement(stored.value.getType(), element),
                                             stored.value);
    Value memory = slotOf(builder, tile, adaptor.getTile(), adaptor.getSlot());
    builder.inThreads(stored.owners, [&] {
      msl::StoreOp::create(builder, stored.value, memory, stored.places, stored.mask, Value(),
                           stored.width, stored.mask ? stored.width : 1);
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  struct Stored {
    Value value, places, mask;
    msl::ThreadSet owners;
    int32_t width = 1;
  };

  /// The registers and the threads that hold the part of the tensor that begins at the offsets. The
  /// layout is a permutation: each register, lane and SIMD-group bit is within the part or not.
  static Stored storeOfPart(RegisterBuilder &builder, ArrayRef<int64_t> offsets,
                            const LinearLayout &layout, ttm::TileType tile, Value value,
                            const Twine &name) {
    ArrayRef<int64_t> part = tile.getShape();
    // The bits of the element's flat index that say in which part it is, and those of this part.
    uint32_t mask = 0, wanted = 0;
    for (auto [dim, extent] : llvm::enumerate(part)) {
      mask |= uint32_t(layout.getShape()[dim] - extent) << layout.dimShift(dim);
      wanted |= uint32_t(offsets[dim]) << layout.dimShift(dim);
    }
    auto toPlace = [&](uint32_t flat) {
      auto coordinates = layout.toCoordinates(flat);
      uint32_t row = 0;
      for (auto [coordinate, extent] : llvm::drop_end(llvm::zip(coordinates, part)))
        row = row * extent + (coordinate & (extent - 1));
      return uint32_t(row * tile.getRowStride() + (coordinates.back() & (part.back() - 1)));
    };

    SmallVector<int64_t> bases;
    SmallVector<uint32_t> registers;
    int64_t first = 0;
    for (auto [bit, base] : llvm::enumerate(layout.getRegisterBases())) {
      if (base & mask) {
        first |= (base & wanted) ? int64_t(1) << bit : 0;
      } else {
        bases.push_back(int64_t(1) << bit);
        registers.push_back(base);
      }
    }
    // Threads of this part, and of those that hold the same only one.
    auto fixedBits = [&](InDim dim) {
      uint32_t fixed = layout.freeMask(dim), bits = 0;
      for (auto [bit, base] : llvm::enumerate(layout.getBases(dim)))
        if (base & mask) {
          fixed |= 1u << bit;
          bits |= (base & wanted) ? 1u << bit : 0;
        }
      return std::pair(fixed, bits);
    };
    auto [laneMask, lane] = fixedBits(InDim::Lane);
    auto [simdgroupMask, simdgroup] = fixedBits(InDim::Simdgroup);

    Stored stored;
    stored.value = builder.permute(value, bases, first);
    stored.owners = {laneMask, lane, simdgroupMask, simdgroup};
    stored.width = rowWidth(registers, tile);
    Value thread =
        builder.threadIndex(llvm::map_to_vector(layout.getLaneBases(), toPlace),
                            llvm::map_to_vector(layout.getSimdgroupBases(), toPlace), name);
    SmallVector<int32_t> inThread;
    for (uint32_t index = 0; index < (1u << registers.size()); ++index) {
      uint32_t flat = 0;
      for (auto [bit, base] : llvm::enumerate(registers))
        flat |= (index >> bit & 1) ? base : 0;
      inThread.push_back(toPlace(flat));
    }
    stored.places = builder.splat(thread, inThread.size());
    if (inThread.size() > 1)
      stored.places = arith::AddIOp::create(builder, stored.places, builder.dense(inThread));
    return stored;
  }
};

struct LoadTilePattern : RegisterPattern<ttm::LoadTileOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::LoadTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    ttm::TileType tile = op.getTile().getType();
    LinearLayout layout = layoutOf(op.getResult());
    int32_t width = rowWidth(layout.getRegisterBases(), tile);
    Value offsets, mask;
    if (op.getPart()) {
      Turn turn(builder, layout, tile, adaptor.getPart());
      offsets = turn.places;
      mask = turn.mask;
    } else if (uint32_t bits = op.getAcross()) {
      offsets = placesAcross(builder, layout, bits);
    } else {
      offsets = places(builder, layout, tile.getShape().back(), tile.getRowPad(), "place");
    }
    Value memory = slotOf(builder, tile, adaptor.getTile(), adaptor.getSlot());
    if (Value row = adaptor.getRow()) {
      int64_t elements = tile.getSlotElements() / tile.getShape().front();
      Value first = arith::MulIOp::create(builder, row, builder.constant(row.getType(), elements));
      OpBuilder &plain = builder;
      memory = msl::PtrAddOp::create(plain, named(builder, tileName(adaptor.getTile()) + "_row"),
                                     memory, first);
    }
    rewriter.replaceOpWithNewOp<msl::LoadOp>(op, convert(op.getType()), memory, offsets, mask,
                                             adaptor.getOther(), Value(), width, mask ? width : 1,
                                             /*is_volatile=*/false);
    return success();
  }
};

/// Of the threads that hold copies of an index, the first counts it.
struct CountInTilePattern : RegisterPattern<ttm::CountInTileOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::CountInTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value indices = adaptor.getIndices();
    builder.inThreads(builder.getOwners(layoutOf(op.getIndices())), [&] {
      msl::AtomicRMWOp::create(builder, indices.getType(), msl::AtomicKind::Add, indices,
                               builder.constant(indices.getType(), 1), adaptor.getTile(),
                               adaptor.getMask(), msl::MemoryOrder::Relaxed);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct MMAPattern : RegisterPattern<ttm::MMAOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::MMAOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    msl::MatrixShape shape = op.getInstruction();
    ttm::SimdgroupMatrixTiling tiling =
        *ttm::getSimdgroupMatrixTiling(layoutOf(op.getAcc()), shape);
    // Fragments of each SIMD-group.
    int64_t m = op.getM() / tiling.rows / shape.m, n = op.getN() / tiling.columns / shape.n;
    int64_t k = op.getK() / shape.k;
    ArrayRef<int64_t> all = op.getAcc().getType().getShape();
    int64_t batches = all.size() == 3 ? all[0] / tiling.batch : 1;
    Operand a = inTile(builder, op, 0, op.getA(), adaptor.getA(), adaptor.getASlot(), tiling.batch);
    if (!a.value)
      a.value = inRegisters(builder, op, 0, op.getA(), adaptor.getA(), m, k);
    Operand b = inTile(builder, op, 1, op.getB(), adaptor.getB(), adaptor.getBSlot(), tiling.batch);
    if (!b.value)
      b.value = inRegisters(builder, op, 1, op.getB(), adaptor.getB(), n, k);
    Value acc = adaptor.getAcc();
    rewriter.replaceOpWithNewOp<msl::MmaOp>(
        op, acc.getType(), acc, a.value, b.value, shape, m, n, k, a.stride, b.stride,
        op.getATransposed(), op.getBTransposed(), op.getRelaxed(), batches,
        op.getBatch() / tiling.batch, int64_t(op.getBatchOffset()) / tiling.batch, a.batchStride,
        b.batchStride);
    return success();
  }

private:
  struct Operand {
    Value value;
    int32_t stride = 0, batchStride = 0;
  };

  /// This thread's first element of its SIMD-group's rows (of a, index 0) or columns (of b);
  /// nothing if the operand is in registers.
  static Operand inTile(RegisterBuilder &builder, ttm::MMAOp op, unsigned index, Value operand,
                        Value memory, Value slot, int64_t simdgroupsAlongBatch) {
    auto tile = dyn_cast<ttm::TileType>(operand.getType());
    if (!tile)
      return {};
    LinearLayout layout = layoutOf(op.getAcc());
    bool transposed = index == 0 ? op.getATransposed() : op.getBTransposed();
    int64_t step = (index == 0) != transposed ? tile.getRowStride() : 1;
    // From one matrix of the batch to the next. Neighbouring ones belong to different SIMD-groups.
    int64_t matrix = tile.getRank() == 3 ? tile.getSlotElements() / tile.getShape()[0] : 0;
    auto begins = llvm::map_to_vector(layout.getSimdgroupBases(), [&](uint32_t base) {
      auto coordinates = layout.toCoordinates(base);
      int64_t batch = tile.getRank() == 3 ? coordinates[0] : 0;
      return uint32_t(coordinates[coordinates.size() - 2 + index] * step + batch * matrix);
    });
    std::string name = tileName(memory) + (index == 0 ? "_rows" : "_columns");
    LinearLayout fragment = LinearLayout::simdgroupFragment(op.getInstruction(), index);
    auto lanes = llvm::map_to_vector(fragment.getLaneBases(), [&](uint32_t base) {
      LinearLayout::Shape at = fragment.toCoordinates(base);
      if (transposed)
        std::swap(at[0], at[1]);
      return uint32_t(at[0] * tile.getRowStride() + at[1]);
    });
    Value begin = builder.threadIndex(lanes, begins);
    memory = slotOf(builder, tile, memory, slot);
    OpBuilder &plain = builder;
    if (!matchPattern(begin, m_Zero()))
      memory = msl::PtrAddOp::create(plain, named(builder, name), memory, begin);
    return {memory, int32_t(tile.getRowStride()), int32_t(matrix * simdgroupsAlongBatch)};
  }

  /// The fragments of this operation's part of K. They are inner for a, outer for b; `others` is
  /// how many fragments there are the other way.
  static Value inRegisters(RegisterBuilder &builder, ttm::MMAOp op, unsigned index, Value operand,
                           Value registers, int64_t others, int64_t k) {
    auto type = cast<RankedTensorType>(operand.getType());
    msl::MatrixShape shape = op.getInstruction();
    // Where all operands are in registers, all of them are of this part.
    if (index == 0 ? op.getATransposed() : op.getBTransposed())
      return registers;
    int64_t allK = type.getShape()[index == 0 ? 1 : 0] / shape.k;
    if (allK == k)
      return registers;
    int64_t inner = index == 0 ? k : others, innerStride = index == 0 ? allK : others;
    int64_t outer = index == 0 ? others : k;
    int64_t each = shape.getOperand(index).getNumRegisters();
    SmallVector<int64_t> bases;
    for (int64_t reg = 1; reg < each; reg *= 2)
      bases.push_back(reg);
    for (int64_t fragment = 1; fragment < inner; fragment *= 2)
      bases.push_back(each * fragment);
    for (int64_t fragment = 1; fragment < outer; fragment *= 2)
      bases.push_back(each * fragment * innerStride);
    int64_t first = int64_t(op.getKOffset()) / shape.k * (index == 0 ? 1 : others);
    return builder.permute(registers, bases, each * first);
  }
};

} // namespace

void populateTilePatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<AllocTilePattern, NextSlotPattern, StoreTilePattern, LoadTilePattern,
               CountInTilePattern, MMAPattern>(types, patterns.getContext());
}

} // namespace triton_metal
