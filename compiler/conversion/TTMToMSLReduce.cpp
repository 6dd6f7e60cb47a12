// Reductions: the thread's registers first, then the lanes of the SIMD-group, then one round through threadgroup memory
// across SIMD-groups. The order is the same in every run.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

/// Partial results take at most this much threadgroup memory; beyond it the tile is laid out anew first.
static constexpr int64_t kPartialBytes = 8192;

/// The one operation of a combine region, if it is one and does not care for the order of its operands.
static Operation *getCommutativeCombiner(tt::ReduceOp op) {
  Block &block = op.getCombineOp().front();
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block.getOperations(), 2))
    return nullptr;
  Operation *combiner = &block.front();
  bool usesBoth = combiner->getNumOperands() == 2 && combiner->getNumResults() == 1 &&
                  block.getTerminator()->getOperand(0) == combiner->getResult(0) &&
                  ((combiner->getOperand(0) == block.getArgument(0) && combiner->getOperand(1) == block.getArgument(1)) ||
                   (combiner->getOperand(0) == block.getArgument(1) && combiner->getOperand(1) == block.getArgument(0)));
  if (!usesBoth ||
      !isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp,
           arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp, arith::MaxNumFOp, arith::MinNumFOp,
           arith::MaximumFOp, arith::MinimumFOp>(combiner))
    return nullptr;
  return combiner;
}

/// The SIMD-group function that does what the combiner does, for every number. What Metal's simd_max and simd_min make
/// of a NaN is not documented, so floats are compared lane by lane; 64-bit numbers and single bits it does not take.
static std::optional<msl::SimdReduceKind> getSimdReduceKind(Operation *combiner) {
  if (!combiner)
    return std::nullopt;
  Type type = combiner->getResult(0).getType();
  if (isa<arith::AddFOp>(combiner))
    return type.isBF16() ? std::nullopt : std::optional(msl::SimdReduceKind::Sum);
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || (integer.getWidth() != 32 && integer.getWidth() != 16))
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<msl::SimdReduceKind>>(combiner)
      .Case([](arith::AddIOp) { return msl::SimdReduceKind::Sum; })
      .Case([](arith::AndIOp) { return msl::SimdReduceKind::And; })
      .Case([](arith::OrIOp) { return msl::SimdReduceKind::Or; })
      .Case([](arith::XOrIOp) { return msl::SimdReduceKind::Xor; })
      .Case([](arith::MaxSIOp) { return msl::SimdReduceKind::Max; })
      .Case([](arith::MinSIOp) { return msl::SimdReduceKind::Min; })
      .Case([](arith::MaxUIOp) { return msl::SimdReduceKind::UMax; })
      .Case([](arith::MinUIOp) { return msl::SimdReduceKind::UMin; })
      .Default(std::optional<msl::SimdReduceKind>());
}

SmallVector<Value> Lowering::combine(tt::ReduceOp op, ValueRange lhs, ValueRange rhs) {
  // The region's scalars become vectors of registers.
  auto vector = dyn_cast<VectorType>(lhs[0].getType());
  auto like = [&](Type type) -> Type { return vector ? VectorType::get(vector.getShape(), type) : type; };
  Block &block = op.getCombineOp().front();
  IRMapping inner;
  inner.map(block.getArguments().take_front(lhs.size()), lhs);
  inner.map(block.getArguments().drop_front(lhs.size()), rhs);
  auto lookup = [&](Value value) {
    if (Value found = inner.lookupOrNull(value))
      return found;
    // A scalar from around the reduction.
    Value scalar = get(value);
    return vector ? splat(scalar, vector.getNumElements()) : scalar;
  };
  for (Operation &inside : block.without_terminator()) {
    if (auto constantOp = dyn_cast<arith::ConstantOp>(inside)) {
      Type type = like(constantOp.getType());
      TypedAttr value = constantOp.getValue();
      if (vector)
        value = DenseElementsAttr::get(cast<VectorType>(type), Attribute(value));
      inner.map(constantOp.getResult(), arith::ConstantOp::create(builder, loc, type, value));
      continue;
    }
    for (Value operand : inside.getOperands())
      inner.map(operand, lookup(operand));
    Operation *copy = builder.clone(inside, inner);
    copy->setLoc(loc);
    for (auto [from, to] : llvm::zip(inside.getResults(), copy->getResults()))
      to.setType(like(from.getType()));
  }
  return llvm::map_to_vector(block.getTerminator()->getOperands(), lookup);
}

SmallVector<Value> Lowering::reduceRegisters(tt::ReduceOp op, ValueRange values, int64_t bits) {
  SmallVector<Type> types;
  for (Value value : values) {
    auto type = cast<VectorType>(value.getType());
    types.push_back(VectorType::get(type.getNumElements() >> llvm::popcount(uint64_t(bits)), type.getElementType()));
  }
  auto reduced = msl::ReduceRegistersOp::create(builder, loc, types, values, bits);
  Region &region = reduced.getCombine();
  Block &block = op.getCombineOp().front();
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(
      &region, {}, block.getArgumentTypes(),
      llvm::map_to_vector(block.getArguments(), [](BlockArgument argument) { return argument.getLoc(); }));
  IRMapping inner;
  inner.map(block.getArguments(), body->getArguments());
  for (Operation &inside : block.without_terminator()) {
    for (Value operand : inside.getOperands())
      if (!inner.contains(operand))
        inner.map(operand, get(operand));
    builder.clone(inside, inner);
  }
  msl::YieldOp::create(
      builder, loc,
      llvm::map_to_vector(block.getTerminator()->getOperands(), [&](Value value) -> Value {
        return inner.contains(value) ? inner.lookup(value) : get(value);
      }));
  return SmallVector<Value>(reduced.getResults());
}

Value Lowering::shuffleXor(Value value, unsigned mask) {
  return shuffleStorage(value, [&](Value bits) -> Value {
    return msl::SimdShuffleXorOp::create(builder, loc, bits, builder.getI32IntegerAttr(mask));
  });
}

LogicalResult Lowering::reduce(tt::ReduceOp op) {
  unsigned axis = op.getAxis();
  for (Operation &inside : op.getCombineOp().front().without_terminator())
    if (inside.getNumRegions() || !isa<arith::ArithDialect, math::MathDialect>(inside.getDialect()))
      return inside.emitOpError("cannot be part of a reduction's combine function: use arithmetic and tl.where");

  LinearLayout layout = layoutOf(op.getSrcs().front());
  SmallVector<Value> values = llvm::map_to_vector(op.getSrcs(), [&](Value value) { return get(value); });
  int64_t bytes = 0;
  for (Type type : op.getElementTypes()) {
    if (isa<tt::PtrType>(type))
      return op.emitOpError("reduces pointers; reduce their offsets instead");
    bytes += getStorageBytes(type);
  }

  // Partial results that need too much memory, and bases that mix the axis with others, need another layout.
  auto partialBytes = [&](const LinearLayout &candidate) {
    uint32_t simdgroupBits = candidate.bitsAlong(InDim::Simdgroup, axis);
    if (!simdgroupBits)
      return int64_t(0);
    auto kept = candidate.sliceDim(axis);
    int64_t threads = 1 << (llvm::popcount(31 & ~kept->freeMask(InDim::Lane)) +
                            llvm::popcount((numSimdgroups - 1) & ~kept->freeMask(InDim::Simdgroup)));
    return bytes * kept->getNumRegisters() * threads << llvm::popcount(simdgroupBits);
  };
  if (!layout.isSeparable(axis) || partialBytes(layout) > kPartialBytes) {
    // The axis last: lanes and SIMD-groups are spread over the other dimensions first.
    SmallVector<unsigned> order;
    for (unsigned dim = layout.getRank(); dim-- > 0;)
      if (dim != axis)
        order.push_back(dim);
    order.push_back(axis);
    LinearLayout apart = LinearLayout::blocked(layout.getShape(), SmallVector<int64_t>(layout.getRank(), 1), order,
                                               numSimdgroups);
    for (Value &value : values) {
      FailureOr<Value> converted = convertLayout(value, layout, apart, "spread");
      if (failed(converted))
        return failure();
      value = *converted;
    }
    layout = apart;
  }
  LinearLayout result = *layout.sliceDim(axis);
  Operation *combiner = getCommutativeCombiner(op);

  // Registers.
  if (uint32_t bits = layout.bitsAlong(InDim::Register, axis))
    values = reduceRegisters(op, values, bits);

  // Lanes. Neighbours first, so that the elements keep their order where it matters.
  uint32_t laneBits = layout.bitsAlong(InDim::Lane, axis);
  std::optional<msl::SimdReduceKind> kind = getSimdReduceKind(combiner);
  if (laneBits == 31 && kind) {
    values[0] = msl::SimdReduceOp::create(builder, loc, *kind, values[0]);
  } else {
    for (unsigned bit = 0; bit < 5; ++bit) {
      if (!(laneBits >> bit & 1))
        continue;
      SmallVector<Value> others =
          llvm::map_to_vector(values, [&](Value value) { return shuffleXor(value, 1u << bit); });
      if (combiner) {
        values = combine(op, values, others);
        continue;
      }
      // Both lanes combine in the same order, so that they get the same result.
      Value isFirst = threadBitsAreZero(1u << bit, 0);
      SmallVector<Value> first, second;
      for (auto [own, other] : llvm::zip(values, others)) {
        first.push_back(arith::SelectOp::create(builder, loc, isFirst, own, other));
        second.push_back(arith::SelectOp::create(builder, loc, isFirst, other, own));
      }
      values = combine(op, first, second);
    }
  }

  // SIMD-groups: each writes its partial results, and every thread combines those it needs.
  if (uint32_t simdgroupBits = layout.bitsAlong(InDim::Simdgroup, axis))
    reduceAcrossSimdgroups(op, values, layout, result, simdgroupBits);

  for (auto [source, target] : llvm::zip(values, op.getResults())) {
    if (isa<RankedTensorType>(target.getType())) {
      FailureOr<Value> converted = convertLayout(source, result, layoutOf(target), "spread");
      if (failed(converted))
        return failure();
      map(target, *converted);
    } else {
      map(target, extractScalar(source));
    }
  }
  return success();
}

void Lowering::reduceAcrossSimdgroups(tt::ReduceOp op, SmallVector<Value> &values, const LinearLayout &layout,
                                      const LinearLayout &result, uint32_t simdgroupBits) {
  // A partial result's place: [register][simdgroup, lane that hold different results][simdgroup along the axis].
  uint32_t partials = 1u << llvm::popcount(simdgroupBits);
  uint32_t next = partials, nextPartial = 1;
  SmallVector<uint32_t> laneValues(5, 0), writerValues, readerValues;
  uint32_t freeLanes = result.freeMask(InDim::Lane), freeSimdgroups = result.freeMask(InDim::Simdgroup);
  for (unsigned bit = 0; bit < 5; ++bit)
    if (!(freeLanes >> bit & 1)) {
      laneValues[bit] = next;
      next *= 2;
    }
  for (unsigned bit = 0; bit < layout.getSimdgroupBases().size(); ++bit) {
    uint32_t reader = 0, writer = 0;
    if (simdgroupBits >> bit & 1) {
      writer = nextPartial;
      nextPartial *= 2;
    } else if (!(freeSimdgroups >> bit & 1)) {
      reader = writer = next;
      next *= 2;
    }
    readerValues.push_back(reader);
    writerValues.push_back(writer);
  }
  // Only one of the registers, lanes and SIMD-groups that hold the same result writes it.
  uint32_t repeats = result.freeMask(InDim::Register);
  unsigned numRegisters = result.getNumRegisters() >> llvm::popcount(repeats);
  Value writer = threadSum(laneValues, writerValues, "own_partial");
  Value reader = threadSum(laneValues, readerValues, "first_partial");
  Value owner = threadBitsAreZero(freeLanes, freeSimdgroups & ~simdgroupBits);

  auto offsets = [&](Value thread, uint32_t perRegister) -> Value {
    SmallVector<int32_t> places;
    for (uint32_t reg = 0; reg < numRegisters; ++reg)
      for (uint32_t partial = 0; partial < perRegister; ++partial)
        places.push_back(reg * next + partial);
    if (places.size() == 1)
      return splat(thread, 1);
    auto type = VectorType::get(places.size(), builder.getI32Type());
    Value dense =
        arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef<int32_t>(places)));
    if (matchPattern(thread, m_Zero()))
      return dense;
    return arith::AddIOp::create(builder, loc, splat(thread, places.size()), dense);
  };
  SmallVector<Value> memories, stored;
  for (Value &value : values) {
    value = dropRepeats(value, repeats);
    stored.push_back(toStorage(value));
    memories.push_back(allocate("partial", getElementTypeOrSelf(stored.back().getType()), int64_t(next) * numRegisters));
  }
  Value storeOffsets = offsets(writer, 1);
  predicated(owner, [&] {
    for (auto [value, memory] : llvm::zip(stored, memories))
      msl::StoreOp::create(builder, loc, value, memory, storeOffsets, Value(), Value(), 1, 1);
  });
  Value loadOffsets = offsets(reader, partials);
  SmallVector<Value> loaded;
  for (auto [value, memory] : llvm::zip(stored, memories)) {
    Type storage = getElementTypeOrSelf(value.getType());
    int32_t width = std::min<int64_t>(partials, 16 / getStorageBytes(storage));
    auto type = VectorType::get(numRegisters * partials, storage);
    Value read = msl::LoadOp::create(builder, loc, type, memory, loadOffsets, Value(), Value(), Value(), width, 1);
    loaded.push_back(read);
  }
  for (auto [value, original] : llvm::zip(loaded, values))
    value = fromStorage(value, getElementTypeOrSelf(original.getType()));
  values = reduceRegisters(op, loaded, partials - 1);
  for (Value &value : values)
    value = addRepeats(value, repeats, result.getRegisterBases().size());
}

Lowering::Handled Lowering::lowerReduce(Operation *op) {
  if (auto reduceOp = dyn_cast<tt::ReduceOp>(op))
    return reduce(reduceOp);
  return std::nullopt;
}

} // namespace triton_metal
