// Reductions: the thread's registers first, then the lanes of the SIMD-group, then one round
// through threadgroup memory across SIMD-groups. What depends on the order of the elements is
// combined in their order. It is the same in every run.

#include "conversion/TTMToMSL.h"

#include "transforms/Budget.h"

using namespace mlir;

namespace triton_metal {

/// The one operation of a combine region, if it is one and does not care for the order of its
/// operands.
static Operation *getCommutativeCombiner(tt::ReduceOp op) {
  Block &block = op.getCombineOp().front();
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block.getOperations(), 2))
    return nullptr;
  Operation *combiner = &block.front();
  bool usesBoth = combiner->getNumOperands() == 2 && combiner->getNumResults() == 1 &&
                  block.getTerminator()->getOperand(0) == combiner->getResult(0) &&
                  ((combiner->getOperand(0) == block.getArgument(0) &&
                    combiner->getOperand(1) == block.getArgument(1)) ||
                   (combiner->getOperand(0) == block.getArgument(1) &&
                    combiner->getOperand(1) == block.getArgument(0)));
  if (!usesBoth ||
      !isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
           arith::XOrIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp,
           arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp, arith::MinimumFOp>(combiner))
    return nullptr;
  return combiner;
}

/// The larger or smaller of two numbers with its index, the lower (or higher) index where the
/// numbers are equal: any order gives the same. (A NaN, which compares with nothing, may or may not
/// come out.)
static bool isArgMinMax(tt::ReduceOp op) {
  Block &block = op.getCombineOp().front();
  if (block.getNumArguments() != 4)
    return false;
  Value value = block.getArgument(0), index = block.getArgument(1);
  Value otherValue = block.getArgument(2), otherIndex = block.getArgument(3);
  Operation *terminator = block.getTerminator();
  auto first = terminator->getOperand(0).getDefiningOp<arith::SelectOp>();
  auto second = terminator->getOperand(1).getDefiningOp<arith::SelectOp>();
  if (!first || !second || first.getCondition() != second.getCondition() ||
      first.getTrueValue() != value || first.getFalseValue() != otherValue ||
      second.getTrueValue() != index || second.getFalseValue() != otherIndex)
    return false;
  // value > other || (value == other && index < otherIndex), in either order.
  auto isCompare = [](Value condition, Value a, Value b, bool equal) {
    if (auto cmp = condition.getDefiningOp<arith::CmpFOp>())
      return cmp.getLhs() == a && cmp.getRhs() == b &&
             (equal ? cmp.getPredicate() == arith::CmpFPredicate::OEQ
                    : llvm::is_contained({arith::CmpFPredicate::OGT, arith::CmpFPredicate::OLT},
                                         cmp.getPredicate()));
    if (auto cmp = condition.getDefiningOp<arith::CmpIOp>())
      return cmp.getLhs() == a && cmp.getRhs() == b &&
             (equal ? cmp.getPredicate() == arith::CmpIPredicate::eq
                    : llvm::is_contained({arith::CmpIPredicate::sgt, arith::CmpIPredicate::slt,
                                          arith::CmpIPredicate::ugt, arith::CmpIPredicate::ult},
                                         cmp.getPredicate()));
    return false;
  };
  auto either = first.getCondition().getDefiningOp<arith::OrIOp>();
  if (!either)
    return false;
  for (auto [better, tie] :
       {std::pair(either.getLhs(), either.getRhs()), std::pair(either.getRhs(), either.getLhs())}) {
    auto both = tie.getDefiningOp<arith::AndIOp>();
    if (!both || !isCompare(better, value, otherValue, false))
      continue;
    for (auto [equal, lower] :
         {std::pair(both.getLhs(), both.getRhs()), std::pair(both.getRhs(), both.getLhs())})
      if (isCompare(equal, value, otherValue, true) && isCompare(lower, index, otherIndex, false))
        return true;
  }
  return false;
}

/// The SIMD-group function that does what the combiner does, for every number. What Metal's
/// simd_max and simd_min make of a NaN is not documented, so floats are compared lane by lane;
/// 64-bit numbers and single bits it does not take.
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
  auto like = [&](Type type) -> Type {
    return vector ? VectorType::get(vector.getShape(), type) : type;
  };
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
    types.push_back(VectorType::get(type.getNumElements() >> llvm::popcount(uint64_t(bits)),
                                    type.getElementType()));
  }
  auto reduced = msl::ReduceRegistersOp::create(builder, loc, types, values, bits);
  Region &region = reduced.getCombine();
  Block &block = op.getCombineOp().front();
  OpBuilder::InsertionGuard guard(builder);
  Block *body =
      builder.createBlock(&region, {}, block.getArgumentTypes(),
                          llvm::map_to_vector(block.getArguments(), [](BlockArgument argument) {
                            return argument.getLoc();
                          }));
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
      return inside.emitOpError(
          "cannot be part of a reduction's combine function: use arithmetic and tl.where");

  LinearLayout layout = layoutOf(op.getSrcs().front());
  SmallVector<Value> values =
      llvm::map_to_vector(op.getSrcs(), [&](Value value) { return get(value); });
  int64_t bytes = 0;
  for (Type type : op.getElementTypes()) {
    if (isa<tt::PtrType>(type))
      return op.emitOpError("reduces pointers; reduce their offsets instead");
    bytes += getStorageBytes(type);
  }

  // Partial results that need too much memory, and bases that mix the axis with others, need
  // another layout.
  auto partialBytes = [&](const LinearLayout &candidate) {
    uint32_t simdgroupBits = candidate.bitsAlong(InDim::Simdgroup, axis);
    if (!simdgroupBits)
      return int64_t(0);
    auto kept = candidate.sliceDim(axis);
    int64_t threads =
        1 << (llvm::popcount(31 & ~kept->freeMask(InDim::Lane)) +
              llvm::popcount((numSimdgroups - 1) & ~kept->freeMask(InDim::Simdgroup)));
    return bytes * kept->getNumRegisters() * threads << llvm::popcount(simdgroupBits);
  };
  if (!layout.isSeparable(axis) || partialBytes(layout) > Budget::of(op).getPartialBytes()) {
    // The axis last: lanes and SIMD-groups are spread over the other dimensions first.
    SmallVector<unsigned> order;
    for (unsigned dim = layout.getRank(); dim-- > 0;)
      if (dim != axis)
        order.push_back(dim);
    order.push_back(axis);
    LinearLayout apart = LinearLayout::blocked(
        layout.getShape(), SmallVector<int64_t>(layout.getRank(), 1), order, numSimdgroups);
    for (Value &value : values) {
      FailureOr<Value> converted = convertLayout(value, layout, apart, "spread");
      if (failed(converted))
        return failure();
      value = *converted;
    }
    layout = apart;
  }
  LinearLayout result = *layout.sliceDim(axis);
  if (getCommutativeCombiner(op) || isArgMinMax(op))
    reduceInAnyOrder(op, values, layout, axis);
  else
    reduceInOrder(op, values, layout, axis);

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

SmallVector<Value> Lowering::combineLanes(tt::ReduceOp op, ValueRange values, unsigned laneBit) {
  SmallVector<Value> others =
      llvm::map_to_vector(values, [&](Value value) { return shuffleXor(value, 1u << laneBit); });
  if (getCommutativeCombiner(op))
    return combine(op, values, others);
  // Both lanes combine in the same order, so that they get the same result.
  Value isFirst = threadBitsAreZero(1u << laneBit, 0);
  SmallVector<Value> first, second;
  for (auto [own, other] : llvm::zip(values, others)) {
    first.push_back(arith::SelectOp::create(builder, loc, isFirst, own, other));
    second.push_back(arith::SelectOp::create(builder, loc, isFirst, other, own));
  }
  return combine(op, first, second);
}

SmallVector<Value> Lowering::combinePairs(tt::ReduceOp op, ValueRange values,
                                          unsigned registerBit) {
  SmallVector<Value> first, second;
  for (Value value : values) {
    SmallVector<int64_t> bases;
    for (int64_t base = 1; base < cast<VectorType>(value.getType()).getNumElements(); base *= 2)
      if (base != int64_t(1) << registerBit)
        bases.push_back(base);
    first.push_back(permute(value, bases));
    second.push_back(permute(value, bases, int64_t(1) << registerBit));
  }
  return combine(op, first, second);
}

void Lowering::reduceInAnyOrder(tt::ReduceOp op, SmallVector<Value> &values,
                                const LinearLayout &layout, unsigned axis) {
  if (uint32_t bits = layout.bitsAlong(InDim::Register, axis))
    values = reduceRegisters(op, values, bits);

  uint32_t laneBits = layout.bitsAlong(InDim::Lane, axis);
  std::optional<msl::SimdReduceKind> kind = getSimdReduceKind(getCommutativeCombiner(op));
  if (laneBits == 31 && kind) {
    values[0] = msl::SimdReduceOp::create(builder, loc, *kind, values[0]);
  } else {
    for (unsigned bit = 0; bit < 5; ++bit)
      if (laneBits >> bit & 1)
        values = combineLanes(op, values, bit);
  }

  SmallVector<unsigned> simdgroupBits;
  for (unsigned bit = 0; bit < layout.getSimdgroupBases().size(); ++bit)
    if (layout.bitsAlong(InDim::Simdgroup, axis) >> bit & 1)
      simdgroupBits.push_back(bit);
  if (!simdgroupBits.empty()) {
    values = readPartials(values, simdgroupBits, layout.freeMask(InDim::Lane) | laneBits,
                          layout.freeMask(InDim::Simdgroup));
    values = reduceRegisters(op, values, (int64_t(1) << simdgroupBits.size()) - 1);
  }
}

void Lowering::reduceInOrder(tt::ReduceOp op, SmallVector<Value> &values,
                             const LinearLayout &layout, unsigned axis) {
  // Neighbours along the axis first, then pairs of pairs: bit by bit of the coordinate, wherever
  // the bit is.
  struct Bit {
    uint32_t coordinate;
    InDim part;
    unsigned bit;
  };
  SmallVector<Bit> bits;
  for (InDim part : {InDim::Register, InDim::Lane, InDim::Simdgroup})
    for (auto [bit, base] : llvm::enumerate(layout.getBases(part)))
      if (layout.bitsAlong(part, axis) >> bit & 1)
        bits.push_back({base, part, unsigned(bit)});
  llvm::sort(bits, [](const Bit &a, const Bit &b) { return a.coordinate < b.coordinate; });

  uint32_t reducedRegisters = 0, freeLanes = layout.freeMask(InDim::Lane);
  uint32_t freeSimdgroups = layout.freeMask(InDim::Simdgroup);
  for (size_t index = 0; index < bits.size(); ++index) {
    const Bit &bit = bits[index];
    if (bit.part == InDim::Register) {
      // Registers that are gone have moved the others down.
      unsigned position = bit.bit - llvm::popcount(reducedRegisters & ((1u << bit.bit) - 1));
      values = combinePairs(op, values, position);
      reducedRegisters |= 1u << bit.bit;
    } else if (bit.part == InDim::Lane) {
      values = combineLanes(op, values, bit.bit);
      freeLanes |= 1u << bit.bit;
    } else {
      SmallVector<unsigned> simdgroupBits{bit.bit};
      while (index + 1 < bits.size() && bits[index + 1].part == InDim::Simdgroup)
        simdgroupBits.push_back(bits[++index].bit);
      values = readPartials(values, simdgroupBits, freeLanes, freeSimdgroups);
      for (unsigned simdgroupBit : simdgroupBits) {
        values = combinePairs(op, values, 0);
        freeSimdgroups |= 1u << simdgroupBit;
      }
    }
  }
}

SmallVector<Value> Lowering::readPartials(ValueRange values, ArrayRef<unsigned> simdgroupBits,
                                          uint32_t freeLanes, uint32_t freeSimdgroups) {
  // A partial result's place: [register][simdgroup, lane that hold different results][simdgroup to
  // be combined].
  uint32_t partials = 1u << simdgroupBits.size(), next = partials;
  uint32_t combined = 0;
  unsigned numSimdgroupBits = llvm::Log2_32(numSimdgroups);
  SmallVector<uint32_t> laneValues(5, 0), writerValues(numSimdgroupBits, 0),
      readerValues(numSimdgroupBits, 0);
  for (auto [position, bit] : llvm::enumerate(simdgroupBits)) {
    writerValues[bit] = 1u << position;
    combined |= 1u << bit;
  }
  for (unsigned bit = 0; bit < 5; ++bit)
    if (!(freeLanes >> bit & 1)) {
      laneValues[bit] = next;
      next *= 2;
    }
  for (unsigned bit = 0; bit < numSimdgroupBits; ++bit)
    if (!((freeSimdgroups | combined) >> bit & 1)) {
      readerValues[bit] = writerValues[bit] = next;
      next *= 2;
    }
  int64_t numRegisters = cast<VectorType>(values[0].getType()).getNumElements();
  Value writer = threadSum(laneValues, writerValues, "own_partial");
  Value reader = threadSum(laneValues, readerValues, "first_partial");
  // Of threads that hold the same, one writes it.
  Value owner = threadBitsAreZero(freeLanes, freeSimdgroups & ~combined);

  auto offsets = [&](Value thread, uint32_t perRegister) -> Value {
    SmallVector<int32_t> places;
    for (uint32_t reg = 0; reg < numRegisters; ++reg)
      for (uint32_t partial = 0; partial < perRegister; ++partial)
        places.push_back(reg * next + partial);
    if (places.size() == 1)
      return splat(thread, 1);
    auto type = VectorType::get(places.size(), builder.getI32Type());
    Value dense = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef<int32_t>(places)));
    if (matchPattern(thread, m_Zero()))
      return dense;
    return arith::AddIOp::create(builder, loc, splat(thread, places.size()), dense);
  };
  SmallVector<Value> memories, stored, result;
  for (Value value : values) {
    stored.push_back(toStorage(value));
    memories.push_back(
        allocate("partial", getElementTypeOrSelf(stored.back().getType()), next * numRegisters));
  }
  Value storeOffsets = offsets(writer, 1);
  predicated(owner, [&] {
    for (auto [value, memory] : llvm::zip(stored, memories))
      msl::StoreOp::create(builder, loc, value, memory, storeOffsets, Value(), Value(), 1, 1);
  });
  Value loadOffsets = offsets(reader, partials);
  for (auto [value, memory, original] : llvm::zip(stored, memories, values)) {
    Type storage = getElementTypeOrSelf(value.getType());
    int32_t width = std::min<int64_t>(partials, 16 / getStorageBytes(storage));
    auto type = VectorType::get(numRegisters * partials, storage);
    Value read = msl::LoadOp::create(builder, loc, type, memory, loadOffsets, Value(), Value(),
                                     Value(), width, 1);
    result.push_back(fromStorage(read, getElementTypeOrSelf(original.getType())));
  }
  return result;
}

Lowering::Handled Lowering::lowerReduce(Operation *op) {
  if (auto reduceOp = dyn_cast<tt::ReduceOp>(op))
    return reduce(reduceOp);
  return std::nullopt;
}

} // namespace triton_metal
