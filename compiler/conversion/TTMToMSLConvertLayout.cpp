// Layout conversions: by renaming registers, by shuffles within the SIMD-group, or through
// threadgroup memory.

#include "conversion/TTMToMSL.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal {

/// Whether all threads have this scalar in common: only numbers that are computed from a thread's
/// position differ.
static bool isUniform(Value scalar) {
  SmallVector<Value> work{scalar};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || isa<VectorType>(value.getType()) || !seen.insert(value).second)
      continue;
    if (isa<msl::LaneOp, msl::SimdgroupOp>(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

FailureOr<Value> Lowering::convertLayout(Value value, const LinearLayout &from,
                                         const LinearLayout &to, StringRef name) {
  if (auto splatOp = value.getDefiningOp<msl::SplatOp>(); splatOp && isUniform(splatOp.getValue()))
    return splat(splatOp.getValue(), to.getNumRegisters());
  LayoutConversion conversion(from, to);
  switch (conversion.kind) {
  case LayoutConversion::Kind::Identity:
    return value;
  case LayoutConversion::Kind::Registers: {
    SmallVector<int64_t> bases;
    for (const HardwareIndex &place : conversion.reg)
      bases.push_back(place.reg);
    return permute(value, bases);
  }
  case LayoutConversion::Kind::Simdgroup:
    if (Value shuffled = convertThroughShuffles(value, conversion, to.getNumRegisters()))
      return shuffled;
    [[fallthrough]];
  case LayoutConversion::Kind::Threadgroup:
    return convertThroughMemory(value, from, to, name);
  }
  llvm_unreachable("covered");
}

/// Result register r of lane l is source register A(r) ^ B(l) of lane F(l). Where A's lanes depend
/// on r as well, several lanes' worth of registers would have to travel, and memory is better.
Value Lowering::convertThroughShuffles(Value value, const LayoutConversion &conversion,
                                       unsigned numRegisters) {
  SmallVector<int64_t> bases;
  for (const HardwareIndex &place : conversion.reg) {
    if (place.lane || place.simdgroup)
      return {};
    bases.push_back(place.reg);
  }
  // Which bits of the thread's position choose among registers, and by what.
  SmallVector<std::pair<Value, uint32_t>> choices;
  SmallVector<uint32_t> laneValues, simdgroupValues;
  bool isIdentity = true, isPermutationOfBits = true;
  uint32_t seen = 0;
  auto visit = [&](ArrayRef<HardwareIndex> places, Value position, SmallVector<uint32_t> &values,
                   bool isLane) {
    for (auto [bit, place] : llvm::enumerate(places)) {
      values.push_back(place.lane);
      isIdentity &= place.lane == (isLane ? 1u << bit : 0u);
      isPermutationOfBits &= llvm::popcount(place.lane) <= 1 && !(seen & place.lane);
      seen |= place.lane;
      if (place.reg)
        choices.push_back({position, bit});
    }
  };
  visit(conversion.lane, lane, laneValues, true);
  visit(conversion.simdgroup, simdgroup, simdgroupValues, false);
  // Every choice doubles what is shuffled.
  if (choices.size() > 3 || (!isIdentity && choices.size() > 1))
    return {};

  // Extra result bits, one for each choice, hold both alternatives until a select decides.
  SmallVector<int64_t> wideBases = bases;
  auto registerOf = [&](Value position, uint32_t bit) {
    return position == lane ? conversion.lane[bit].reg : conversion.simdgroup[bit].reg;
  };
  for (auto [position, bit] : choices)
    wideBases.push_back(registerOf(position, bit));
  Value wide = permute(value, wideBases);

  if (!isIdentity) {
    Type i32 = builder.getI32Type();
    Value source;
    if (isPermutationOfBits) {
      source = threadSum(laneValues, simdgroupValues);
    } else {
      source = constant(i32, 0);
      auto addBits = [&](ArrayRef<uint32_t> values, bool isLane) {
        for (auto [bit, sourceLane] : llvm::enumerate(values)) {
          if (!sourceLane)
            continue;
          SmallVector<uint32_t> laneBit(5, 0), simdgroupBit(simdgroupValues.size(), 0);
          (isLane ? laneBit : simdgroupBit)[bit] = sourceLane;
          source = arith::XOrIOp::create(builder, loc, source, threadSum(laneBit, simdgroupBit));
        }
      };
      addBits(laneValues, true);
      addBits(simdgroupValues, false);
    }
    wide = shuffleStorage(wide, [&](Value bits) -> Value {
      return msl::SimdShuffleOp::create(builder, loc, bits, source);
    });
  }
  // The last choice is the highest register bit.
  for (size_t left = choices.size(); left > 0; --left) {
    auto [position, bit] = choices[left - 1];
    int64_t half = int64_t(numRegisters) << (left - 1);
    SmallVector<int64_t> lower;
    for (int64_t base = 1; base < half; base *= 2)
      lower.push_back(base);
    Value isZero =
        threadBitsAreZero(position == lane ? 1u << bit : 0, position == lane ? 0 : 1u << bit);
    wide = arith::SelectOp::create(builder, loc, isZero, permute(wide, lower),
                                   permute(wide, lower, half));
  }
  return wide;
}

Value Lowering::shuffleStorage(Value value, llvm::function_ref<Value(Value)> shuffle) {
  Type type = value.getType(), element = getElementTypeOrSelf(type);
  auto like = [&](Type other) -> Type {
    if (auto vector = dyn_cast<VectorType>(type))
      return VectorType::get(vector.getShape(), other);
    return other;
  };
  if (element.isInteger(1))
    return fromStorage(shuffle(toStorage(value)), element);
  if (element.isBF16()) {
    Value bits = arith::BitcastOp::create(builder, loc, like(builder.getI16Type()), value);
    return arith::BitcastOp::create(builder, loc, type, shuffle(bits));
  }
  if (element.isInteger(64)) {
    // SIMD-group functions take 32 bits at most.
    Type i32 = like(builder.getI32Type());
    Value low = shuffle(arith::TruncIOp::create(builder, loc, i32, value));
    Value upper = arith::ShRUIOp::create(builder, loc, value, constant(type, 32));
    Value high = shuffle(arith::TruncIOp::create(builder, loc, i32, upper));
    Value result = arith::ShLIOp::create(
        builder, loc, arith::ExtUIOp::create(builder, loc, type, high), constant(type, 32));
    return arith::OrIOp::create(builder, loc, result,
                                arith::ExtUIOp::create(builder, loc, type, low));
  }
  return shuffle(value);
}

//===----------------------------------------------------------------------===//
// Through threadgroup memory
//===----------------------------------------------------------------------===//

/// Registers from register 0 on, in powers of two, that hold consecutive elements; at most 16 bytes
/// of them.
static int32_t consecutive(const LinearLayout &layout, int64_t bytes) {
  int64_t count = 1;
  for (uint32_t base : layout.getRegisterBases()) {
    if (base != count || 2 * count * bytes > 16)
      break;
    count *= 2;
  }
  return count;
}

Value Lowering::convertThroughMemory(Value value, const LinearLayout &from, const LinearLayout &to,
                                     StringRef name) {
  Type element = getElementTypeOrSelf(value.getType());
  value = toStorage(value);
  Type storage = getElementTypeOrSelf(value.getType());
  int64_t bytes = getStorageBytes(storage), count = from.getNumElements();

  // What is repeated is written once.
  uint32_t repeats = from.freeMask(InDim::Register);
  SmallVector<uint32_t> registers;
  for (auto [bit, base] : llvm::enumerate(from.getRegisterBases()))
    if (!(repeats >> bit & 1))
      registers.push_back(base);
  LinearLayout source(from.getShape(), registers, from.getLaneBases(), from.getSimdgroupBases());
  value = dropRepeats(value, repeats);
  uint32_t resultRepeats = to.freeMask(InDim::Register);
  registers.clear();
  for (auto [bit, base] : llvm::enumerate(to.getRegisterBases()))
    if (!(resultRepeats >> bit & 1))
      registers.push_back(base);
  LinearLayout target(to.getShape(), registers, to.getLaneBases(), to.getSimdgroupBases());

  int32_t storeWidth = consecutive(source, bytes), loadWidth = consecutive(target, bytes);
  // 128 bytes pass all 32 banks; what follows starts some banks on, at an address that vectors can
  // begin at.
  uint32_t pad =
      std::max<int32_t>({storeWidth, loadWidth, int32_t(4 / std::min<int64_t>(bytes, 4))});
  unsigned shift = llvm::Log2_64(128 / bytes);
  if (count <= 128 / bytes ||
      (storeWidth > 1 && storeWidth == loadWidth && storeWidth * bytes == 16))
    pad = 0;

  int64_t budget = freeThreadgroupBytes();
  auto paddedCount = [&](int64_t elements) { return elements + ((elements - 1) >> shift) * pad; };
  int64_t rounds = 1;
  while (paddedCount(count / rounds) * bytes > budget)
    rounds *= 2;
  int64_t perRound = count / rounds;
  Value memory = allocate(name, storage, paddedCount(perRound));
  Value owner = threadBitsAreZero(from.freeMask(InDim::Lane), from.freeMask(InDim::Simdgroup));

  auto offsetsOf = [&](const LinearLayout &layout) -> Value {
    if (rounds == 1)
      return paddedIndices(layout, shift, pad);
    Value flat = paddedIndices(layout, 0, 0);
    Value inRound =
        arith::AndIOp::create(builder, loc, flat, constant(flat.getType(), perRound - 1));
    if (!pad)
      return inRound;
    Value rows = arith::ShRUIOp::create(builder, loc, inRound, constant(flat.getType(), shift));
    rows = arith::MulIOp::create(builder, loc, rows, constant(flat.getType(), pad));
    return arith::AddIOp::create(builder, loc, inRound, rows);
  };
  auto maskOf = [&](const LinearLayout &layout, Value round) -> Value {
    Value flat = paddedIndices(layout, 0, 0);
    Value which = arith::ShRUIOp::create(builder, loc, flat,
                                         constant(flat.getType(), llvm::Log2_64(perRound)));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, which,
                                 msl::SplatOp::create(builder, loc, flat.getType(), round));
  };

  Value storeOffsets = offsetsOf(source), loadOffsets = offsetsOf(target);
  Type resultType = VectorType::get(target.getNumRegisters(), storage);
  // `sofar`: what earlier rounds brought, which stays.
  auto exchange = [&](Value storeMask, Value loadMask, Value sofar) -> Value {
    predicated(owner, [&] {
      msl::StoreOp::create(builder, loc, value, memory, storeOffsets, storeMask, Value(),
                           storeWidth, storeMask ? storeWidth : 1);
    });
    return msl::LoadOp::create(builder, loc, resultType, memory, loadOffsets, loadMask, sofar,
                               Value(), loadWidth, loadMask ? loadWidth : 1);
  };
  Value result;
  if (rounds == 1) {
    result = exchange({}, {}, {});
  } else {
    auto bound = [&](int64_t number) { return constant(builder.getI32Type(), number); };
    auto loop = scf::ForOp::create(builder, loc, bound(0), bound(rounds), bound(1),
                                   constant(resultType, 0));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value round = loop.getInductionVar();
    Value sofar = exchange(maskOf(source, round), maskOf(target, round), loop.getRegionIterArg(0));
    scf::YieldOp::create(builder, loc, sofar);
    result = loop.getResult(0);
  }
  return addRepeats(fromStorage(result, element), resultRepeats, to.getRegisterBases().size());
}

} // namespace triton_metal
