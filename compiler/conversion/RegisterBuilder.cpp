#include "conversion/RegisterBuilder.h"

#include "transforms/ThreadConditions.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace triton_metal {

Value RegisterBuilder::constant(Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute = isa<FloatType>(element) ? TypedAttr(FloatAttr::get(element, double(value)))
                                                : TypedAttr(IntegerAttr::get(element, value));
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return arith::ConstantOp::create(*this, type, attribute);
}

Value RegisterBuilder::dense(ArrayRef<int32_t> values) {
  auto type = VectorType::get(values.size(), getI32Type());
  return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, values));
}

Value RegisterBuilder::splat(Value scalar, int64_t count) {
  return msl::SplatOp::create(*this, VectorType::get(count, scalar.getType()), scalar);
}

Value RegisterBuilder::extractScalar(Value vector) {
  if (auto splatOp = vector.getDefiningOp<msl::SplatOp>())
    return splatOp.getValue();
  if (cast<VectorType>(vector.getType()).getNumElements() > 1)
    vector = permute(vector, {});
  Value scalar = vector::ExtractOp::create(*this, vector, ArrayRef<int64_t>{0});
  return msl::UniformOp::create(*this, scalar);
}

Value RegisterBuilder::permute(Value vector, ArrayRef<int64_t> bases, int64_t offset) {
  auto type = cast<VectorType>(vector.getType());
  if (auto splatOp = vector.getDefiningOp<msl::SplatOp>())
    return splat(splatOp.getValue(), int64_t(1) << bases.size());
  bool identity = offset == 0 && int64_t(1) << bases.size() == type.getNumElements();
  for (auto [bit, base] : llvm::enumerate(bases))
    identity &= base == int64_t(1) << bit;
  if (identity)
    return vector;
  auto resultType = VectorType::get(int64_t(1) << bases.size(), type.getElementType());
  return createOrFold<msl::PermuteRegistersOp>(resultType, vector, bases, offset);
}

/// Arithmetic on integers that costs little and has no undefined results for some operands.
static bool isCheapArithmetic(Operation *op) {
  return isa_and_present<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
                         arith::XOrIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op);
}

Value RegisterBuilder::registersWithout(Value vector, uint32_t bits, unsigned depth) {
  SmallVector<int64_t> bases;
  for (int64_t base = 1; base < cast<VectorType>(vector.getType()).getNumElements(); base *= 2)
    if (!(bits & base))
      bases.push_back(base);
  Operation *op = vector.getDefiningOp();
  if (auto permuted = dyn_cast_or_null<msl::PermuteRegistersOp>(op)) {
    for (int64_t &base : bases)
      base = permuted.getSource(base) ^ permuted.getOffset();
    return permute(permuted.getValue(), bases, permuted.getOffset());
  }
  if (!isCheapArithmetic(op) || depth > 4)
    return permute(vector, bases);
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, registersWithout(operand, bits, depth + 1));
  Operation *result = insert(op->cloneWithoutRegions(operands));
  result->getResult(0).setType(VectorType::get(
      int64_t(1) << bases.size(), getElementTypeOrSelf(result->getResult(0).getType())));
  return result->getResult(0);
}

Value RegisterBuilder::castIntegers(Value value, Type elementType) {
  Type from = getElementTypeOrSelf(value.getType()),
       type = withElement(value.getType(), elementType);
  if (from == elementType)
    return value;
  if (from.getIntOrFloatBitWidth() < elementType.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(*this, type, value);
  return arith::TruncIOp::create(*this, type, value);
}

Value RegisterBuilder::shuffle(Value value, llvm::function_ref<Value(Value)> shuffleBits) {
  Type type = value.getType();
  switch (msl::ScalarType::get(getElementTypeOrSelf(type))->simdForm) {
  case msl::SimdForm::Itself:
    return shuffleBits(value);
  case msl::SimdForm::AsByte: {
    Value bits = shuffleBits(arith::ExtUIOp::create(*this, withElement(type, getI8Type()), value));
    return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, bits, zero(bits.getType()));
  }
  case msl::SimdForm::AsBits: {
    Type integers = getIntegerType(getElementTypeOrSelf(type).getIntOrFloatBitWidth());
    Value bits = arith::BitcastOp::create(*this, withElement(type, integers), value);
    return arith::BitcastOp::create(*this, type, shuffleBits(bits));
  }
  }
  llvm_unreachable("covered");
}

void RegisterBuilder::inThreads(const msl::ThreadSet &threads, llvm::function_ref<void()> body) {
  if (threads.contains(msl::InThreadsOp::getThreadsIn(getInsertionBlock())))
    return body();
  auto region = msl::InThreadsOp::create(*this, threads);
  InsertionGuard guard(*this);
  setInsertionPointToStart(region.getBodyBlock());
  body();
}

//===----------------------------------------------------------------------===//
// The thread's position
//===----------------------------------------------------------------------===//

Value RegisterBuilder::threadIndex(ArrayRef<uint32_t> lanes, ArrayRef<uint32_t> simdgroups,
                                   const Twine &name) {
  auto isZero = [](uint32_t value) { return value == 0; };
  if (llvm::all_of(lanes, isZero) && llvm::all_of(simdgroups, isZero))
    return zero(getI32Type());
  auto numbers = [&](ArrayRef<uint32_t> values) {
    return getDenseI32ArrayAttr(SmallVector<int32_t>(values.begin(), values.end()));
  };
  Location place = getUnknownLoc();
  if (!name.isTriviallyEmpty())
    place = NameLoc::get(getStringAttr(name), place);
  return msl::ThreadIndexOp::create(plain(), place, getI32Type(), numbers(lanes),
                                    numbers(simdgroups));
}

Value RegisterBuilder::isOneOf(const msl::ThreadSet &threads) {
  return msl::createIsOneOf(
      *this, getLoc(), threads, numSimdgroups, [&] { return lane(); }, [&] { return simdgroup(); });
}

Value RegisterBuilder::registerIndices(const LinearLayout &layout,
                                       llvm::function_ref<uint32_t(uint32_t)> field,
                                       llvm::function_ref<Value(Value)> general,
                                       const Twine &name) {
  auto registers = [&](llvm::function_ref<uint32_t(uint32_t)> value) {
    SmallVector<int32_t> values;
    for (uint32_t index = 0; index < layout.getNumRegisters(); ++index)
      values.push_back(value(layout.apply(index, 0, 0)));
    return dense(values);
  };
  auto through = [&](ArrayRef<uint32_t> bases) {
    return llvm::map_to_vector(bases, [&](uint32_t base) { return field(base); });
  };
  int64_t count = layout.getNumRegisters();
  if (layout.isPermutation()) {
    Value thread =
        threadIndex(through(layout.getLaneBases()), through(layout.getSimdgroupBases()), name);
    if (count == 1)
      return splat(thread, 1);
    if (matchPattern(thread, m_Zero()))
      return registers(field);
    return arith::AddIOp::create(*this, splat(thread, count), registers(field));
  }
  // Bases share bits: the flat index is an exclusive or, one term for each bit of the thread's
  // position.
  Value flat = registers([](uint32_t index) { return index; });
  auto addBits = [&](ArrayRef<uint32_t> bases, bool isLane) {
    for (auto [bit, base] : llvm::enumerate(bases)) {
      if (!base)
        continue;
      SmallVector<uint32_t> lanes(kLaneBits, 0), simdgroups(layout.getSimdgroupBases().size(), 0);
      (isLane ? lanes : simdgroups)[bit] = base;
      flat = arith::XOrIOp::create(*this, splat(threadIndex(lanes, simdgroups), count), flat);
    }
  };
  addBits(layout.getLaneBases(), true);
  addBits(layout.getSimdgroupBases(), false);
  return general(flat);
}

Value RegisterBuilder::flatIndices(const LinearLayout &layout) {
  return registerIndices(
      layout, [](uint32_t flat) { return flat; }, [](Value flat) { return flat; }, "place");
}

} // namespace triton_metal
