// Loads, stores and atomics.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

//===----------------------------------------------------------------------===//
// Repeated data
//===----------------------------------------------------------------------===//

Value Lowering::dropRepeats(Value vector, uint32_t repeats) {
  if (!vector || !repeats || !isa<VectorType>(vector.getType()))
    return vector;
  SmallVector<int64_t> bases;
  for (int64_t base = 1; base < cast<VectorType>(vector.getType()).getNumElements(); base *= 2)
    if (!(repeats & base))
      bases.push_back(base);
  return permute(vector, bases);
}

Value Lowering::addRepeats(Value vector, uint32_t repeats, unsigned numRegisterBits) {
  if (!repeats)
    return vector;
  SmallVector<int64_t> bases;
  int64_t next = 1;
  for (unsigned bit = 0; bit < numRegisterBits; ++bit)
    if (repeats >> bit & 1) {
      bases.push_back(0);
    } else {
      bases.push_back(next);
      next *= 2;
    }
  return permute(vector, bases);
}

void Lowering::predicated(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto ifOp = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

Value Lowering::toStorage(Value value) {
  Type type = value.getType();
  if (!getElementTypeOrSelf(type).isInteger(1))
    return value;
  Type storage = builder.getI8Type();
  if (auto vector = dyn_cast<VectorType>(type))
    storage = VectorType::get(vector.getShape(), storage);
  return arith::ExtUIOp::create(builder, loc, storage, value);
}

Value Lowering::fromStorage(Value value, Type elementType) {
  if (getElementTypeOrSelf(value.getType()) == elementType)
    return value;
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value,
                               zero(value.getType()));
}

Value Lowering::allocate(StringRef name, Type elementType, int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(topEnd);
  unsigned number = allocationNames[name]++;
  std::string unique = number ? (name + "_" + Twine(number + 1)).str() : name.str();
  auto type = msl::PtrType::get(elementType, msl::AddressSpace::Threadgroup);
  auto alloc = msl::AllocOp::create(builder, UnknownLoc::get(builder.getContext()), type,
                                    builder.getStringAttr(unique), builder.getI64IntegerAttr(count),
                                    builder.getI64IntegerAttr(1), IntegerAttr());
  topEnd = alloc;
  return alloc;
}

//===----------------------------------------------------------------------===//
// Access width
//===----------------------------------------------------------------------===//

Lowering::Access Lowering::accessOf(Operation *op, Value pointer, Value mask,
                                    const LinearLayout &layout) {
  // Registers that step through neighbours along one dimension, repeats left out.
  int32_t run = 1;
  SmallVector<uint32_t> bases;
  for (uint32_t base : layout.getRegisterBases())
    if (base)
      bases.push_back(base);
  for (unsigned dim = 0; dim < layout.getRank() && !bases.empty(); ++dim) {
    if (bases[0] != uint32_t(1) << layout.dimShift(dim) || layout.getShape()[dim] == 1)
      continue;
    for (uint32_t base : bases) {
      if (base != uint32_t(run) << layout.dimShift(dim) || run >= layout.getShape()[dim])
        break;
      run *= 2;
    }
    break;
  }
  Access access;
  if (auto width = op->getAttrOfType<IntegerAttr>(ttm::TTMDialect::getWidthAttrName()))
    access.width = std::min<int64_t>(width.getInt(), run);
  if (!mask)
    access.maskWidth = 1;
  else if (auto width = op->getAttrOfType<IntegerAttr>(ttm::TTMDialect::getMaskWidthAttrName()))
    access.maskWidth = std::min<int64_t>(width.getInt(), run);
  return access;
}

void Lowering::useAlignmentTest(Access &access, const Address &address, Value mask, Value tileMask,
                                Value &full) {
  if (!alignmentTest || access.width == 1)
    return;
  if (mask && !full)
    full = uniformMask(tileMask);
  // Without a test for the whole tile there is one body only, which must do for any alignment.
  if (!address.base || (mask && !full)) {
    access.width = 1;
    return;
  }
  full = full ? arith::AndIOp::create(builder, loc, alignmentTest, full) : alignmentTest;
  access.maskWidth = 1;
}

Value Lowering::maskOf(Value mask) {
  return mask && !tt::isConstantBool(mask, true) ? get(mask) : Value();
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

LogicalResult Lowering::load(tt::LoadOp op) {
  Address address = addressOf(op.getPtr());
  Value mask = maskOf(op.getMask());
  Value other = op.getOther() ? get(op.getOther()) : Value();
  Type type = convertType(op.getType());
  if (isa<tt::PtrType>(getElementTypeOrSelf(op.getType())))
    // Pointers in memory are addresses.
    type = isa<VectorType>(type) ? type : builder.getI64Type();
  auto emit = [&](Type resultType, const Address &at, Value mask, Value other, Value full,
                  Access access) -> Value {
    if (at.base)
      return msl::LoadOp::create(builder, loc, resultType, at.base, at.offsets, mask, other, full,
                                 access.width, access.maskWidth, op.getIsVolatile());
    return msl::LoadAddressOp::create(builder, loc, resultType, at.offsets, mask, other, full,
                                      access.width, access.maskWidth, op.getIsVolatile());
  };
  auto finish = [&](Value loaded) {
    if (isa<tt::PtrType>(op.getType()))
      loaded = msl::IntToPtrOp::create(builder, loc, convertType(op.getType()), loaded);
    map(op, loaded);
    return success();
  };
  if (!isa<VectorType>(type)) {
    if (other && isa<msl::PtrType>(other.getType()))
      other = msl::PtrToIntOp::create(builder, loc, other);
    return finish(emit(type, address, mask, other, {}, {}));
  }
  if (op.getOther() && !other)
    return op.emitOpError("takes pointers as the other values");

  LinearLayout layout = layoutOf(op);
  uint32_t repeats = layout.freeMask(InDim::Register);
  Access access = accessOf(op, op.getPtr(), mask, layout);
  Value full;
  int64_t registers = layout.getNumRegisters() >> llvm::popcount(repeats);
  // A uniform test pays where it saves more than one test.
  if (mask && registers > access.maskWidth)
    full = uniformMask(op.getMask());
  useAlignmentTest(access, address, mask, op.getMask(), full);
  address.offsets = dropRepeats(address.offsets, repeats);
  Type resultType = VectorType::get(registers, cast<VectorType>(type).getElementType());
  Value loaded = emit(resultType, address, dropRepeats(mask, repeats), dropRepeats(other, repeats),
                      full, access);
  map(op, addRepeats(loaded, repeats, layout.getRegisterBases().size()));
  return success();
}

LogicalResult Lowering::store(tt::StoreOp op) {
  Address address = addressOf(op.getPtr());
  Value mask = maskOf(op.getMask());
  Value value = get(op.getValue());
  if (isa<tt::PtrType>(op.getValue().getType()))
    value = msl::PtrToIntOp::create(builder, loc, value);
  else if (isa<tt::PtrType>(getElementTypeOrSelf(op.getValue().getType())))
    return op.emitOpError("stores a tile of pointers; store their integers (tl.cast to int64)");
  auto emit = [&](Value full, Access access) {
    if (address.base)
      msl::StoreOp::create(builder, loc, value, address.base, address.offsets, mask, full,
                           access.width, access.maskWidth);
    else
      msl::StoreAddressOp::create(builder, loc, value, address.offsets, mask, full, access.width,
                                  access.maskWidth);
  };
  uint32_t allSimdgroups = numSimdgroups - 1;
  if (!isa<VectorType>(value.getType())) {
    // One thread stores what all of them hold.
    predicated(threadBitsAreZero(31, allSimdgroups), [&] { emit({}, {}); });
    return success();
  }
  LinearLayout layout = layoutOf(op.getValue());
  uint32_t repeats = layout.freeMask(InDim::Register);
  Access access = accessOf(op, op.getPtr(), mask, layout);
  Value full;
  int64_t registers = layout.getNumRegisters() >> llvm::popcount(repeats);
  if (mask && registers > access.maskWidth)
    full = uniformMask(op.getMask());
  useAlignmentTest(access, address, mask, op.getMask(), full);
  value = dropRepeats(value, repeats);
  address.offsets = dropRepeats(address.offsets, repeats);
  mask = dropRepeats(mask, repeats);
  predicated(threadBitsAreZero(layout.freeMask(InDim::Lane), layout.freeMask(InDim::Simdgroup)),
             [&] { emit(full, access); });
  return success();
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static std::optional<msl::AtomicKind> convertKind(tt::RMWOp kind) {
  switch (kind) {
  case tt::RMWOp::AND:
    return msl::AtomicKind::And;
  case tt::RMWOp::OR:
    return msl::AtomicKind::Or;
  case tt::RMWOp::XOR:
    return msl::AtomicKind::Xor;
  case tt::RMWOp::ADD:
    return msl::AtomicKind::Add;
  case tt::RMWOp::FADD:
    return msl::AtomicKind::FAdd;
  case tt::RMWOp::MAX:
    return msl::AtomicKind::Max;
  case tt::RMWOp::MIN:
    return msl::AtomicKind::Min;
  case tt::RMWOp::UMAX:
    return msl::AtomicKind::UMax;
  case tt::RMWOp::UMIN:
    return msl::AtomicKind::UMin;
  case tt::RMWOp::XCHG:
    return msl::AtomicKind::Exchange;
  }
  return std::nullopt;
}

/// What an atomic asks of the accesses around it. Among the threads of one program (`cta`) the
/// order is that of the program: barriers see to it wherever threads meet. No other device and no
/// CPU takes part in a launch, so `sys` is `gpu`.
static msl::MemoryOrder convertOrder(tt::MemSemantic sem, tt::MemSyncScope scope) {
  if (scope == tt::MemSyncScope::CTA)
    return msl::MemoryOrder::Relaxed;
  switch (sem) {
  case tt::MemSemantic::RELAXED:
    return msl::MemoryOrder::Relaxed;
  case tt::MemSemantic::ACQUIRE:
    return msl::MemoryOrder::Acquire;
  case tt::MemSemantic::RELEASE:
    return msl::MemoryOrder::Release;
  case tt::MemSemantic::ACQUIRE_RELEASE:
    return msl::MemoryOrder::AcqRel;
  }
  return msl::MemoryOrder::AcqRel;
}

/// Metal's atomics are 32 bits wide, and for floats only addition and exchange.
static LogicalResult checkAtomic(Operation *op, Type element) {
  if (element.getIntOrFloatBitWidth() == 32)
    return success();
  return op->emitOpError("updates ")
         << element << " atomically; Metal's atomics have 32 bits: use int32 or float32 in memory";
}

/// Runs an atomic operation in the threads that own data, and gives its result to all that hold it.
static Value inOwners(OpBuilder &builder, Location loc, Value condition, Value none,
                      llvm::function_ref<Value()> emit) {
  if (!condition)
    return emit();
  auto ifOp = scf::IfOp::create(builder, loc, none.getType(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(builder, loc, emit());
  builder.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(builder, loc, none);
  return ifOp.getResult(0);
}

Value Lowering::broadcastFromOwner(Value value, const LinearLayout &layout) {
  return convertThroughMemory(value, layout, layout, "broadcast");
}

LogicalResult Lowering::atomicRMW(tt::AtomicRMWOp op) {
  Type element = getElementTypeOrSelf(op.getVal().getType());
  if (isa<tt::PtrType>(element) || failed(checkAtomic(op, element)))
    return failure();
  std::optional<msl::AtomicKind> kind = convertKind(op.getAtomicRmwOp());
  if (isa<FloatType>(element) && kind != msl::AtomicKind::FAdd && kind != msl::AtomicKind::Exchange)
    return op.emitOpError("needs an atomic of floats that Metal does not have: use integers");
  Address address = addressOf(op.getPtr());
  if (!address.base)
    return op.emitOpError(
        "goes through pointers without a common base, which atomics in Metal cannot: offset one "
        "argument of the kernel");
  Value mask = maskOf(op.getMask());
  Value value = get(op.getVal());
  bool used = !op.getResult().use_empty();

  LinearLayout layout;
  uint32_t repeats = 0, laneMask = 31, simdgroupMask = numSimdgroups - 1;
  if (isa<VectorType>(value.getType())) {
    layout = layoutOf(op.getVal());
    repeats = layout.freeMask(InDim::Register);
    laneMask = layout.freeMask(InDim::Lane);
    simdgroupMask = layout.freeMask(InDim::Simdgroup);
  }
  value = dropRepeats(value, repeats);
  mask = dropRepeats(mask, repeats);
  address.offsets = dropRepeats(address.offsets, repeats);
  auto emit = [&]() -> Value {
    return msl::AtomicRMWOp::create(builder, loc, value.getType(), *kind, address.base,
                                    address.offsets, value, mask,
                                    convertOrder(op.getSem(), op.getScope()));
  };
  Value owner = threadBitsAreZero(laneMask, simdgroupMask);
  if (!used) {
    predicated(owner, [&] { emit(); });
    return success();
  }
  Value result = inOwners(builder, loc, owner, owner ? zero(value.getType()) : Value(), emit);
  return finishAtomic(op, result, layout, owner);
}

LogicalResult Lowering::finishAtomic(Operation *op, Value result, const LinearLayout &layout,
                                     Value owner) {
  if (isa<VectorType>(result.getType())) {
    result = addRepeats(result, layout.freeMask(InDim::Register), layout.getRegisterBases().size());
    if (owner)
      result = broadcastFromOwner(result, layout);
  } else if (owner) {
    // A scalar is one element that every thread repeats.
    LinearLayout one(ArrayRef<int64_t>{1}, {}, SmallVector<uint32_t>(5, 0),
                     SmallVector<uint32_t>(llvm::Log2_32(numSimdgroups), 0));
    result = extractScalar(broadcastFromOwner(splat(result, 1), one));
  }
  map(op->getResult(0), result);
  return success();
}

LogicalResult Lowering::atomicCAS(tt::AtomicCASOp op) {
  Type element = getElementTypeOrSelf(op.getVal().getType());
  if (isa<tt::PtrType>(element) || failed(checkAtomic(op, element)))
    return failure();
  Address address = addressOf(op.getPtr());
  if (!address.base)
    return op.emitOpError(
        "goes through pointers without a common base, which atomics in Metal cannot: offset one "
        "argument of the kernel");
  Value compare = get(op.getCmp()), value = get(op.getVal());
  if (isa<FloatType>(element)) {
    // Bits are compared, as on other devices.
    Type i32 = builder.getI32Type();
    Type bits = isa<VectorType>(value.getType())
                    ? Type(VectorType::get(cast<VectorType>(value.getType()).getShape(), i32))
                    : i32;
    compare = arith::BitcastOp::create(builder, loc, bits, compare);
    value = arith::BitcastOp::create(builder, loc, bits, value);
    address.base = msl::PtrCastOp::create(
        builder, loc, msl::PtrType::get(i32, msl::AddressSpace::Device), address.base);
  }
  LinearLayout layout;
  uint32_t repeats = 0, laneMask = 31, simdgroupMask = numSimdgroups - 1;
  if (isa<VectorType>(value.getType())) {
    layout = layoutOf(op.getVal());
    repeats = layout.freeMask(InDim::Register);
    laneMask = layout.freeMask(InDim::Lane);
    simdgroupMask = layout.freeMask(InDim::Simdgroup);
  }
  value = dropRepeats(value, repeats);
  compare = dropRepeats(compare, repeats);
  address.offsets = dropRepeats(address.offsets, repeats);
  Value owner = threadBitsAreZero(laneMask, simdgroupMask);
  Value result =
      inOwners(builder, loc, owner, owner ? zero(value.getType()) : Value(), [&]() -> Value {
        return msl::AtomicCASOp::create(builder, loc, value.getType(), address.base,
                                        address.offsets, compare, value, Value(),
                                        convertOrder(op.getSem(), op.getScope()));
      });
  if (isa<FloatType>(element))
    result = arith::BitcastOp::create(
        builder, loc,
        isa<VectorType>(value.getType())
            ? Type(VectorType::get(cast<VectorType>(value.getType()).getShape(), element))
            : element,
        result);
  if (op.getResult().use_empty())
    return success();
  return finishAtomic(op, result, layout, owner);
}

Lowering::Handled Lowering::lowerMemory(Operation *op) {
  if (auto loadOp = dyn_cast<tt::LoadOp>(op))
    return load(loadOp);
  if (auto storeOp = dyn_cast<tt::StoreOp>(op))
    return store(storeOp);
  if (auto atomic = dyn_cast<tt::AtomicRMWOp>(op))
    return atomicRMW(atomic);
  if (auto atomic = dyn_cast<tt::AtomicCASOp>(op))
    return atomicCAS(atomic);
  return std::nullopt;
}

} // namespace triton_metal
